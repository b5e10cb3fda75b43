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
from geonode.errors import InputError
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
    assert out.read_text().splitlines()[0] == "wavelength,mean_25,std_25,mean_70_extrapolated,std_70_extrapolated"
    assert np.loadtxt(out, delimiter=",", skiprows=1).shape == (len(WAVE), 5)
    data = json.loads(told.read_text())
    assert data["coverage"] == geonode.load(bundle).coverage() and data["concentrations"] == [25.0, 70.0]
    for part in ("where the spectrum responds", "where it is silent", "85.7 %"):
        assert part in found.output and part in data["sentence"]
    assert "1 of the 3 concentrations were given before" in found.output
    assert "calibrated range 0 … 60: an extrapolation" in found.output and data["extrapolated"] == [False, True]


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("300", "more than three ranges beyond the standards (0 … 60), where nothing is known"),
        ("15000", "15 lies within them: was another unit meant?"),
        ("-200", "ask nearer to them"),
    ],
)
def test_what_lies_far_from_the_standards_is_refused_by_either_predictor(
    bundle: Path, tmp_path: Path, at, said
) -> None:
    out = tmp_path / "p.csv"
    for more in ([], ["--predictor", "gp"]):
        found = CliRunner().invoke(app, ["predict", str(bundle), "--at", at, "--out", str(out), *more])
        assert found.exit_code == 2 and not out.exists()
        assert said in " ".join(found.output.split()) and "predictor" not in found.output
    with pytest.raises(InputError, match="three ranges"):
        geonode.load(bundle).predict_interval([5.0, float(at)])


def test_nothing_is_said_when_quiet(bundle: Path, tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["predict", str(bundle), "--at", "25", "--out", str(tmp_path / "p.csv"), "--quiet"])
    assert found.exit_code == 0 and found.output == ""
