"""A simulated assay of two interacting analytes: pH and chloride, seen by a fluorescent protein.

The sensor binds a proton and a chloride ion at two sites that feel each other. Each of the four states is a species;
protonated and deprotonated ones are excited at different wavelengths, and those that hold chloride are dark (static
quenching). Linkage makes the apparent affinity for chloride a function of pH, and the apparent pKa one of chloride:

    [HS] : [S] : [HS·Cl] : [S·Cl] = h/Ka : 1 : (h/Ka)(Cl/K_H) : Cl/K_S,    h = 10^−pH
    apparent pKa = pKa + log10((1 + Cl/K_H)/(1 + Cl/K_S))                  (Wyman's linkage relation)

so that the spectra are no sum of a function of pH and a function of chloride. The constants are of the order published
for yellow and green variants of GFP with a halide site (Wachter et al., J. Mol. Biol. 301 (2000) 157; Arosio et al.,
Nature Methods 7 (2010) 516); they are chosen, not fitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from geonode.data.simulated import (
    SimulatedSpectra,
    check_counts,
    check_grid,
    check_levels,
    host_tensor,
    working_dtype,
)

PH = (5.2, 6.3, 7.4, 8.1)
CHLORIDE = (0.0, 7.0, 27.0, 60.0, 120.0, 270.0, 670.0)


@dataclass(frozen=True)
class SensorParameters:
    """Constants of the simulated sensor. Chloride in mM, wavelengths (of excitation) in nm, signal relative."""

    pka: float = 7.1  # of the chromophore, without chloride
    kd_protonated: float = 14.0  # mM, chloride to the protonated sensor: the tighter site
    kd_deprotonated: float = 190.0  # mM, to the deprotonated one
    # Excitation bands: protonated chromophore at 398 nm; deprotonated at 489 nm with a vibronic shoulder at 462 nm;
    # the protein's aromatic residues at 280 nm pass energy on to either.
    protonated_center: float = 398.0
    protonated_width: float = 21.0
    protonated_brightness: float = 0.35
    deprotonated_center: float = 489.0
    deprotonated_width: float = 13.0
    deprotonated_brightness: float = 1.0
    shoulder_center: float = 462.0
    shoulder_width: float = 17.0
    shoulder_ratio: float = 0.4
    aromatic_center: float = 280.0
    aromatic_width: float = 11.0
    aromatic_ratio: float = 0.3
    residual_brightness: float = 0.03  # of a sensor that holds chloride, relative to one that does not
    background: float = 0.01  # of buffer and detector, at every wavelength


class SimulatedSensor(SimulatedSpectra):
    """The simulated sensor; `truth` takes ``[C, 2]``: pH and chloride in mM, ≥ 0."""


def simulate_sensor(
    ph: Sequence[float] | torch.Tensor = PH,
    chloride: Sequence[float] | torch.Tensor = CHLORIDE,
    wavelengths: Sequence[float] | torch.Tensor | None = None,
    replicates: int = 1,
    noise: float = 0.005,
    preparation: float = 0.0,
    seed: int = 0,
    device: str | torch.device = "cpu",
    dtype: torch.dtype | None = None,
    parameters: SensorParameters | None = None,
) -> SimulatedSensor:
    """Simulate excitation spectra over the full grid of pH and chloride.

    Args:
        ph, chloride: distinct levels; every pair of them is a standard. Chloride in mM, ≥ 0.
        wavelengths: of excitation, in nm, ascending; by default 260 … 520 in steps of 2.
        replicates: spectra of each pair.
        noise: standard deviation of independent normal noise, relative to the brightest state.
        preparation: relative standard deviation of the chloride in a replicate; its pH errs by as many units.
        seed: of noise and preparation; the same seed gives the same bits on the same device.
        device, dtype: where and in what the spectra are made and kept; float64 by default, float32 on MPS.
        parameters: constants of the sensor.

    Returns:
        ``replicates`` × pH levels × chloride levels spectra with analytes ``("pH", "Cl")`` and `SimulatedSensor.truth`.

    Raises:
        InputError: a negative, repeated or infinite level or wavelength, negative noise, no replicate.
    """
    device = torch.device(device)
    dtype = working_dtype(device, dtype)
    first = check_levels(torch.as_tensor(ph, dtype=dtype), "simulate_sensor, pH")
    second = check_levels(torch.as_tensor(chloride, dtype=dtype), "simulate_sensor, chloride")
    grid = torch.arange(260.0, 521.0, 2.0) if wavelengths is None else host_tensor(wavelengths)
    grid = check_grid(grid.to(dtype), "simulate_sensor").to(device)
    check_counts(replicates, "simulate_sensor", noise=noise, preparation=preparation)
    parameters = parameters or SensorParameters()
    points = torch.cartesian_prod(first, second).to(device).repeat_interleave(replicates, dim=0)
    generator = torch.Generator(device=device).manual_seed(seed)
    error = preparation * torch.randn(points.shape, generator=generator, device=device, dtype=dtype)
    real = torch.stack((points[:, 0] + error[:, 0], points[:, 1] * (1 + error[:, 1]).clamp(min=0)), dim=1)
    spectra = sensor_spectra(real, grid, parameters)
    spectra = spectra + noise * torch.randn(spectra.shape, generator=generator, device=device, dtype=dtype)
    note = f"simulated: noise {noise:g}, preparation {preparation:g}, seed {seed}, {replicates} replicate(s)"
    return SimulatedSensor(
        spectra,
        points,
        grid,
        parameters=parameters,
        model=sensor_spectra,
        concentration_unit="1, mM",
        analytes=("pH", "Cl"),
        signal="fluorescence",
        notes=(f"{note}, on {device.type}",),
        source="simulated sensor",
        _copies_allowed=noise == 0 and preparation == 0,
    )


def sensor_spectra(points: torch.Tensor, wavelength: torch.Tensor, p: SensorParameters) -> torch.Tensor:
    """Noiseless excitation spectra ``[C, W]`` at points ``[C, 2]`` (pH, chloride in mM); differentiable."""
    protonation = 10 ** (p.pka - points[:, :1])  # h/Ka
    chloride = points[:, 1:]
    free_protonated, free_deprotonated = protonation, torch.ones_like(protonation)
    bound_protonated = protonation * chloride / p.kd_protonated
    bound_deprotonated = chloride / p.kd_deprotonated
    total = free_protonated + free_deprotonated + bound_protonated + bound_deprotonated
    bright_protonated = (free_protonated + p.residual_brightness * bound_protonated) / total
    bright_deprotonated = (free_deprotonated + p.residual_brightness * bound_deprotonated) / total
    x = wavelength[None, :]
    aromatic = p.aromatic_ratio * _gauss(x, p.aromatic_center, p.aromatic_width)
    protonated = _gauss(x, p.protonated_center, p.protonated_width) + aromatic
    deprotonated = _gauss(x, p.deprotonated_center, p.deprotonated_width) + aromatic
    deprotonated = deprotonated + p.shoulder_ratio * _gauss(x, p.shoulder_center, p.shoulder_width)
    return (
        p.background
        + p.protonated_brightness * bright_protonated * protonated
        + p.deprotonated_brightness * bright_deprotonated * deprotonated
    )


def _gauss(x: torch.Tensor, center: float, width: float) -> torch.Tensor:
    return torch.exp(-0.5 * ((x - center) / width) ** 2)
