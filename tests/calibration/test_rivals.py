"""Other methods to find concentrations: against scikit-learn where it has the method, and on data each is made for."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cross_decomposition import PLSRegression

from geonode.calibration.baselines.latent_variables import pcr_coefficients, pls_coefficients
from geonode.calibration.baselines.method import InverseMethod, inverse_method, names_of
from geonode.errors import InputError

RNG = np.random.default_rng(0)


def test_pls_equals_scikit_learn() -> None:
    x, y = RNG.normal(size=(20, 50)), RNG.normal(size=20)
    x, y = x - x.mean(0), y - y.mean()
    vectors = pls_coefficients(x, y, 4)
    for a in range(4):
        expected = PLSRegression(a + 1, scale=False).fit(x, y).coef_.ravel()
        np.testing.assert_allclose(vectors[a], expected, rtol=1e-8, atol=1e-10)


def test_pcr_equals_least_squares_on_scores() -> None:
    x, y = RNG.normal(size=(20, 50)), RNG.normal(size=20)
    x, y = x - x.mean(0), y - y.mean()
    basis = np.linalg.svd(x, full_matrices=False)[2][:3].T
    expected = basis @ np.linalg.lstsq(x @ basis, y, rcond=None)[0]
    np.testing.assert_allclose(pcr_coefficients(x, y, 3)[2], expected, rtol=1e-8, atol=1e-10)


def test_beyond_the_rank_the_last_is_repeated() -> None:
    x, y = np.outer(np.arange(5.0) - 2.0, [1.0, 2.0]), np.arange(5.0) - 2.0
    for function in (pls_coefficients, pcr_coefficients):
        vectors = function(x, y, 4)
        np.testing.assert_allclose(vectors, np.repeat(vectors[:1], 4, axis=0), atol=1e-12)


@pytest.mark.parametrize("name", names_of(InverseMethod))
def test_every_method_finds_concentrations_on_a_line(name: str) -> None:
    c = np.repeat(np.arange(1.0, 7.0), 2)
    shape = np.sin(np.linspace(0.0, 3.0, 60))
    spectra = np.outer(c, shape) + 0.001 * RNG.normal(size=(12, 60))
    method = inverse_method(name).fit(spectra, c)
    np.testing.assert_allclose(method.predict(np.outer([2.5, 4.5], shape)), [2.5, 4.5], atol=0.15)
    limits = method.interval(np.outer([2.5, 4.5], shape), 0.8)
    assert limits is None or bool((limits[0] < limits[1]).all())


def test_the_warped_axis_suits_saturation() -> None:
    c = np.array([0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0])
    shape = np.sin(np.linspace(0.0, 3.0, 60))
    spectra = np.outer(c / (c + 10.0), shape)
    unknown = np.outer([5.0 / 15.0], shape)
    assert abs(inverse_method("pls_warped").fit(spectra, c).predict(unknown)[0] - 5.0) < 0.5
    assert abs(inverse_method("pls").fit(spectra, c).predict(unknown)[0] - 5.0) > 5.0


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InputError, match="no inverse method called 'svm'"):
        inverse_method("svm")
