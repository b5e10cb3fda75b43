"""What of a predicted spectrum is noise along the wavelengths, by a smoother that the standards choose.

A prediction carries on the noise of the standards that it is made of. Noise of a detector is white along the
wavelengths, and bands of molecules are wide beside the step of a spectrometer, so that most of it can be told from the
spectrum. The smoother is Whittaker's (Proc. Edinburgh Math. Soc. 41 (1923) 63; Eilers, Anal. Chem. 75 (2003) 3631),
z minimises |y − z|² + λ|D³z|², with the λ of least generalised cross-validation (Craven and Wahba, Numer. Math. 31
(1979) 377) over all standards. Where they are as rough as their noise the least λ wins, and nothing is taken away.
What is taken from a value is at most `MOST` times the noise, so that a step between detectors or a line that is
narrower than all else is not smoothed away.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solveh_banded

ORDER = 3
FEWEST = 20
"""Wavelengths; of fewer nothing can be told."""
MOST = 3.0
_PENALTIES = 10.0 ** np.arange(-2.0, 9.01, 0.25)
_NORMAL = 1.4826  # standard deviation of a normal distribution over its median absolute deviation


class SpectralNoise:
    """Noise of spectra whose wavelengths are those of the standards.

    Wavelengths are taken to be evenly spaced in the order given.

    Args:
        means: ``[n, W]`` spectra of the standards, units of the signal.

    Attributes:
        penalty: λ; None where nothing is smoothed.
        noise: robust standard deviation of what the smoother takes from the standards, units of the signal.
    """

    def __init__(self, means: np.ndarray) -> None:
        width = means.shape[1]
        self.penalty: float | None = None
        self.noise = 0.0
        if width < FEWEST:
            return
        self._bands = penalty_bands(width)
        left = 1.0 - degrees_of_freedom(width) / width
        squares = np.array([np.square(means - self._smooth(means, penalty)).mean() for penalty in _PENALTIES])
        best = int(np.argmin(squares / left**2))
        if best > 0:
            self.penalty = float(_PENALTIES[best])
            self.noise = _NORMAL * float(np.median(np.abs(means - self._smooth(means, self.penalty))))

    def of(self, spectra: np.ndarray) -> np.ndarray:
        """The noise in ``spectra [C, W]``, to be taken from them; zero where nothing is smoothed."""
        if self.penalty is None:
            return np.zeros_like(spectra)
        most = MOST * self.noise
        return np.clip(spectra - self._smooth(spectra, self.penalty), -most, most)

    def _smooth(self, spectra: np.ndarray, penalty: float) -> np.ndarray:
        system = penalty * self._bands
        system[-1] += 1.0
        return solveh_banded(system, spectra.T, check_finite=False).T


def penalty_bands(width: int) -> np.ndarray:
    """Upper bands ``[ORDER + 1, W]`` of DᵀD, D the differences of `ORDER`, as `solveh_banded` takes them."""
    weights = np.array([1.0])
    for _ in range(ORDER):
        weights = np.convolve(weights, [1.0, -1.0])
    bands = np.zeros((ORDER + 1, width))
    for i, one in enumerate(weights):
        for j in range(i, ORDER + 1):
            bands[ORDER - (j - i), j : j + width - ORDER] += one * weights[j]
    return bands


def degrees_of_freedom(width: int) -> np.ndarray:
    """Trace of the smoother for each penalty, from the eigenvalues of DᵀD: [2 sin(π(k − (ORDER − 1)/2)/2W)]^(2 ORDER)
    for k = 0 … W − 1, zero for the first `ORDER`, which polynomials have (Eilers and Marx, Stat. Sci. 11 (1996) 89)."""
    order = np.arange(width) - 0.5 * (ORDER - 1)
    eigenvalues = (2.0 * np.sin(0.5 * np.pi * np.maximum(order, 0.0) / width)) ** (2 * ORDER)
    eigenvalues[:ORDER] = 0.0
    return (1.0 / (1.0 + _PENALTIES[:, None] * eigenvalues)).sum(1)
