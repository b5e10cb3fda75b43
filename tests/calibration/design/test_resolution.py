"""Sensitivity, Fisher information, limits, the ambiguity map, the budget and the next standard."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geonode.calibration import (
    Calibration,
    ambiguity_map,
    detection_limits,
    resolution,
    suggest_standard,
    uncertainty_budget,
)
from geonode.calibration.design.resolution import DETECTION_FACTOR, fisher_information, measured_covariance, tangents
from geonode.errors import InputError
from tests.calibration.assays import LEVELS, NOISE, WAVE, band, folding, monotone, noisy, straight


@pytest.fixture(scope="module")
def line() -> Calibration:
    return Calibration(np.repeat(LEVELS, 3), noisy(straight, np.repeat(LEVELS, 3), 0), WAVE, unit="ppb")


@pytest.fixture(scope="module")
def folded() -> Calibration:
    return Calibration(LEVELS, noisy(folding, LEVELS, 0), WAVE)


def test_information_is_that_of_least_squares_on_a_straight_response(line: Calibration) -> None:
    # x = b + c s with white noise σ: one measurement has G = |s|²/σ²; the curve and the standards' noise take from it,
    # a straight line through six standards 1/6 + (c − c̄)²/Σ(c − c̄)² of a variance at least, and a curve that is not
    # known to be straight some three times that.
    exact = float(((0.01 * band(600, 40)) ** 2).sum()) / NOISE**2
    single = Calibration(LEVELS, noisy(straight, LEVELS, 0), WAVE)
    c = np.array([15.0, 35.0, 50.0])
    least = 1.0 + 1.0 / 6.0 + (c - LEVELS.mean()) ** 2 / ((LEVELS - LEVELS.mean()) ** 2).sum()
    information = fisher_information(single.inverse, c)
    assert (information < 1.05 * exact / least).all() and (information > 0.2 * exact / least).all()
    information = fisher_information(line.inverse, c)
    found = resolution(line, [15.0, 35.0], factor=3.0, method="profile")
    np.testing.assert_allclose(found.sensitivity, 0.01 * np.sqrt((band(600, 40) ** 2).mean()), rtol=0.02)
    np.testing.assert_allclose(found.standard_deviation, 1.0 / np.sqrt(information[:2]))
    np.testing.assert_allclose(found.resolvable, 3.0 * np.sqrt(2.0) * found.standard_deviation)


def test_tangents_are_the_derivative_of_the_curve(line: Calibration) -> None:
    _, slope = tangents(line.inverse, np.array([25.0]))
    step = 0.5
    difference = np.diff(line.inverse.curve(np.array([25.0 - step, 25.0 + step]))[0], axis=0)[0] / (2.0 * step)
    np.testing.assert_allclose(slope[0], difference, atol=2e-3 * np.abs(difference).max())


def test_replicates_add_information(line: Calibration) -> None:
    one, four = (fisher_information(line.inverse, np.array([25.0]), r)[0] for r in (1, 4))
    assert one < four < 4.0 * one


def iso_uncertainty(levels: np.ndarray, replicates: int, noise: float, at: float) -> float:
    """Standard uncertainty of one result by ISO 11843-2 with a known σ: a straight line through I levels of J
    replicates, the signal being the spectrum along its slope."""
    x = np.repeat(levels, replicates)
    blank = noise / np.linalg.norm(0.01 * band(600, 40))
    return blank * np.sqrt(1.0 + 1.0 / len(x) + (at - x.mean()) ** 2 / ((x - x.mean()) ** 2).sum())


@pytest.mark.parametrize("replicates", [1, 5])
@pytest.mark.parametrize("noise", [0.002, 0.005, 0.02])
def test_limits_on_a_straight_line_beside_iso_11843(replicates: int, noise: float) -> None:
    """ISO is told that the response is straight and the noise known and white, the posterior is not: its widths and its
    limits are those of ISO within a factor, which is larger where no replicates show the noise."""
    most = 1.5 if replicates > 1 else 1.9
    levels = np.linspace(0.0, 60.0, 7)
    c = np.repeat(levels, replicates)
    calibration = Calibration(c, noisy(straight, c, 1, noise), WAVE)
    limits, at = detection_limits(calibration), np.array([10.0, 30.0, 50.0])
    lod, loq = (k * iso_uncertainty(levels, replicates, noise, 0.0) for k in (3.29, 10.0))
    assert limits.detection is not None and 0.8 * lod < limits.detection < most * lod
    assert limits.quantification is not None and 0.6 * loq < limits.quantification < 1.6 * loq
    share = resolution(calibration, at).standard_deviation / [
        iso_uncertainty(levels, replicates, noise, place) for place in at
    ]
    assert (share > 0.8).all() and (share < (1.6 if replicates > 1 else 3.0)).all()


@pytest.mark.parametrize("truth", [straight, monotone])
def test_spectra_at_the_limit_are_told_from_a_blank_and_blanks_are_not(truth) -> None:
    """Of one calibration nearly all or few: what its curve is off by at zero is the same for all its unknowns."""
    c, below = np.repeat(LEVELS, 3), []
    for seed in (3, 4, 5):
        calibration = Calibration(c, noisy(truth, c, seed), WAVE)
        limit = detection_limits(calibration).detection
        assert limit is not None
        asked = noisy(truth, np.repeat([0.0, limit], 20), 105)  # noise that no standard has
        said = np.array([a.verdict == "below detection limit" for a in calibration.quantify_many(asked)])
        below.append(said.reshape(2, -1).mean(1))
    assert np.mean(below, 0)[0] >= 0.95 and np.mean(below, 0)[1] <= 0.2


def test_detection_limit_is_where_signal_meets_its_factor(line: Calibration) -> None:
    limits = detection_limits(line, method="profile")
    assert limits.detection is not None and limits.quantification is not None
    assert limits.detection < limits.quantification and "1/√G" in limits.definition
    at = limits.detection * np.sqrt(fisher_information(line.inverse, np.array([limits.detection]))[0])
    assert at == pytest.approx(DETECTION_FACTOR, rel=0.02)


def test_no_detection_limit_without_a_blank() -> None:
    without = Calibration(LEVELS[1:], noisy(straight, LEVELS[1:], 1), WAVE)
    limits = detection_limits(without)
    assert limits.detection is None and limits.quantification is None and "no blank" in limits.reason


def test_limits_say_where_they_hold(line: Calibration, folded: Calibration) -> None:
    straight_limits = detection_limits(line, method="profile")
    assert straight_limits.detection_holds == ((straight_limits.detection, 60.0),)
    limits = detection_limits(folded, method="profile")
    assert limits.detection is not None and limits.detection_holds[0][0] == limits.detection
    assert limits.detection_holds[0][1] < 60.0, (
        "the response turns, and there no concentration can be told from its like"
    )
    c = np.linspace(0.2, 60.0, 500)
    above = c * np.sqrt(fisher_information(folded.inverse, c)) >= DETECTION_FACTOR
    inside = np.any([(low <= c) & (c <= high) for low, high in limits.detection_holds], axis=0)
    assert (above == inside).mean() > 0.99 and not above.all()


def test_ambiguity_map_is_a_distance_and_finds_the_fold(folded: Calibration, line: Calibration) -> None:
    found = ambiguity_map(folded, points=61)
    assert np.abs(found.distance - found.distance.T).max() == 0.0 and np.abs(np.diag(found.distance)).max() == 0.0
    i, j = 20, 45
    model, c = folded.inverse, found.concentrations
    (mi, mj), cov = model.curve(c[[i, j]])[0], measured_covariance(model, c[[i, j]])
    by_hand = np.sqrt((mi - mj) @ np.linalg.inv(cov[0] + cov[1]) @ (mi - mj))
    assert found.distance[i, j] == pytest.approx(by_hand, rel=1e-9)
    assert found.pairs and all(pair.second - pair.first >= 6.0 and pair.distance <= 2.0 for pair in found.pairs)
    # the truth there: both concentrations give nearly the same spectrum
    nearest = found.pairs[0]
    gap = np.abs(folding(nearest.first) - folding(nearest.second)).max()
    assert gap < 0.1 * np.ptp(folding(LEVELS))
    assert not ambiguity_map(line, points=61).pairs


@pytest.mark.parametrize("options", [{"factor": 0.0}, {"replicates": 0}, {"concentrations": [1e6]}])
def test_resolution_refuses(line: Calibration, options: dict) -> None:
    with pytest.raises(InputError):
        resolution(line, **options)


# ---------------------------------------------------------------------- budget


def test_budget_adds_up_to_the_information(line: Calibration) -> None:
    budget = uncertainty_budget(line, 25.0)
    assert budget.combined**2 == pytest.approx(1.0 / fisher_information(line.inverse, np.array([25.0]))[0], rel=1e-9)
    assert sum(part.share for part in budget.contributions) == pytest.approx(1.0)
    assert budget.combined == pytest.approx(np.sqrt(sum(p.standard_uncertainty**2 for p in budget.contributions)))
    assert budget.expanded == pytest.approx(budget.coverage_factor * budget.combined)
    assert budget.coverage_factor > 1.96  # Student's t at finite degrees of freedom


def test_a_budget_beyond_the_range_is_not_resolved(line: Calibration, folded: Calibration) -> None:
    assert uncertainty_budget(line, 25.0).resolved and uncertainty_budget(line, 25.0, dilution=1e4).resolved
    c = np.linspace(1.0, 59.0, 200)
    turn = float(c[fisher_information(folded.inverse, c).argmin()])
    budget = uncertainty_budget(folded, turn)
    # a uniform distribution over 0 … 60 has the standard deviation 60/√12 = 17.3
    assert budget.combined > 17.33 and not budget.resolved


def test_dilution_multiplies_and_adds_its_relative_variance(line: Calibration) -> None:
    plain, diluted = uncertainty_budget(line, 25.0), uncertainty_budget(line, 25.0, dilution=4.0, dilution_std=0.2)
    assert diluted.concentration == 100.0
    assert diluted.combined**2 == pytest.approx((4.0 * plain.combined) ** 2 + (25.0 * 0.2) ** 2)
    assert "dilution" in {part.source for part in diluted.contributions}


def test_welch_and_satterthwaite_by_hand(line: Calibration) -> None:
    budget = uncertainty_budget(line, 25.0)
    finite = [p for p in budget.contributions if np.isfinite(p.dof)]
    expected = budget.combined**4 / sum(p.standard_uncertainty**4 / p.dof for p in finite)
    assert budget.effective_dof == pytest.approx(expected)


def test_uncertain_standards_are_a_type_b_contribution() -> None:
    unsure = Calibration(LEVELS, noisy(straight, LEVELS, 2), WAVE, concentration_std=0.5)
    parts = {p.source: p for p in uncertainty_budget(unsure, 25.0).contributions}
    part = parts["concentrations of the standards"]
    # a straight line through six standards, each 0.5 unsure: between 0.5/√6 and 0.5
    assert part.kind == "B" and 0.15 < part.standard_uncertainty < 0.5


def test_budget_refuses(line: Calibration) -> None:
    with pytest.raises(InputError, match="is known between"):
        uncertainty_budget(line, 1e4)
    with pytest.raises(InputError, match="replicates must be"):
        uncertainty_budget(line, 10.0, replicates=0)
    with pytest.raises(InputError, match="replicates must be at least 1"):
        detection_limits(line, replicates=0)


# ---------------------------------------------------------------------- next standard


def test_the_next_standard_belongs_into_the_gap() -> None:
    levels = np.array([0.0, 5.0, 10.0, 15.0, 50.0, 60.0])
    found = suggest_standard(Calibration(levels, noisy(folding, levels, 3), WAVE))
    assert 15.0 < found.concentration < 50.0
    assert found.after < found.before and found.after == pytest.approx(found.expected.min())
    assert "measure a standard at" in found.sentence("ppb") and "ppb" in found.sentence("ppb")
    assert "uniform prior" in found.sentence()


@pytest.mark.parametrize("repeats", [True, False])
@pytest.mark.parametrize("gain", [0.02, 0.4])
def test_a_standard_that_there_is_is_called_a_replicate(line: Calibration, repeats, gain) -> None:
    found = suggest_standard(line)
    assert found.repeats == bool(np.isclose(line.levels, found.concentration).any())
    said = replace(found, concentration=20.0, before=1.0, after=1.0 - gain, repeats=repeats).sentence("ppb")
    assert ("a replicate of" in said) == repeats and "20 ppb" in said


def test_suggest_refuses_a_single_candidate(line: Calibration) -> None:
    with pytest.raises(InputError, match="two candidates"):
        suggest_standard(line, candidates=1)


@pytest.mark.parametrize("goal", ["absolute", "relative"])
def test_a_standard_that_brings_nothing_is_not_worth_it(line: Calibration, goal: str) -> None:
    found = suggest_standard(line, goal=goal)
    assert found.gain == pytest.approx(1.0 - found.after / found.before)
    assert found.worth_it == ("not worth it" not in found.sentence()) == (found.gain >= 0.1)
    assert repr(found) == f"<{found.sentence()}>"


def test_the_relative_goal_looks_lower() -> None:
    levels = np.array([1.0, 5.0, 10.0, 15.0, 50.0, 60.0])
    made = Calibration(levels, noisy(monotone, levels, 3, 0.01), WAVE)
    absolute, relative = suggest_standard(made), suggest_standard(made, goal="relative")
    assert relative.concentration < absolute.concentration
    assert "relative standard uncertainty" in relative.sentence("ppb") and " %" in relative.sentence("ppb")


@pytest.mark.parametrize("goal", ["both", "", "Relative"])
def test_another_goal_is_refused(line: Calibration, goal: str) -> None:
    with pytest.raises(InputError, match="choose absolute or relative"):
        suggest_standard(line, goal=goal)


def test_a_relative_goal_needs_concentrations_that_are_not_negative() -> None:
    levels = np.array([-10.0, 0.0, 10.0, 20.0])
    with pytest.raises(InputError, match="not negative"):
        suggest_standard(Calibration(levels, noisy(monotone, levels + 10.0, 3), WAVE), goal="relative")
