"""A wavelength-scanning laser spectrometer: ramp, power, etalon, detector, converter.

One scan is what the converter records while the laser's current ramps once: the voltage rises with the laser's power,
dips where methane absorbs, ripples with the fringes of windows, carries noise, and comes in steps of the converter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from geonode.data.methane.absorption import absorbance
from geonode.data.methane.lines import LineList
from geonode.errors import InputError


@dataclass(frozen=True)
class Gas:
    """What is in the cell, drawn anew for each scan.

    Attributes:
        lowest, highest: mole fraction of methane, drawn evenly in its logarithm (2 ppm is the atmosphere's).
        temperature: mean and standard deviation, K. pressure: mean and standard deviation, atm.
    """

    lowest: float = 2e-6
    highest: float = 0.1
    temperature: tuple[float, float] = (296.0, 3.0)
    pressure: tuple[float, float] = (1.0, 0.02)

    def check(self) -> None:
        """Raise an `InputError` for what is no gas."""
        if not 0 < self.lowest < self.highest <= 1:
            raise InputError(
                f"methane: mole fractions from {self.lowest:g} to {self.highest:g}; give 0 < low < high ≤ 1."
            )
        if not (150 <= self.temperature[0] <= 500 and 0 <= self.temperature[1] <= 20):
            raise InputError(f"methane: a temperature of {self.temperature} K; give 150 … 500, spread at most 20.")
        if not (1e-3 <= self.pressure[0] <= 10 and 0 <= self.pressure[1] <= 0.1 * self.pressure[0]):
            raise InputError(f"methane: a pressure of {self.pressure} atm; give 0.001 … 10, spread at most a tenth.")


@dataclass(frozen=True)
class Spectrometer:
    """The instrument; values typical of a distributed-feedback diode laser at 1653.7 nm and an InGaAs detector.

    Attributes:
        samples: readings in a scan. start, stop: of the ramp, cm⁻¹ in vacuum. bend: of the tuning, as a fraction of it,
        for the laser tunes faster as it warms. path: cm. power: V at the start and stop of the ramp.
        etalon: mean amplitude of the fringes; fringe: their period, cm⁻¹ (a 5 cm gap: 0.1). offset: V, of the dark.
        noise: V. relative_noise: of the light. bits, full_scale: of the converter, V.
    """

    samples: int = 1000
    start: float = 6046.3
    stop: float = 6047.6
    bend: float = 0.06
    path: float = 100.0
    power: tuple[float, float] = (1.2, 4.0)
    etalon: float = 1e-3
    fringe: float = 0.1
    offset: float = 0.02
    noise: float = 4e-4
    relative_noise: float = 1e-4
    bits: int = 16
    full_scale: float = 5.0

    def check(self) -> None:
        """Raise an `InputError` for what is no instrument."""
        if not 16 <= self.samples <= 100_000:
            raise InputError(f"methane: {self.samples} samples in a scan; give 16 … 100000.")
        if not (0 < self.start < self.stop and self.path > 0 and self.fringe > 0):
            raise InputError("methane: give a ramp from low to high wavenumber, a path and a fringe above zero.")
        if not (8 <= self.bits <= 16 and 0 < max(self.power) + self.offset <= self.full_scale):
            raise InputError(
                f"methane: {self.bits} bits (8 … 16), or a voltage of {max(self.power) + self.offset:g} V beyond the "
                f"full scale of {self.full_scale:g} V."
            )
        if min(self.etalon, self.noise, self.relative_noise, self.offset, *self.power) < 0 or not abs(self.bend) < 1:
            raise InputError("methane: amplitudes must not be negative, and the bend of the tuning lies within ±1.")

    def wavenumbers(self, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float64) -> torch.Tensor:
        """Where the laser is at each reading ``[S]``, cm⁻¹."""
        u = torch.linspace(0, 1, self.samples, device=device, dtype=dtype)
        return self.start + (self.stop - self.start) * (u + self.bend * (u * u - u))

    @property
    def step(self) -> float:
        """V of one step of the converter."""
        return self.full_scale / (2**self.bits - 1)


@dataclass(frozen=True)
class Conditions:
    """What was drawn for N scans, each ``[N]``: the state of the gas, and of the instrument."""

    fraction: torch.Tensor
    temperature: torch.Tensor
    pressure: torch.Tensor
    gain: torch.Tensor
    etalon: torch.Tensor
    phase: torch.Tensor

    NAMES = ("fraction", "temperature", "pressure", "gain", "etalon", "phase")


def draw_conditions(n: int, gas: Gas, instrument: Spectrometer, generator: torch.Generator) -> Conditions:
    """Conditions of ``n`` scans, from a generator on the device where they are to be."""
    device = generator.device

    def uniform() -> torch.Tensor:
        return torch.rand(n, generator=generator, device=device, dtype=torch.float64)

    def normal() -> torch.Tensor:
        return torch.randn(n, generator=generator, device=device, dtype=torch.float64)

    low, high = math.log(gas.lowest), math.log(gas.highest)
    return Conditions(
        fraction=torch.exp(low + (high - low) * uniform()),
        temperature=gas.temperature[0] + gas.temperature[1] * normal().clamp(-4, 4),
        pressure=gas.pressure[0] + gas.pressure[1] * normal().clamp(-4, 4),
        gain=1 - 0.1 * uniform(),
        etalon=instrument.etalon * 2 * uniform(),
        phase=2 * math.pi * uniform(),
    )


def transmission(conditions: Conditions, instrument: Spectrometer, lines: LineList) -> torch.Tensor:
    """Noiseless transmission of the gas ``[N, S]``: the truth under each trace."""
    nu = instrument.wavenumbers(conditions.fraction.device)
    return torch.exp(
        -absorbance(nu, conditions.fraction, conditions.temperature, conditions.pressure, instrument.path, lines)
    )


def voltages(conditions: Conditions, instrument: Spectrometer, lines: LineList) -> torch.Tensor:
    """Noiseless voltages ``[N, S]``."""
    nu = instrument.wavenumbers(conditions.fraction.device)
    u = torch.linspace(0, 1, instrument.samples, device=nu.device, dtype=nu.dtype)
    power = instrument.power[0] + (instrument.power[1] - instrument.power[0]) * u
    fringes = torch.cos(2 * math.pi * nu / instrument.fringe + conditions.phase[:, None])
    light = conditions.gain[:, None] * power * (1 + conditions.etalon[:, None] * fringes)
    return instrument.offset + light * transmission(conditions, instrument, lines)


def record(
    conditions: Conditions, instrument: Spectrometer, lines: LineList, generator: torch.Generator
) -> torch.Tensor:
    """What the converter gives: codes ``[N, S]``, int32, from 0 to 2^bits − 1."""
    volts = voltages(conditions, instrument, lines)
    noise = torch.randn(volts.shape, generator=generator, device=volts.device, dtype=volts.dtype)
    shot = torch.randn(volts.shape, generator=generator, device=volts.device, dtype=volts.dtype)
    volts = volts + instrument.noise * noise + instrument.relative_noise * volts * shot
    return (volts / instrument.step).round().clamp(0, 2**instrument.bits - 1).to(torch.int32)
