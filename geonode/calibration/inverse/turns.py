"""Where the response turns back: concentrations around which the spectrum hardly changes, whatever the noise."""

from __future__ import annotations

import numpy as np

LEG = 10.0
"""The curve must lead to a turn, and away from it, by so many standard deviations of a spectrum's noise: less may be
noise of the standards."""
SHARE = 0.1
"""And by this share of the whole response: on a plateau errors of path and offset make a turn of less. Of 160 simulated
assays of two forms (acid and base, binding, Hill, Beer–Lambert), whose spectra cannot turn back, those of 7 do, as
their standards have it; without this of 15."""
BACK = -0.5
"""Cosine between the two ways: beyond a bend of 120° it comes back rather than going on to another form."""


def turns_of(grid: np.ndarray, mean: np.ndarray) -> tuple[float, ...]:
    """Concentrations at which the curve turns back, ascending.

    Args:
        grid: ``[K]`` concentrations, ascending, within the calibrated range.
        mean: ``[K, r]`` the curve, in standard deviations of a spectrum's noise.
    """
    back = np.flatnonzero(_cosines(mean) < BACK)
    runs = np.split(back, np.flatnonzero(np.diff(back) > 1) + 1) if len(back) else []
    return tuple(float(grid[_farthest(mean, run)]) for run in runs)


def _farthest(mean: np.ndarray, run: np.ndarray) -> int:
    """Of neighbours that all turn back, the one farthest from where they begin and end, a leg away on either limb."""
    away = mean[run] - 0.5 * (mean[run[0]] + mean[run[-1]])
    return int(run[(away**2).sum(axis=1).argmax()])


def _cosines(mean: np.ndarray) -> np.ndarray:
    """``[K]`` cosine between the way to each point, over a leg, and the way from it; 1 where either leg is missing."""
    found = np.ones(len(mean))
    size = float(((mean - mean[:, None]) ** 2).sum(axis=-1).max()) if len(mean) else 0.0
    leg = max(LEG**2, SHARE**2 * size)
    for k, here in enumerate(mean):
        far = ((mean - here) ** 2).sum(axis=1) >= leg
        before, after = np.flatnonzero(far[:k]), np.flatnonzero(far[k:])
        if len(before) and len(after):
            to, away = here - mean[before[-1]], mean[k + after[0]] - here
            found[k] = float(to @ away) / float(np.linalg.norm(to) * np.linalg.norm(away))
    return found
