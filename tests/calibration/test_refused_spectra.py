"""A spectrum that does not match carries no concentration that could be taken for one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from geonode.calibration import Calibration
from geonode.calibration.estimator import GeodesicCalibrator, MismatchWarning
from geonode.errors import InputError
from tests.calibration.assays import LEVELS, WAVE, band, monotone, noisy

FOREIGN = {
    "interferent": monotone(30.0)[0] + 0.6 * band(520, 12),
    "straight line": np.linspace(0.3, 0.5, len(WAVE)),
    "another dye": 0.2 + 0.7 * band(380, 15),
}


@pytest.fixture(scope="module")
def standards() -> tuple[np.ndarray, np.ndarray]:
    c = np.repeat(LEVELS, 2)
    return c, noisy(monotone, c, 0)


@pytest.mark.parametrize("method", ["posterior", "profile"])
@pytest.mark.parametrize("name", FOREIGN)
def test_the_answer_has_the_nearest_concentration_and_no_estimate(name, method, standards) -> None:
    made = Calibration(*standards, WAVE)
    answer = made.quantify(FOREIGN[name], method=method)
    assert answer.verdict == "does not match" and not answer.matches
    assert [answer.estimate, answer.low, answer.high, answer.std] == [None] * 4
    assert answer.interval == answer.model_interval == (None, None)
    assert answer.to_dict()["nearest"] == answer.nearest and np.isfinite(answer.nearest)
    assert answer.to_dict()["estimate"] is None
    genuine = made.quantify(monotone(30.0)[0], method=method)
    assert genuine.matches and genuine.estimate == genuine.nearest and genuine.std > 0.0


@pytest.mark.parametrize("name", FOREIGN)
def test_predict_gives_nan_and_one_warning_that_names_the_rows(name, standards) -> None:
    c, x = standards
    pipeline = make_pipeline(StandardScaler(with_std=False), GeodesicCalibrator()).fit(x, c)
    unknown = np.stack([monotone(15.0)[0], FOREIGN[name], monotone(50.0)[0], FOREIGN[name]])
    with pytest.warns(MismatchWarning, match=r"2 of 4 spectra .* \(rows 1, 3, counted from 0\): .* NaN") as said:
        found, interval = pipeline.predict(unknown, return_interval=True)
    assert len(said) == 1
    assert np.isnan(found).tolist() == [False, True, False, True] == np.isnan(interval[:, 0]).tolist()
    assert found[[0, 2]] == pytest.approx([15.0, 50.0], abs=2.0)
    pipeline[-1].set_params(mismatch="nearest")
    with pytest.warns(MismatchWarning, match="gives the nearest concentration"):
        assert np.isfinite(pipeline.predict(unknown)).all()


def test_nothing_is_warned_of_where_all_match(standards) -> None:
    c, x = standards
    fitted = GeodesicCalibrator().fit(x, c)
    with warnings.catch_warnings():
        warnings.simplefilter("error", MismatchWarning)
        assert fitted.predict(noisy(monotone, [5.0, 25.0, 55.0], 1)) == pytest.approx([5.0, 25.0, 55.0], abs=2.0)


def test_refusing_betters_no_score(standards) -> None:
    c, x = standards
    fitted = GeodesicCalibrator().fit(x, c)
    unknown, truth = np.stack([monotone(20.0)[0], FOREIGN["straight line"]]), [20.0, 50.0]
    own = fitted.set_params(mismatch="nearest")
    with pytest.warns(MismatchWarning):
        nearest = own.predict(unknown)
    expected = 1.0 - np.sum((nearest - truth) ** 2) / np.sum((np.array(truth) - 35.0) ** 2)
    assert fitted.score(unknown, truth) == pytest.approx(expected)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MismatchWarning)
        assert np.isfinite(cross_val_score(GeodesicCalibrator(), x, c, cv=3)).all()


@pytest.mark.parametrize("given", ["", "raise", "NaN"])
def test_another_word_for_mismatch_is_refused(given, standards) -> None:
    c, x = standards
    with pytest.raises(InputError, match=r"mismatch='.*' is not known; choose from nan, nearest"):
        GeodesicCalibrator(mismatch=given).fit(x, c).predict(x)
