"""Optics of gold particles against what is known of them, and the assay that is made with it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from geonode.data import InstrumentParameters, NanoparticleParameters, SpectralDataset, optics, simulate_nanoparticles
from geonode.errors import InputError

VISIBLE = np.arange(400.0, 801.0)
QUIET = InstrumentParameters(
    noise=0,
    preparation=0,
    loading=0,
    baseline_offset=0,
    baseline_slope=0,
    baseline_scatter=0,
    stray_light=0,
    saturation=99,
)


def absorptivity(radius: float) -> float:
    """Molar absorptivity at the plasmon band, L/(mol cm)."""
    return float(optics.mie_extinction(VISIBLE, radius).max()) * 1e-14 * 6.02214076e20 / np.log(10)


def test_gold_spheres_absorb_as_measured():
    """15 nm: about 3.6e8 L/(mol cm) at 520 nm (Liu et al., Colloids Surf. B 58 (2007) 3); the band moves with size."""
    pytest.importorskip("miepython")
    assert absorptivity(7.5) == pytest.approx(3.6e8, rel=0.1)
    peaks = [VISIBLE[optics.mie_extinction(VISIBLE, r).argmax()] for r in (5.0, 10.0, 25.0, 50.0)]
    assert 515 <= peaks[0] <= 525 and peaks == sorted(peaks) and 560 <= peaks[-1] <= 590


def test_small_spheres_by_mie_and_by_gans_agree():
    """In the limit of small particles both are Rayleigh's sphere."""
    pytest.importorskip("miepython")
    radius = 1.0
    mie = optics.mie_extinction(VISIBLE, radius)
    permittivity = torch.tensor(optics.gold_permittivity(VISIBLE, radius))
    one = torch.ones(1, dtype=torch.float64)
    gans = optics.gans_extinction(permittivity, torch.tensor(VISIBLE), one, 4 / 3 * np.pi * radius**3)[0]
    np.testing.assert_allclose(gans.numpy(), mie, rtol=2e-3)


@pytest.mark.parametrize(
    ("aspect", "factor"), [(1.0, 1 / 3), (1.5, 0.2330), (2.0, 0.1736), (3.0, 0.1087), (10.0, 0.0203)]
)
def test_depolarisation_factors(aspect, factor):
    """Values of the closed form as tabulated (Osborn, Phys. Rev. 67 (1945) 351)."""
    found = optics.depolarisation(torch.tensor([aspect], dtype=torch.float64))
    assert float(found[0]) == pytest.approx(factor, abs=1e-4)


def test_depolarisation_is_smooth_through_its_series():
    a = torch.linspace(1.0, 1.002, 2001, dtype=torch.float64, requires_grad=True)
    factor = optics.depolarisation(a)
    (gradient,) = torch.autograd.grad(factor.sum(), a)
    assert factor.diff().abs().max() < 1e-6 and gradient.isfinite().all()
    assert (gradient + 4 / 15).abs().max() < 2e-2, "−4/15 at a sphere"


def test_longer_chains_are_redder():
    permittivity = torch.tensor(optics.gold_permittivity(VISIBLE, 7.5))
    aspect = torch.tensor([1.0, 1.5, 2.0, 3.0], dtype=torch.float64)
    peaks = VISIBLE[optics.gans_extinction(permittivity, torch.tensor(VISIBLE), aspect, 1767.0).argmax(dim=1)]
    assert peaks.tolist() == sorted(peaks) and 660 < peaks[-1] < 690


def test_optical_constants_end_somewhere():
    with pytest.raises(InputError, match=r"known from 187.9 to 1937 nm, but the wavelengths run from 100 to 400 nm"):
        optics.gold_index(np.array([100.0, 400.0]))


def test_miepython_is_named_where_it_is_absent(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "miepython", None)
    with pytest.raises(InputError, match=r"install it with pip install 'geodesic-node\[simulate\]'"):
        simulate_nanoparticles()


# --- the assay --------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _needs_miepython(request):
    if "simulate" in request.node.name or "assay" in request.node.name:
        pytest.importorskip("miepython")


def test_assay_is_a_data_set_with_a_truth():
    data = simulate_nanoparticles(replicates=3)
    assert isinstance(data, SpectralDataset) and data.shape == (18, 601) and data.concentration_unit == "ppb"
    assert data.truth([5.0, 25.0]).shape == (2, 601)
    assert simulate_nanoparticles(seed=4) == simulate_nanoparticles(seed=4) != simulate_nanoparticles(seed=5)


def test_assay_without_hand_and_instrument_is_its_truth():
    data = simulate_nanoparticles(instrument=QUIET)
    np.testing.assert_allclose(data.spectra, data.truth(data.concentrations).numpy(), atol=1e-12)


def test_assay_is_non_monotonic_and_smooth():
    data = simulate_nanoparticles()
    c = torch.linspace(0.0, 60.0, 121, dtype=torch.float64, requires_grad=True)
    truth = data.truth(c)
    dye = truth[:, 464].detach()
    assert 30 < int(dye.argmax()) < 80 and dye.max() > dye[0] + 0.3 and dye.max() > dye[-1] + 0.2
    (gradient,) = torch.autograd.grad(truth.sum(), c)
    assert gradient.isfinite().all() and truth.min() > 0


def test_assay_each_flaw_does_what_it_says():
    def spread(**flaw):
        data = simulate_nanoparticles(replicates=30, instrument=InstrumentParameters(**{**vars(QUIET), **flaw}))
        return data, data.spectra - data.truth(data.concentrations).numpy()

    _, noise = spread(noise=0.002)
    assert noise[:, 400:].std() == pytest.approx(0.002 * 10**0.15, rel=0.5), "grows as light fades"
    _, preparation = spread(preparation=0.05)
    assert np.abs(preparation[:30]).max() < 1e-15, "nothing to err about at zero"
    assert np.abs(preparation[60:90, 464]).max() > 1e-3
    _, loading = spread(loading=0.05)
    data, _ = spread()
    ratio = loading / data.spectra
    assert np.ptp(ratio, axis=1).max() < 1e-9, "one factor for a spectrum"
    _, stray = spread(stray_light=1e-2)
    high, low = data.spectra.argmax(axis=1), data.spectra.argmin(axis=1)
    rows = np.arange(len(data))
    assert (stray[rows, high] < stray[rows, low]).all() and (stray[rows, high] < -1e-3).all(), (
        "high absorbances read low"
    )
    saturated, _ = spread(saturation=0.5)
    assert saturated.mask.any() and np.nanmax(saturated.spectra) < 0.5
    assert any("the saturation of the detector" in note for note in saturated.notes)


def test_assay_of_other_chemistry():
    bare = simulate_nanoparticles(parameters=NanoparticleParameters(dye=0.0), instrument=QUIET)
    peaks = 400 + bare.truth([0.0, 60.0]).numpy()[:, 200:].argmax(axis=1)
    assert 515 <= peaks[0] <= 525 and peaks[1] > peaks[0] + 5, "aggregation moves the plasmon to the red"


def test_assay_refuses_bad_arguments():
    for arguments, sentence in [
        ({"concentrations": [1.0, 1.0]}, "given twice"),
        ({"replicates": 0}, "replicates is 0"),
        ({"instrument": InstrumentParameters(noise=-1.0)}, "noise is -1"),
        ({"wavelengths": [100.0, 300.0]}, "known from 187.9 to 1937 nm"),
    ]:
        with pytest.raises(InputError, match=sentence):
            simulate_nanoparticles(**arguments)


@pytest.mark.gpu
def test_assay_on_the_gpu():
    data = simulate_nanoparticles(device="cuda")
    assert data.truth([5.0]).is_cuda
    torch.testing.assert_close(data.truth([5.0]).cpu(), simulate_nanoparticles().truth([5.0]))
