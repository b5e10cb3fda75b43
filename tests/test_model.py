"""`fit`, the fitted model and `load`: the main job on the simulated assay, saved and read back to the bit."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import geonode
from geonode import GeodesicConfig, SpectralDataset, fit, load, simulate_assay
from geonode.errors import BundleError, InputError

BETWEEN = [5.0, 15.0, 25.0, 35.0, 50.0]


@pytest.fixture(scope="module")
def assay():
    return simulate_assay(wavelengths=np.linspace(250.0, 780.0, 60).tolist(), noise=0.002)


@pytest.fixture(scope="module")
def model(assay):
    return fit(assay, GeodesicConfig(flow="path_independent", epochs=20), device="cpu")


@pytest.fixture(scope="module")
def gp_model(assay):
    return fit(assay, GeodesicConfig(predictor="gp"))


@pytest.mark.smoke
def test_spectra_between_the_standards_are_labelled_and_near_the_truth(model, assay):
    mean, std = model.predict_spectra(BETWEEN)
    assert mean.dims == std.dims == ("concentration", "wavelength")
    assert mean.shape == (5, 60)
    assert mean.attrs["units"] == assay.units["signal"]
    assert mean.concentration.attrs["units"] == "ppb"
    np.testing.assert_array_equal(mean.wavelength, assay.wavelengths)
    truth = assay.truth(BETWEEN).numpy()
    spread = assay.spectra.std()
    assert np.sqrt(np.mean((mean.values - truth) ** 2)) < 0.1 * spread
    assert (std.values > 0).all()
    linear = np.array([np.interp(BETWEEN, assay.concentrations, y) for y in assay.spectra.T]).T
    assert np.mean((mean.values - truth) ** 2) < np.mean((linear - truth) ** 2)


def test_a_number_and_a_list_of_one_agree(model):
    one, _ = model.predict_spectra(15.0)
    several, _ = model.predict_spectra([15.0])
    np.testing.assert_array_equal(one, several)


def test_a_spectrum_depends_on_its_own_concentration_alone(model):
    alone, alone_std = model.predict_spectra([25.0])
    among, among_std = model.predict_spectra(BETWEEN)
    np.testing.assert_allclose(alone[0], among[2], atol=1e-5)
    np.testing.assert_allclose(alone_std[0], among_std[2], atol=1e-5)


def test_outside_the_calibrated_range_is_flagged_and_less_certain(model):
    mean, std = model.predict_spectra([30.0, 70.0])
    np.testing.assert_array_equal(mean.extrapolated, [False, True])
    assert std[1].mean() > std[0].mean()


def test_beyond_the_served_range_is_refused_for_the_flow_and_answered_by_the_gp(model):
    low, high = model.served_range
    assert (low, high) == (0.0, 75.0)
    with pytest.raises(InputError, match=r"Concentration 90 lies outside 0 … 75 ppb"):
        model.predict_spectra([90.0])
    mean, _ = model.predict_spectra([90.0], predictor="gp")
    assert np.isfinite(mean).all()


@pytest.mark.parametrize("bad", [[np.nan], [np.inf], [], [[1.0, 2.0]]])
def test_concentrations_that_are_none_are_refused(model, bad):
    with pytest.raises(InputError, match="concentrations must be"):
        model.predict_spectra(bad)


def test_unknown_predictor_is_refused(model):
    with pytest.raises(InputError, match="predictor='oracle'"):
        model.predict_spectra([5.0], predictor="oracle")


@pytest.mark.smoke
@pytest.mark.parametrize("which", ["model", "gp_model"])
def test_saved_and_loaded_predicts_to_the_bit(which, request, tmp_path):
    model = request.getfixturevalue(which)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    for before, after in zip(model.predict_spectra(BETWEEN), again.predict_spectra(BETWEEN), strict=True):
        np.testing.assert_array_equal(before, after)
    assert again.config == model.config
    assert again.history == model.history
    assert again.dataset.units == model.dataset.units
    np.testing.assert_array_equal(again.dataset.spectra, model.dataset.spectra)
    again.save(tmp_path / "n")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "n").read_bytes()


def test_two_fits_of_one_seed_agree_to_the_bit_and_of_two_seeds_do_not(assay, one_thread):
    config = GeodesicConfig(flow="path_independent", epochs=3, members=1)
    first, second, third = (
        fit(assay, config, seed=seed, device="cpu").predict_spectra(BETWEEN)[0] for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, second)
    assert (first.values != third.values).any()


def test_gp_alone_has_no_flow_and_says_so(gp_model):
    mean, _ = gp_model.predict_spectra([25.0])
    assert mean.shape == (1, 60)
    with pytest.raises(InputError, match="has no neural flow"):
        gp_model.predict_spectra([25.0], predictor="node")


def test_masked_wavelengths_are_left_out_of_the_model(assay):
    mask = np.zeros(assay.spectra.shape, dtype=bool)
    mask[2, 7] = True
    masked = SpectralDataset(assay.spectra, assay.concentrations, assay.wavelengths, mask=mask)
    fitted = fit(masked, GeodesicConfig(predictor="gp"))
    assert fitted.predict_spectra([25.0])[0].sizes["wavelength"] == 59
    assert assay.wavelengths[7] not in fitted.dataset.wavelengths


def test_too_few_levels_and_several_analytes_are_refused():
    spectra = np.random.default_rng(0).normal(size=(4, 5))
    with pytest.raises(InputError, match="at least 3"):
        fit(SpectralDataset(spectra[:2], [0.0, 1.0], [1, 2, 3, 4, 5]))
    with pytest.raises(InputError, match="takes one analyte"):
        fit(SpectralDataset(spectra, [[0, 0], [0, 1], [1, 0], [1, 1]], [1, 2, 3, 4, 5]))


def test_a_bundle_without_a_parameter_is_refused(model, tmp_path):
    from geonode.bundle import read_bundle, write_bundle

    model.save(tmp_path / "m")
    tensors, metadata = read_bundle(tmp_path / "m")
    rest = {k: metadata[k] for k in ("dataset", "config", "gp", "history")}
    name = next(k for k in tensors if k.startswith("ode/flow"))
    write_bundle(tmp_path / "lacking", {k: v for k, v in tensors.items() if k != name}, rest)
    with pytest.raises(BundleError, match=name.removeprefix("ode/")):
        load(tmp_path / "lacking")
    rest.pop("gp")
    write_bundle(tmp_path / "wordless", tensors, rest)
    with pytest.raises(BundleError, match="not a complete geonode bundle"):
        load(tmp_path / "wordless")


def test_progress_is_told_to_its_end(assay):
    told = []
    fit(
        assay,
        GeodesicConfig(flow="path_independent", epochs=2, members=1),
        device="cpu",
        progress=lambda *what: told.append(what),
    )
    assert told[-1] == ("training the flow", 2, 2)


@pytest.mark.smoke
def test_velocity_and_blueprint_flows_fit_and_predict(assay, tmp_path):
    coarse = simulate_assay(wavelengths=np.linspace(300.0, 700.0, 7).tolist())
    small = {"epochs": 1, "members": 1, "batch_size": 8, "metric_hidden": (8, 8)}
    configs = [
        GeodesicConfig(flow="velocity", **small),
        GeodesicConfig.blueprint(precision="32-true", micro_batch=8, ode_steps=6, **small),
    ]
    for config in configs:
        fitted = fit(coarse, config, device="cpu")
        fitted.save(tmp_path / "m")
        mean, _ = load(tmp_path / "m").predict_spectra([15.0])
        np.testing.assert_array_equal(mean, fitted.predict_spectra([15.0])[0])
        assert np.isfinite(mean).all()


@pytest.mark.smoke
def test_public_names():
    names = (
        "load_standards SpectralDataset simulate_assay MetricNetwork WarpMetric christoffel exponential_map shoot "
        "arc_length_geodesic GeodesicSolution GeodesicGP SpectralFlow CoupledSpectralODE GeodesicConfig "
        "GeodesicSpectralModule SpectralDataModule fit evaluate load"
    )
    for name in names.split():
        assert hasattr(geonode, name), name
    assert dataclasses.is_dataclass(geonode.GeodesicSolution)
