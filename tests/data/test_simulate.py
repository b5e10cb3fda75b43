"""The simulated assay: the same bits for the same seed, a known truth, gray → blue → gray."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from geonode.data import AssayParameters, SpectralDataset, simulate_assay
from geonode.errors import InputError


def test_defaults():
    assay = simulate_assay()
    assert isinstance(assay, SpectralDataset) and assay.shape == (6, 601)
    assert assay.levels.tolist() == [0, 10, 20, 30, 40, 60] and assay.concentration_unit == "ppb"
    assert assay.wavelengths[[0, -1]].tolist() == [200, 800]
    c, y, x = assay.tensors()
    assert y.dtype == torch.float64
    np.testing.assert_array_equal(y.numpy(), assay.spectra)
    np.testing.assert_array_equal(c.numpy(), assay.concentrations)
    np.testing.assert_array_equal(x.numpy(), assay.wavelengths)


def test_same_seed_same_bits():
    a, b, other = simulate_assay(seed=3), simulate_assay(seed=3), simulate_assay(seed=4)
    assert torch.equal(a.tensors()[1], b.tensors()[1]) and a == b and a != other


def test_noise_is_what_was_asked_for():
    assay = simulate_assay(noise=0.01, replicates=4)
    residual = assay.spectra - assay.truth(assay.tensors()[0]).numpy()
    assert abs(residual.std() / 0.01 - 1) < 0.03 and abs(residual.mean()) < 5e-4
    assert assay.replicate_degrees_of_freedom == 18
    exact = simulate_assay(noise=0, replicates=2)
    np.testing.assert_array_equal(exact.spectra, exact.truth(exact.tensors()[0]).numpy())


def test_truth_anywhere_in_any_form():
    assay = simulate_assay()
    for c in (17.5, [17.5], torch.tensor([17.5]), np.array([17.5])):
        assert assay.truth(c).shape == (1, 601)
    assert assay.truth(torch.linspace(0, 200, 7)).isfinite().all()
    c = torch.tensor([0.0, 5.0, 60.0], dtype=torch.float64, requires_grad=True)
    assay.truth(c).sum().backward()
    assert c.grad is not None and c.grad.isfinite().all()


def test_gray_blue_gray():
    """The 664 nm band rises and falls, and most of what responds is not monotonic."""
    assay = simulate_assay()
    y = assay.truth(torch.linspace(0, 60, 241, dtype=torch.float64))
    blue = y[:, 664 - 200]
    assert 60 < int(blue.argmax()) < 180 and blue.max() > blue[0] + 0.2 and blue.max() > blue[-1] + 0.05
    contrast = y[:, 664 - 200] - y[:, 560 - 200]  # the colour: none at either end, blue between
    assert contrast.max() > 2.5 * contrast[[0, -1]].abs().max()
    steps, span = y.diff(dim=0), y.amax(0) - y.amin(0)
    monotonic = (steps >= 0).all(0) | (steps <= 0).all(0)
    strong = span > 0.05
    assert strong.sum() > 300 and (monotonic & strong).sum() < 0.3 * strong.sum()


def test_the_unsorted_and_the_unusual():
    assay = simulate_assay([30, 0, 10], wavelengths=[400, 500, 600.5], dtype=torch.float32)
    assert assay.levels.tolist() == [0, 10, 30] and assay.tensors()[1].dtype == torch.float32
    np.testing.assert_array_equal(assay.tensors()[0].numpy(), assay.concentrations)
    weaker = simulate_assay(noise=0, parameters=AssayParameters(dye_total=1.0))
    assert weaker.spectra.max() <= simulate_assay(noise=0).spectra.max()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"concentrations": [0, -1]}, "not negative"),
        ({"concentrations": [0, 1, 1]}, "given twice"),
        ({"concentrations": []}, "at least one"),
        ({"concentrations": [0, float("nan")]}, "finite"),
        ({"wavelengths": [3, 2, 1]}, "ascending"),
        ({"wavelengths": [0, 1]}, "positive"),
        ({"replicates": 0}, "replicates is 0"),
        ({"noise": -1}, "noise is -1"),
        ({"noise": float("nan")}, "noise is nan"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        simulate_assay(**arguments)


@pytest.mark.gpu
def test_on_the_gpu():
    a, b = simulate_assay(device="cuda", seed=1), simulate_assay(device="cuda", seed=1)
    assert a.device.type == "cuda" and torch.equal(a.tensors()[1], b.tensors()[1])
    assert a.truth([5.0]).device.type == "cuda"
    torch.testing.assert_close(a.truth([5.0]).cpu(), simulate_assay().truth([5.0]))


@pytest.mark.parametrize("given", [tuple, np.array, torch.tensor], ids=["tuple", "array", "tensor"])
def test_wavelengths_of_another_data_set_are_taken_without_a_warning(given, recwarn):
    """Those of a data set are read-only, of which torch would warn whoever passes them on."""
    data = simulate_assay([0.0, 10.0], np.arange(400.0, 500.0, 10.0))
    again = simulate_assay([0.0, 10.0], given(data.wavelengths.tolist()))
    own = simulate_assay([0.0, 10.0], data.wavelengths)
    assert np.array_equal(own.spectra, again.spectra) and np.array_equal(own.wavelengths, data.wavelengths)
    assert not [one for one in recwarn if "writable" in str(one.message)]
