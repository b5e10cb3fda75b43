"""Several analytes: laws of the geometry, the process and the flow, on the simulated pH × quencher sensor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from geonode.analytes import (
    EnsembleEmbedding,
    SurfaceGP,
    all_pairs,
    evaluate_surface,
    fit_surface_nodes,
    gauss_curvature,
    leave_cells_out,
    leave_rows_out,
)
from geonode.analytes.bands import _no_mean, outside_hull
from geonode.analytes.embedding import EmbeddingMetric
from geonode.analytes.interpolators import INTERPOLATORS, Bilinear
from geonode.calibration.assessment.coverage import responding_wavelengths
from geonode.data.sensor import simulate_sensor
from geonode.errors import InputError
from geonode.metric import Euclidean, PoincareHalfPlane, PullbackMetric, Sphere

WAVELENGTHS = np.linspace(270.0, 500.0, 24)
QUICK = {"starts": 2, "hidden": 4, "steps": 80}


@pytest.fixture(scope="module")
def sensor() -> tuple[np.ndarray, np.ndarray]:
    data = simulate_sensor(wavelengths=WAVELENGTHS.tolist(), noise=0.002, seed=3)
    return np.array(data.levels), np.array(data.level_means())


@pytest.fixture(scope="module")
def gp(sensor: tuple[np.ndarray, np.ndarray]) -> SurfaceGP:
    return SurfaceGP(**QUICK).fit(*sensor)


def random_embedding(dim: int = 2) -> EnsembleEmbedding:
    generator = torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)  # noqa: E731
    return EnsembleEmbedding(0.2 * draw(3, dim), draw(3, dim), draw(3, 5, dim), draw(3, 5), 2.0 * draw(3, dim + 1, 5))


@pytest.mark.smoke
@pytest.mark.parametrize("dim", [2, 3])
def test_metric_of_embedding_equals_its_pullback(dim: int) -> None:
    embedding = random_embedding(dim)
    x = torch.randn(6, dim, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    ours, theirs = EmbeddingMetric(embedding, floor=0.2), PullbackMetric(embedding, dim, floor=0.2)
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-12, atol=1e-12)
    for a, b in zip(ours.two_derivatives(x), theirs.two_derivatives(x), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-11)
    for a, b in zip(ours.value_and_derivative(x), theirs.value_and_derivative(x), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-11)
    assert ours(x[:, None], torch.zeros(6, 4, dtype=torch.float64)).shape == (6, 4, dim, dim)


@pytest.mark.parametrize(("metric", "curvature"), [(Sphere(), 1.0), (PoincareHalfPlane(), -1.0), (Euclidean(2), 0.0)])
def test_curvature_of_the_oracles(metric, curvature: float) -> None:
    x = torch.tensor([[0.7, 1.3], [1.1, 0.4], [2.0, 2.5]], dtype=torch.float64)
    torch.testing.assert_close(gauss_curvature(metric, x), torch.full((3,), curvature, dtype=torch.float64))


def test_curvature_by_the_embedded_surface() -> None:
    """Theorema egregium: K of φ(x, y) = (x, y, f) from Γ equals (f_xx f_yy − f_xy²)/(1 + f_x² + f_y²)²."""

    def bowl(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, x[..., :1] ** 2 + 0.5 * x[..., 1:] ** 2 + 0.3 * x[..., :1] * x[..., 1:]], -1)

    x = torch.tensor([[0.2, -0.4], [0.0, 0.0], [1.0, 0.5]], dtype=torch.float64)
    fx, fy = 2 * x[:, 0] + 0.3 * x[:, 1], x[:, 1] + 0.3 * x[:, 0]
    expected = (2.0 * 1.0 - 0.09) / (1 + fx**2 + fy**2) ** 2
    torch.testing.assert_close(gauss_curvature(PullbackMetric(bowl, 2), x), expected, rtol=1e-9, atol=1e-12)
    with pytest.raises(InputError, match="two analytes"):
        gauss_curvature(Euclidean(3), torch.zeros(1, 3))


def test_kernel_is_positive_definite_and_metric_is_its_learned_part(gp: SurfaceGP) -> None:
    x = gp.coordinates(gp.levels)[None]
    kernel = gp._surfaces.kernel(x, x)
    assert torch.linalg.eigvalsh(kernel).min() > -1e-10
    diagonal = torch.diagonal(kernel, dim1=-2, dim2=-1)
    torch.testing.assert_close(diagonal, gp._surfaces.prior_variance(x))
    assert torch.linalg.eigvalsh(gp.metric()(x[0])).min() > 0
    for d, warp in enumerate(gp.warps()):
        torch.testing.assert_close(warp.scaled(torch.tensor(gp.levels[:, d])), x[0, :, d])


def test_a_fold_of_a_batch_is_fitted_as_it_is_alone(sensor: tuple[np.ndarray, np.ndarray]) -> None:
    levels, means = sensor
    folds = [np.delete(np.arange(len(levels)), i) for i in (0, 9)]
    together = SurfaceGP(**QUICK).fit_folds(levels, means, folds)
    alone = SurfaceGP(**QUICK).fit(levels[folds[1]], means[folds[1]])
    np.testing.assert_allclose(together[1].predict_mean(levels), alone.predict_mean(levels), rtol=1e-6, atol=1e-9)


def test_prediction_scales_with_the_spectra_and_bands_widen_away_from_standards(gp: SurfaceGP, sensor) -> None:
    levels, means = sensor
    scaled = SurfaceGP(**QUICK).fit(levels, 1000.0 * means + 5.0)
    at = np.array([[6.8, 40.0], [7.8, 200.0]])
    np.testing.assert_allclose(scaled.predict_mean(at), 1000.0 * gp.predict_mean(at) + 5.0, rtol=1e-6)
    near, far = gp.predict(levels[:1]), gp.predict([[9.5, 2000.0]])
    assert far.scale.mean() > 3 * near.scale.mean()
    assert far.extrapolated[0] and not near.extrapolated[0]
    low, high = near.interval(0.8)
    assert (low < near.mean).all() and (near.mean < high).all()
    with pytest.raises(InputError, match="between 0 and 1"):
        near.interval(80.0)


def test_bands_with_the_row_effect_hold_for_the_rows_that_were_left_out(sensor: tuple[np.ndarray, np.ndarray]) -> None:
    """Four rows: the largest score is taken, so each row's bands hold 80 % of it, one of them no more than that."""
    levels, means = sensor
    spoiled = means * (1.0 + 0.3 * np.sin(7.0 * levels[:, :1]))  # every pH off by itself
    gp = SurfaceGP(**QUICK).fit(levels, spoiled)
    effect = gp.row_effect(0)
    assert effect.rows == 4 and effect.claimed
    assert effect.share > 4 * SurfaceGP(**QUICK).fit(levels, means).row_effect(1).share
    held = []
    for row in leave_rows_out(levels):
        (without,) = gp.fit_folds(levels, spoiled, [np.setdiff1d(np.arange(len(levels)), row)])
        responding, prediction = responding_wavelengths(without.level_means), without.predict_within(levels[row])
        scale = np.sqrt(prediction.scale**2 + effect.share * without.level_means.var(0))
        low, high = replace(prediction, scale=scale * (1 + 1e-9)).interval(0.8)
        held.append(((low <= spoiled[row]) & (spoiled[row] <= high))[:, responding].mean())
    assert min(held) == pytest.approx(0.8, abs=0.01)


def test_bands_widen_where_no_standard_has_the_concentration(gp: SurfaceGP) -> None:
    ph, chloride = (np.unique(column) for column in gp.levels.T)
    at = np.array([[ph[1], chloride[2]], [ph[1] + 0.1, chloride[2]], [ph[1], chloride[2] + 1.0], [ph[-1] + 0.5, 0.0]])
    plain, prediction = gp.predict_within(at), gp.predict(at)
    np.testing.assert_array_equal(prediction.between_rows, [False, True, True, True])
    np.testing.assert_array_equal(prediction.extrapolated, [False, False, False, True])
    np.testing.assert_array_equal(prediction.claimed, [True, True, True, False])
    np.testing.assert_array_equal(plain.claimed, [True, False, False, False])
    np.testing.assert_array_equal(prediction.scale[0], plain.scale[0])
    share = (prediction.scale**2 - plain.scale**2)[1:] / gp.level_means.var(0)
    np.testing.assert_allclose(share[0], gp.row_effect(0).share, rtol=1e-6)
    np.testing.assert_allclose(share[1], gp.row_effect(1).share, rtol=1e-6, atol=1e-12)
    assert "1 lie outside the standards, where no coverage is claimed" in prediction.sentence()


@pytest.mark.parametrize(("rows", "spared"), [(2, 0), (3, 3)])
def test_too_few_rows_claim_nothing_between_them(sensor: tuple[np.ndarray, np.ndarray], rows: int, spared: int) -> None:
    levels, means = sensor
    few = levels[:, 0] <= np.unique(levels[:, 0])[rows - 1]
    gp = SurfaceGP(**QUICK).fit(levels[few], means[few])
    middle = levels[0] + 0.5 * (levels[few][-1] - levels[0]) * [1.0, 0.0] + [0.01, 0.0]
    prediction = gp.predict([levels[0], middle])
    assert gp.row_effect(0).rows == spared
    np.testing.assert_array_equal(prediction.claimed, [True, False])
    assert "measure four or more" in prediction.sentence()


def test_hull_of_a_triangle_of_standards() -> None:
    triangle = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 300.0], [1.0, 10.0]])
    at = np.array([[1.0, 100.0], [2.0, 150.0], [3.0, 200.0], [-1.0, 0.0], [4.0, 0.0]])
    np.testing.assert_array_equal(outside_hull(at, triangle), [False, False, True, True, False])
    box = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 300.0], [4.0, 300.0]])
    np.testing.assert_array_equal(outside_hull(at, box), [False, False, False, True, False])


@pytest.mark.parametrize("dim", [2, 3])
def test_the_hull_is_that_of_weighted_means(dim: int) -> None:
    """By its faces as by a linear programme for each point; standards on one line have no faces."""
    draw = np.random.default_rng(dim)
    levels = draw.uniform(size=(9, dim)) * [4.0, 300.0, 1.0][:dim]
    low, size = levels.min(0), np.ptp(levels, axis=0)
    at = np.concatenate([low + size * draw.uniform(0.0, 1.0, size=(40, dim)), levels])
    asked = np.ones(len(at), dtype=bool)
    np.testing.assert_array_equal(outside_hull(at, levels), _no_mean((at - low) / size, (levels - low) / size, asked))
    line = np.linspace(0.0, 1.0, 5)[:, None] * np.ones(dim)
    np.testing.assert_array_equal(outside_hull(np.array([line[2], [0.5] * (dim - 1) + [0.6]]), line), [False, True])


def test_held_out_cells_are_never_seen(sensor: tuple[np.ndarray, np.ndarray]) -> None:
    """Spoiling a cell changes nothing about its own prediction, by any method."""
    levels, means = sensor
    fold = [np.array([10])]
    spoiled = means.copy()
    spoiled[10] += 100.0
    training = np.delete(np.arange(len(levels)), 10)
    a, b = (
        SurfaceGP(**QUICK).fit_folds(levels, y, [training])[0].predict_mean(levels[fold[0]]) for y in (means, spoiled)
    )
    np.testing.assert_array_equal(a, b)


def test_surface_beats_the_interpolators_on_the_simulated_sensor(sensor: tuple[np.ndarray, np.ndarray]) -> None:
    levels, means = sensor
    folds = leave_cells_out(levels)[7:21:3]
    methods = ["bilinear", "thin_plate", "gp_2d", "gp"]
    held = evaluate_surface(levels, means, WAVELENGTHS, folds, methods, SurfaceGP(**QUICK))
    chosen = np.concatenate(folds)
    assert np.exp(np.log(held.ratio("gp", methods[:3])[chosen]).mean()) < 0.95
    assert np.isnan(held.rmse["gp"][0]), "cells that no fold leaves out have no error"
    assert 5 / len(levels) < held.coverage["responding"] <= 1.0, "levels that no fold leaves out do not count"


def test_flow_follows_its_teacher_and_arrives_by_any_path(gp: SurfaceGP) -> None:
    node = fit_surface_nodes([gp], WAVELENGTHS)[0]
    at = np.array([[6.8, 40.0], [7.7, 200.0]])
    scale = gp.residual.std()
    assert np.abs(node.predict(at) - gp.predict_mean(at)).max() < 0.03 * scale
    ode = node.ode.double()
    start, end = torch.tensor(gp.levels[[3, 12]]), torch.tensor(at)
    source = torch.zeros(2, len(WAVELENGTHS), dtype=torch.float64)
    with torch.no_grad():
        by_potential, by_path = ode(source, start, end), ode(source, start, end, solver="rk4")
        torch.testing.assert_close(by_path, by_potential, rtol=1e-4, atol=1e-4)
        assert (ode(source, start, start) == source).all()


def test_every_pair_is_joined_by_a_geodesic(gp: SurfaceGP) -> None:
    points = gp.coordinates(gp.levels[::4])
    pairs, solution = all_pairs(gp.metric(), points)
    assert len(pairs) == len(points) * (len(points) - 1) // 2
    assert bool(solution.converged.all())
    length = gp.metric().energy(solution.start, solution.initial_velocity).sqrt()
    chord = torch.linalg.vector_norm(gp.embedding()(solution.start) - gp.embedding()(solution.end), dim=-1)
    assert bool((length >= chord - 1e-9).all()), "no curve on the surface is shorter than the chord through space"


@pytest.mark.parametrize("name", list(INTERPOLATORS))
def test_interpolators_reproduce_a_plane(name: str) -> None:
    levels = np.array([[x, y] for x in (5.0, 6.0, 8.0) for y in (0.0, 1.0, 3.0, 7.0)])
    plane = levels @ np.array([[1.0, -0.5], [0.2, 0.1]]) + 3.0
    at = np.array([[5.5, 2.0], [7.0, 6.0]])
    expected = at @ np.array([[1.0, -0.5], [0.2, 0.1]]) + 3.0
    np.testing.assert_allclose(INTERPOLATORS[name]().fit(levels, plane).predict(at), expected, atol=2e-2)


def test_bilinear_bridges_a_hole_along_the_finer_analyte() -> None:
    levels = np.array([[x, y] for x in (0.0, 1.0) for y in (0.0, 1.0, 2.0, 4.0)])
    values = (levels[:, :1] + 1.0) * levels[:, 1:] ** 2
    hole = 2  # (0, 2): between (0, 1) and (0, 4)
    rest = np.delete(np.arange(8), hole)
    predicted = Bilinear().fit(levels[rest], values[rest]).predict(levels[[hole]])
    assert predicted[0, 0] == pytest.approx(1.0 + (16.0 - 1.0) / 3.0)


def test_folds_cover_every_level_once(sensor: tuple[np.ndarray, np.ndarray]) -> None:
    levels, _ = sensor
    for folds in (leave_cells_out(levels), leave_rows_out(levels), leave_rows_out(levels, 1)):
        assert sorted(np.concatenate(folds).tolist()) == list(range(len(levels)))
    assert len(leave_rows_out(levels)) == 4


@pytest.mark.parametrize(
    ("levels", "means", "message"),
    [
        ([0.0, 1.0, 2.0], np.ones((3, 2)), "use GeodesicGP"),
        ([[0, 0], [0, 1], [1, 0], [1, 1]], np.ones((3, 2)), "shape"),
        ([[0, 0], [0, 1], [1, 0], [1, np.nan]], np.ones((4, 2)), "row 3 of the levels"),
        ([[0, 0], [0, 1], [1, 0]], np.ones((3, 2)), "too few"),
        ([[0, 0], [0, 0], [1, 0], [1, 1]], np.ones((4, 2)), "given twice"),
        ([[0, 0], [0, 1], [0, 2], [0, 3]], np.ones((4, 2)), "analyte 1 has one concentration"),
    ],
)
def test_bad_levels_are_named(levels, means, message: str) -> None:
    with pytest.raises(InputError, match=message):
        SurfaceGP().fit(levels, means)


def test_other_bad_input(gp: SurfaceGP, sensor: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.raises(InputError, match=r"\[C, 2\]"):
        gp.predict_mean([1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="no method called 'kriging'"):
        evaluate_surface(*sensor, WAVELENGTHS, leave_cells_out(sensor[0]), ["kriging"])
    with pytest.raises(InputError, match="starts must be at least 1"):
        SurfaceGP(starts=0)
    with pytest.raises(InputError, match="equally many levels"):
        fit_surface_nodes([], WAVELENGTHS)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ([[50.0, 7.0]], "analyte 1 was asked at 50.* the analytes seem to be swapped"),
        ([[7.0, 100_000.0]], "analyte 2 was asked at 100000.* nothing is known so far"),
        ([[7.0, 50.0], [-40.0, 50.0]], "analyte 1 was asked at -40.* nothing is known so far"),
    ],
)
def test_what_lies_out_of_reach_is_refused(asked, sentence):
    from geonode.analytes.reach import require_within_reach

    levels = np.array([[5.5, 0.0], [5.5, 300.0], [8.5, 0.0], [8.5, 300.0]])
    require_within_reach(np.array([[9.5, 400.0]]), levels)  # outside, and flagged where it is predicted
    with pytest.raises(InputError, match=sentence):
        require_within_reach(np.array(asked), levels)
