"""The point estimates that the posterior weighs: each is the method that it is named after."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geonode.calibration.baselines.method import inverse_method
from geonode.calibration.posterior.quantifier import learned_posterior, reading_of
from geonode.calibration.posterior.scores import score_process
from geonode_runtime.posterior.cells import unknown_cells
from geonode_runtime.posterior.standards import METHODS
from tests.calibration.assays import LEVELS, band, folding, monotone, noisy, straight

ASKED = np.array([3.0, 14.0, 25.0, 37.0, 55.0])


def estimates(c: np.ndarray, spectra: np.ndarray, unknown: np.ndarray) -> dict[str, np.ndarray]:
    found = unknown_cells(reading_of(c, spectra, None).known, unknown, np.ones(len(unknown))).estimates
    return dict(zip(METHODS, found.T, strict=True))


@pytest.mark.parametrize("replicates", [1, 3])
@pytest.mark.parametrize(
    ("name", "truth"),
    [
        *((name, truth) for name in ("pls", "pcr", "pls_warped") for truth in (straight, monotone, folding)),
        *(("pchip", truth) for truth in (straight, monotone)),  # of a fold both branches are as near as the noise
    ],
)
def test_candidates_are_the_simple_methods(name: str, truth, replicates: int) -> None:
    """Not to rounding: components are chosen by errors held to the range, and the polyline has points of its own."""
    c = np.repeat(LEVELS, replicates)
    spectra, unknown = noisy(truth, c, 3), noisy(truth, ASKED, 9)
    simple = inverse_method("pchip_curve" if name == "pchip" else name).fit(spectra, c).predict(unknown)
    np.testing.assert_allclose(estimates(c, spectra, unknown)[name], simple, atol=0.1 if truth is straight else 2.5)


@pytest.mark.parametrize("truth", [straight, monotone])
@pytest.mark.parametrize("noise", [0.0, 1e-4, 1e-3])
def test_process_finds_what_lies_on_a_smooth_response(truth, noise: float) -> None:
    c = np.linspace(0.0, 60.0, 9)
    found = estimates(c, noisy(truth, c, 3, noise), noisy(truth, ASKED, 9, noise))["gp_pca"]
    np.testing.assert_allclose(found, ASKED, atol=0.5 + 1e3 * noise)


@pytest.mark.parametrize("levels", [9, 12, 20])
def test_left_out_errors_are_those_of_a_process_without_the_level(levels: int) -> None:
    """Not to rounding: scores are scaled by all standards, which matters the less the more there are."""
    c = np.linspace(0.0, 60.0, levels)
    means = monotone(c)
    centred = means - means.mean(0)
    counts = np.ones(levels)
    errors = score_process(c, centred, counts, -15.0, 75.0).errors
    for i in range(1, levels - 1):
        keep = np.delete(np.arange(levels), i)
        middle = means[keep].mean(0)
        one = score_process(c[keep], means[keep] - middle, counts[keep], -15.0, 75.0)
        near = np.exp(-0.5 * (((means[i] - middle) @ one.basis - one.points) ** 2).sum(1) / one.lengths[:, None] ** 2)
        alone = one.middle + float((one.amounts * near).sum()) - c[i]
        assert errors[i] == pytest.approx(alone, abs=0.3 + 0.3 * abs(alone))


@pytest.mark.parametrize("replicates", [1, 5])
def test_candidates_know_the_noise_of_an_unknown_that_was_measured_once(replicates: int) -> None:
    """Levels left out are means of five spectra; their errors are not those of one spectrum, but of five together."""
    c = np.repeat(np.linspace(0.0, 60.0, 7), 5)
    made = learned_posterior(c, noisy(straight, c, 7, 0.002))
    slope = np.linalg.norm(0.01 * band(600, 40))
    least = 0.002 / slope / np.sqrt(replicates)  # standard deviation of the best estimate there is (Cramér–Rao)
    unknown = noisy(straight, np.full(60, 10.0), 5, 0.002 / np.sqrt(replicates))
    found, _, cells = made.posteriors(unknown, np.full(60, float(replicates)))
    sets = [one.highest(0.8) for one in found]
    assert np.mean([s.contains(10.0) for s in sets]) >= 0.7
    error = made.known.error_of_unknown(cells.estimates, np.ones(60), np.full(60, float(replicates)))
    assert (error[:, 2] > (0.85 if replicates == 1 else 0.0) * least).all()  # of PLS
    before = replace(made.known, repeated=0.0)
    np.testing.assert_array_equal(
        before.error_of_unknown(cells.estimates, np.ones(60), np.ones(60)), made.known.error_near(cells.estimates)
    )
