"""What Python hands over: rows are samples, spectra keep their own wavelengths, files and tables go in as they are."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import geonode
from geonode.calibration import quality_check
from geonode.data import SpectralDataset, given_standards
from geonode.data.given import given_spectra
from geonode.errors import InputError
from tests.calibration.assays import LEVELS, WAVE, monotone, noisy, straight

GP = geonode.GeodesicConfig(predictor="gp")


def standards() -> SpectralDataset:
    return SpectralDataset(noisy(monotone, LEVELS, 0), LEVELS, WAVE, concentration_unit="µM")


@pytest.fixture(scope="module")
def model():
    return geonode.fit(standards(), GP)


def close(answer, truth: float) -> None:
    assert answer.verdict == "quantified" and answer.estimate == pytest.approx(truth, abs=1.5)


SPECTRUM = noisy(monotone, 25.0, 1)[0]
MICRONS = {"units": "um"}
ALIGNED = {
    "descending DataArray": lambda y, w: xr.DataArray(y[::-1], dims="wavelength", coords={"wavelength": w[::-1]}),
    "descending Series": lambda y, w: pd.Series(y[::-1], index=w[::-1]),
    "µm by attribute": lambda y, w: xr.DataArray(
        y, dims="wavelength", coords={"wavelength": ("wavelength", w / 1000.0, MICRONS)}
    ),
    "µm by the index's name": lambda y, w: pd.Series(y, index=pd.Index(w / 1000.0, name="wavelength / µm")),
    "cm-1, ascending": lambda y, w: xr.DataArray(
        y[::-1], dims="wavenumber", coords={"wavenumber": ("wavenumber", 1e7 / w[::-1], {"units": "cm-1"})}
    ),
    "wider and finer": lambda y, w: pd.Series(np.interp(np.arange(290.0, 711.0), w, y), index=np.arange(290.0, 711.0)),
}


@pytest.mark.parametrize("made", ALIGNED.values(), ids=ALIGNED)
def test_own_wavelengths_are_honoured(model, made):
    close(model.quantify(made(SPECTRUM, WAVE)), 25.0)


REFUSED = {
    "50 nm off": (lambda y, w: pd.Series(y, index=w + 50.0), "misses 300 to 350"),
    "µm, unit not said": (
        lambda y, w: xr.DataArray(y, dims="wavelength", coords={"wavelength": w / 1000.0}),
        r"covers wavelengths 0\.3 to 0\.7 .* as if one were in µm and the other in nm: say the unit .* \(in Python the",
    ),
    "cm-1, unit not said": (lambda y, w: pd.Series(y, index=1e7 / w), "as if one were in cm⁻¹ and the other in nm"),
    "a part, µm, unit not said": (lambda y, w: pd.Series(y[40:], index=w[40:] / 1000.0), "as if one were in µm"),
    "said to be in µm": (
        lambda y, w: pd.Series(y, index=pd.Index(w, name="wavelength (µm)")),
        r"are said to be in µm, where 300 to 700 would be 300000 to 700000 nm; .*: correct the unit that is said",
    ),
    "over a time": (
        lambda y, w: xr.DataArray(y, dims="time", coords={"time": ("time", w, {"units": "s"})}),
        r"'time \(s\)', which is no wavelength .* or correct what is said of its axis",
    ),
    "in a unit that nobody knows": (
        lambda y, w: pd.Series(y, index=pd.Index(w, name="wavelength (furlong)")),
        r"'wavelength \(furlong\)', which is no wavelength of a known unit.* give the unknown over the standards'",
    ),
    "an index of words": (lambda y, w: pd.Series(y, index=[f"p{i}" for i in range(len(w))]), "must be its wavelengths"),
    "two dimensions without names": (
        lambda y, w: xr.DataArray(np.stack([y, y]), dims=("a", "b")),
        "rename it to 'wavelength'",
    ),
    "a frame without wavelengths": (lambda y, w: pd.DataFrame({"s1": y, "s2": y}), "no wavelengths are found"),
}


@pytest.mark.parametrize(("made", "sentence"), REFUSED.values(), ids=REFUSED)
def test_wavelengths_that_do_not_fit_are_refused(model, made, sentence):
    with pytest.raises(InputError, match=sentence):
        model.quantify(made(SPECTRUM, WAVE))


def test_wavelengths_given_twice_must_agree(model):
    series = pd.Series(SPECTRUM, index=WAVE)
    close(model.quantify(series, WAVE), 25.0)
    with pytest.raises(InputError, match=r"has wavelengths of its own, 300 … 700, and others were given, 301 … 701"):
        model.quantify(series, WAVE + 1.0)


PAIR = noisy(monotone, [12.0, 45.0], 2)
ROWS = {
    "array": PAIR,
    "DataFrame of rows": pd.DataFrame(PAIR, columns=WAVE, index=["a", "b"]),
    "DataFrame without names": pd.DataFrame(PAIR),
    "DataFrame of columns": pd.DataFrame({"wavelength": WAVE, "a": PAIR[0], "b": PAIR[1]}),
    "DataArray": xr.DataArray(PAIR.T, dims=("wavelength", "sample"), coords={"wavelength": WAVE}),
    "data set": SpectralDataset(PAIR, [1.0, 2.0], WAVE),
    "list of Series": [pd.Series(row, index=WAVE) for row in PAIR],
}


@pytest.mark.parametrize("spectra", ROWS.values(), ids=ROWS)
def test_rows_are_samples(model, spectra):
    first, second = model.quantify(spectra)
    close(first, 12.0)
    close(second, 45.0)


def test_numbers_that_pandas_gives_to_columns_are_no_wavelengths_of_standards():
    with pytest.raises(InputError, match="have no wavelengths; give them as columns"):
        geonode.fit(pd.DataFrame(noisy(monotone, LEVELS, 0)).assign(concentration=LEVELS), GP)


def test_replicates_are_said(model):
    three = noisy(monotone, [25.0] * 3, 3)
    assert model.quantify(three, replicates=True).replicates == 3
    grouped = np.concatenate([three, noisy(monotone, [45.0, 45.0], 4)])
    array = xr.DataArray(
        grouped, dims=("sample", "wavelength"), coords={"wavelength": WAVE, "group": ("sample", list("aaabb"))}
    )
    frame = pd.DataFrame(grouped, columns=WAVE).assign(group=list("aaabb"))
    for answers in (
        model.quantify(grouped, replicates=["a", "a", "a", "b", "b"]),
        model.quantify(array),
        model.quantify(frame),
    ):
        assert [answer.replicates for answer in answers] == [3, 2]
        close(answers[0], 25.0)
        close(answers[1], 45.0)
    with pytest.raises(InputError, match="one label for each of the 5 spectra"):
        model.quantify(grouped, replicates=["a", "b"])
    with pytest.raises(InputError, match="its groups are 2"):
        model.quantify(array, replicates=True)


@pytest.mark.parametrize("concentrations", [(30.0, 1.0), (12.0, 20.0), (10.0, 10.0, 45.0)])
def test_samples_given_as_replicates_are_refused(model, concentrations):
    spectra = noisy(monotone, np.array(concentrations), 5)
    with pytest.raises(InputError, match=r"are of different ones: number \d is found at .*without replicates=True"):
        model.quantify(spectra, replicates=True)
    with pytest.raises(InputError, match="are of different ones"):
        quality_check(model.calibration, spectra, 20.0)


@pytest.mark.parametrize("seed", range(3))
def test_replicates_that_err_in_path_or_baseline_are_none_of_that(model, seed):
    rng = np.random.default_rng(seed)
    spectra = noisy(monotone, [25.0] * 4, seed) * (1.0 + 0.01 * rng.standard_normal((4, 1)))
    spectra += 0.003 * rng.standard_normal((4, 1))
    assert model.quantify(spectra, replicates=True).replicates == 4


def write(path, columns: dict) -> str:
    pd.DataFrame({"wavelength": WAVE, **columns}).to_csv(path, index=False)
    return str(path)


def test_files_of_unknowns(model, tmp_path):
    one = write(tmp_path / "one.csv", {"u": SPECTRUM})
    other = write(tmp_path / "other.csv", {"v": PAIR[1]})
    both = write(tmp_path / "both.csv", {"a": PAIR[0], "b": PAIR[1]})
    close(model.quantify(one), 25.0)
    for answers, truths in (
        (model.quantify([one, other]), (25.0, 45.0)),
        (model.quantify([both]), (12.0, 45.0)),
        (model.quantify(geonode.load_unknowns(both)), (12.0, 45.0)),
    ):
        for answer, truth in zip(answers, truths, strict=True):
            close(answer, truth)
    with pytest.raises(InputError, match=r"both\.csv: 2 spectra .* list .* replicates=True .* select"):
        model.quantify(both)
    close(model.quantify(both, select="b"), 45.0)
    with pytest.raises(InputError, match="are of different ones"):
        model.quantify(both, replicates=True)
    with pytest.raises(InputError, match="select chooses spectra of files"):
        model.quantify(SPECTRUM, select="b")


def test_of_several_files_one_that_is_refused_costs_no_other_its_answer(model, tmp_path):
    """In a list and in a folder, on reading and on answering; alone, as replicates or all of them it is an error."""
    write(tmp_path / "a.csv", {"u": PAIR[0]})
    write(tmp_path / "b.csv", {"u": 0.0 * WAVE})
    write(tmp_path / "c.csv", {"u": np.where(WAVE == 400.0, np.nan, SPECTRUM)})
    write(tmp_path / "d.csv", {"u": PAIR[1]})
    files = sorted(str(path) for path in tmp_path.glob("*.csv"))
    for answers in (model.quantify(files), model.quantify(geonode.load_unknowns(tmp_path))):
        close(answers[0], 12.0)
        close(answers[3], 45.0)
        assert [one.verdict for one in answers[1:3]] == ["refused"] * 2 and answers[1].estimate is None
        assert "is zero at every wavelength" in answers[1].why[0] and "column 2" in answers[2].why[0]
        assert str(tmp_path / "c.csv") in answers[2].sentence() and answers[2].name == "c.csv"
        assert pickle.loads(pickle.dumps(answers[2])) == copy.copy(answers[2]) == answers[2]
        with pytest.raises(AttributeError, match=r"c\.csv has no interval, for it was refused: .*is empty"):
            answers[2].interval  # noqa: B018
    for given in (files[1], files[2], [files[1]], [files[2]], files[1:3], geonode.load_unknowns(files[1:2])):
        with pytest.raises(InputError, match=r"is zero at every|is empty"):
            model.quantify(given)
    with pytest.raises(InputError, match="is empty"):
        geonode.load_unknowns(files, replicates=True)
    with pytest.raises(InputError, match=r"^the level of .* 80"):
        model.quantify(files[:2], level=80)  # of the question, not of the unknowns: said once, as it is


def test_standards_in_every_form(tmp_path):
    data = standards()
    columns = {f"{c:g}": row for c, row in zip(LEVELS, data.spectra, strict=True)}
    named = {f"{c:g} µM": row for c, row in zip(LEVELS, data.spectra, strict=True)}
    rows = pd.DataFrame(data.spectra, columns=WAVE)
    forms = [
        write(tmp_path / "standards.csv", columns),
        pd.DataFrame({"wavelength": WAVE, **columns}),
        pd.DataFrame({"wavelength": WAVE, **named}),
        rows.assign(concentration=LEVELS),
        rows.set_index(pd.Index(LEVELS, name="concentration")),
        data.xarray,
        data.xarray["spectra"],
        data,
    ]
    for form in forms:
        np.testing.assert_allclose(given_standards(form).concentrations, LEVELS)
        np.testing.assert_allclose(given_standards(form).spectra, data.spectra)
    assert given_standards(forms[2]).units["concentration"] == "µM"
    close(geonode.fit(forms[0], GP).quantify(SPECTRUM), 25.0)
    close(geonode.fit(forms[3], GP).quantify(SPECTRUM), 25.0)
    assert geonode.evaluate(forms[1], methods=["linear", "cubic"]).results.keys() == {"linear", "cubic"}


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda y: pd.DataFrame(y, columns=WAVE), "without concentrations"),
        (lambda y: pd.DataFrame({"wavelength": WAVE, "blank": y[0], "5": y[1]}), "'blank' is no concentration"),
        (lambda y: pd.DataFrame({"wavelength": WAVE, "5 µM": y[0], "5 ppb": y[1]}), "several units"),
        (lambda y: xr.DataArray(y, dims=("sample", "wavelength"), coords={"wavelength": WAVE}), "'concentration'"),
        (lambda y: y, "is no set of standards"),
    ],
)
def test_what_is_no_set_of_standards_is_refused(made, sentence):
    with pytest.raises(InputError, match=sentence):
        geonode.fit(made(noisy(straight, LEVELS, 0)), GP)


def test_a_tensor_is_numbers():
    import torch

    assert given_spectra(torch.tensor(PAIR, requires_grad=True)).values.shape == PAIR.shape


@pytest.mark.parametrize("heads", [["0.0", "0.0.1", "5.0", "5.0.1"], ["0.0", "0.0.1", "5.0", "5.0.2"]])
def test_a_table_read_by_pandas_has_replicates_as_the_file_has(heads):
    values = noisy(monotone, [0.0, 0.0, 5.0, 5.0, 10.0], 0)
    frame = pd.DataFrame(values.T, columns=[*heads, "10.0"])
    frame.insert(0, "wavelength", WAVE)
    data = given_standards(frame)
    assert data.concentrations.ravel().tolist() == [0.0, 0.0, 5.0, 5.0, 10.0]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda model: model.quantify(SPECTRUM, dilution="1:10"),
            "must be a number, 10 for 1:10, but '1:10' was given",
        ),
        (lambda model: geonode.load_standards(pd.DataFrame({"a": [1.0]})), "geonode.fit takes DataFrames"),
        (lambda model: geonode.load_standards(np.zeros((3, 4))), r"SpectralDataset\(spectra, concentrations"),
        (lambda model: geonode.load_standards([1.0, 2.0]), "reads files, and list is none"),
        (lambda model: geonode.fit(standards(), concentration_unit="ppb"), "belongs to the standards"),
        (lambda model: geonode.fit(standards(), select="A"), "fit has no option select"),
        (lambda model: geonode.fit(standards()).predict_spectra([-3.0]), "there is no concentration below zero"),
    ],
)
def test_what_belongs_elsewhere_says_where(model, call, said):
    with pytest.raises(InputError, match=said):
        call(model)


@pytest.mark.parametrize(
    ("heads", "said"),
    [
        (["0 ppm", "500 ppm", "1,000 ppm"], "'1,000 ppm' is 1000 or 1; write it in one way"),
        (["0", "500", "1.000"], "'1.000' is 1000 or 1.000; name the samples by numbers"),
        (["0", "5", "5.1", "10"], "'5.1' is 5.1, or what pandas makes of a second column '5'; head .* '5.0.1'"),
        (["5", "5.1", "5.2", "10"], "'5.1' is 5.1, or what pandas makes"),
        (["5", "10", "10.1"], "'10.1' is 10.1, or what pandas makes"),
        (["0", "1_5", "10"], "'1_5' is no concentration"),
        (["9_M4kR", "8_M4kR", "7_M1"], "'9_M4kR' is no concentration"),
        (["0", "5-10", "20"], "'5-10' is no concentration"),
    ],
)
def test_levels_as_text_that_may_be_two_things_are_refused(heads, said):
    values = noisy(monotone, np.linspace(0.0, 50.0, len(heads)), 0)
    frame = pd.DataFrame(values.T, columns=heads)
    frame.insert(0, "wavelength", WAVE)
    rows = pd.DataFrame(values, columns=WAVE).assign(concentration=heads)
    for form in (frame, rows, rows.set_index("concentration")):
        with pytest.raises(InputError, match=said):
            given_standards(form)


@pytest.mark.parametrize(
    ("heads", "levels"),
    [
        (["0", "0.1", "0.2", "0.5", "1"], [0.0, 0.1, 0.2, 0.5, 1.0]),  # 0.3 is not there: none counts
        ([0.0, 5.0, 5.1], [0.0, 5.0, 5.1]),  # numbers are what they are
        ([500.0, 1.125, 2.25], [1.125, 2.25, 500.0]),
        (["0 M", "1e-4 M", "5·10^-4 M"], [0.0, 1e-4, 5e-4]),
        (["1/4 mM", "1/2 mM", "1 mM"], [0.25, 0.5, 1.0]),
    ],
)
def test_levels_that_are_beyond_doubt_are_read(heads, levels):
    values = noisy(monotone, np.linspace(0.0, 50.0, len(heads)), 0)
    rows = pd.DataFrame(values, columns=WAVE, index=pd.Index(heads, name="concentration"))
    np.testing.assert_allclose(given_standards(rows).concentrations, levels)


def test_a_column_read_twice_by_pandas_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    values = noisy(monotone, [5.0, 5.0, 10.0, 20.0], 0)
    lines = ["wavelength,5,5,10,20", *(",".join(map(str, row)) for row in np.column_stack([WAVE, values.T]))]
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InputError, match="second column '5'"):
        given_standards(pd.read_csv(path))


@pytest.mark.parametrize("name", ["concentration (mM)", "conc [mM]", "concentration_mM", "Conc. / mM"])
def test_the_unit_in_the_name_of_the_concentrations_is_theirs(name):
    values = noisy(monotone, LEVELS, 0)
    rows = pd.DataFrame(values, columns=WAVE).assign(**{name: LEVELS})
    assert given_standards(rows).concentration_unit == "mM"
    assert given_standards(rows.set_index(name)).concentration_unit == "mM"
    with pytest.raises(InputError, match="are in µM and their column says mM"):
        given_standards(rows.assign(**{name: [f"{c:g} µM" for c in LEVELS]}))


def _frame(down: str, across: str, levels_down: bool) -> pd.DataFrame:
    axis, levels = np.arange(400.0, 701.0, 5.0), np.array([0.0, 5.0, 10.0, 20.0])
    values = 0.1 + 0.001 * levels[:, None] * np.sin(axis / 60.0)
    values, rows, columns = (values, levels, axis) if levels_down else (values.T, axis, levels)
    return pd.DataFrame(values, index=pd.Index(rows, name=down), columns=pd.Index(columns, name=across))


@pytest.mark.parametrize(
    "frame",
    [
        _frame("wavelength", "concentration", levels_down=True),
        _frame("nm", "", levels_down=True),
        _frame("concentration", "wavelength", levels_down=False),
        _frame("", "", levels_down=True).reset_index(names="wavelength"),
    ],
    ids=["both named", "index", "samples in rows", "a column"],
)
def test_a_frame_on_its_side_is_refused_with_both_readings(frame):
    """What is refused of a file is refused of a DataFrame."""
    with pytest.raises(InputError, match="61 standards of 400 to 700 at 4 wavelengths from 0 to 20 nm") as error:
        given_standards(frame)
    assert "4 spectra at 61 wavelengths from 400 to 700" in str(error.value)
    assert "name the axes the other way round" in str(error.value)


@pytest.mark.parametrize(
    "frame",
    [
        _frame("concentration", "wavelength", levels_down=True),
        _frame("wavelength", "concentration", levels_down=False),
        _frame("", "", levels_down=False).reset_index(names="nm"),
    ],
    ids=["samples in rows", "samples in columns", "a column"],
)
def test_a_frame_the_right_way_up_is_read(frame):
    assert given_standards(frame).levels.tolist() == [0.0, 5.0, 10.0, 20.0]
