"""SM activity by DCGM, where a device has no GPM: tried with a dcgmi that prints what the real one does."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from geonode.bench import activity, nvml

HEADER = """#Entity   SMACT        SMOCC        TENSO        DRAMA        FP32A
ID
"""


class Ampere:
    """A device that NVML knows and that has no GPM: an A100."""

    def has_gpm(self):
        return False

    def ask(self, name, *arguments):
        return 3 if name == "nvmlDeviceGetIndex" else None

    def reading(self):
        return {"power_w": 250.0, "coarse_busy": 100.0}

    def describe(self):
        return {"name": "NVIDIA A100"}


def dcgmi(folder: Path, monkeypatch, body: str) -> Path:
    """A program of that name, alone on the path; it leaves its arguments beside it."""
    program = folder / "dcgmi"
    said = folder / "arguments"
    program.write_text(
        f"#!{sys.executable}\nimport sys, time\nopen({str(said)!r}, 'w').write(' '.join(sys.argv[1:]))\n{body}"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder) + os.pathsep + "/nowhere")
    monkeypatch.setattr(nvml, "Device", Ampere)
    return said


SAMPLES = f"""print({HEADER!r}, end="", flush=True)
for share in (0.90, 0.92, 0.94) * 200:
    print(f"GPU 3     {{share:.3f}}        0.450        0.301        0.120        0.210   ", flush=True)
    time.sleep(0.03)
"""


def test_sm_activity_comes_from_dcgm_where_there_is_no_gpm(tmp_path, monkeypatch):
    said = dcgmi(tmp_path, monkeypatch, SAMPLES)
    monitor = activity.Monitor("cuda")
    begin = time.monotonic()
    while len(monitor._dcgm_rows) < 20 and time.monotonic() < begin + 60.0:
        time.sleep(0.05)
    window = monitor.window(begin, time.monotonic())
    monitor.stop()
    assert monitor.rung == window["rung"] == "dcgm" and "GPM" in monitor.reasons["gpm"]
    assert window["sm_activity"] == pytest.approx(92.0, abs=1.0)
    assert {name: window[name] for name in ("sm_occupancy", "tensor_activity", "dram_activity", "fp32_activity")} == (
        pytest.approx({"sm_occupancy": 45.0, "tensor_activity": 30.1, "dram_activity": 12.0, "fp32_activity": 21.0})
    )
    assert window["power_w"] == pytest.approx(250.0)
    # its own device alone, ten times a second, the fields that the title names
    assert said.read_text() == "dmon -e 1002,1003,1004,1005,1007 -d 100 -i 3"


@pytest.mark.parametrize(
    "body",
    [
        'print("Error: unable to establish a connection to the specified host", flush=True); sys.exit(255)',
        f'print({HEADER!r} + "GPU 3     N/A   N/A   N/A   N/A   N/A", flush=True); time.sleep(30)',
        "time.sleep(30)",
    ],
    ids=["no host engine", "no permission", "silent"],
)
def test_a_dcgm_without_fields_is_passed_over_with_the_reason(tmp_path, monkeypatch, body):
    dcgmi(tmp_path, monkeypatch, body)
    monkeypatch.setattr(activity, "DCGM_PATIENCE", 0.5)  # however long, no sample comes
    monitor = activity.Monitor("cuda")
    begin = time.monotonic()
    time.sleep(0.3)
    window = monitor.window(begin, time.monotonic())
    monitor.stop()
    assert monitor.rung == "nvml" and "nv-hostengine" in monitor.reasons["dcgm"]
    assert "sm_activity" not in window and window["coarse_busy"] == 100.0  # never called SM activity


def test_dcgm_asked_for_by_name_is_refused_where_it_is_not(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(nvml, "Device", Ampere)
    with pytest.raises(RuntimeError, match="--activity dcgm: dcgmi is not installed"):
        activity.Monitor("cuda", "dcgm")
