"""A simulated assay whose truth is known at every concentration: arsenic by methylene blue and gold nanoparticles.

The colour goes gray → blue → gray, so the response is non-monotonic over most of the spectrum and the same absorbance
occurs at two concentrations: the case that the library is made for. At zero arsenic the dye sits on the particles,
which quench it: gray. A little arsenic displaces the dye, whose free monomer is blue. More arsenic aggregates the
particles, whose plasmon band moves to the red and broadens, and the aggregates take up the dye again: gray. The
equilibria are Hill curves and a monomer–dimer equilibrium, the bands have the positions and widths that textbooks give;
the constants are chosen, not fitted, so that six standards from 0 to 60 ppb cover the whole cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from geonode.data.simulated import SimulatedSpectra, check_counts, check_grid, check_levels, host_tensor, working_dtype
from geonode_runtime.given_numbers import as_numbers

CONCENTRATIONS = (0.0, 10.0, 20.0, 30.0, 40.0, 60.0)


@dataclass(frozen=True)
class AssayParameters:
    """Constants of the simulated assay. Concentrations in ppb, wavelengths in nm, amplitudes in absorbance (1 cm)."""

    # Displacement of the dye from dispersed particles, and its uptake by the aggregates: Hill midpoints and exponents.
    release_midpoint: float = 9.0
    release_exponent: float = 1.7
    uptake_midpoint: float = 37.0
    uptake_exponent: float = 6.0
    # Aggregation of the particles.
    aggregation_midpoint: float = 30.0
    aggregation_exponent: float = 2.6

    # Gold: plasmon of dispersed 15 nm spheres in water at 520 nm; aggregates couple, their band moves to the red and
    # broadens with the aggregated fraction. Interband absorption of gold sets in below about 500 nm.
    plasmon_center: float = 520.0
    plasmon_width: float = 45.0
    plasmon_amplitude: float = 0.15
    aggregate_center: float = 530.0
    aggregate_shift: float = 25.0
    aggregate_width: float = 85.0
    aggregate_broadening: float = 60.0
    aggregate_amplitude: float = 0.38
    interband_edge: float = 470.0
    interband_width: float = 55.0
    interband_amplitude: float = 0.23

    # Methylene blue: monomer 664 nm with a vibronic shoulder at 612, dimer at 610, ultraviolet bands at 292 and 246.
    dye_total: float = 11.0  # µM, all the dye in the assay
    dimerisation: float = 0.006  # 1/µM, equilibrium constant of 2 M ⇌ D
    monomer_amplitude: float = 0.078  # per µM: 7.8e4 L/(mol cm)
    monomer_center: float = 664.0
    monomer_width: float = 19.0
    shoulder_center: float = 612.0
    shoulder_width: float = 26.0
    shoulder_ratio: float = 0.42
    dimer_amplitude: float = 0.11  # per µM of dimer
    dimer_center: float = 608.0
    dimer_width: float = 27.0
    # Dye on the particles: quenched, a weak broad band that makes the mixture gray rather than red.
    bound_amplitude: float = 0.016  # per µM
    bound_center: float = 650.0
    bound_width: float = 65.0

    # Matrix and cuvette: absorption that falls off exponentially from 200 nm.
    tail_amplitude: float = 1.1
    tail_length: float = 24.0


class SimulatedAssay(SimulatedSpectra):
    """The simulated arsenic assay; `truth` takes concentrations in ppb, ≥ 0."""


def simulate_assay(
    concentrations: Sequence[float] | torch.Tensor = CONCENTRATIONS,
    wavelengths: Sequence[float] | torch.Tensor | None = None,
    replicates: int = 1,
    noise: float = 0.003,
    seed: int = 0,
    device: str | torch.device = "cpu",
    dtype: torch.dtype | None = None,
    parameters: AssayParameters | None = None,
) -> SimulatedAssay:
    """Simulate standards of the arsenic assay.

    Args:
        concentrations: distinct levels in ppb, ≥ 0.
        wavelengths: in nm, ascending; by default 200 … 800 in steps of 1.
        replicates: spectra of each level, which differ by their noise.
        noise: standard deviation of the independent normal noise, in absorbance.
        seed: of the noise; the same seed gives the same bits on the same device.
        device: where the spectra are made and kept.
        dtype: by default float64, and float32 on MPS, which has nothing wider.
        parameters: constants of the assay.

    Returns:
        A data set of ``replicates`` × levels spectra, with `SimulatedAssay.truth`.

    Raises:
        InputError: a negative, repeated or infinite concentration or wavelength, negative noise, no replicate.
    """
    device = torch.device(device)
    dtype = working_dtype(device, dtype)
    # Checked on the host, where the values come from: nothing is read back from the device.
    levels = check_levels(torch.as_tensor(as_numbers(concentrations, "concentrations"), dtype=dtype), "simulate_assay")
    grid = torch.arange(200.0, 801.0) if wavelengths is None else host_tensor(wavelengths)
    grid = check_grid(grid.to(dtype), "simulate_assay")
    check_counts(replicates, "simulate_assay", noise=noise)
    parameters = parameters or AssayParameters()
    levels, grid = levels.to(device).repeat_interleave(replicates), grid.to(device)
    spectra = noiseless_spectra(levels, grid, parameters)
    generator = torch.Generator(device=device).manual_seed(seed)
    spectra = spectra + noise * torch.randn(spectra.shape, generator=generator, device=device, dtype=dtype)
    return SimulatedAssay(
        spectra,
        levels,
        grid,
        parameters=parameters,
        model=noiseless_spectra,
        concentration_unit="ppb",
        analytes=("arsenic",),
        notes=(f"simulated: noise {noise:g}, seed {seed}, {replicates} replicate(s), on {device.type}",),
        source="simulated assay",
        _copies_allowed=noise == 0,
    )


def noiseless_spectra(concentration: torch.Tensor, wavelength: torch.Tensor, p: AssayParameters) -> torch.Tensor:
    """Absorbance ``[C, W]`` at concentrations ``[C]`` (ppb, ≥ 0) and wavelengths ``[W]`` (nm); differentiable."""
    c, x = concentration[:, None], wavelength[None, :]
    aggregated = _hill(c, p.aggregation_midpoint, p.aggregation_exponent)
    released = _hill(c, p.release_midpoint, p.release_exponent)
    taken_up = _hill(c, p.uptake_midpoint, p.uptake_exponent)
    free = p.dye_total * released * (1 - taken_up)
    # Monomer m of the free dye: m + 2 K m² = free.
    monomer = 2 * free / (1 + torch.sqrt(1 + 8 * p.dimerisation * free))
    dimer = p.dimerisation * monomer**2
    gold = (1 - aggregated) * p.plasmon_amplitude * _lorentz(x, p.plasmon_center, p.plasmon_width)
    gold = gold + aggregated * p.aggregate_amplitude * _gauss(
        x, p.aggregate_center + p.aggregate_shift * aggregated, p.aggregate_width + p.aggregate_broadening * aggregated
    )
    gold = gold + p.interband_amplitude * torch.sigmoid((p.interband_edge - x) / p.interband_width)
    visible = _gauss(x, p.monomer_center, p.monomer_width)
    visible = visible + p.shoulder_ratio * _gauss(x, p.shoulder_center, p.shoulder_width)
    ultraviolet = 0.5 * _gauss(x, 292.0, 14.0) + 0.25 * _gauss(x, 246.0, 12.0)
    dye = monomer * p.monomer_amplitude * (visible + ultraviolet)
    dye = dye + dimer * p.dimer_amplitude * (_gauss(x, p.dimer_center, p.dimer_width) + ultraviolet)
    dye = dye + (p.dye_total - free) * p.bound_amplitude * (_gauss(x, p.bound_center, p.bound_width) + ultraviolet)
    return gold + dye + p.tail_amplitude * torch.exp(-(x - 200.0).clamp(min=0) / p.tail_length)


def _hill(c: torch.Tensor, midpoint: float, exponent: float) -> torch.Tensor:
    power = (c / midpoint) ** exponent
    return power / (1 + power)


def _gauss(x: torch.Tensor, center: Any, width: Any) -> torch.Tensor:
    return torch.exp(-0.5 * ((x - center) / width) ** 2)


def _lorentz(x: torch.Tensor, center: float, width: float) -> torch.Tensor:
    return 1 / (1 + ((x - center) / width) ** 2)
