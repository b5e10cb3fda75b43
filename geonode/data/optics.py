"""Optics of small gold particles: constants of the metal, Mie spheres, and Gans spheroids for aggregates."""

from __future__ import annotations

import math

import numpy as np
import torch

from geonode.data.checks import Floats
from geonode.errors import InputError
from geonode_runtime.axes import NANOMETRE_ELECTRONVOLT

# Complex index n + ik of gold by wavelength: P. B. Johnson and R. W. Christy, Phys. Rev. B 6 (1972) 4370, table I.
_GOLD_NM = (
    *(187.9, 191.6, 195.3, 199.3, 203.3, 207.3, 211.9, 216.4, 221.4, 226.2, 231.3, 237.1, 242.6, 249.0, 255.1, 261.6),
    *(268.9, 276.1, 284.4, 292.4, 300.9, 310.7, 320.4, 331.5, 342.5, 354.2, 367.9, 381.5, 397.4, 413.3, 430.5, 450.9),
    *(471.4, 495.9, 520.9, 548.6, 582.1, 616.8, 659.5, 704.5, 756.0, 821.1, 892.0, 984.0, 1088.0, 1216.0, 1393.0),
    *(1610.0, 1937.0),
)
_GOLD_N = (
    *(1.28, 1.32, 1.34, 1.33, 1.33, 1.30, 1.30, 1.30, 1.30, 1.31, 1.30, 1.32, 1.32, 1.33, 1.33, 1.35),
    *(1.38, 1.43, 1.47, 1.49, 1.53, 1.53, 1.54, 1.48, 1.48, 1.50, 1.48, 1.46, 1.47, 1.46, 1.45, 1.38),
    *(1.31, 1.04, 0.62, 0.43, 0.29, 0.21, 0.14, 0.13, 0.14, 0.16, 0.17, 0.22, 0.27, 0.35, 0.43),
    *(0.56, 0.92),
)
_GOLD_K = (
    *(1.188, 1.203, 1.226, 1.251, 1.277, 1.304, 1.350, 1.387, 1.427, 1.460, 1.497, 1.536, 1.577, 1.631, 1.688, 1.749),
    *(1.803, 1.847, 1.869, 1.878, 1.889, 1.893, 1.898, 1.883, 1.871, 1.866, 1.895, 1.933, 1.952, 1.958, 1.948, 1.914),
    *(1.849, 1.833, 2.081, 2.455, 2.863, 3.272, 3.697, 4.103, 4.542, 5.083, 5.663, 6.350, 7.150, 8.145, 9.519),
    *(11.21, 13.78),
)

PLASMA_EV = 9.03  # of gold's conduction electrons
DAMPING_EV = 0.072  # their bulk collision rate, in eV (Johnson and Christy: 9.3 fs)
FERMI_NM_PER_FS = 1.40  # their velocity
HBAR_EV_FS = 0.6582119569


def gold_index(wavelengths: Floats) -> np.ndarray:
    """Complex index n + ik of bulk gold ``[W]`` at vacuum wavelengths in nm, interpolated in photon energy.

    Raises:
        InputError: outside 188 … 1937 nm, where it was measured.
    """
    x = np.asarray(wavelengths, dtype=np.float64)
    if x.min() < _GOLD_NM[0] or x.max() > _GOLD_NM[-1]:
        raise InputError(
            f"the optical constants of gold are known from {_GOLD_NM[0]:g} to {_GOLD_NM[-1]:g} nm, but the wavelengths "
            f"run from {x.min():g} to {x.max():g} nm; choose a range within."
        )
    energy, known = NANOMETRE_ELECTRONVOLT / x, NANOMETRE_ELECTRONVOLT / np.array(_GOLD_NM[::-1])
    return np.interp(energy, known, _GOLD_N[::-1]) + 1j * np.interp(energy, known, _GOLD_K[::-1])


def gold_permittivity(wavelengths: Floats, radius: float | None = None) -> np.ndarray:
    """Relative permittivity ``[W]``; in a particle of ``radius`` nm, electrons also collide with its surface.

    The Drude part of bulk gold is exchanged for one whose collision rate is larger by ħ v_F / radius (U. Kreibig and
    M. Vollmer, Optical Properties of Metal Clusters, Springer 1995, with A = 1).
    """
    permittivity = gold_index(wavelengths) ** 2
    if radius is None:
        return permittivity
    energy = NANOMETRE_ELECTRONVOLT / np.asarray(wavelengths, dtype=np.float64)
    damping = DAMPING_EV + HBAR_EV_FS * FERMI_NM_PER_FS / radius
    drude = PLASMA_EV**2 / (energy**2 + 1j * energy * DAMPING_EV)
    return permittivity + drude - PLASMA_EV**2 / (energy**2 + 1j * energy * damping)


def mie_extinction(wavelengths: Floats, radius: float, medium: float = 1.333) -> Floats:
    """Extinction cross-section ``[W]`` of a gold sphere in nm², by Mie theory (package ``miepython``).

    Args:
        wavelengths: in vacuum, nm. radius: nm. medium: index of what surrounds it; water by default.

    Raises:
        InputError: the package is not installed, or wavelengths beyond the optical constants.
    """
    try:
        import miepython
    except ImportError:
        raise InputError(
            "Mie theory comes from the package miepython; install it with pip install 'geodesic-node[simulate]'."
        ) from None
    x = np.asarray(wavelengths, dtype=np.float64)
    index = np.sqrt(gold_permittivity(x, radius)) / medium
    # miepython's convention for the sign of the imaginary part is the other one.
    efficiency = miepython.efficiencies_mx(np.conj(index), 2 * math.pi * radius * medium / x)[0]
    return np.asarray(efficiency, dtype=np.float64) * math.pi * radius**2


def depolarisation(aspect: torch.Tensor) -> torch.Tensor:
    """Depolarisation factor along the axis of a prolate spheroid of the given aspect ratio (≥ 1); differentiable.

    L = (1 − e²)/e² (artanh(e)/e − 1), e² = 1 − 1/aspect² (C. F. Bohren and D. R. Huffman, Absorption and Scattering of
    Light by Small Particles, Wiley 1983, eq. 5.33); 1/3 for a sphere, by its series near one.
    """
    e2 = 1 - aspect**-2
    safe = e2.clamp(min=1e-3)
    e = safe.sqrt()
    exact = (1 - safe) / safe * (torch.atanh(e) / e - 1)
    series = (1 - e2) * (1 / 3 + e2 / 5 + e2**2 / 7 + e2**3 / 9)
    return torch.where(e2 > 1e-3, exact, series)


def gans_extinction(
    permittivity: torch.Tensor, wavelengths: torch.Tensor, aspect: torch.Tensor, volume: float, medium: float = 1.333
) -> torch.Tensor:
    """Absorption cross-section ``[C, W]`` in nm² of randomly oriented prolate spheroids, in the electrostatic limit.

    R. Gans, Ann. Phys. 342 (1912) 881: the sum over the axes j of 2π V ε_m^(3/2) / (3 λ L_j²) ·
    ε″ / ((ε′ + ε_m (1 − L_j)/L_j)² + ε″²).

    Args:
        permittivity: complex ``[W]``. wavelengths: in vacuum, nm ``[W]``. aspect: length by width, ≥ 1, ``[C]``.
        volume: nm³. medium: index of what surrounds them.
    """
    along = depolarisation(aspect)[:, None]
    matrix = medium**2
    total = torch.zeros((), dtype=wavelengths.dtype, device=wavelengths.device)
    for factor, axes in ((along, 1), ((1 - along) / 2, 2)):
        real = permittivity.real + matrix * (1 - factor) / factor
        total = total + axes * permittivity.imag / (factor**2 * (real**2 + permittivity.imag**2))
    return 2 * math.pi * volume * matrix**1.5 / (3 * wavelengths) * total
