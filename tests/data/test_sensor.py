"""The simulated two-analyte sensor: linkage, truth, replicates."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from geonode.data import SpectralDataset, simulate_sensor
from geonode.data.sensor import SensorParameters, sensor_spectra
from geonode.errors import InputError


def test_the_grid_is_a_data_set_of_two_analytes():
    data = simulate_sensor(replicates=2)
    assert isinstance(data, SpectralDataset) and data.dim == 2 and data.analytes == ("pH", "Cl")
    assert data.levels.shape == (28, 2) and len(data) == 56 and data.shape[1] == 131
    c, y, _ = data.tensors()
    np.testing.assert_array_equal(c.numpy(), data.concentrations)
    np.testing.assert_array_equal(y.numpy(), data.spectra)


def test_same_seed_same_bits():
    assert simulate_sensor(seed=3, preparation=0.02) == simulate_sensor(seed=3, preparation=0.02)
    assert simulate_sensor(seed=3) != simulate_sensor(seed=4)


def test_noise_and_preparation_are_what_was_asked_for():
    data = simulate_sensor(replicates=4, noise=0.01)
    residual = data.spectra - data.truth(data.concentrations).numpy()
    assert abs(residual.std() / 0.01 - 1) < 0.03
    prepared = simulate_sensor(replicates=4, noise=0.0, preparation=0.05)
    deviations = prepared.replicate_deviations()
    assert 1e-4 < deviations.std() < 0.05
    assert np.linalg.matrix_rank(deviations, tol=1e-3 * np.abs(deviations).max() * 10) < 10, "two causes, not noise"


def test_linkage():
    """Half of the chromophore is protonated at the apparent pKa, which chloride raises as Wyman's relation says."""
    p = SensorParameters(residual_brightness=1.0, background=0.0)
    for chloride in (0.0, 30.0, 300.0):
        shift = np.log10((1 + chloride / p.kd_protonated) / (1 + chloride / p.kd_deprotonated))
        point = torch.tensor([[p.pka + shift, chloride]], dtype=torch.float64)
        x = torch.tensor([p.protonated_center, p.deprotonated_center], dtype=torch.float64)
        y = sensor_spectra(point, x, p)[0]
        # With bound states as bright as free ones, a peak's height is brightness × its fraction, one half.
        assert y[0] / p.protonated_brightness == pytest.approx(0.5, abs=0.02)
        assert y[1] / p.deprotonated_brightness == pytest.approx(
            0.5 * (1 + 0.4 * np.exp(-0.5 * (27 / 17) ** 2)), abs=1e-4
        )


def test_the_analytes_interact():
    """No sum of a function of pH and a function of chloride: mixed differences do not vanish."""
    data = simulate_sensor()
    y = data.truth([[6.0, 0.0], [6.0, 100.0], [8.0, 0.0], [8.0, 100.0]])
    assert (y[0] - y[1] - y[2] + y[3]).abs().max() > 0.1


def test_differentiable_and_defined_off_the_grid():
    data = simulate_sensor()
    c = torch.tensor([[6.5, 0.0], [9.0, 1000.0]], dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(data.truth(c).sum(), c)
    assert gradient.isfinite().all() and data.truth([7.0, 10.0]).shape == (1, 131)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"ph": [5.0, 5.0]}, "pH: a concentration is given twice"),
        ({"chloride": [-1.0]}, "chloride: concentrations must be finite and not negative"),
        ({"wavelengths": [2.0, 1.0]}, "ascending"),
        ({"replicates": 0}, "replicates is 0"),
        ({"preparation": -1.0}, "preparation is -1"),
    ],
)
def test_bad_arguments(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        simulate_sensor(**arguments)


@pytest.mark.gpu
def test_on_the_gpu():
    data = simulate_sensor(device="cuda")
    assert data.truth([7.0, 10.0]).is_cuda
    torch.testing.assert_close(data.truth([7.0, 10.0]).cpu(), simulate_sensor().truth([7.0, 10.0]))
