"""Bad standards are flagged and kept; a control passes or fails on its own branch."""

from __future__ import annotations

import numpy as np
import pytest

from geonode.calibration import Calibration, check_standards, quality_check
from geonode.errors import InputError
from tests.calibration.assays import WAVE, folding, monotone, noisy, straight

LEVELS = np.array([0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0])


def test_a_mislabelled_standard_is_flagged_with_its_influence() -> None:
    true = LEVELS.copy()
    true[3] = 35.0  # sold as 30
    calibration = Calibration(LEVELS, noisy(straight, true, 0), WAVE)
    flagged = [check for check in check_standards(calibration) if check.flagged]
    assert [check.level for check in flagged] == [30.0]
    (bad,) = flagged
    assert bad.implied == pytest.approx(35.0, abs=0.5)
    assert bad.influence is not None and 0.5 < bad.influence < 10.0
    assert "kept" in bad.sentence("ppb") and "30 ppb" in bad.sentence("ppb")


@pytest.mark.parametrize("truth", [straight, monotone])
def test_good_standards_are_not_flagged(truth) -> None:
    for seed in range(3):
        checks = check_standards(Calibration(LEVELS, noisy(truth, LEVELS, seed), WAVE))
        assert not [check for check in checks if check.flagged] and len(checks) == len(LEVELS)


def test_the_bad_level_of_a_real_series_is_flagged(shared_data) -> None:
    from geonode.data import load_standards

    calibration = Calibration.from_dataset(load_standards(shared_data / "series" / "nanodrop_anisaldehyde.csv"))
    assert [check.level for check in check_standards(calibration) if check.flagged] == [0.3]


def test_a_control_passes_and_a_drifted_one_fails() -> None:
    calibration = Calibration(LEVELS, noisy(monotone, LEVELS, 0), WAVE)
    good = quality_check(calibration, noisy(monotone, 25.0, 1)[0], 25.0)
    assert good.passed and abs(good.drift) < 1.0 and good.drift_low < 0.0 < good.drift_high
    assert good.gain == pytest.approx(1.0, abs=0.02) and good.sentence("ppb").startswith("pass")
    drifted = quality_check(calibration, noisy(monotone, 31.0, 1)[0], 25.0)
    assert not drifted.passed and drifted.drift == pytest.approx(6.0, abs=1.0)
    assert drifted.drift_low > 0.0 and "FAIL" in drifted.sentence()


def test_drift_is_read_on_the_branch_of_the_nominal_concentration() -> None:
    calibration = Calibration(LEVELS, noisy(folding, LEVELS, 0), WAVE)
    # the same spectrum at 10 and beyond 30: whichever was prepared, the drift is small
    other = 30.0 + 0.1 * np.abs(folding(np.arange(30.0, 45.0, 0.1)) - folding(10.0)).sum(1).argmin()
    for nominal in (10.0, float(other)):
        checks = [quality_check(calibration, noisy(folding, 10.0, seed)[0], nominal) for seed in range(1, 11)]
        assert {check.verdict for check in checks} == {"ambiguous"}
        assert np.mean([check.passed for check in checks]) >= 0.7  # nominal 95 %
        assert max(abs(check.drift) for check in checks) < 3.0 and all(check.branches > 1 for check in checks)
        assert "would explain it" in checks[0].sentence()


def test_a_control_is_refused_outside_the_range() -> None:
    calibration = Calibration(LEVELS, noisy(monotone, LEVELS, 0), WAVE)
    with pytest.raises(InputError, match="within the standards' range"):
        quality_check(calibration, monotone(25.0)[0], 100.0)
    with pytest.raises(InputError, match="must not be negative"):
        quality_check(calibration, monotone(25.0)[0], 25.0, nominal_std=-1.0)


def test_preprocessing_that_learns_is_fitted_without_the_levels_left_out() -> None:
    from geonode.calibration.assessment.wrong_label import _means_left_out
    from geonode.data import Preprocessing

    levels = np.array([0.0, 10.0, 20.0, 30.0, 45.0, 60.0])
    raw = noisy(monotone, levels, 40) * np.array([1.0, 1.0, 1.0, 1.0, 1.0, 3.0])[:, None]
    chain = Preprocessing.of("center")
    x, wave = chain.fit_arrays(raw, WAVE)
    made = Calibration(levels, x, wave, preprocessing=chain)
    seen = _means_left_out(made)[5]
    np.testing.assert_allclose(seen, raw - raw[:5].mean(axis=0), atol=1e-12)
    assert len(check_standards(made)) == len(levels)


def test_a_control_is_not_decided_by_three_standards() -> None:
    few = Calibration(LEVELS[[0, 2, -1]], noisy(monotone, LEVELS[[0, 2, -1]], 0), WAVE)
    for nominal in (25.0, 55.0):  # one that its 95 % set would hold, and one that it would not
        check = quality_check(few, noisy(monotone, 25.0, 1)[0], nominal)
        assert not check.passed and "too few" in check.reason and check.low is None and check.drift_low is None
        assert check.sentence().startswith("not decided (3 standards") and "FAIL" not in check.sentence()
