"""The two-analyte example runs on its simulated sensor and writes what it says."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_example_writes_figures_and_spectra(tmp_path: Path, monkeypatch, capsys) -> None:
    script = ROOT / "examples" / "two_analytes" / "run.py"
    monkeypatch.setattr(sys, "argv", [str(script), "--out", str(tmp_path / "out")])
    monkeypatch.setattr(sys, "path", [*sys.path])  # the script puts the checkout in front
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    assert "CONVERGED 378, MAX_ITERATIONS 0" in capsys.readouterr().out
    table = np.genfromtxt(tmp_path / "out" / "predictions.csv", delimiter=",", names=None, skip_header=1)
    assert table.shape[0] == 3 and np.isfinite(table).all()
    for name in ("geometry.png", "spectra.png"):
        assert (tmp_path / "out" / name).read_bytes().startswith(b"\x89PNG")
