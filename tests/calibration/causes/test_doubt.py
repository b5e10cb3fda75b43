"""Causes are not claimed where they cannot be known: of a fold's twins, behind bad standards, of too strong samples."""

from __future__ import annotations

import numpy as np
import pytest

from geonode.calibration import Calibration
from tests.calibration.assays import WAVE, folding, monotone, noisy, straight

LEVELS = np.array([0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0])


def band(at: float, width: float) -> np.ndarray:
    return np.exp(-0.5 * ((WAVE - at) / width) ** 2)


SPOILT = {
    "interferent": lambda s: s + 0.3 * band(WAVE[0] + 0.2 * np.ptp(WAVE), 0.03 * np.ptp(WAVE)),
    "offset": lambda s: s + 0.1,
    "tilt": lambda s: s + np.linspace(0.2, -0.05, len(WAVE)),
}


@pytest.mark.parametrize("kind", SPOILT)
def test_behind_a_fold_both_twins_are_named(kind: str) -> None:
    dense = np.arange(0.0, 61.0, 5.0)
    calibration = Calibration(dense, noisy(folding, dense, 0), WAVE, unit="ppb")
    for truth in (12.0, 48.0):
        found = calibration.quantify(SPOILT[kind](noisy(folding, truth, 9)[0]), method="profile").explanation
        assert found is not None and found.cause is not None and len(found.twins) >= 1
        told = sorted([found.corrected, *found.twins])
        assert min(abs(c - truth) for c in told) < 3.0
        assert " or ".join(f"{c:.3g} ppb" for c in told) in found.why("ppb")
        assert found.to_dict()["twins"] == list(found.twins)


@pytest.mark.parametrize("kind", SPOILT)
def test_without_a_fold_there_is_one(kind: str) -> None:
    calibration = Calibration(LEVELS, noisy(monotone, LEVELS, 0), WAVE, unit="ppb")
    found = calibration.quantify(SPOILT[kind](noisy(monotone, 25.0, 9)[0]), method="profile").explanation
    assert found is not None and found.twins == () and found.corrected == pytest.approx(25.0, abs=1.0)


@pytest.mark.parametrize("kind", SPOILT)
def test_nothing_is_claimed_behind_standards_that_contradict_each_other(kind: str) -> None:
    true = LEVELS.copy()
    true[3] = 38.0
    calibration = Calibration(LEVELS, noisy(monotone, true, 0), WAVE)
    assert calibration.standing.contradictions
    answer = calibration.quantify(SPOILT[kind](noisy(monotone, 25.0, 9)[0]), method="profile")
    assert answer.explanation is None and answer.why == () and answer.overlay.concentration >= 0.0


@pytest.mark.parametrize("times", [1.5, 3.0, 10.0])
def test_a_sample_far_above_all_standards_may_be_too_concentrated(times: float) -> None:
    calibration = Calibration(LEVELS, noisy(monotone, LEVELS, 0), WAVE)
    strong = times * np.abs(noisy(monotone, 60.0, 9)[0]) + times * SPOILT["interferent"](np.zeros(len(WAVE)))
    answer = calibration.quantify(strong, method="profile")
    assert answer.verdict == "does not match" and "too concentrated" in answer.why[0]
    weak = calibration.quantify(SPOILT["interferent"](noisy(monotone, 25.0, 9)[0]), method="profile")
    assert weak.verdict == "does not match" and not any("too concentrated" in one for one in weak.why)


@pytest.mark.parametrize("true", [3.3, 5.0, 8.0])
def test_a_calibration_that_cannot_tell_is_not_blamed_on_the_measurement(true):
    c = np.array([0.0, 2.0, 5.0, 10.0, 20.0, 50.0])
    sold = np.where(c == 5.0, 9.0, c)  # the standard of 5 is of 9
    made = Calibration(c, noisy(straight, sold, 0, 0.0005), WAVE)
    answer = made.quantify(noisy(straight, true, 1, 0.0005)[0], method="profile")
    blank = made.quantify(noisy(straight, 0.0, 2, 0.0005)[0], method="profile")
    assert not any("from the blank" in why for why in blank.why)
    if answer.verdict == "below detection limit":
        assert "times the noise from the blank" in answer.why[0] and "these standards do not" in answer.why[0]
    assert answer.times_noise_above_blank > 30.0 and blank.times_noise_above_blank == 0.0
