"""Laws, examples and bad input of the geodesic Gaussian process."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geonode.calibration.gp.geodesic_gp import GeodesicGP
from geonode.calibration.gp.numerics import matern52
from geonode.errors import InputError

LEVELS = np.array([0.0, 20.0, 50.0, 250.0, 350.0, 450.0])


def saturating(levels: np.ndarray, kappa: float = 30.0, width: int = 40) -> np.ndarray:
    wave = np.linspace(0.0, 1.0, width)
    c = np.asarray(levels, dtype=float)[:, None]
    return np.exp(-((wave - 0.3) ** 2) / 0.02) * c / (c + kappa) + 0.3 * np.sin(3 * wave) * (1 - c / (c + kappa))


def test_interpolates_at_small_nugget() -> None:
    means = saturating(LEVELS)
    gp = GeodesicGP(etas=(1e-9,)).fit_levels(LEVELS, means)
    np.testing.assert_allclose(gp.predict(LEVELS).mean, means, atol=1e-5)


def test_straight_line_is_recovered_and_extrapolated() -> None:
    wave = np.linspace(-1.0, 1.0, 30)
    line = lambda c: 0.2 + wave + np.asarray(c)[:, None] * (0.01 * wave**2 + 0.002)  # noqa: E731
    gp = GeodesicGP().fit_levels(LEVELS, line(LEVELS))
    asked = np.array([-50.0, 100.0, 300.0, 600.0])
    span = np.ptp(line(LEVELS), axis=0).max()
    prediction = gp.predict(asked)
    assert np.abs(prediction.mean - line(asked)).max() < 0.02 * span
    assert prediction.extrapolated.tolist() == [True, False, False, True]


def test_saturating_response_chooses_a_saturating_warp() -> None:
    gp = GeodesicGP().fit_levels(LEVELS, saturating(LEVELS))
    assert gp.warp_weights.sum() == pytest.approx(1.0)
    assert gp.warp_weights[0] < 0.01, "the unwarped axis is the wrong geometry for this response"
    asked = np.array([35.0, 120.0])
    assert np.abs(gp.predict(asked).mean - saturating(asked)).max() < 0.03


@settings(max_examples=10, deadline=None)
@given(st.floats(1e-4, 1e5), st.floats(1e-3, 2e4), st.floats(-3.0, 3.0))
def test_invariant_to_units(c_unit: float, a_unit: float, offset: float) -> None:
    means = saturating(LEVELS)
    plain = GeodesicGP().fit_levels(LEVELS, means).predict([30.0, 500.0])
    other = GeodesicGP().fit_levels(LEVELS * c_unit, (means + offset) * a_unit)
    scaled = other.predict(np.array([30.0, 500.0]) * c_unit)
    np.testing.assert_allclose(scaled.mean / a_unit - offset, plain.mean, rtol=0, atol=1e-7)
    np.testing.assert_allclose(scaled.scale / a_unit, plain.scale, rtol=1e-5)


def test_order_of_levels_does_not_matter() -> None:
    means = saturating(LEVELS)
    shuffled = np.random.default_rng(0).permutation(len(LEVELS))
    one = GeodesicGP().fit_levels(LEVELS, means).predict([10.0, 300.0])
    two = GeodesicGP().fit_levels(LEVELS[shuffled], means[shuffled]).predict([10.0, 300.0])
    np.testing.assert_array_equal(one.mean, two.mean)


def test_batched_folds_equal_single_fits() -> None:
    means = saturating(LEVELS) + np.random.default_rng(1).normal(0, 0.01, (6, 40))
    folds = [np.delete(np.arange(6), i) for i in range(6)] + [np.array([0, 2, 3, 5])]
    for fold, gp in zip(folds, GeodesicGP().fit_folds(LEVELS, means, folds), strict=True):
        alone = GeodesicGP().fit_levels(LEVELS[fold], means[fold])
        np.testing.assert_allclose(gp.warp_weights, alone.warp_weights, rtol=1e-9)
        np.testing.assert_allclose(gp.predict([33.0]).mean, alone.predict([33.0]).mean, rtol=1e-9)


def test_folds_see_the_noise_of_their_own_levels_only() -> None:
    generator = np.random.default_rng(2)
    index = np.repeat(np.arange(4), 3)
    deviations = generator.normal(0, 1.0, (12, 10))
    deviations[index == 0] *= 100.0
    means = generator.normal(size=(4, 10))
    without, with_it = GeodesicGP().fit_folds([0.0, 1, 2, 3], means, [[1, 2, 3], [0, 1, 2]], deviations, index)
    assert without.noise_source == "replicates"
    assert without.noise_variance.max() < 10.0 < with_it.noise_variance.max()


@pytest.mark.smoke
def test_evidence_and_prediction_by_hand() -> None:
    """One candidate (identity warp dominates nothing here): the formulas of the module, written out."""
    levels, means = np.array([0.0, 1.0, 2.0]), np.array([[0.0, 1.0], [1.0, 1.5], [2.5, 1.0]])
    gp = GeodesicGP(lengths=(1.2,), alphas=(0.5,), etas=(1e-2,)).fit_levels(levels, means)
    s = np.array([-1.0, 0.0, 1.0])
    corr = matern52(torch.from_numpy(np.abs(s[:, None] - s[None]) / 1.2)).numpy()
    kernel = 1 + 0.5 * np.outer(s, s) + 0.5 * corr + 1e-2 * np.eye(3)
    residual = means - means.mean(0)
    q = np.trace(residual.T @ np.linalg.inv(kernel) @ residual)
    log_weight = -0.5 * 8 * (3 * np.log(q / 6) + np.linalg.slogdet(kernel)[1])
    from geonode.metric.warp import scaled_warps

    others = scaled_warps(torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64), 0.0, 1.0).numpy()
    log_weights = []
    for row in others:
        k = 1 + 0.5 * np.outer(row, row)
        k += 0.5 * matern52(torch.from_numpy(np.abs(row[:, None] - row[None]) / 1.2)).numpy() + 1e-2 * np.eye(3)
        value = np.trace(residual.T @ np.linalg.inv(k) @ residual)
        log_weights.append(-0.5 * 8 * (3 * np.log(value / 6) + np.linalg.slogdet(k)[1]))
    assert log_weights[0] == pytest.approx(log_weight)
    expected = np.exp(np.array(log_weights) - max(log_weights))
    expected[1] *= 0.1  # the prior of √u
    np.testing.assert_allclose(gp.warp_weights, expected / expected.sum(), rtol=1e-8)


def test_bands_grow_outside_and_intervals_are_ordered() -> None:
    means = saturating(LEVELS) + np.random.default_rng(3).normal(0, 0.005, (6, 40))
    prediction = GeodesicGP().fit_levels(LEVELS, means).predict([150.0, 900.0])
    assert prediction.scale[1].mean() > prediction.scale[0].mean()
    low, high = prediction.interval(0.8)
    wide_low, wide_high = prediction.interval(0.95)
    assert (wide_low < low).all() and (low < high).all() and (high < wide_high).all()
    assert prediction.dof == 7.0
    with pytest.raises(InputError, match="between 0 and 1"):
        prediction.interval(95)


def test_band_equals_its_formula_from_the_factors() -> None:
    gp = GeodesicGP().fit_levels(LEVELS, saturating(LEVELS))
    p = gp.predict([70.0])
    r = gp.residual
    own = np.einsum("iw,ij,jw->w", r, p.weights.within[0], r)
    between = np.einsum("iw,ij,jw->w", r, p.weights.between[0], r)
    kept = gp.candidates
    scatter = np.einsum("g,gij->ij", (kept.weights * kept.etas[:, 0, 0]).numpy(), kept.inverse.numpy())
    scattered = np.einsum("iw,ij,jw->w", r, scatter, r)
    noise = np.maximum((scattered + 2.0 * scattered.mean() / 5) / 7, gp.noise_variance)
    scale2 = (own + 2.0 * own.mean() / 5) / 7 + between + noise
    np.testing.assert_allclose(p.scale[0] ** 2, scale2, rtol=1e-9)


def test_mean_rows_are_the_weighted_mean_of_every_candidates_rows() -> None:
    levels = np.array([0.0, 5.0, 10.0, 20.0, 40.0])
    means = np.stack([levels / (levels + 9.0), np.sin(levels / 15.0), 0.1 + 0.0 * levels], axis=1)
    gp = GeodesicGP().fit_levels(levels, means)
    at = np.linspace(-10.0, 60.0, 57)
    candidates = gp.candidates
    assert len(np.unique(np.stack([candidates.warp, candidates.lengths[:, 0, 0]], 1), axis=0)) < len(candidates.weights)
    assert gp.predict_rows(at) == pytest.approx(gp.predict_weights(at).mean, rel=1e-10, abs=1e-12)


def test_replicates_set_the_noise() -> None:
    generator = np.random.default_rng(4)
    c = np.repeat(LEVELS, 3)
    spectra = saturating(c, width=300) + generator.normal(0, 0.02, (18, 300))
    gp = GeodesicGP().fit(c, spectra)
    assert gp.noise_source == "replicates" and gp.noise_variance.mean() == pytest.approx(4e-4, rel=0.2)
    alone = GeodesicGP().fit(LEVELS, spectra[::3])
    assert alone.noise_source == "second differences" and alone.noise_variance.mean() == pytest.approx(4e-4, rel=0.3)


def test_state_round_trip() -> None:
    gp = GeodesicGP().fit(np.repeat(LEVELS, 2), np.repeat(saturating(LEVELS), 2, axis=0) + 0.01 * np.eye(12, 40))
    again = GeodesicGP.from_state(*gp.state())
    np.testing.assert_array_equal(again.predict([77.0]).scale, gp.predict([77.0]).scale)
    assert again.noise_source == "replicates"


def test_warp_metric_is_the_evidence_weighted_warp() -> None:
    gp = GeodesicGP().fit_levels(LEVELS, saturating(LEVELS))
    metric = gp.warp_metric()
    ends = metric.scaled(torch.tensor([0.0, 450.0], dtype=torch.float64))
    np.testing.assert_allclose(ends.detach().numpy(), [-1.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(metric.weights.detach().numpy(), gp.warp_weights, atol=1e-12)


def test_constant_spectra_give_the_constant() -> None:
    prediction = GeodesicGP().fit_levels([0.0, 1.0, 2.0], np.full((3, 5), 0.7)).predict([0.5, 3.0])
    np.testing.assert_allclose(prediction.mean, 0.7)
    assert np.isfinite(prediction.scale).all()


@pytest.mark.parametrize(
    ("levels", "means", "sentence"),
    [
        ([0.0, 1.0, 1.0], np.ones((3, 4)), "given twice"),
        ([0.0, 1.0, np.nan], np.ones((3, 4)), "NaN or infinite"),
        ([0.0, 1.0, 2.0], np.array([[1.0, 2.0], [np.inf, 1.0], [0.0, 1.0]]), "level 1 is NaN or infinite"),
        ([0.0], np.ones((1, 4)), "at least two"),
        ([0.0, 1.0], np.ones((3, 4)), "shape"),
    ],
)
def test_bad_input(levels: list[float], means: np.ndarray, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        GeodesicGP().fit_levels(levels, means)


def test_two_analytes_are_refused() -> None:
    with pytest.raises(InputError, match="one analyte"):
        GeodesicGP().fit(np.ones((4, 2)), np.ones((4, 3)))
