"""The methane pipeline of the examples, small, as a user runs it: simulate, train, infer, export."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def stage(name: str, project: Path, *options: str, device: str = "cpu") -> str:
    result = subprocess.run(
        [sys.executable, "-W", "ignore", str(ROOT / "examples" / "methane" / f"{name}.py"), "--project", str(project),
         "--device", device, *options],
        capture_output=True, text=True, timeout=300, cwd=project.parent,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'kernels'}{os.pathsep}{ROOT / 'runtime'}"},
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.slow
def test_the_whole_pipeline_small(tmp_path):
    project = tmp_path / "methane"
    assert "1200 scans" in stage("simulate", project, "--n", "1200", "--samples", "256", "--workers", "1")
    trained = stage("train", project, "--epochs", "4", "--width", "8", device="auto")
    error = float(trained.split("network: ")[1].split(" decades")[0])
    assert error < 1.0, "better than the 1.4 decades of no network at all"
    assert "geonode, from its standards alone" in trained
    moved = tmp_path / "elsewhere"
    project.rename(moved)  # nothing in a project knows where it was
    answer = stage("infer", moved, "--scan", "5")
    assert {line.split()[0] for line in answer.splitlines()} == {"truth", "network", "geonode"}
    exported = stage("export", moved, "--scan", "5")
    assert "any batch" in exported and "calibrator.onnx: full" in exported
    assert "geonode_runtime and geonode agree on 64 scans" in exported
    library = next(line for line in answer.splitlines() if line.startswith("geonode")).split(None, 1)[1]
    runtime = next(line for line in exported.splitlines() if line.startswith("runtime")).split(None, 1)[1]
    assert library.startswith(runtime), "the same sentence by both"
    assert {p.name for p in moved.iterdir()} == {
        "scans.h5", "standards.nc", "cnn.safetensors", "cnn.json", "training.csv", "cnn.pt2",
        "calibrator.bundle", "calibrator.onnx",
    }  # fmt: skip
