"""ISO 11843-2 limits against a calculation step by step, and the choice of wavelengths."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from geonode.calibration.baselines.univariate import noncentrality, single_wavelength, straight_line, wavelength_ratio
from geonode.errors import InputError

X = np.array([0.0, 0.0, 2.0, 2.0, 4.0, 4.0, 8.0, 8.0])
Y = np.array([0.010, 0.014, 0.212, 0.205, 0.409, 0.416, 0.803, 0.811])


def test_line_equals_scipy() -> None:
    line, expected = straight_line(X, Y), stats.linregress(X, Y)
    assert line.slope == pytest.approx(expected.slope) and line.intercept == pytest.approx(expected.intercept)
    assert line.r2 == pytest.approx(expected.rvalue**2)
    assert line.concentration(line.intercept + 3.0 * line.slope) == pytest.approx(3.0)


def test_iso_11843_by_hand() -> None:
    line = straight_line(X, Y, measurements=2)
    residual = Y - (line.intercept + line.slope * X)
    sigma = np.sqrt((residual**2).sum() / 6)
    # x̄ = 3.5, s_xx = Σ(x − x̄)² = 2 (12.25 + 2.25 + 0.25 + 20.25) = 70
    root = np.sqrt(1 / 2 + 1 / 8 + 3.5**2 / 70.0)
    assert line.residual_std == pytest.approx(sigma)
    assert line.critical == pytest.approx(1.9431802805 * sigma / line.slope * root)  # t_0.95(6)
    delta = noncentrality(6)
    assert stats.nct.cdf(stats.t.ppf(0.95, 6), 6, delta) == pytest.approx(0.05, abs=1e-6)
    assert 1.9 * 1.943 < delta < 2.0 * 1.943
    assert line.detection == pytest.approx(delta * sigma / line.slope * root)
    assert line.quantification == pytest.approx(10.0 * sigma / line.slope * root)


def test_best_wavelength_and_ratio_are_found() -> None:
    c = np.repeat([1.0, 2.0, 4.0, 8.0, 16.0], 3)
    noise = np.random.default_rng(0).normal(0.0, 1.0, (15, 4))
    lamp = 1.0 + 0.1 * np.random.default_rng(1).normal(size=15)  # a factor common to all wavelengths
    exact = np.stack([np.full(15, 1.0), 0.02 * c, 0.1 * c, np.full(15, 2.0)], axis=1)
    spectra = exact + 0.001 * noise
    found = single_wavelength(c, spectra, [400.0, 500.0, 600.0, 700.0])
    assert found.wavelength == 600.0 and found.denominator is None and found.rmsecv < 0.1
    ratio = wavelength_ratio(c, spectra * lamp[:, None], [400.0, 500.0, 600.0, 700.0])
    assert ratio is not None and ratio.wavelength == 600.0 and ratio.denominator in (400.0, 700.0)
    assert ratio.rmsecv < single_wavelength(c, spectra * lamp[:, None], [400.0, 500.0, 600.0, 700.0]).rmsecv


def test_a_ratio_is_never_of_one_wavelength_with_itself() -> None:
    c = np.array([1.0, 2.0, 3.0, 4.0])
    assert wavelength_ratio(c, np.ones((4, 1)) + 0.01 * c[:, None], [500.0]) is None


def test_no_limit_without_a_blank_and_none_beyond_the_top_is_passed_over() -> None:
    c = np.repeat([0.0, 1.0, 2.0, 4.0, 8.0], 2)
    spectra = 0.05 * c[:, None] * np.array([1.0, 2.0, 1.0]) + np.random.default_rng(2).normal(0.0, 0.001, (10, 3))
    grid = [400.0, 500.0, 600.0]
    good = single_wavelength(c, spectra, grid)
    assert good.reasons == () and good.line.detection is not None and good.line.detection < 0.2
    for found in (single_wavelength(c[2:], spectra[2:], grid), wavelength_ratio(c[2:], spectra[2:] + 1.0, grid)):
        assert found is not None
        assert (found.line.critical, found.line.detection, found.line.quantification) == (None, None, None)
        assert any("no blank" in reason for reason in found.reasons)
    noisy = single_wavelength(c, 0.2 * spectra + np.random.default_rng(3).normal(0.0, 0.2, (10, 3)), grid)
    assert noisy.line.detection is None and any("no limit can be claimed" in reason for reason in noisy.reasons)
    assert noisy.line.r2 < 0.95 and any("no straight line" in reason for reason in noisy.reasons)


def test_the_noisy_end_of_a_lamp_is_not_chosen() -> None:
    """A chance line at the end is straighter than the true band, but the noise there is 30 times larger."""
    wave = np.arange(200.0, 800.0, 2.0)
    c = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    bend = np.array([0.0, 0.9, 2.1, 2.9, 4.1])
    exact = 0.1 * bend[:, None] * np.exp(-0.5 * ((wave - 520.0) / 30.0) ** 2)
    noise = np.where(wave < 240.0, 0.03, 0.001)
    spectra = exact + noise * np.random.default_rng(0).standard_normal(exact.shape)
    spectra[:, 3] = 0.01 * c + np.array([0.0, 1e-5, -1e-5, 1e-5, 0.0])  # straight by chance
    found = single_wavelength(c, spectra, wave)
    assert 460.0 < found.wavelength < 580.0
    ratio = wavelength_ratio(c, spectra + 1.0, wave)
    assert ratio is not None and ratio.denominator is not None and min(ratio.wavelength, ratio.denominator) > 240.0


def test_bad_input() -> None:
    with pytest.raises(InputError, match="three points"):
        straight_line([1.0, 2.0], [1.0, 2.0])
    with pytest.raises(InputError, match="two different"):
        straight_line([1.0, 1.0, 1.0], [1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="measurements must be at least 1"):
        straight_line([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], measurements=0)
