"""The gold nanoparticle and methylene blue assay from physics: aggregation, plasmon shift, dye equilibria, instrument.

What `simulate_assay` draws with bands, this computes. Spheres absorb by Mie theory; a particle in an aggregate is taken
as a segment of a chain, which absorbs as a prolate spheroid whose aspect ratio grows with the degree of aggregation
(Gans). The dye is shared between particles and water, and in water between monomer and dimer. Then comes what an
instrument and a hand add: preparation error, baseline drift, stray light, noise, saturation. Truth is the noiseless
spectrum of the sample as it was meant, without any of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from geonode.data import optics
from geonode.data.simulated import SimulatedSpectra, check_counts, check_grid, check_levels, host_tensor, working_dtype
from geonode_runtime.given_numbers import as_numbers

CONCENTRATIONS = (0.0, 10.0, 20.0, 30.0, 40.0, 60.0)


@dataclass(frozen=True)
class NanoparticleParameters:
    """Constants, with where each comes from. Concentrations of arsenic in ppb, of the rest in nM or µM, lengths in nm.

    Particles: 15 nm citrate gold is the classical preparation (Turkevich; Frens 1973). Aggregation: a Hill curve; its
    midpoint and exponent are chosen so that standards to 60 ppb cover the change. Aspect: plasmon bands of short chains
    lie at 600 … 680 nm (Kreibig and Vollmer 1995, ch. 2), where those of Gans spheroids of aspect 2 … 3 lie. Dye: the
    monomer absorbs at 664 nm with 7.4e4 … 9.5e4 L/(mol cm), the dimer near 605 nm, and the dimerisation constant is
    2e3 … 7e3 L/mol, over which the literature spreads (Bergmann and O'Konski, J. Phys. Chem. 67 (1963) 2169; Patil et
    al., Phys. Chem. Chem. Phys. 2 (2000) 4313). Release of the dye from the particles and its uptake by aggregates:
    Hill curves, chosen.
    """

    radius: float = 7.5
    particles: float = 1.3  # nM
    aggregation_midpoint: float = 30.0
    aggregation_exponent: float = 2.6
    aspect_at_onset: float = 1.15
    aspect_at_end: float = 2.0
    medium: float = 1.333  # index of water
    dye: float = 9.0  # µM in all
    release_midpoint: float = 9.0
    release_exponent: float = 1.7
    uptake_midpoint: float = 37.0
    uptake_exponent: float = 6.0
    dimerisation: float = 0.005  # 1/µM
    monomer_absorptivity: float = 0.080  # per µM and cm at 664 nm
    dimer_absorptivity: float = 0.110  # per µM of dimer and cm, at 605 nm
    bound_absorptivity: float = 0.016  # dye on gold: quenched and broad


@dataclass(frozen=True)
class InstrumentParameters:
    """What hand and instrument add. Absorbances, fractions, or as said.

    Baseline: offset, slope and a 1/λ⁴ part (dust) drawn anew for each spectrum. Stray light: the fraction s of detected
    light that never saw the sample, A → −log10((10^−A + s)/(1 + s)); double monochromators reach 1e-5, small
    spectrometers 1e-3. Saturation: the largest absorbance that is reported.
    """

    noise: float = 0.002
    preparation: float = 0.01  # relative, of the arsenic in each replicate
    loading: float = 0.005  # relative, of particles and dye together (pipetting)
    baseline_offset: float = 0.002
    baseline_slope: float = 0.002  # across the range
    baseline_scatter: float = 0.001  # at 400 nm
    stray_light: float = 2e-4
    saturation: float = 4.0


class SimulatedNanoparticles(SimulatedSpectra):
    """The simulated assay; `truth` takes arsenic in ppb, ≥ 0. ``instrument``: what was added to it."""

    instrument: InstrumentParameters


def simulate_nanoparticles(
    concentrations: Sequence[float] | torch.Tensor = CONCENTRATIONS,
    wavelengths: Sequence[float] | torch.Tensor | None = None,
    replicates: int = 1,
    seed: int = 0,
    device: str | torch.device = "cpu",
    dtype: torch.dtype | None = None,
    parameters: NanoparticleParameters | None = None,
    instrument: InstrumentParameters | None = None,
) -> SimulatedNanoparticles:
    """Simulate standards of the nanoparticle assay from physics.

    Args:
        concentrations: distinct levels in ppb, ≥ 0.
        wavelengths: in nm, ascending, within 188 … 1937; by default 200 … 800 in steps of 1.
        replicates: separately prepared spectra of each level.
        seed: of preparation, baseline and noise; the same seed gives the same bits on the same device.
        device, dtype: where and in what the spectra are made and kept; float64 by default, float32 on MPS.
        parameters: of the chemistry. instrument: of preparation and measurement.

    Returns:
        A data set with `SimulatedNanoparticles.truth`; values at the detector's saturation are masked, with a note.

    Raises:
        InputError: bad levels or wavelengths, or miepython is not installed (extra ``simulate``).
    """
    device = torch.device(device)
    dtype = working_dtype(device, dtype)
    given = torch.as_tensor(as_numbers(concentrations, "concentrations"), dtype=dtype)
    levels = check_levels(given, "simulate_nanoparticles")
    grid = torch.arange(200.0, 801.0) if wavelengths is None else host_tensor(wavelengths)
    grid = check_grid(grid.to(dtype), "simulate_nanoparticles")
    parameters, instrument = parameters or NanoparticleParameters(), instrument or InstrumentParameters()
    sizes = {name: getattr(instrument, name) for name in ("noise", "preparation", "loading", "stray_light")}
    check_counts(replicates, "simulate_nanoparticles", **sizes)
    model = partial(nanoparticle_spectra, gold=_gold(grid, parameters, device, dtype))
    levels, grid = levels.to(device).repeat_interleave(replicates), grid.to(device)
    generator = torch.Generator(device=device).manual_seed(seed)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, device=device, dtype=dtype)

    n = len(levels)
    real = levels * (1 + instrument.preparation * draw(n)).clamp(min=0)
    spectra = model(real, grid, parameters) * (1 + instrument.loading * draw(n, 1))
    spectra = measure(spectra, grid, instrument, draw)
    saturated = spectra >= instrument.saturation
    spectra = spectra.clamp(max=instrument.saturation)
    mask = saturated.cpu().numpy()
    notes = [f"simulated: seed {seed}, {replicates} replicate(s), on {device.type}"]
    if mask.any():
        notes.append(f"{int(mask.sum())} values masked: at {instrument.saturation:g}, the saturation of the detector")
    result = SimulatedNanoparticles(
        spectra,
        levels,
        grid,
        parameters=parameters,
        model=model,
        concentration_unit="ppb",
        analytes=("arsenic",),
        notes=notes,
        mask=mask,
        source="simulated nanoparticle assay",
        _copies_allowed=instrument.noise == 0,
    )
    result.instrument = instrument
    return result


def measure(spectra: torch.Tensor, grid: torch.Tensor, instrument: InstrumentParameters, draw: Any) -> torch.Tensor:
    """What an instrument makes of absorbances ``[N, W]``: baseline, stray light, then noise of the reading."""
    n = len(spectra)
    span = (grid - grid[0]) / (grid[-1] - grid[0]).clamp(min=1e-12)
    baseline = instrument.baseline_offset * draw(n, 1) + instrument.baseline_slope * draw(n, 1) * (span - 0.5)
    baseline = baseline + instrument.baseline_scatter * draw(n, 1).abs() * (400.0 / grid) ** 4
    light = 10 ** -(spectra + baseline)
    seen = (light + instrument.stray_light) / (1 + instrument.stray_light)
    # The detector's noise is that of the light: in absorbance it grows as the light fades, up to saturation.
    fading = (10 ** -(spectra.clamp(max=3.0))).rsqrt()
    return -torch.log10(seen) + instrument.noise * fading * draw(*spectra.shape)


def nanoparticle_spectra(
    concentration: torch.Tensor, wavelength: torch.Tensor, p: NanoparticleParameters, *, gold: dict[str, torch.Tensor]
) -> torch.Tensor:
    """Absorbance ``[C, W]`` in a 1 cm cell at concentrations ``[C]`` (ppb, ≥ 0); differentiable in them."""
    c = concentration[:, None]
    aggregated = _hill(c, p.aggregation_midpoint, p.aggregation_exponent)
    aspect = p.aspect_at_onset + (p.aspect_at_end - p.aspect_at_onset) * aggregated[:, 0]
    volume = 4 / 3 * np.pi * p.radius**3
    chain = optics.gans_extinction(gold["permittivity"], wavelength, aspect, volume, p.medium)
    cross_section = (1 - aggregated) * gold["sphere"] + aggregated * chain
    # 1 nM is 6.022e11 particles per cm³; a cross-section of 1 nm² is 1e-14 cm².
    absorbance = cross_section * 1e-14 * p.particles * 6.02214076e11 / np.log(10)
    released = _hill(c, p.release_midpoint, p.release_exponent)
    free = p.dye * released * (1 - _hill(c, p.uptake_midpoint, p.uptake_exponent))
    monomer = 2 * free / (1 + torch.sqrt(1 + 8 * p.dimerisation * free))  # of M + 2 K M² = free
    dimer = p.dimerisation * monomer**2
    x = wavelength[None, :]
    absorbance = absorbance + monomer * p.monomer_absorptivity * _monomer_band(x)
    absorbance = absorbance + dimer * p.dimer_absorptivity * (_gauss(x, 605.0, 27.0) + 0.4 * _gauss(x, 288.0, 16.0))
    bound = _gauss(x, 650.0, 65.0) + 0.5 * _gauss(x, 292.0, 18.0)
    return absorbance + (p.dye - free) * p.bound_absorptivity * bound


def _gold(grid: torch.Tensor, p: NanoparticleParameters, device: torch.device, dtype: torch.dtype):
    """What does not depend on concentration: cross-section of a sphere, permittivity of the metal in a particle."""
    x = grid.cpu().numpy().astype(np.float64)
    sphere = torch.tensor(optics.mie_extinction(x, p.radius, p.medium), dtype=dtype, device=device)
    complex_dtype = torch.complex64 if dtype == torch.float32 else torch.complex128
    permittivity = torch.tensor(optics.gold_permittivity(x, p.radius), dtype=complex_dtype, device=device)
    return {"sphere": sphere, "permittivity": permittivity}


def _monomer_band(x: torch.Tensor) -> torch.Tensor:
    """Methylene blue monomer, 1 at 664 nm: with its vibronic shoulder and its ultraviolet bands."""
    visible = _gauss(x, 664.0, 19.0) + 0.42 * _gauss(x, 614.0, 26.0)
    return (visible + 0.5 * _gauss(x, 292.0, 14.0) + 0.25 * _gauss(x, 246.0, 12.0)) / 1.066


def _hill(c: torch.Tensor, midpoint: float, exponent: float) -> torch.Tensor:
    power = (c / midpoint) ** exponent
    return power / (1 + power)


def _gauss(x: torch.Tensor, center: float, width: float) -> torch.Tensor:
    return torch.exp(-0.5 * ((x - center) / width) ** 2)
