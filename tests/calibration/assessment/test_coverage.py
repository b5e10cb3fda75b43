"""How the coverage of left-out levels is counted."""

from __future__ import annotations

import numpy as np
import pytest

from geonode.calibration import Calibration
from tests.calibration.assays import WAVE, monotone, noisy, straight


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
