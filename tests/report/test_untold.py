"""Exchanged labels of a response that folds pass every check of single levels: what is left to see stands beside each
answer, in Python, on the command line, in an exported model and on the page."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import geonode
import geonode_runtime.__main__
from geonode.calibration import Calibration
from geonode.calibration.assessment.untold import missed_by
from geonode.cli import app
from geonode.config import GeodesicConfig
from geonode.data import SpectralDataset
from geonode.report.browser.data import answer_data
from geonode.report.conclusion import Conclusion
from geonode_runtime.__main__ import main
from tests.calibration.assays import WAVE, band, noisy, straight
from tests.export.in_torch import in_torch
from tests.report.test_answers import as_json, asked, compare, needs_node

LEVELS = np.array([0.0, 5.0, 10.0, 20.0, 40.0, 80.0])
SAID = "left out its spectrum is missed by more than half of the response: a label may be wrong"
ASSAYS = {"peak at 15": (15.0, 15.0, (1, 4)), "peak at 18": (18.0, 15.0, (0, 5)), "peak at 10": (10.0, 30.0, (0, 4))}
"""Where the fold has its top, the strength of binding, and the two levels whose labels are exchanged: no check finds
them."""


def fold(c, top: float, half: float) -> np.ndarray:
    c = np.atleast_1d(c)[:, None]
    bound, folded = c / (c + half), c / top * np.exp(1.0 - c / top)
    return 0.15 + 0.9 * folded * band(620, 35) + 0.35 * (1.0 - bound) * band(520, 25) + 0.02 * bound * band(480, 60)


def spectra(name: str, exchanged: bool) -> np.ndarray:
    """Of the six standards, as they are labelled."""
    top, half, (i, j) = ASSAYS[name]
    order = np.arange(6)
    if exchanged:
        order[[i, j]] = j, i
    return noisy(lambda c: fold(c, top, half), LEVELS, 1)[order]


def model_of(values: np.ndarray) -> geonode.model.GeodesicModel:
    data = SpectralDataset(values, LEVELS, WAVE, concentration_unit="ppb", signal="absorbance")
    return geonode.fit(data, GeodesicConfig(predictor="gp"))


@pytest.fixture(scope="module")
def models() -> dict[str, geonode.model.GeodesicModel]:
    return {name: model_of(spectra(name, True)) for name in ASSAYS}


@pytest.mark.parametrize("name", ASSAYS)
def test_it_stands_beside_every_answer_in_python_and_in_an_exported_model(models, name):
    model, (top, half, _) = models[name], ASSAYS[name]
    assert not model.calibration.standing.contradictions and model.calibration.standing.usable
    unknown = noisy(lambda c: fold(c, top, half), [3.0, 30.0, 60.0], 7)
    answers = [*model.quantify(unknown), model.quantify(unknown[1], method="profile")]
    assert all(sum(SAID in note for note in one.notes) == 1 for one in answers)
    assert [one.notes for one in in_torch(model).quantify(unknown)] == [one.notes for one in answers[:3]]
    found = model.conclusion
    assert SAID in found.wrong() and sum(SAID in one for one in found.caveats) == 1


@needs_node
@pytest.mark.parametrize("name", ASSAYS)
def test_it_stands_beside_every_answer_of_the_page(models, name):
    unknown = {"name": "u", "wavelengths": WAVE, "values": spectra(name, True)[[3]] * 1.01, "mask": None, "options": {}}
    theirs = models[name].quantify(unknown["values"][0], name="u")
    (mine,) = asked(answer_data(models[name]), [as_json(unknown)])
    compare(models[name], mine, theirs)
    assert sum(SAID in note for note in mine["notes"]) == 1


def test_the_command_says_it_once_below_the_answers_and_in_each_of_the_json(models, tmp_path):
    models["peak at 15"].save(tmp_path / "assay")
    rows = (",".join(map(str, row)) for row in zip(WAVE, *spectra("peak at 15", True)[2:5] * 1.01, strict=True))
    (tmp_path / "u.csv").write_text("wavelength,a,b,c\n" + "\n".join(rows) + "\n")
    arguments = ["quantify", str(tmp_path / "assay"), str(tmp_path / "u.csv"), "--each"]
    said = CliRunner().invoke(app, [*arguments, "--json", str(tmp_path / "q.json")])
    assert said.exit_code == 0 and said.output.count(SAID) == 1, said.output
    found = json.loads((tmp_path / "q.json").read_text(encoding="utf-8"))
    assert [sum(SAID in note for note in one["notes"]) for one in found["unknowns"]] == [1, 1, 1]
    assert sum(SAID in note for note in found["standards"]["notes"]) == 1


@pytest.mark.parametrize("name", ["peak at 15", "peak at 18"])
def test_right_labels_are_not_doubted(name):
    made = Calibration(LEVELS, spectra(name, False), WAVE)
    assert made.standing.untold == "" and Conclusion(made).wrong() == "what is wrong: nothing was found"
    assert not any(SAID in note for note in made.quantify(spectra(name, False)[2] * 1.01).notes)


def test_a_remark_on_what_standards_cannot_give_hides_nothing():
    """Six levels without a blank, which is a finding of its own."""
    made = Calibration(LEVELS + 0.01, spectra("peak at 10", True), WAVE, unit="ppb")
    said = Conclusion(made).wrong()
    assert "no blank" in said and SAID in said
    missed = made.levels[1:-1][missed_by(made)[1:-1] > 0.5]
    assert f"with {' or '.join(f'{one:g}' for one in missed)} ppb left out" in said


@pytest.mark.parametrize(("i", "j"), [(1, 3), (2, 4), (0, 2)])
def test_exchanged_labels_that_are_named_stand_beside_each_concentration_too(i, j):
    levels = np.array([0.0, 10.0, 20.0, 30.0, 40.0, 60.0])
    true = levels.copy()
    true[[i, j]] = levels[[j, i]]
    made = Calibration(levels, noisy(straight, true, 5), WAVE, unit="mM")
    (said,) = made.standing.contradictions
    assert "look exchanged" in said and made.standing.untold == ""
    answers = made.quantify(noisy(straight, [12.0, 25.0, 50.0], 6))
    assert any(one.matches for one in answers)
    assert all((said in one.notes) == one.matches and (one.matches or one.why) for one in answers)


def test_it_stands_beside_predictions_too(models, tmp_path, capsys, monkeypatch):
    """Of the command and of an exported model; of right labels nothing is said."""
    for name, model in [*models.items(), ("right", model_of(spectra("peak at 15", False)))]:
        model.save(tmp_path / name)
        said = CliRunner().invoke(
            app, ["predict", str(tmp_path / name), "--at", "15", "--out", str(tmp_path / f"{name}.csv")]
        )
        assert said.exit_code == 0 and said.output.count(SAID) == (name != "right")
        monkeypatch.setattr(geonode_runtime.__main__, "load", lambda path, model=model: in_torch(model))
        assert main(["predict", "model.onnx", "--at", "15"]) == 0
        assert capsys.readouterr().err.count(SAID) == (name != "right")
