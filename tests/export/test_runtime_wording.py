"""The runtime's command line names its options, and Python its arguments, where the two say the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import geonode
import geonode_runtime.__main__
from geonode.config import GeodesicConfig
from geonode.data import SpectralDataset
from geonode_runtime import InputError, Model
from geonode_runtime.__main__ import main
from tests.calibration.assays import LEVELS, WAVE, monotone, noisy
from tests.export.in_torch import in_torch


@pytest.fixture(scope="module")
def exported() -> Model:
    data = SpectralDataset(noisy(monotone, LEVELS, 1), LEVELS, WAVE, concentration_unit="mM", signal="absorbance")
    return in_torch(geonode.fit(data, GeodesicConfig(predictor="gp")))


@pytest.fixture
def command(exported, tmp_path, monkeypatch, capsys):
    """What a command says where it fails, in a folder with spectra of 12 and 40 mM, and a part of one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(geonode_runtime.__main__, "load", lambda path: exported)
    for name, c, keep in (("low", 12.0, slice(None)), ("high", 40.0, slice(None)), ("part", 12.0, slice(20, None))):
        np.savetxt(f"{name}.csv", np.stack([WAVE, noisy(monotone, [c], 3)[0]], axis=1)[keep], delimiter=",")

    def said(*words: str) -> str:
        assert main([words[0], "model.onnx", *words[1:]]) == 2
        return capsys.readouterr().err

    return said


def written(name: str) -> np.ndarray:
    return np.loadtxt(f"{name}.csv", delimiter=",").T


def test_replicates_that_are_two_samples(command, exported):
    said = command("quantify", "low.csv", "high.csv")
    assert "ask for an answer to each of them (--each)" in said and "replicates=" not in said
    both = np.stack([written("low")[1], written("high")[1]])
    with pytest.raises(InputError, match=r"without replicates=True"):
        exported.quantify(both, WAVE, replicates=True)


def test_replicates_on_other_wavelengths(command):
    said = command("quantify", "low.csv", "part.csv")
    assert "other wavelengths" in said and "--each" in said and "replicates=" not in said


def test_a_method_that_there_is_not(command, exported):
    assert "--method oracle is not known; choose from posterior, profile." in command(
        "quantify", "low.csv", "--method", "oracle"
    )
    with pytest.raises(InputError, match=r"^method='oracle' is not known"):
        exported.quantify(written("low")[1], WAVE, method="oracle")


def test_a_part_of_the_standards_wavelengths(command, exported):
    assert "(geonode fit --preprocess range:380-700)" in command("quantify", "part.csv")
    wavelengths, values = written("part")
    with pytest.raises(InputError, match=r"\(fit again with the preprocessing range:380-700\)"):
        exported.quantify(values, wavelengths)


def test_concentrations_and_outputs(command, exported):
    assert "--at takes finite numbers." in command("predict", "--at", "nan")
    with pytest.raises(InputError, match=r"^concentrations must be a number"):
        exported.predict(np.nan)
    Path("p.csv").write_text("wavelength,mean_25\n300,1\n")
    assert "or --force to replace it" in command("predict", "--at", "25", "--out", "p.csv")
