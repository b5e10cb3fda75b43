"""The point estimates that the posterior weighs: each is the method that it is named after."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geonode.calibration.baselines.method import inverse_method
from geonode.calibration.posterior.quantifier import learned_posterior, reading_of
from geonode.calibration.posterior.scores import score_process
from geonode_runtime.posterior.answers import LearnedPosterior
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


def test_candidates_know_the_noise_of_an_unknown_that_was_measured_once() -> None:
    """Levels left out are means of five spectra; their errors are not those of one spectrum, but of five together."""
    c = np.repeat(np.linspace(0.0, 60.0, 7), 5)
    least = 0.002 / np.linalg.norm(0.01 * band(600, 40))  # of the best estimate from one spectrum there is (Cramér–Rao)
    one, five = np.ones(20), np.full(20, 5.0)
    covered = []
    for seed in (3, 4, 5, 6, 7, 8):  # what a calibration is off by is the same for all its unknowns
        made = learned_posterior(c, noisy(straight, c, seed, 0.002))
        unknown = noisy(straight, np.full(20, 10.0), seed + 50, 0.002)
        before = LearnedPosterior(replace(made.known, repeated=0.0), made.weights)
        found = [way.posteriors(unknown, one)[0] for way in (made, before)]
        covered.append([np.mean([p.highest(0.8).contains(10.0) for p in way]) for way in found])
        at = made.posteriors(unknown, one)[2].estimates
        assert (made.known.error_of_unknown(at, one, one)[:, 2] > 0.85 * least).all()  # of PLS
        for known, count in ((before.known, one), (made.known, five)):
            np.testing.assert_array_equal(known.error_of_unknown(at, one, count), known.error_near(at))
    now, then = np.mean(covered, 0)
    assert now >= 0.7 and now > then + 0.1
