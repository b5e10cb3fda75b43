"""The two-analyte example runs from a bare checkout on its simulated sensor and writes what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_example_writes_figures_and_spectra(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "two_analytes" / "run.py"), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "CONVERGED 378, MAX_ITERATIONS 0" in done.stdout
    table = np.genfromtxt(tmp_path / "out" / "predictions.csv", delimiter=",", names=None, skip_header=1)
    assert table.shape[0] == 3 and np.isfinite(table).all()
    for name in ("geometry.png", "spectra.png"):
        assert (tmp_path / "out" / name).read_bytes().startswith(b"\x89PNG")
