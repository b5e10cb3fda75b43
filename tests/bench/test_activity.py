"""How busy a device was: what DCGM, GPM, ncu and NVML say, and energy."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from geonode.bench import (
    activity,
    activity_ncu,
    finish,
    nvml,
)
from geonode.bench.case import Setting

ROOT = Path(__file__).resolve().parent.parent.parent
CPU = Setting("cpu", "quick")


# ---------------------------------------------------------------------- activity


class FakeApi:
    """As much of pynvml as the device asks; its counters stand for 80 % busy multiprocessors."""

    NVML_SUCCESS, NVML_GPM_METRICS_GET_VERSION = 0, 1

    class NVMLError(Exception):
        pass

    class c_nvmlGpmMetricsGet_t:
        def __init__(self):
            metric = type("Metric", (), {"metricId": 0, "nvmlReturn": 0, "value": 0.0})
            self.metrics = [metric() for _ in range(8)]

    def __getattr__(self, name):
        if name.startswith("NVML_GPM_METRIC_"):
            return list(nvml.GPM.values()).index(name)
        raise AttributeError(name)

    def nvmlGpmMetricsGet(self, request):
        for metric in request.metrics[: request.numMetrics]:
            metric.value = 80.0 - 10.0 * metric.metricId
        request.metrics[4].nvmlReturn = 1  # this one is not told
        return request


def test_gpm_metrics_are_read_by_name_and_missing_ones_left_out():
    device = object.__new__(nvml.Device)
    device.handle, device.api = None, FakeApi()
    values = device.gpm_between("first", "last")
    assert values == {"sm_activity": 80.0, "sm_occupancy": 70.0, "tensor_activity": 60.0, "fp32_activity": 50.0}


@pytest.mark.parametrize(
    ("told", "found"),
    [(None, ("index", 0)), ("", ("index", 0)), ("2,1", ("index", 2)), ("GPU-ab12,GPU-cd34", ("uuid", "GPU-ab12"))],
)
def test_the_device_watched_is_the_one_cuda_shows_first(monkeypatch, told, found):
    if told is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", told)
    api = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByIndex=lambda index: ("index", index),
        nvmlDeviceGetHandleByUUID=lambda uuid: ("uuid", uuid),
    )
    monkeypatch.setitem(sys.modules, "pynvml", api)
    assert nvml.Device().handle == found


def test_energy_by_integration_and_by_counter():
    rows = [{"t": 0.1 * k, "power_w": 300.0, "energy_j": 30.0 * k, "throttle": 4 * (k == 3)} for k in range(101)]
    summary = activity.summarise(rows)
    assert summary["energy_seconds"] == pytest.approx(10.0)
    assert summary["energy_counter_j"] == pytest.approx(summary["energy_integrated_j"]) == pytest.approx(3000.0)
    assert summary["throttle_reasons"] == ["software power cap"]
    check = finish.energy_check([{"case": "x", "label": "1×1", "activity": summary}])
    assert check is not None and abs(check["difference"]) < 1e-6 and "agree" in check["trusted"]
    off = {**summary, "energy_counter_j": 2000.0}
    check = finish.energy_check([{"case": "x", "label": "1×1", "activity": off}])
    assert check is not None and "trust the counter" in check["trusted"]


def test_dcgm_lines():
    line = "GPU 0     0.912     0.450     0.301     0.120     0.210   \n"
    expected = {
        "sm_activity": 91.2,
        "sm_occupancy": 45.0,
        "tensor_activity": 30.1,
        "dram_activity": 12.0,
        "fp32_activity": 21.0,
    }
    assert activity.parse_dcgm(line) == pytest.approx(expected)
    assert activity.parse_dcgm("#Entity   SMACT        SMOCC") == {}
    assert activity.parse_dcgm("GPU 0  N/A N/A N/A N/A N/A") == {}


NCU = """==PROF== Connected
"ID","Kernel Name","gpu__time_duration.sum","sm__cycles_active.avg.pct_of_peak_sustained_elapsed"
"","","usecond","%"
"0","a","30.0","90.0"
"1","b","10.0","50.0"
"""


def test_ncu_activity_is_weighted_by_time_and_by_the_idle_time_between():
    kernels = activity_ncu.parse(NCU)
    assert [k["ns"] for k in kernels] == [30e3, 10e3]
    assert activity_ncu.combine(kernels, call_ms=0.04)["sm_activity"] == pytest.approx(80.0)
    assert activity_ncu.combine(kernels, call_ms=0.08)["sm_activity"] == pytest.approx(40.0)


def test_monitor_on_a_cpu_names_its_rung():
    monitor = activity.Monitor("cpu")
    begin = time.monotonic()
    time.sleep(0.5)
    window = monitor.window(begin, begin + 0.5)
    monitor.stop()
    assert window["rung"] == monitor.rung == "cpu" and 0.0 <= window["cpu_busy"] <= 100.0
