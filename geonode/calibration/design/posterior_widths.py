"""How wide the learned posterior is along the calibrated range: what a result would be uncertain by, spectrum by
spectrum, in place of what the information of the curve allows at best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from scipy.special import ndtri

from geonode_runtime.posterior.rules import joined, zero_within
from geonode_runtime.verdicts import VERDICT_LEVEL

if TYPE_CHECKING:
    from geonode.calibration.calibration import Calibration

_LEVEL = 0.8
_DRAWS = 9
"""Spectra of every concentration: the curve's with noise of its own."""
_QUANTILES = ndtri(np.linspace(0.05, 0.95, _DRAWS))
"""Their noise along the way from the lowest standard to that concentration: drawn at random, the middle one of nine may
lie half a standard deviation to either side."""
_KEPT: WeakKeyDictionary[Calibration, dict[tuple[bytes, int], PosteriorWidths]] = WeakKeyDictionary()


@dataclass(frozen=True)
class PosteriorWidths:
    """Of spectra at ``concentrations [C]``, user units.

    Attributes:
        deviation: ``[C]`` u(c), the median over spectra of the width of the 80 % set's piece at c, ÷ 2.563, by which a
            normal distribution's would be one standard deviation; where that piece ends at zero, ÷ 1.282.
        detected: ``[C]`` share of the spectra whose 95 % set leaves zero out.
    """

    concentrations: np.ndarray
    deviation: np.ndarray
    detected: np.ndarray


def posterior_widths(calibration: Calibration, concentrations: np.ndarray, replicates: int = 1) -> PosteriorWidths:
    """For means of ``replicates`` spectra with the standards' noise at ``concentrations [C]``.

    The noise is white (in the standards' own scale) and the same at every concentration, so that u(c) is smooth. What
    was asked of a calibration before is kept with it: its conclusion, its figures and its limits ask the same.
    """
    asked = np.ascontiguousarray(concentrations, dtype=np.float64)
    kept = _KEPT.setdefault(calibration, {})
    key = asked.tobytes(), replicates
    if key not in kept:
        kept[key] = _posterior_widths(calibration, asked, replicates)
    return kept[key]


def _posterior_widths(calibration: Calibration, concentrations: np.ndarray, replicates: int) -> PosteriorWidths:
    learned, rules = calibration.posterior, calibration.facts.rules
    mean = calibration.gp.predict_mean(concentrations)
    noise = calibration.inverse.projection.scale / np.sqrt(replicates)
    away = (mean - calibration.gp.predict_mean(calibration.levels[:1])) / noise
    spectra = (mean[:, None] + noise * _draws(away)).reshape(-1, mean.shape[1])
    found, _, _ = learned.posteriors(spectra, np.full(len(spectra), float(replicates)))
    levels, widths, detected = learned.known.levels, [], []
    for one, c in zip(found, np.repeat(concentrations, _DRAWS), strict=True):
        reported, wide = (joined(rules, levels, one.highest(level)) for level in (_LEVEL, VERDICT_LEVEL))
        piece = min(reported.components, key=lambda k: max(k.low - c, c - k.high, 0.0))
        sides = 1.0 if zero_within(rules, piece) else 2.0
        widths.append(piece.width / (sides * ndtri(0.5 + 0.5 * _LEVEL)))
        detected.append(not any(zero_within(rules, k) for k in wide.components))
    return PosteriorWidths(
        concentrations,
        np.median(np.reshape(widths, (-1, _DRAWS)), axis=1),
        np.reshape(detected, (-1, _DRAWS)).mean(axis=1),
    )


def _draws(away: np.ndarray) -> np.ndarray:
    """Standard normal ``[C, 9, W]``, their parts along ``away [C, W]`` at `_QUANTILES`; where that has no length, as
    drawn."""
    drawn = np.random.default_rng(0).standard_normal((_DRAWS, away.shape[1]))
    size = np.linalg.norm(away, axis=1, keepdims=True)
    direction = np.where(size > 0.0, away / np.maximum(size, np.finfo(float).tiny), 0.0)
    along = np.where(size > 0.0, _QUANTILES - direction @ drawn.T, 0.0)
    return drawn + along[..., None] * direction[:, None]
