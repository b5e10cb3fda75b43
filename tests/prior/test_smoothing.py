"""Noise along the wavelengths: polynomials pass, white noise goes, narrow features stay; the setting has its effect."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import stdtrit

import geonode
from geonode.errors import InputError
from geonode.prior.flow import AssayFlow, _left_of_scatter
from geonode.prior.smoothing import _PENALTIES, FEWEST, MOST, ORDER, SpectralNoise, degrees_of_freedom, penalty_bands
from geonode.prior.stored import load_network

SIZE = 3e-3


def standards(width: int = 301, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Levels, measured spectra with white noise of `SIZE`, and the truth."""
    levels, x = np.array([0.0, 10.0, 20.0, 30.0, 40.0, 60.0]), np.linspace(0.0, 1.0, width)
    bound = levels / (levels + 15.0)
    bands = [np.exp(-(((x - m) / 0.12) ** 2)) for m in (0.3, 0.65)]
    truth = np.outer(1.0 - bound, bands[0]) + np.outer(bound, bands[1])
    return levels, truth + SIZE * np.random.default_rng(seed).standard_normal(truth.shape), truth


def rms(x: np.ndarray) -> float:
    return float(np.sqrt(np.square(x).mean()))


def test_bands_are_those_of_the_squared_differences():
    width = 30
    differences = np.diff(np.eye(width), ORDER, axis=0)
    wanted, bands = differences.T @ differences, penalty_bands(width)
    for k in range(ORDER + 1):
        np.testing.assert_array_equal(bands[ORDER - k, k:], np.diag(wanted, k))


@pytest.mark.parametrize("width", [24, 120])
def test_degrees_of_freedom_are_near_the_trace(width):
    differences = np.diff(np.eye(width), ORDER, axis=0)
    eigenvalues = np.linalg.eigvalsh(differences.T @ differences)
    trace = (1.0 / (1.0 + _PENALTIES[:, None] * eigenvalues.clip(0.0))).sum(1)
    np.testing.assert_allclose(degrees_of_freedom(width), trace, rtol=0.06)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), width=st.integers(FEWEST, 400))
def test_a_parabola_is_no_noise_and_what_is_taken_is_bounded(seed, width):
    _, measured, _ = standards(width, seed)
    noise = SpectralNoise(measured)
    x = np.linspace(-1.0, 1.0, width)
    rng = np.random.default_rng(seed)
    parabolas = rng.standard_normal((4, 3)) @ np.stack([np.ones(width), x, x**2])
    assert np.abs(noise.of(parabolas)).max() < 1e-6
    assert np.abs(noise.of(rng.standard_normal((3, width)))).max() <= MOST * noise.noise


def test_white_noise_is_found_and_most_of_it_goes():
    levels, measured, truth = standards()
    noise = SpectralNoise(measured)
    assert noise.noise == pytest.approx(SIZE, rel=0.1)
    assert rms(measured - noise.of(measured) - truth) < 0.4 * SIZE
    between = np.array([5.0, 15.0, 25.0, 35.0])
    rough, smooth = (AssayFlow(load_network(), levels, measured, smooth=smooth) for smooth in (False, True))
    taken = rough.predict_mean(between) - smooth.predict_mean(between)
    assert 0.4 * SIZE < rms(taken) < SIZE, "a prediction has less noise than a standard, and most of that goes"
    one, other = rough.predict(between), smooth.predict(between)
    for name in ("arc_length", "distance"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (other.scale > 0.4 * one.scale).all()


@pytest.mark.parametrize("dof", [2.5, 4.0, 30.0])
def test_bands_fall_as_those_of_a_mixture_of_normals_do(dof):
    """A Student t with noise of a known variance taken from each of its normal distributions."""
    rng = np.random.default_rng(2)
    variance = dof / rng.chisquare(dof, 400_000)
    taken = 0.1
    drawn = np.sqrt(np.maximum(variance - taken, 0.0)) * rng.standard_normal(len(variance))
    share = _left_of_scatter(np.ones(1), dof, np.full((2, 1), np.sqrt(taken)))
    half = stdtrit(dof, 0.9) * np.sqrt(share)
    assert np.mean(np.abs(drawn) < half) == pytest.approx(0.8, abs=4e-3)
    assert np.mean(np.abs(drawn) < stdtrit(dof, 0.9)) > 0.805, "and without that they hold more"


def test_spectra_without_noise_and_rough_ones_are_left():
    _, measured, truth = standards()
    assert rms(SpectralNoise(truth).of(truth)) < 1e-7
    walk = np.cumsum(np.random.default_rng(3).standard_normal((6, 301)), 1)  # all scales, and no noise
    assert rms(SpectralNoise(walk).of(walk)) < 0.5 * rms(np.diff(walk)) < 0.1 * rms(walk)
    few = measured[:, : FEWEST - 1]
    np.testing.assert_array_equal(SpectralNoise(few).of(few), np.zeros_like(few))


def test_a_step_between_detectors_stays():
    levels, measured, _ = standards()
    stepped = measured + 0.05 * (np.arange(301) > 150)
    flow = AssayFlow(load_network(), levels, stepped)
    found = flow.predict_mean([25.0])[0]
    assert found[151] - found[150] == pytest.approx(0.05, abs=4.0 * SIZE)


def test_the_unit_of_the_signal_says_nothing():
    _, measured, _ = standards()
    plain, louder = SpectralNoise(measured), SpectralNoise(1e6 * measured)
    np.testing.assert_allclose(louder.of(1e6 * measured), 1e6 * plain.of(measured), rtol=1e-6, atol=1e-6 * SIZE)


def test_the_setting_reaches_fit_bundles_and_export(tmp_path):
    levels, measured, _ = standards()
    data = geonode.SpectralDataset(measured, levels, np.linspace(400.0, 700.0, 301))
    on = geonode.fit(data)
    off = geonode.fit(data, geonode.GeodesicConfig(flow={"name": "pretrained", "options": {"smooth": False}}))
    between = [5.0, 25.0]
    apart = off.predict_spectra(between)[0].values - on.predict_spectra(between)[0].values
    assert 0.3 * SIZE < rms(apart) < SIZE
    for model in (on, off):
        model.save(tmp_path / "m")
        again = geonode.load(tmp_path / "m").predict_spectra(between)[0].values
        np.testing.assert_allclose(again, model.predict_spectra(between)[0].values, atol=1e-12)
    with pytest.raises(InputError, match="smooth='no' must be true or false"):
        geonode.fit(data, geonode.GeodesicConfig(flow={"name": "pretrained", "options": {"smooth": "no"}}))
