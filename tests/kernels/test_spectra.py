"""Spectral post-processing: SciPy on the CPU, CuPy on a GPU, the same results from both."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.interpolate
import scipy.signal
import torch

from geonode_kernels._runtime import KernelError
from geonode_kernels.spectra import find_peaks, pchip, savitzky_golay
from tests.tolerances import tolerance

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture
def spectra() -> torch.Tensor:
    """[2, 5, 601] float64, smooth with several peaks and a little noise."""
    generator = torch.Generator().manual_seed(3)
    x = torch.linspace(0, 1, 601, dtype=torch.float64)
    centres = torch.rand(2, 5, 4, 1, generator=generator, dtype=torch.float64)
    noise = 0.01 * torch.randn(2, 5, 601, generator=generator, dtype=torch.float64)
    return torch.exp(-0.5 * ((x - centres) / 0.03).square()).sum(2) + noise


@pytest.mark.smoke
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("edges", ["interp", "mirror", "nearest"])
@pytest.mark.parametrize("derivative", [0, 1, 2])
def test_savitzky_golay_is_scipys(spectra, device, edges, derivative):
    got = savitzky_golay(spectra.to(device), 15, 3, derivative, 0.5, edges)
    expected = scipy.signal.savgol_filter(spectra.numpy(), 15, 3, deriv=derivative, delta=0.5, mode=edges)
    assert got.device.type == device
    torch.testing.assert_close(got.cpu(), torch.from_numpy(expected), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("device", DEVICES)
def test_savitzky_golay_keeps_polynomials_and_dtype(device):
    x = torch.linspace(-1, 1, 101, device=device)
    cubic = 1 + x - 2 * x**2 + 0.5 * x**3
    got = savitzky_golay(cubic[None], 11, 3)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got[0], cubic, **tolerance(torch.float32, "gradient"))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "limits", [{}, {"height": 0.5}, {"prominence": 0.3}, {"distance": 40}, {"distance": 7.5, "height": 0.1}]
)
def test_peaks_are_those_of_each_spectrum_alone(spectra, device, limits):
    got = find_peaks(spectra.to(device), **limits)
    rows = spectra.reshape(-1, spectra.shape[-1]).numpy()
    for row, values in enumerate(rows):
        place, found = scipy.signal.find_peaks(values, **{"height": -np.inf, "prominence": -np.inf, **limits})
        mine = (got.row == row).cpu()
        np.testing.assert_array_equal(got.index.cpu()[mine], place)
        np.testing.assert_allclose(got.height.cpu()[mine], found["peak_heights"])
        np.testing.assert_allclose(got.prominence.cpu()[mine], found["prominences"], rtol=1e-12)
    assert len(got.row) > 0


def test_a_flat_spectrum_between_others_has_no_peak(spectra):
    stack = torch.stack([spectra[0, 0], torch.ones(601, dtype=torch.float64), spectra[0, 1]])
    assert not bool((find_peaks(stack).row == 1).any())


@pytest.mark.smoke
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("derivative", [0, 1, 2, 3])
def test_pchip_is_scipys(device, derivative):
    x = torch.tensor([0.0, 10.0, 20.0, 30.0, 40.0, 60.0], dtype=torch.float64)
    y = torch.sin(torch.arange(18, dtype=torch.float64)).reshape(3, 6)
    points = torch.linspace(0.5, 59.5, 31, dtype=torch.float64)
    got = pchip(x.to(device), y.to(device), points.to(device), derivative)
    expected = scipy.interpolate.PchipInterpolator(x.numpy(), y.numpy(), axis=-1)(points.numpy(), nu=derivative)
    torch.testing.assert_close(got.cpu(), torch.from_numpy(expected), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: savitzky_golay(s, 10), "window=10"),
        (lambda s: savitzky_golay(s, 603), "601 wavelengths"),
        (lambda s: savitzky_golay(s, 5, 5), "order=5"),
        (lambda s: savitzky_golay(s, edges="reflect"), "reflect"),
        (lambda s: find_peaks(s, distance=0.5), "distance=0.5"),
        (lambda s: find_peaks(s.clone().index_fill(-1, torch.tensor([3]), torch.nan)), "Spectrum 0"),
        (lambda s: pchip(torch.tensor([0.0, 0.0]), torch.zeros(2), torch.zeros(1)), "ascend"),
        (lambda s: pchip(torch.tensor([0.0, 1.0]), torch.zeros(2), torch.tensor([1.5])), "extrapolate"),
        (lambda s: pchip(torch.tensor([0.0, 1.0]), torch.zeros(3), torch.zeros(1)), "must be"),
    ],
)
def test_what_cannot_be_is_refused_by_name(spectra, call, words):
    with pytest.raises(ValueError, match=words):
        call(spectra)


def test_an_explicit_backend_that_cannot_be_had_raises(spectra):
    with pytest.raises(KernelError, match="CuPy reads CUDA tensors"):
        savitzky_golay(spectra, backend="cupy")
    with pytest.raises(KernelError, match="unknown"):
        savitzky_golay(spectra, backend="numpy")


def test_nothing_is_changed_in_place(spectra):
    before = spectra.clone()
    savitzky_golay(spectra)
    find_peaks(spectra)
    assert torch.equal(before, spectra)
