"""The neural ensemble as a process: laws of its covariance, its folds, save and load, coverage."""

from __future__ import annotations

import numpy as np
import pytest

import geonode
from geonode.calibration import GeodesicGP
from geonode.calibration.gp.node_process import HeldOutResidual, NodeEnsemble, NodeProcess
from geonode.data import SpectralDataset
from geonode.errors import InputError
from tests.calibration.assays import LEVELS, NOISE, WAVE, folding, monotone, noisy

CONFIG = geonode.GeodesicConfig(flow="path_independent", folds=True, epochs=4, seed=3)


def dataset(levels=LEVELS, seed: int = 0) -> SpectralDataset:
    return SpectralDataset(noisy(monotone, levels, seed)[:, ::4], levels, WAVE[::4])


@pytest.fixture(scope="module")
def model() -> geonode.GeodesicModel:
    return geonode.fit(dataset(), CONFIG, device="cpu")


def of_truth(truth=monotone, noise: float = NOISE, seed: int = 0) -> NodeEnsemble:
    """Processes whose flow is the teacher's own mean with two seeds a little apart: no training."""
    x = noisy(truth, LEVELS, seed, noise)
    gp = GeodesicGP().fit(LEVELS, x)
    left_out = np.arange(len(LEVELS))
    folds = gp.fit_folds(LEVELS, x, [np.delete(left_out, i) for i in left_out])

    def flow(one: GeodesicGP):
        return lambda c: np.stack([one.predict_mean(c) - 1e-4, one.predict_mean(c) + 1e-4])

    return NodeEnsemble.of(gp, flow(gp), left_out, folds, [flow(one) for one in folds])


def test_covariance_is_positive_semidefinite_of_low_rank_and_its_diagonal_is_the_band(model) -> None:
    c = np.array([0.0, 5.0, 25.0, 50.0, 70.0])
    for process in (model.ensemble.process, model.gp):
        found, band = process.covariance(c), process.predict(c)
        dense = found.dense()
        assert np.abs(dense - dense.transpose(0, 2, 1)).max() <= 1e-12 * np.abs(dense).max()
        assert (found.diagonal >= 0.0).all() and np.linalg.eigvalsh(dense).min() > 0.0
        assert found.factors.shape[1] <= len(LEVELS) + CONFIG.members
        np.testing.assert_allclose(np.diagonal(dense, axis1=1, axis2=2), band.scale**2, rtol=1e-8)
        assert np.linalg.eigvalsh(process.predict_weights(c).within).min() > -1e-9


def test_bands_widen_away_from_standards_and_beyond_the_ends(model) -> None:
    # Between standards where the curve and not noise is what limits it.
    process = of_truth(folding, 0.0).process
    at = np.sqrt((process.covariance(LEVELS).factors ** 2).sum(axis=(1, 2)))
    between = np.sqrt((process.covariance([5.0, 15.0, 25.0, 35.0, 50.0]).factors ** 2).sum(axis=(1, 2)))
    assert (between > at[:-1]).all() and (between > at[1:]).all()
    for one in (process, model.ensemble.process):
        beyond = np.sqrt((one.covariance([60.0, 62.0, 66.0, 72.0]).factors ** 2).sum(axis=(1, 2)))
        assert (np.diff(beyond) > 0.0).all()


def test_held_out_errors_twice_as_large_give_bands_twice_as_wide() -> None:
    gp = GeodesicGP().fit(LEVELS, noisy(monotone, LEVELS, 1))
    shape = np.random.default_rng(0).standard_normal((6, len(WAVE)))
    one, two = (
        NodeProcess(
            gp, lambda c: gp.predict_mean(c)[None], [HeldOutResidual(i, k * s, 1e-4) for i, s in enumerate(shape)]
        )
        for k in (1.0, 2.0)
    )
    np.testing.assert_allclose(two.predict([25.0]).scale, 2.0 * one.predict([25.0]).scale, rtol=1e-12)


def test_folds_never_see_their_own_error() -> None:
    ensemble = of_truth()
    for i, fold in zip(ensemble.left_out, ensemble.folds, strict=True):
        assert LEVELS[i] not in fold.levels and len(fold._errors) == len(LEVELS) - 1


def test_quantify_predict_and_report_rest_on_the_flow(model) -> None:
    assert any("neural flow (2 seeds, 6 folds)" in note for note in model.calibration.notes)
    assert model.calibration.gp is model.ensemble.process and model.calibration.of_process.ensemble is None
    answer = model.quantify(monotone(27.0)[0][::4])
    assert answer.estimate == pytest.approx(27.0, abs=2.0) and answer.verdict == "quantified"
    mean, std = model.predict_spectra([27.0])
    np.testing.assert_allclose(std.values, model.ensemble.process.predict([27.0]).std)
    # the spline through the flow is the flow
    assert np.abs(mean.values - model._node_spectra(np.array([27.0])).mean(0)).max() < 0.05 * NOISE
    assert model.coverage()["bands_responding"] is not None


def test_same_seed_and_a_loaded_bundle_give_the_same_answers(model, tmp_path) -> None:
    model.save(tmp_path / "node.bundle")
    loaded, again = geonode.load(tmp_path / "node.bundle"), geonode.fit(dataset(), CONFIG, device="cpu")
    spectrum = noisy(monotone, 33.0, 5)[0][::4]
    for other in (loaded, again):
        assert other.quantify(spectrum).to_dict() == model.quantify(spectrum).to_dict()
        for mine, theirs in zip(model.predict_spectra([5.0, 33.0]), other.predict_spectra([5.0, 33.0]), strict=True):
            assert np.array_equal(mine.values, theirs.values)


def test_bands_and_sets_cover_a_simulated_assay() -> None:
    inside, sets = {monotone: [], folding: []}, []
    c = np.array([5.0, 15.0, 25.0, 35.0, 50.0])
    for truth, shares in inside.items():
        for seed in range(10):
            ensemble = of_truth(truth, seed=seed)
            low, high = ensemble.process.predict(c).interval(0.8)
            x = noisy(truth, c, 100 + seed)
            shares.append(((low <= x) & (x <= high)).mean())
            if truth is monotone:
                made = geonode.Calibration(LEVELS, ensemble.process.level_means, WAVE, ensemble=ensemble)
                answers = zip(made.quantify_many(x), c, strict=True)
                sets += [any(k.contains(t) for k in a.components) for a, t in answers]
    # A smooth curve is covered too often (a fold bridges twice the gap), one that folds between standards is not.
    each = [np.mean(shares) for shares in inside.values()]
    assert min(each) >= 0.7 and 0.75 <= np.mean(each) <= 0.95
    assert np.mean(sets) >= 0.7


def test_bad_choices_are_refused() -> None:
    with pytest.raises(InputError, match="folds=True is for the neural flow"):
        geonode.GeodesicConfig(folds=True, predictor="gp")
    with pytest.raises(InputError, match="folds need 4 to 48"):
        geonode.fit(dataset(LEVELS[:3]), CONFIG, device="cpu")
