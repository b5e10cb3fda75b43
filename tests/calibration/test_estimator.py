"""The scikit-learn face: its own checks, pipelines, cross-validation, and the splitter."""

from __future__ import annotations

import copy
import functools
import warnings

import numpy as np
import pandas
import pytest
import xarray
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

from geonode.calibration import GeodesicGP
from geonode.calibration.estimator import GeodesicCalibrator
from geonode.calibration.leave_out import LeaveOneConcentrationOut
from geonode.errors import InputError

LEVELS = np.repeat([0.0, 10.0, 20.0, 30.0, 40.0, 60.0], 2)
WAVE = np.arange(300.0, 701.0, 4.0)


def spectra(c, seed: int = 0) -> np.ndarray:
    x = np.atleast_1d(c)[:, None] / (np.atleast_1d(c)[:, None] + 25.0)
    one, two = (np.exp(-0.5 * ((WAVE - m) / 45.0) ** 2) for m in (600.0, 450.0))
    exact = 0.2 + 0.9 * x * one + 0.3 * (1 - x) * two
    return exact + 0.002 * np.random.default_rng(seed).standard_normal(exact.shape)


@pytest.mark.slow
def test_check_estimator(monkeypatch) -> None:
    """All of scikit-learn's checks; check_array_api_input skips itself unless SCIPY_ARRAY_API is set.

    They ask how an estimator behaves and not how well it fits, about two hundred times: each on a small grid, without
    remarks on the standards, or a say of standards left out in the posterior's width; and the data of regressions, two
    hundred levels, are cut to ten of them.
    """
    whole = estimator_checks._regression_dataset
    monkeypatch.setattr(estimator_checks, "_regression_dataset", lambda: tuple(part[:10] for part in whole()))
    small = functools.partial(GeodesicGP, lengths=(1.2,), alphas=(0.5,), etas=(1e-3,))
    monkeypatch.setattr("geonode.calibration.calibration.GeodesicGP", small)
    monkeypatch.setattr("geonode.calibration.calibration.remarks_on", lambda _: [])
    monkeypatch.setattr("geonode.calibration.posterior.own_levels.levels_asked", lambda _: np.arange(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = estimator_checks.check_estimator(GeodesicCalibrator(), on_fail=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}


def test_pipeline_with_chemotools_cross_validates_by_concentration() -> None:
    from chemotools.scatter import StandardNormalVariate

    pipeline = make_pipeline(StandardNormalVariate(), GeodesicCalibrator())
    predicted = cross_val_predict(pipeline, spectra(LEVELS), LEVELS, cv=LeaveOneConcentrationOut())
    interior = (LEVELS > 0.0) & (LEVELS < 60.0)
    assert np.abs(predicted - LEVELS)[interior].max() < 4.0


def test_grid_search_runs_over_its_parameters() -> None:
    search = GridSearchCV(
        GeodesicCalibrator(),
        {"concentration_std": [0.0, 1.0]},
        cv=LeaveOneConcentrationOut(),
        scoring="neg_mean_squared_error",
    )
    assert search.fit(spectra(LEVELS), LEVELS).best_params_["concentration_std"] in (0.0, 1.0)


def test_intervals_spectra_score_and_state() -> None:
    model = clone(GeodesicCalibrator(level=0.9)).fit(spectra(LEVELS), LEVELS)
    c = np.array([7.0, 25.0, 50.0])
    limits = model.predict_interval(spectra(c, 1))
    assert limits.shape == (3, 2) and (limits[:, 0] <= c).all() and (c <= limits[:, 1]).all()
    assert (model.predict_interval(spectra(c, 1), level=0.5)[:, 1] < limits[:, 1]).all()
    assert model.predict_spectra(c).shape == (3, len(WAVE))
    assert model.score(spectra(c, 1), c) > 0.99
    assert [a.verdict for a in model.quantify(spectra(c, 1))] == ["quantified"] * 3
    again = GeodesicCalibrator.from_state(*model.state())
    np.testing.assert_array_equal(again.predict(spectra(c, 1)), model.predict(spectra(c, 1)))
    with pytest.raises(InputError, match="between 0 and 1"):
        model.predict_interval(spectra(c), level=90)


def test_an_end_the_data_do_not_set_is_infinite() -> None:
    model = GeodesicCalibrator().fit(spectra(LEVELS), LEVELS)
    assert np.isinf(model.predict_interval(spectra(200.0, 2))[0, 1])


def test_groups_pool_concentrations_written_too_finely() -> None:
    rough = LEVELS + np.tile([-0.1, 0.1], 6)
    model = GeodesicCalibrator().fit(spectra(LEVELS), rough, groups=LEVELS)
    assert model.calibration_.levels == pytest.approx(np.unique(LEVELS))
    with pytest.raises(InputError, match="one label per spectrum"):
        GeodesicCalibrator().fit(spectra(LEVELS), LEVELS, groups=[1, 2])


def test_splitter_never_parts_replicates() -> None:
    splitter = LeaveOneConcentrationOut()
    folds = list(splitter.split(spectra(LEVELS), LEVELS))
    assert len(folds) == splitter.get_n_splits(y=LEVELS) == 6
    for train, test in folds:
        assert not set(LEVELS[train]) & set(LEVELS[test])
        assert sorted([*train, *test]) == list(range(12))
    assert splitter.get_n_splits(y=LEVELS, groups=np.arange(12) // 4) == 3
    with pytest.raises(InputError, match="needs the concentrations"):
        list(splitter.split(spectra(LEVELS)))


@pytest.mark.parametrize(
    "change",
    [lambda f: f[f.columns[::-1]], lambda f: f[[*f.columns[1:], f.columns[0]]], lambda f: f.add_prefix("w")],
    ids=["reversed", "one moved", "other names"],
)
def test_a_saved_calibrator_refuses_columns_in_another_order(change, tmp_path) -> None:
    names = [f"{w:g}" for w in WAVE]
    fitted = GeodesicCalibrator().fit(pandas.DataFrame(spectra(LEVELS), columns=names), LEVELS)
    fitted.save(tmp_path / "a.bundle")
    again = GeodesicCalibrator.load(tmp_path / "a.bundle")
    assert list(again.feature_names_in_) == names
    unknown = pandas.DataFrame(spectra([30.0], 7), columns=names)
    assert again.predict(unknown) == pytest.approx(fitted.predict(unknown))
    for calibrator in (fitted, again):
        with pytest.raises(ValueError, match="feature names"):
            calibrator.predict(change(unknown))


def test_a_calibrator_without_names_has_none_after_loading(tmp_path) -> None:
    GeodesicCalibrator().fit(spectra(LEVELS), LEVELS).save(tmp_path / "a.bundle")
    assert not hasattr(GeodesicCalibrator.load(tmp_path / "a.bundle"), "feature_names_in_")


@pytest.mark.parametrize("level", [None, 0.5, 0.8])
def test_a_pipeline_reaches_intervals(level) -> None:
    from sklearn.preprocessing import StandardScaler

    x, y = spectra(LEVELS), LEVELS
    pipeline = make_pipeline(StandardScaler(with_std=False), GeodesicCalibrator()).fit(x, y)
    estimates, interval = pipeline.predict(x, return_interval=True, level=level)
    assert estimates.tolist() == pipeline.predict(x).tolist() and interval.shape == (len(x), 2)
    own = pipeline[-1].predict_interval(pipeline[:-1].transform(x), level)
    assert interval.tolist() == own.tolist() and np.isfinite(interval).any()


def _tables():
    values = spectra([15.0, 45.0], seed=3)
    yield "DataFrame", lambda v, w: pandas.DataFrame(v, columns=w), values
    yield (
        "mixed numbers",
        lambda v, w: pandas.DataFrame(v, columns=[int(x) if i % 2 else x for i, x in enumerate(w)]),
        values,
    )
    yield "DataArray", lambda v, w: xarray.DataArray(v, dims=("sample", "nm"), coords={"nm": w}), values


@pytest.mark.parametrize(("make", "values"), [t[1:] for t in _tables()], ids=[t[0] for t in _tables()])
def test_wavelengths_that_come_along_set_the_order_and_others_are_refused(make, values, tmp_path):
    model = GeodesicCalibrator().fit(make(spectra(LEVELS), WAVE), LEVELS)
    model.save(tmp_path / "m.bundle")
    shuffled = np.random.default_rng(0).permutation(len(WAVE))
    for one in (model, GeodesicCalibrator.load(tmp_path / "m.bundle")):
        plain = one.predict(values)
        assert plain == pytest.approx([15.0, 45.0], abs=1.0)
        for order in (np.arange(len(WAVE)), np.arange(len(WAVE))[::-1], shuffled):
            table = make(values[:, order], WAVE[order])
            np.testing.assert_allclose(one.predict(table), plain, rtol=1e-12)
            np.testing.assert_allclose(one.predict_interval(table), one.predict_interval(values), rtol=1e-12)
        with pytest.raises(InputError, match=r"350 to 750, are not those of the standards, 300 to 700: 300 is missing"):
            one.predict(make(values, WAVE + 50.0))
        with pytest.raises(InputError, match="51 wavelengths, 300 to 700, and the standards 101"):
            one.quantify(make(values[:, ::2], WAVE[::2]))


@pytest.mark.parametrize(
    "unnamed",
    [
        lambda v: v,
        lambda v: pandas.DataFrame(v),
        lambda v: pandas.DataFrame(v, columns=list(range(v.shape[1]))),
        lambda v: xarray.DataArray(pandas.DataFrame(v)),
    ],
    ids=["array", "DataFrame", "numbered list", "DataArray of a DataFrame"],
)
@pytest.mark.parametrize("named_first", [True, False])
def test_numbers_of_columns_are_no_wavelengths(unnamed, named_first):
    """A table whose columns nobody named goes with one whose columns are wavelengths, either way round."""
    named = functools.partial(pandas.DataFrame, columns=WAVE)
    standards, unknowns = (named, unnamed) if named_first else (unnamed, named)
    model = GeodesicCalibrator().fit(standards(spectra(LEVELS)), LEVELS)
    assert (model.wavelengths_in_ is None) != named_first
    values = spectra([15.0, 45.0], seed=3)
    np.testing.assert_allclose(model.predict(unknowns(values)), model.predict(values), rtol=1e-12)


def as_text(values, wavelengths):
    """As `pandas.read_csv` gives a table with wavelengths in its header."""
    return pandas.DataFrame(values, columns=[f"{w:g}" for w in wavelengths])


@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")
@pytest.mark.parametrize("text_first", [True, False])
def test_wavelengths_read_as_text_are_the_same_wavelengths(text_first, tmp_path):
    numbers = pandas.DataFrame
    standards = as_text(spectra(LEVELS), WAVE) if text_first else numbers(spectra(LEVELS), columns=WAVE)
    model = GeodesicCalibrator().fit(standards, LEVELS)
    model.save(tmp_path / "m.bundle")
    values = spectra([15.0, 45.0], seed=3)
    for one in (model, GeodesicCalibrator.load(tmp_path / "m.bundle")):
        plain = one.predict(values)
        turned = numbers(values[:, ::-1], columns=WAVE[::-1]) if text_first else as_text(values[:, ::-1], WAVE[::-1])
        np.testing.assert_allclose(one.predict(turned), plain, rtol=1e-12)
        moved = numbers(values, columns=WAVE + 50.0) if text_first else as_text(values, WAVE + 50.0)
        with pytest.raises(InputError, match="300 is missing"):
            one.predict(moved)
        if text_first:
            with pytest.raises(ValueError, match="same order as they were in fit"):
                one.predict(as_text(values[:, ::-1], WAVE[::-1]))


def spoilt(row: int, column: int, value: float) -> np.ndarray:
    values = spectra(LEVELS)
    values[row:, column] = value
    return values


ROWS = spectra(LEVELS)


@functools.cache
def fitted() -> GeodesicCalibrator:
    return GeodesicCalibrator().fit(ROWS, LEVELS)


REFUSED = {
    "one spectrum": (lambda m: m.predict(ROWS[0]), r"X must be 2-d.* 1-d with 101 values.*X\.reshape\(1, -1\)"),
    "one spectrum, fit": (lambda m: m.fit(ROWS[0], LEVELS), r"X must be 2-d"),
    "a cube": (lambda m: m.quantify(ROWS[None]), r"dim 3.*: give X as \[N, W\], a spectrum a row"),
    "fewer wavelengths": (lambda m: m.predict(ROWS[:, :50]), r"^X has 50 features.*101.*: give X on the wavelengths"),
    "NaN": (lambda m: m.predict(spoilt(11, 7, np.nan)), r"X contains NaN at row 11 .*, column 7: repair that spectrum"),
    "infinity": (lambda m: m.fit(spoilt(9, 0, np.inf), LEVELS), r"infinity at row 9 .*, column 0, and 2 more: repair"),
    "NaN, by name": (
        lambda m: m.predict(pandas.DataFrame(spoilt(11, 7, np.nan), columns=WAVE)),
        r"at row 11 \(counted from 0\), wavelength 328: ",
    ),
    "NaN in y": (lambda m: m.fit(ROWS, np.where(LEVELS == 10.0, np.nan, LEVELS)), r"y contains NaN at row 2 .* 1 more"),
    "two standards": (lambda m: m.fit(ROWS[:2], LEVELS[:2]), r"minimum of 3.*: give X and y three standards at least"),
    "none": (lambda m: m.predict(ROWS[:0]), r"minimum of 1 .*: give X as \[N, W\]"),
    "other lengths": (lambda m: m.fit(ROWS, LEVELS[:4]), r"\[12, 4\]: X has a spectrum a row, and y one concentration"),
    "two analytes": (lambda m: m.fit(ROWS, np.stack([LEVELS] * 2, 1)), r"1d array.*: .* for each analyte"),
    "no y": (lambda m: m.fit(ROWS, None), r"y is None: give y, the concentration of each spectrum"),
    "complex": (lambda m: m.predict(ROWS + 0j), r"^Complex data not supported: give X as real numbers"),
    "words": (lambda m: m.predict([["a"] * 101]), r"'a': X and y must be numbers"),
    "score": (lambda m: m.score(ROWS, LEVELS[:4]), r"y must have one concentration for each of the 12 spectra of X"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_what_is_refused_is_one_sentence_with_the_remedy(case):
    call, said = REFUSED[case]
    with pytest.raises(InputError, match=said) as refused:
        call(copy.copy(fitted()))
    assert isinstance(refused.value, ValueError) and "\n" not in str(refused.value) and str(refused.value)[-1] == "."
