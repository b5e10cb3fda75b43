"""`geonode predict`: how often such bands covered stands beside them; a concentration given twice is written once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import geonode
from geonode.cli import app
from geonode.data import SpectralDataset
from tests.calibration.assays import LEVELS, WAVE, monotone, noisy


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("predict") / "gp.bundle"
    geonode.fit(SpectralDataset(noisy(monotone, LEVELS, 0), LEVELS, WAVE), geonode.GeodesicConfig(predictor="gp")).save(
        path
    )
    return path


def test_coverage_stands_beside_the_bands_and_twice_is_once(bundle: Path, tmp_path: Path) -> None:
    out, told = tmp_path / "p.csv", tmp_path / "p.json"
    arguments = [
        "predict",
        str(bundle),
        "--at",
        "25",
        "--at",
        "70",
        "--at",
        "25",
        "--out",
        str(out),
        "--json",
        str(told),
    ]
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 0, found.output
    assert out.read_text().splitlines()[0] == "wavelength,mean_25,std_25,mean_70,std_70"
    assert np.loadtxt(out, delimiter=",", skiprows=1).shape == (len(WAVE), 5)
    data = json.loads(told.read_text())
    assert data["coverage"] == geonode.load(bundle).coverage() and data["concentrations"] == [25.0, 70.0]
    for part in ("where the spectrum responds", "where it is silent", "85.7 %"):
        assert part in found.output and part in data["sentence"]
    assert "1 of the 3 concentrations were given before" in found.output
    assert "calibrated range 0 … 60: an extrapolation" in found.output and data["extrapolated"] == [False, True]


def test_nothing_is_said_when_quiet(bundle: Path, tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["predict", str(bundle), "--at", "25", "--out", str(tmp_path / "p.csv"), "--quiet"])
    assert found.exit_code == 0 and found.output == ""
