"""What is given to functions and commands and is not what they take: masks are kept, the rest is one sentence."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

import geonode
from geonode.calibration import Calibration
from geonode.cli import app
from geonode.data import Preprocessing, SpectralDataset
from geonode.errors import InputError, ReaderError
from geonode_runtime.__main__ import main as runtime
from geonode_runtime.unknowns import prepare_unknown
from tests.calibration.assays import LEVELS, WAVE, monotone, noisy

GP = geonode.GeodesicConfig(predictor="gp")
STANDARDS = noisy(monotone, LEVELS, 0)
TRUE = noisy(monotone, 25.0, 1)[0]
HIDDEN = np.arange(len(WAVE)) % 4 == 1
SPOILT = np.where(HIDDEN, 0.9 * TRUE + 0.05, TRUE)
MASKED = np.ma.masked_array(SPOILT, mask=HIDDEN)


@pytest.fixture(scope="module")
def model() -> geonode.model.GeodesicModel:
    return geonode.fit(SpectralDataset(STANDARDS, LEVELS, WAVE), GP)


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("given") / "s.csv"
    frame = pd.DataFrame(STANDARDS.T, index=pd.Index(WAVE, name="wavelength"), columns=[f"{c:g}" for c in LEVELS])
    frame.to_csv(path)
    return path


# --- masks of numpy -------------------------------------------------------------------------------------------------

FORMS = {
    "one": (lambda y: y, {}),
    "of whole numbers beside it": (lambda y: [y, TRUE], {}),
    "rows": (lambda y: np.ma.stack([y, np.ma.masked_array(TRUE)]), {}),
    "invalid values": (lambda y: np.ma.masked_invalid(y.filled(np.nan)), {}),
    "a list of values": (lambda y: list(y), {}),
    "over its wavelengths": (lambda y: y[::-1], {"wavelengths": WAVE[::-1]}),
}


@pytest.mark.parametrize("form", FORMS)
def test_values_under_a_mask_are_not_used(model, form):
    made, how = FORMS[form]
    found = model.quantify(made(MASKED), **how)
    found = found[0] if isinstance(found, list) else found
    expected = model.quantify(SPOILT, mask=HIDDEN)
    assert found.estimate == pytest.approx(expected.estimate, rel=1e-9)
    assert found.estimate != pytest.approx(model.quantify(SPOILT).estimate, rel=1e-3)


def test_masks_of_a_blank_and_of_both_kinds_are_kept(model):
    blank = np.ma.masked_array(np.where(HIDDEN, 3.0, STANDARDS[0]), mask=HIDDEN)
    expected = model.quantify(TRUE, mask=HIDDEN, blank=STANDARDS[0]).estimate
    assert model.quantify(TRUE, blank=blank).estimate == pytest.approx(expected, rel=1e-9)
    more = np.arange(len(WAVE)) < 9
    both = model.quantify(MASKED, mask=more).estimate
    assert both == pytest.approx(model.quantify(SPOILT, mask=HIDDEN | more).estimate, rel=1e-9)


@pytest.mark.parametrize("value", [MASKED, [MASKED, np.ma.masked_array(TRUE)]])
def test_the_runtime_keeps_masks(value):
    found = prepare_unknown(value, WAVE, STANDARDS)
    np.testing.assert_array_equal(found.usable, ~HIDDEN)


@pytest.mark.parametrize("given", [lambda z: z, list])
def test_standards_keep_their_mask(given):
    spoilt = np.ma.masked_array(STANDARDS.copy(), mask=np.zeros(STANDARDS.shape, dtype=bool))
    spoilt[2, 5:9] = np.ma.masked
    data = SpectralDataset(given(spoilt), LEVELS[::-1], WAVE)
    np.testing.assert_array_equal(data.mask, np.ma.getmaskarray(spoilt)[::-1])
    assert np.isnan(data.spectra[data.mask]).all() and np.isfinite(data.spectra[~data.mask]).all()


def hidden(values: np.ndarray) -> np.ma.MaskedArray:
    return np.ma.masked_array(values, mask=np.arange(np.size(values)).reshape(np.shape(values)) == 1)


HIDING = {
    "levels": (lambda m: SpectralDataset(STANDARDS, hidden(LEVELS), WAVE), "the concentration of 'nan' is nan"),
    "wavelengths": (lambda m: SpectralDataset(STANDARDS, LEVELS, hidden(WAVE)), "wavelength number 2 is nan"),
    "an unknown's": (lambda m: m.quantify(TRUE, hidden(WAVE)), "wavelengths of the unknown must be 101 distinct"),
    "places": (lambda m: m.predict_spectra(hidden(np.array([1.0, 2.0]))), "concentrations must be"),
    "many": (lambda m: m.calibration.quantify_many(hidden(STANDARDS)), "unknown 1 is nan at wavelength"),
    "a calibration": (lambda m: Calibration(LEVELS, hidden(STANDARDS), WAVE), "contain NaN"),
    "everything": (lambda m: m.quantify(np.ma.masked_all(len(WAVE))), "every wavelength of the unknown is masked"),
}


@pytest.mark.parametrize("name", HIDING)
def test_what_cannot_do_without_a_value_refuses_one_that_is_masked(model, name):
    call, said = HIDING[name]
    with pytest.raises(InputError, match=said):
        call(model)


# --- true and false -------------------------------------------------------------------------------------------------

NO_SPECTRA = {
    "unknown": lambda m: m.quantify(TRUE > 0.2),
    "tensor": lambda m: m.quantify(torch.tensor(TRUE) > 0.2),
    "Series": lambda m: m.quantify(pd.Series(TRUE > 0.2, index=WAVE)),
    "standards": lambda m: SpectralDataset(STANDARDS > 0.2, LEVELS, WAVE),
    "calibration": lambda m: Calibration(LEVELS, STANDARDS > 0.2, WAVE),
    "places": lambda m: m.predict_spectra([True, False]),
}


@pytest.mark.parametrize("name", NO_SPECTRA)
def test_true_and_false_are_nothing_measured(model, name):
    with pytest.raises(InputError, match="must be numbers, and true or false was given"):
        NO_SPECTRA[name](model)


# --- levels by their number -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ask", ["without_level", "only_level"])
@pytest.mark.parametrize("level", [0.5, 1.0, True, np.True_, "1", None, float("nan"), 99, -7, [1, 2]])
def test_levels_are_asked_by_number(model, ask, level):
    with pytest.raises(InputError, match=r"^spectra: .*; give the number of the level, 0 to 5\.$"):
        getattr(model.dataset, ask)(level)


@pytest.mark.parametrize("level", [20.0, np.float32(20.0), 20])
def test_a_concentration_is_told_its_number(model, level):
    with pytest.raises(InputError, match=r"the concentration (20|20\.0|np.*) is level 2\.$"):
        model.dataset.without_level(level)


@pytest.mark.parametrize("level", [2, np.int64(2), np.array(2), torch.tensor(2), -4])
def test_numbers_of_levels(model, level):
    assert model.dataset.only_level(level).levels.tolist() == [LEVELS[2]]
    assert model.dataset.without_level(level).levels.tolist() == [c for c in LEVELS if c != LEVELS[2]]


# --- what would be an error of Python's own -------------------------------------------------------------------------

API: Any = geonode  # what its types forbid is asked of it here
STEPS: Any = Preprocessing
WRONG: dict[str, tuple[Any, str]] = {
    "replicates": (lambda m, t: m.quantify(TRUE, replicates=3), "replicates must be True, False or one label"),
    "replicates, text": (lambda m, t: m.quantify(STANDARDS, replicates="a-f---"), "replicates must be True, False or"),
    "replicates, files": (lambda m, t: m.quantify([str(t)], replicates=["a"]), "labels of replicates are for numbers"),
    "preprocessing": (lambda m, t: API.fit(m.dataset, preprocessing=3), "preprocessing 3 is none; write for"),
    "a step": (lambda m, t: STEPS.of([3]), "preprocessing step 3 is none"),
    "config": (
        lambda m, t: API.fit(m.dataset, config={"a": 1}),
        "config must be a geonode.GeodesicConfig, but",
    ),
    "config, text": (lambda m, t: API.fit(m.dataset, "gp"), "config must be a geonode.GeodesicConfig, but 'gp'"),
    "standards": (lambda m, t: API.load_standards(3), "load_standards reads files, and int is none"),
    "standards, None": (lambda m, t: API.load_standards(None), "load_standards reads files, and NoneType is none"),
    "unknowns": (lambda m, t: API.load_unknowns(3.0), "load_unknowns reads files, and float is none"),
    "unknowns, numbers": (lambda m, t: API.load_unknowns(TRUE), "load_unknowns reads files, and ndarray is none"),
    "unknowns, none": (lambda m, t: API.load_unknowns([]), "load_unknowns: the list of files is empty"),
    "unit": (lambda m, t: API.load_standards(t, concentration_unit=3), "concentration_unit must be the name of a"),
    "ends": (lambda m, t: m.dataset.wavelength_range("a", 1), "the lower end of a range of wavelengths must be one"),
    "other end": (lambda m, t: m.dataset.wavelength_range(400, None), "its upper end must be one number, but None"),
    "load": (lambda m, t: API.load(None), "the bundle must be the name of a file, but None was given"),
    "save": (lambda m, t: m.save(3), "the bundle must be the name of a file, but 3 was given"),
    "save a data set": (lambda m, t: m.dataset.save(None), "the file of a data set must be the name of a file"),
    "plot": (lambda m, t: m.plot(3), "the figure must be the name of a file, but 3 was given"),
    "text": (lambda m, t: m.predict_spectra("15"), "concentrations must be a number, or numbers in"),
    "uncertainty, text": (lambda m, t: API.fit(m.dataset, GP, concentration_std="2"), "concentration_std must be"),
}


@pytest.mark.parametrize("name", WRONG)
def test_it_is_one_sentence_that_names_the_argument(model, table, name):
    call, said = WRONG[name]
    with pytest.raises(InputError, match="^" + said):
        call(model, table)


@pytest.mark.parametrize("yes", [True, np.True_])
def test_replicates_of_one_sample_are_said_by_any_true(model, yes):
    assert model.quantify(np.stack([TRUE, TRUE * 1.001]), replicates=yes).verdict == "quantified"


# --- empty names ----------------------------------------------------------------------------------------------------

EMPTY = {
    "standards": lambda m: geonode.load_standards(""),
    "one of several": lambda m: geonode.load_standards(["s.csv", ""]),
    "their table": lambda m: geonode.load_standards("s.csv", concentrations=""),
    "fit": lambda m: geonode.fit(""),
    "unknowns": lambda m: geonode.load_unknowns(""),
    "quantify": lambda m: m.quantify(""),
    "load": lambda m: geonode.load(""),
    "save": lambda m: m.save(""),
}


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_name_is_not_the_folder_one_is_in(model, table, monkeypatch, name):
    monkeypatch.chdir(table.parent)
    with pytest.raises(InputError, match=r"is empty; give the name of a file, or '\.' for the folder you are in"):
        EMPTY[name](model)
    assert os.listdir() == ["s.csv"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["fit", "", "--out", "m"], "FILES is an empty name"),
        (["fit", "s.csv", "--out", ""], "--out is given an empty value"),
        (["fit", "s.csv", "--out=m", "--concentrations="], "--concentrations is given an empty value"),
        (["inspect", ""], "is an empty name"),
        (["quantify", "m", "s.csv", ""], "UNKNOWNS is an empty name"),
        (["quantify", "", "s.csv"], "BUNDLE is an empty name"),
    ],
)
def test_commands_refuse_an_empty_name(table, monkeypatch, asked, said):
    monkeypatch.chdir(table.parent)
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 2 and said in " ".join(result.output.split())
    assert os.listdir() == ["s.csv"]


@pytest.mark.parametrize("asked", [["quantify", "m.onnx", ""], ["predict", "", "--at", "3"]])
def test_the_runtime_refuses_an_empty_name(capsys, asked):
    with pytest.raises(SystemExit) as stopped:
        runtime(asked)
    assert stopped.value.code == 2 and "the name of a file is empty" in capsys.readouterr().err


# --- thousands in headers -------------------------------------------------------------------------------------------

HEADS = ["0", "500", "1,000", "2,000", "4,000", "8,000"]


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_commas_in_headers_may_part_thousands(tmp_path, mark):
    path = tmp_path / "t.csv"
    frame = pd.DataFrame(STANDARDS.T, index=pd.Index(WAVE, name="wavelength"), columns=HEADS)
    frame.to_csv(path, sep=mark, float_format="%.5f")
    with pytest.raises(ReaderError, match=r"headed '1,000', which is 1000 or 1; say .*decimal='\.'.* 1000 is meant"):
        geonode.load_standards(path)
    assert geonode.load_standards(path, decimal=".").levels.tolist() == [0, 500, 1000, 2000, 4000, 8000]


@pytest.mark.parametrize("heads", [HEADS, ["0", "0.5", "1,000,000", "2", "3", "4"]])
def test_commas_of_a_table_of_pandas_may_part_thousands(heads):
    frame = pd.DataFrame(STANDARDS.T, index=pd.Index(WAVE, name="wavelength"), columns=heads)
    with pytest.raises(InputError, match=r"'1,000(,000)?' is 1000(000)? or 1\.000"):
        geonode.fit(frame, GP)
