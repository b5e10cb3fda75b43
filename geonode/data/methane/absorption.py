"""Line-by-line absorption of methane in air: Voigt profiles, on any device, differentiable in the state of the gas.

The formulas are HITRAN's (L. S. Rothman et al., JQSRT 60 (1998) 665, appendix): strength at another temperature by the
partition function and the Boltzmann factor of the lower state, Doppler width, pressure broadening and shift.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import torch

from geonode.data.methane.lines import LineList

REFERENCE_K = 296.0
SECOND_RADIATION = 1.438776877  # hc/k, cm K
LOSCHMIDT = 101325.0 / 1.380649e-23 * 1e-6  # molecules per cm³ at 1 atm, times K: 1 atm / k
BOLTZMANN_OVER_AMU_C2 = 8.314462618 / (1e-3 * 299792458.0**2)  # k T / (m c²) per K and g/mol

# Fundamentals of 12CH4 in cm⁻¹ and their degeneracies (G. Herzberg, Infrared and Raman Spectra, 1945).
_FUNDAMENTALS = ((2916.5, 1), (1533.3, 2), (3019.5, 3), (1310.8, 3))


def absorption_coefficient(
    wavenumber: torch.Tensor, fraction: torch.Tensor, temperature: torch.Tensor, pressure: torch.Tensor, lines: LineList
) -> torch.Tensor:
    """Absorption coefficient ``[N, S]`` in cm⁻¹ of methane in air.

    Args:
        wavenumber: ``[S]`` or ``[N, S]``, cm⁻¹, in vacuum. fraction: mole fraction ``[N]``. temperature: ``[N]``, K.
        pressure: ``[N]``, atm. lines: the lines that matter; far wings are not cut off.
    """
    t, p, x = (value.reshape(-1, 1, 1) for value in (temperature, pressure, fraction))
    table = {name: _as(getattr(lines, name), wavenumber)[None, :, None] for name in _LINE_ARRAYS}
    nu = wavenumber.reshape(-1, 1, wavenumber.shape[-1])
    hot = torch.exp(-SECOND_RADIATION * table["lower_energy"] * (1 / t - 1 / REFERENCE_K))
    emission = (1 - torch.exp(-SECOND_RADIATION * table["position"] / t)) / (
        1 - torch.exp(-SECOND_RADIATION * table["position"] / REFERENCE_K)
    )
    strength = table["strength"] * hot * emission / partition_ratio(t)
    doppler = table["position"] * torch.sqrt(2 * math.log(2) * BOLTZMANN_OVER_AMU_C2 * t / table["mass"])
    width = (REFERENCE_K / t) ** table["n_air"] * p * ((1 - x) * table["gamma_air"] + x * table["gamma_self"])
    center = table["position"] + table["delta_air"] * p * (1 - x)
    profile = voigt(nu - center, doppler, width)
    density = LOSCHMIDT * p / t
    return (x * density * strength * profile).sum(dim=1)


def absorbance(
    wavenumber: torch.Tensor,
    fraction: torch.Tensor,
    temperature: torch.Tensor,
    pressure: torch.Tensor,
    path: float,
    lines: LineList,
) -> torch.Tensor:
    """Napierian absorbance ``[N, S]`` over a path in cm; arguments as for `absorption_coefficient`."""
    return absorption_coefficient(wavenumber, fraction, temperature, pressure, lines) * path


_LINE_ARRAYS = ("position", "strength", "gamma_air", "gamma_self", "n_air", "delta_air", "lower_energy", "mass")


def _as(values: np.ndarray, like: torch.Tensor) -> torch.Tensor:
    return torch.tensor(values, dtype=like.dtype, device=like.device)


def partition_ratio(temperature: torch.Tensor) -> torch.Tensor:
    """Q(T)/Q(296 K) of methane: a rotor (T^3/2) times harmonic oscillators; within 0.3 % of HITRAN's, 200 … 400 K."""
    ratio = (temperature / REFERENCE_K) ** 1.5
    for energy, degeneracy in _FUNDAMENTALS:
        hot = 1 - torch.exp(-SECOND_RADIATION * energy / temperature)
        ratio = ratio * ((1 - math.exp(-SECOND_RADIATION * energy / REFERENCE_K)) / hot) ** degeneracy
    return ratio


def voigt(offset: torch.Tensor, doppler: torch.Tensor, width: torch.Tensor) -> torch.Tensor:
    """Voigt profile of unit area, in 1/cm⁻¹: ``doppler`` and ``width`` are the half widths at half maximum.

    Re w(x + iy) √(ln 2/π)/α_D, with x and y the offset and the Lorentzian width times √ln 2 over α_D, and the Faddeeva
    function w by J. A. C. Weideman, SIAM J. Numer. Anal. 31 (1994) 1497, with 32 terms: to 1e-6 of its peak.
    """
    scale = math.sqrt(math.log(2)) / doppler
    return faddeeva_real(offset * scale, width * scale) * scale / math.sqrt(math.pi)


def faddeeva_real(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Re w(x + iy) for y > 0."""
    coefficients, length = _weideman(32)
    iz = torch.complex(*torch.broadcast_tensors(-y, x))
    denominator = length - iz
    ratio = (length + iz) / denominator
    polynomial = torch.full_like(ratio, coefficients[0])
    for coefficient in coefficients[1:]:
        polynomial = polynomial * ratio + coefficient
    return (2 * polynomial / denominator**2 + (1 / math.sqrt(math.pi)) / denominator).real


@lru_cache
def _weideman(n: int) -> tuple[tuple[float, ...], float]:
    """Coefficients of Weideman's polynomial, highest power first, and its scale L."""
    m = 2 * n
    length = math.sqrt(n / math.sqrt(2))
    k = np.arange(-m + 1, m)
    t = length * np.tan(k * math.pi / (2 * m))
    f = np.concatenate(([0.0], np.exp(-(t**2)) * (length**2 + t**2)))
    a = np.fft.fft(np.fft.fftshift(f)).real / (2 * m)
    return tuple(float(value) for value in a[1 : n + 1][::-1]), length
