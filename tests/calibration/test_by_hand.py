"""Formulas of the calibration against calculations that share no code with them: dense kriging, written-out numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from geonode.calibration import Calibration, quality_check, suggest_standard
from geonode.calibration.gp.geodesic_gp import GeodesicGP
from geonode.calibration.inverse.model import InverseModel
from geonode.metric.warp import scaled_warps
from geonode_runtime.remedies import VerdictRules
from geonode_runtime.sets import Component, ConcentrationSet
from geonode_runtime.verdicts import scale_component, verdict
from tests.calibration.assays import LEVELS, WAVE, folding, monotone, noisy

LENGTH, ALPHA, ETA = 1.2, 0.5, 1e-2


def kernel(s: np.ndarray, t: np.ndarray) -> np.ndarray:
    """1 + α s t + (1 − α) Matérn-5/2 (Rasmussen & Williams 2006, eq. 4.17)."""
    x = math.sqrt(5.0) * np.abs(s[:, None] - t[None]) / LENGTH
    return 1.0 + ALPHA * np.outer(s, t) + (1.0 - ALPHA) * (1.0 + x + x**2 / 3.0) * np.exp(-x)


class Dense:
    """The mixture over the 13 warps, each kriged with dense matrices: weights w, rows B, variances v, inverses K⁻¹."""

    def __init__(self, gp: GeodesicGP, asked: np.ndarray, extra: float | None = None) -> None:
        levels = torch.from_numpy(gp.levels / gp.levels[-1])
        points = torch.from_numpy(np.asarray(asked) / gp.levels[-1])
        rows, variances, inverses = [], [], []
        at_levels = scaled_warps(levels, levels[0], levels[-1]).numpy()
        at_points = scaled_warps(points, levels[0], levels[-1]).numpy()
        for s, t in zip(at_levels, at_points, strict=True):
            inverse = np.linalg.inv(kernel(s, s) + ETA * np.eye(len(s)))
            known, own_inverse = s, inverse
            if extra is not None:  # variances after one more point: the whole matrix is inverted anew
                new = torch.tensor([extra / gp.levels[-1]], dtype=torch.float64)
                known = np.append(s, scaled_warps(new, levels[0], levels[-1]).numpy()[len(rows)])
                own_inverse = np.linalg.inv(kernel(known, known) + ETA * np.eye(len(known)))
            cross = kernel(t, known)
            variances.append(np.diag(kernel(t, t) - cross @ own_inverse @ cross.T))
            rows.append(kernel(t, s) @ inverse)
            inverses.append(inverse)
        self.rows, self.variances, self.inverses = (np.stack(x) for x in (rows, variances, inverses))
        self.weights = gp.warp_weights  # of one candidate a warp; test_evidence_and_prediction_by_hand computes them
        self.mean = np.einsum("g,gci->ci", self.weights, self.rows)

    def covariance(self, z: np.ndarray, k: int, dof: float) -> tuple[np.ndarray, np.ndarray]:
        """Σ w v S_w and Σ w (m_w − m)(m_w − m)ᵀ of the ``k``-th point, S_w shrunk with two degrees of freedom."""
        n, r = z.shape
        within, between = np.zeros((r, r)), np.zeros((r, r))
        for w, v, inverse, row in zip(self.weights, self.variances, self.inverses, self.rows, strict=True):
            scale = z.T @ inverse @ z
            within += w * v[k] * (scale + 2.0 * np.trace(scale) / ((n - 1) * r) * np.eye(r)) / dof
            step = (row[k] - self.mean[k]) @ z
            between += w * np.outer(step, step)
        return within, between


@pytest.fixture(scope="module")
def gp() -> GeodesicGP:
    one = GeodesicGP(lengths=(LENGTH,), alphas=(ALPHA,), etas=(ETA,))
    return one.fit_levels(LEVELS, noisy(monotone, LEVELS, 0))


ASKED = np.array([4.0, 25.0, 52.0, 70.0])


def test_kriging_variance_and_mixture(gp: GeodesicGP) -> None:
    dense, found = Dense(gp, ASKED), gp.predict_weights(ASKED)
    np.testing.assert_allclose(found.mean, dense.mean, atol=1e-5)  # candidates of next to no weight are dropped
    np.testing.assert_allclose(found.variance, dense.weights @ dense.variances, rtol=1e-4)
    within = np.einsum("g,gc,gij->cij", dense.weights, dense.variances, dense.inverses)
    np.testing.assert_allclose(found.within, within, rtol=1e-4, atol=1e-6 * np.abs(within).max())
    step = dense.rows - dense.mean
    between = np.einsum("g,gci,gcj->cij", dense.weights, step, step)
    np.testing.assert_allclose(found.between, between, atol=1e-4 * np.abs(between).max())


def test_band_of_the_spectra(gp: GeodesicGP) -> None:
    dense, found = Dense(gp, ASKED), gp.predict(ASKED)
    r, n = gp.residual, len(LEVELS)
    scatter = np.zeros(r.shape[1])
    own = np.zeros((len(ASKED), r.shape[1]))
    between = np.zeros_like(own)
    for w, v, inverse, row in zip(dense.weights, dense.variances, dense.inverses, dense.rows, strict=True):
        square = np.einsum("iw,ij,jw->w", r, inverse, r)
        shrunk = (square + 2.0 * square.mean() / (n - 1)) / (n - 1 + 2)
        own += w * v[:, None] * shrunk
        scatter += w * ETA * shrunk
        between += w * ((row - dense.mean) @ r) ** 2
    expected = own + between + np.maximum(scatter, gp.noise_variance)
    np.testing.assert_allclose(found.scale**2, expected, rtol=1e-3)


def test_covariance_of_the_curve(gp: GeodesicGP) -> None:
    model = InverseModel(gp, None)
    dense, z = Dense(gp, ASKED), model.projection.levels
    for k, own in enumerate(model.curve_parts(ASKED).interpolation):
        within, between = dense.covariance(z, k, gp.dof)
        share = np.trace(between) / np.trace(within)
        assert share > 1e-3, f"the case must be one in which both parts matter, but the ratio is {share:.2g}"
        np.testing.assert_allclose(own, within + between, rtol=1e-4, atol=0.01 * np.abs(between).max())


def test_a_further_standard_takes_as_much_as_kriging_with_it(gp: GeodesicGP) -> None:
    tried = np.array([25.0, 50.0])
    update = gp.kriging_update(ASKED, tried)
    for e, extra in enumerate(tried):
        after = Dense(gp, ASKED, extra)
        within = np.einsum("g,gc,gij->cij", after.weights, after.variances, after.inverses)
        np.testing.assert_allclose(update.within[e], within, rtol=1e-3, atol=1e-5 * np.abs(within).max())


def test_the_figure_of_a_suggestion() -> None:
    """√ mean 1/(G + 12/range²) of the dense kriging with the further standard, differences of candidates included."""
    levels = np.array([0.0, 5.0, 10.0, 60.0])  # a gap in which the candidates differ
    spectra = noisy(monotone, levels, 0)
    gp = GeodesicGP(lengths=(LENGTH,), alphas=(ALPHA,), etas=(ETA,)).fit_levels(levels, spectra)
    calibration = Calibration(levels, spectra, WAVE)
    calibration.gp = gp
    calibration.inverse = InverseModel(gp, None, curve_scale=0.7)
    found = suggest_standard(calibration, candidates=7, points=5)
    model, c = calibration.inverse, np.linspace(0.0, 60.0, 5)
    z, r, dof = model.projection.levels, model.rank, gp.dof
    for which in (4, 6):
        extra = float(found.candidates[which])
        dense, there = Dense(gp, c, extra), Dense(gp, np.array([extra]))
        own_there, between_there = there.covariance(z, 0, dof)
        variances, taken = [], 0.0
        for k in range(len(c)):
            within, between = dense.covariance(z, k, dof)
            cross = np.zeros((r, r))
            for w, row, other in zip(dense.weights, dense.rows, there.rows, strict=True):
                cross += w * np.outer((row[k] - dense.mean[k]) @ z, (other[0] - there.mean[0]) @ z)
            taken += np.trace(cross @ np.linalg.inv(between_there + own_there + np.eye(r)) @ cross.T)
            between = between - cross @ np.linalg.inv(between_there + own_there + np.eye(r)) @ cross.T
            total = 0.7 * (within + between) + (1.0 + (dense.mean[k] ** 2).sum()) * np.eye(r)
            step = max(1e-3 * c[k], 6e-4)
            ends = np.array([max(c[k] - step, 0.0), c[k] + step])
            slope = np.diff(Dense(gp, ends).mean @ z, axis=0)[0] / np.ptp(ends)
            variances.append(1.0 / (slope @ np.linalg.inv(total) @ slope + 12.0 / 60.0**2))
        assert found.expected[which] == pytest.approx(math.sqrt(np.mean(variances)), rel=1e-4)
        assert taken > 1.0, "the case must be one in which the differences of candidates matter"


# ---------------------------------------------------------------------- sets


def test_the_reach_of_a_set_is_a_squared_student_quantile() -> None:
    model = Calibration(LEVELS, noisy(monotone, LEVELS, 0), WAVE).inverse
    assert model.dof == 7.0
    # t tables: t_0.90(7) = 1.41492, t_0.975(7) = 2.36462; F_{1,ν}(p) = t²_{(1+p)/2}(ν)
    assert model.threshold(0.8, np.zeros(1))[0] == pytest.approx(1.41492**2, rel=1e-4)
    assert model.threshold(0.95, np.zeros(1))[0] == pytest.approx(2.36462**2, rel=1e-4)
    # a fit three times as bad as r − 1 coordinates allow widens threefold
    bad = np.array([3.0 * max(model.rank - 1, 1)])
    assert model.threshold(0.8, bad)[0] == pytest.approx(3.0 * 1.41492**2, rel=1e-4)


def test_ends_of_a_set_lie_where_the_distance_reaches_it() -> None:
    calibration = Calibration(LEVELS, noisy(monotone, LEVELS, 0), WAVE)
    spectrum = noisy(monotone, 25.0, 1)
    answer, model = calibration.quantify(spectrum[0], method="profile"), calibration.inverse
    coordinates, q = model.projection.coordinates(spectrum)
    noise = max(float(q[0]), 1.0) * np.eye(model.rank)

    def distance(c: float) -> float:
        mean, curve = model.curve(np.array([c]))
        step = coordinates[0] - mean[0]
        return float(step @ np.linalg.inv(curve[0] + noise) @ step)

    assert answer.low is not None and answer.high is not None
    least = min(distance(c) for c in np.linspace(answer.low, answer.high, 401))
    reach = 1.41492**2 * max(1.0, least / max(model.rank - 1, 1))
    assert distance(answer.low) - least == pytest.approx(reach, rel=0.05)
    assert distance(answer.high) - least == pytest.approx(reach, rel=0.05)


def test_coverage_of_many_calibrations_is_near_nominal() -> None:
    """Folding assay, twice eight calibrations, 30 unknowns each: neither too narrow nor needlessly wide."""
    generator, shares = np.random.default_rng(11), {0.5: [], 0.8: []}
    for seed in range(16):
        noise = 0.002 if seed % 2 else 0.01
        calibration = Calibration(LEVELS, noisy(folding, LEVELS, 100 + seed, noise), WAVE)
        c = generator.uniform(2.0, 58.0, 30)
        unknown = noisy(folding, c, 200 + seed, noise)
        for level, found in shares.items():
            answers = calibration.quantify_many(unknown, level, method="profile")
            found.append(np.mean([any(k.contains(x) for k in a.components) for a, x in zip(answers, c, strict=True)]))
    assert 0.72 <= np.mean(shares[0.8]) <= 0.90
    assert 0.35 <= np.mean(shares[0.5]) <= 0.60


# ---------------------------------------------------------------------- dilution, verdicts, controls


def component(low: float, estimate: float, high: float, open_low: bool = False, open_high: bool = False) -> Component:
    return Component(low, high, open_low, open_high, estimate, 0.0, 1.0, estimate, 1.0)


def test_uncertainty_of_a_dilution_by_hand() -> None:
    # 10 (8 to 13), factor 5 ± 0.5: extra = 10 · 0.1 · t_0.9(7) = 1.41492
    made = scale_component(component(8.0, 10.0, 13.0), 5.0, 0.1, 0.8, 7.0)
    assert made.estimate == 50.0
    assert made.low == pytest.approx(5.0 * (10.0 - math.sqrt(4.0 + 1.41492**2)), rel=1e-5)
    assert made.high == pytest.approx(5.0 * (10.0 + math.sqrt(9.0 + 1.41492**2)), rel=1e-5)
    assert made.std == pytest.approx(5.0 * math.sqrt(1.0 + 1.0))
    assert stats.t.ppf(0.9, 7) == pytest.approx(1.41492, abs=1e-5)


@pytest.mark.parametrize(("width", "said"), [(0.75, "quantified"), (0.85, "ambiguous")])
def test_a_set_wider_than_four_fifths_of_the_range_determines_nothing(width: float, said: str) -> None:
    one = component(50.0 - 50.0 * width, 50.0, 50.0 + 50.0 * width)
    rules = VerdictRules(0.0, 100.0, True, 2.0, 9.0)
    whole = ConcentrationSet(0.95, (one,), 0.0, 1.0)
    assert verdict(rules, whole, whole, 1.0, 1.0)[0] == said


def test_an_unsure_nominal_concentration_passes_by_196_standard_deviations() -> None:
    calibration = Calibration(LEVELS, noisy(monotone, LEVELS, 0), WAVE)
    spectrum = noisy(monotone, 25.0, 1)[0]
    exact = quality_check(calibration, spectrum, 25.0)
    assert exact.low is not None and exact.high is not None
    nominal = exact.high + 1.0  # beyond the set by 1: needs u > 1/1.96 = 0.51
    assert not quality_check(calibration, spectrum, nominal).passed
    assert not quality_check(calibration, spectrum, nominal, nominal_std=0.49).passed
    told = quality_check(calibration, spectrum, nominal, nominal_std=0.53)
    assert told.passed
    assert told.drift_low == pytest.approx(exact.low - 1.96 * 0.53 - nominal)
    assert told.drift_high == pytest.approx(exact.high + 1.96 * 0.53 - nominal)
