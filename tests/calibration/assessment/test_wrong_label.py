"""A level under a wrong label is named, from five levels on and at the ends; good ones are not accused."""

from __future__ import annotations

import numpy as np
import pytest

from geonode.calibration import Calibration
from geonode.calibration.assessment.standards_check import checked_levels
from geonode.calibration.assessment.wrong_label import left_out, wrong_label
from tests.calibration.assays import WAVE, band, folding, monotone, noisy, straight


def steep(c) -> np.ndarray:
    """Levels off early: 0.2 of the range is half of the way."""
    x = np.atleast_1d(c)[:, None] / (np.atleast_1d(c)[:, None] + 12.0)
    return 0.2 + 0.9 * x * band(600, 40) + 0.3 * (1 - x) * band(450, 50)


DESIGNS = {
    "five": np.array([0.0, 8.0, 20.0, 40.0, 60.0]),
    "six": np.array([0.0, 5.0, 10.0, 24.0, 40.0, 60.0]),
    "eight": np.array([0.0, 4.0, 9.0, 15.0, 24.0, 36.0, 48.0, 60.0]),
}
TRUTHS = {"straight": straight, "saturating": monotone, "steep": steep}


def named(labels: np.ndarray, true: np.ndarray, truth, seed: int = 0, noise: float = 0.002) -> list[float]:
    calibration = Calibration(labels, noisy(truth, true, seed, noise), WAVE)
    found = wrong_label(left_out(calibration))
    return [] if found is None else [float(calibration.levels[found.position])]


@pytest.mark.parametrize("truth", ["straight", "saturating"])
@pytest.mark.parametrize("factor", [0.5, 2.0])
@pytest.mark.parametrize("design", DESIGNS)
def test_an_inner_level_of_half_or_twice_its_label_is_the_one_that_is_named(design, factor, truth) -> None:
    labels, i = DESIGNS[design], len(DESIGNS[design]) - 2 if truth == "straight" else 2
    true = labels.copy()
    true[i] *= factor
    assert named(labels, true, TRUTHS[truth], i) == [labels[i]]


def test_where_the_response_has_levelled_off_half_and_twice_are_alike_and_nothing_is_said() -> None:
    true = DESIGNS["five"].copy()
    true[3] *= 2.0
    assert named(DESIGNS["five"], true, steep) == []


@pytest.mark.parametrize("design", ["six", "eight"])
def test_the_highest_level_is_named_where_the_others_call_it_half_of_what_is_written(design) -> None:
    true = DESIGNS[design]
    labels = np.append(true[:-1], 2.0 * true[-1])
    assert named(labels, true, straight) == [labels[-1]] and named(labels, labels, straight) == []


@pytest.mark.parametrize("truth", [*TRUTHS.values(), folding], ids=[*TRUTHS, "folding"])
@pytest.mark.parametrize(("design", "noise"), [("five", 0.002), ("six", 0.01), ("eight", 0.0005)])
def test_good_labels_are_not_accused(design, noise, truth) -> None:
    assert named(DESIGNS[design], DESIGNS[design], truth, 3, noise) == []


@pytest.mark.parametrize("preparation", [0.005, 0.01, 0.02])
def test_what_a_pipette_errs_by_is_no_wrong_label(preparation) -> None:
    true = DESIGNS["eight"] * (1.0 + preparation * np.random.default_rng(4).standard_normal(8))
    assert named(DESIGNS["eight"], true, monotone) == []


def test_three_or_four_levels_are_not_judged_so() -> None:
    labels, true = np.array([0.0, 20.0, 40.0, 60.0]), np.array([0.0, 20.0, 10.0, 60.0])
    for keep in (slice(None), slice(1, None)):
        checks = checked_levels(Calibration(labels[keep], noisy(monotone, true[keep], 0, 0.002), WAVE))
        assert not any(check.flagged for check in checks)
