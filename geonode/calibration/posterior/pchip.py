"""Monotone cubic interpolation of many small tables at once.

As `scipy.interpolate.PchipInterpolator` has it, whose making for one table of six levels takes half a millisecond: a
posterior makes one for every level that it leaves out.
"""

from __future__ import annotations

import numpy as np


def pchip(levels: np.ndarray, values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Values at ``places [K]``, ``[F, K, p]``; beyond the levels the first and the last piece are carried on.

    Args:
        levels: ``[F, n]``, ascending, n ≥ 2.
        values: ``[F, n, p]`` of F tables.
    """
    h = np.diff(levels)
    slopes = np.diff(values, axis=1) / h[..., None]
    tangents = _tangents(h[..., None], slopes)
    piece = (places[None, :, None] >= levels[:, None, 1:-1]).sum(-1)  # [F, K]
    t = (places - np.take_along_axis(levels, piece, 1)) / np.take_along_axis(h, piece, 1)
    low, high, start, end, secant = (
        np.take_along_axis(part, piece[..., None], 1)
        for part in (values[:, :-1], values[:, 1:], tangents[:, :-1], tangents[:, 1:], slopes)
    )
    t, width = t[..., None], np.take_along_axis(h, piece, 1)[..., None]
    # the secant, and how far both tangents turn away from it
    return low + t * (high - low) + t * (1.0 - t) * width * ((1.0 - t) * (start - secant) - t * (end - secant))


def _tangents(h: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """``[F, n, p]`` for steps ``h [F, n − 1, 1]``: weighted harmonic means of the slopes on either side, 0 where they
    differ in sign (Fritsch & Butland 1984, SIAM J. Sci. Stat. Comput. 5, 300)."""
    if slopes.shape[1] == 1:
        return np.repeat(slopes, 2, axis=1)
    before, after = slopes[:, :-1], slopes[:, 1:]
    one, other = 2.0 * h[:, 1:] + h[:, :-1], h[:, 1:] + 2.0 * h[:, :-1]
    same = before * after > 0.0
    safe = np.where(same, before, 1.0), np.where(same, after, 1.0)
    inner = np.where(same, (one + other) / (one / safe[0] + other / safe[1]), 0.0)
    ends = [_end(h[:, a], h[:, b], slopes[:, a], slopes[:, b])[:, None] for a, b in ((0, 1), (-1, -2))]
    return np.concatenate([ends[0], inner, ends[1]], axis=1)


def _end(h: np.ndarray, next_h: np.ndarray, slope: np.ndarray, next_slope: np.ndarray) -> np.ndarray:
    """One-sided, through three points; held to the shape of the data (Moler 2004, Numerical Computing, 3.6)."""
    found = ((2.0 * h + next_h) * slope - h * next_slope) / (h + next_h)
    found = np.where(np.sign(found) != np.sign(slope), 0.0, found)
    steep = (np.sign(slope) != np.sign(next_slope)) & (np.abs(found) > 3.0 * np.abs(slope))
    return np.where(steep, 3.0 * slope, found)
