"""What a calibration of many levels says of its own sets is what holds, be it much or little."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from geonode.calibration import Calibration
from geonode.calibration.assessment.coverage import coverage
from tests.calibration.assays import WAVE, folding, monotone, noisy, straight

MANY = 18
ASSAYS = 5


@functools.cache
def assays(truth, error: float) -> list[tuple[Calibration, np.ndarray, np.ndarray]]:
    """Calibrations of labels ``error`` off, and samples with their own labels, so far off as well."""
    made = []
    for seed in range(ASSAYS):
        rng = np.random.default_rng([seed, MANY])
        labels = np.linspace(0.0, 60.0, MANY)
        true = np.maximum(labels + error * rng.standard_normal(MANY), 0.0)
        asked = rng.uniform(3.0, 57.0, 20)
        samples = noisy(truth, np.maximum(asked + error * rng.standard_normal(20), 0.0), seed + 90, 0.003)
        made.append((Calibration(labels, noisy(truth, true, seed, 0.003), WAVE), asked, samples))
    return made


@pytest.mark.parametrize("truth", [monotone, folding, straight], ids=["saturating", "folding", "straight"])
@pytest.mark.parametrize("error", [0.0, 0.3], ids=["exact labels", "labels off by 0.5 % of the range"])
@pytest.mark.parametrize("method", ["posterior", "profile"])
def test_reported_and_true_coverage_agree_above_sixteen_levels(truth, error: float, method: str) -> None:
    """Standards and samples alike are off from their labels, by which both are judged; where that was not declared the
    sets cover less than they should, and the report says how much less."""
    reported, true = [], []
    for calibration, asked, samples in assays(truth, error):
        reported.append(coverage(calibration, method)["sets_interior"])
        answers = calibration.quantify_many(samples, method=method)
        true.append(np.mean([any(k.contains(c) for k in a.components) for a, c in zip(answers, asked, strict=True)]))
    # Thirty left-out levels: one standard error is about 9 points.
    assert np.mean(reported) == pytest.approx(np.mean(true), abs=0.2)


def test_ends_count_as_the_two_of_many_that_they_are() -> None:
    labels = np.linspace(0.0, 60.0, 20)
    held = Calibration(labels, noisy(monotone, labels, 1), WAVE).held_out
    hits = np.array([(held.coverage[held.level == i] <= 0.8).mean() for i in held.left_out])
    assert len(hits) == 8 and held.covered(0.8, interior=True) == pytest.approx(hits[1:-1].mean())
    assert held.covered(0.8) == pytest.approx((hits[0] + hits[-1] + 18 * hits[1:-1].mean()) / 20)


@pytest.mark.parametrize("noise", [0.0001, 0.0003, 0.001])
def test_sets_narrower_than_the_grid_are_judged_by_their_parabola(noise: float) -> None:
    """A straight line above the parabola between two points of the grid had left the truth outside of narrow sets."""
    labels = np.linspace(0.0, 60.0, 9)
    shares = [
        Calibration(labels, noisy(straight, labels, seed, noise), WAVE).held_out.covered(0.8, interior=True)
        for seed in range(6)
    ]
    assert np.mean(shares) >= 0.6
