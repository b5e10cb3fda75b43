"""Two labels exchanged are named, both; genuine standards and single wrong labels are not called so."""

from __future__ import annotations

import numpy as np
import pytest

from geonode.calibration import Calibration
from geonode.report.conclusion import Conclusion
from tests.calibration.assays import WAVE, folding, monotone, noisy, straight

SIX = np.array([0.0, 10.0, 20.0, 30.0, 40.0, 60.0])
EIGHT = np.array([0.0, 4.0, 9.0, 15.0, 24.0, 36.0, 48.0, 60.0])


def standing(levels, i, j, truth, noise=0.002):
    true = levels.copy()
    true[[i, j]] = levels[[j, i]]
    return Calibration(levels, noisy(truth, true, 5, noise), WAVE, unit="mM").standing


def exchanged(found) -> list[tuple[float, float]]:
    return [(c.level, c.swapped_with) for c in found.checks if c.flagged and c.swapped_with is not None]


@pytest.mark.parametrize("truth", [straight, monotone], ids=["straight", "saturating"])
@pytest.mark.parametrize(("levels", "i", "j"), [(SIX, 1, 3), (SIX, 2, 4), (EIGHT, 2, 6), (SIX, 0, 2), (SIX, 2, 5)])
def test_both_are_named_in_one_sentence(levels, i, j, truth):
    found = standing(levels, i, j, truth)
    assert exchanged(found) == [(levels[i], levels[j]), (levels[j], levels[i])]
    (said,) = found.contradictions
    assert said.startswith(f"the labels of the standards {levels[i]:g} mM and {levels[j]:g} mM look exchanged: ")
    assert said in found.warnings and found.fault in said


@pytest.mark.parametrize(("i", "factor"), [(2, 2.0), (3, 0.5), (4, 0.5)])
@pytest.mark.parametrize("truth", [straight, monotone], ids=["straight", "saturating"])
def test_one_wrong_label_is_no_exchange(i, factor, truth):
    true = EIGHT.copy()
    true[i] *= factor
    assert exchanged(Calibration(EIGHT, noisy(truth, true, 5), WAVE).standing) == []


@pytest.mark.parametrize("truth", [straight, monotone, folding], ids=["straight", "saturating", "folding"])
@pytest.mark.parametrize("levels", [SIX, EIGHT, SIX[[0, 1, 3, 4, 5]]], ids=["six", "eight", "five"])
def test_genuine_standards_are_not_called_exchanged(levels, truth):
    found = Calibration(levels, noisy(truth, levels, 6), WAVE).standing
    assert exchanged(found) == []


def test_what_is_left_without_the_two_is_trusted_and_the_headline_names_them():
    found = standing(EIGHT, 2, 5, straight)
    assert set(found.trusted.levels) == set(np.delete(EIGHT, [2, 5]))
    assert "look exchanged" in Conclusion(found.sound).headline()


@pytest.mark.parametrize("levels", [[5, 10, 20, 50, 100, 200], [0, 1, 3, 10, 30, 100], [1, 2, 5, 10, 20, 50, 100]])
@pytest.mark.parametrize("i", [1, 2])
@pytest.mark.parametrize("truth", [straight, monotone], ids=["straight", "saturating"])
def test_so_are_low_neighbours_of_levels_that_are_spaced_on_a_logarithm(levels, i, truth):
    """They lie a few hundredths of the range from each other, and many times the noise."""
    levels = np.array(levels, dtype=float)
    found = standing(levels, i, i + 1, truth, 0.0005)
    assert exchanged(found) == [(levels[i], levels[i + 1]), (levels[i + 1], levels[i])]
    assert exchanged(Calibration(levels, noisy(truth, levels, 5, 0.0005), WAVE).standing) == []
