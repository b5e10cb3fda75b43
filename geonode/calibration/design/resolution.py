"""What the assay can tell apart: sensitivity, Fisher information, detection limits and the ambiguity map.

In whitened coordinates a sample of concentration c gives m(c) with covariance C(c) (curve, standards and the noise of
one measurement). The Fisher information of the mean,

    G(c) = (dm/dc)ᵀ C(c)⁻¹ (dm/dc)

is a metric on the concentration axis: its arc length counts standard deviations. u(c) = 1/√G is one standard deviation
of concentration (Cramér–Rao bound, Kay 1993, eq. 3.31, the small term from dC/dc left out), and two samples are k
standard deviations apart at a difference of k √2 u(c).

Where the learned posterior answers, limits and differences are by its own widths (``posterior_widths``): what is
reported of an unknown and what is said of the assay then agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from geonode.calibration.calibration import Calibration
from geonode.calibration.design.posterior_widths import posterior_widths
from geonode.calibration.inverse.model import InverseModel
from geonode.errors import InputError
from geonode_runtime.given_numbers import as_number, as_numbers
from geonode_runtime.posterior.methods import chosen_method

DETECTION_FACTOR = 3.29
"""k of the limit of detection: 1.645 + 1.645, 5 % false alarms and 5 % misses (Currie 1995, IUPAC, Pure Appl. Chem. 67,
1699)."""
_PLACES = 41
_FINER = 20  # places from the one before the critical value to the third behind it
QUANTIFICATION_FACTOR = 10.0
"""k of the limit of quantification: 10 standard deviations, a relative standard deviation of 10 % (same source)."""


@dataclass(frozen=True)
class Resolution:
    """Curves over concentration, user units.

    Attributes:
        concentrations: ``[C]``.
        sensitivity: ``[C]`` RMS over wavelengths of the local sensitivity ∂A/∂c, units of the spectra per user unit.
        selectivity: ``[C]`` |dm/dc| in whitened coordinates: standard deviations of noise per user unit.
        information: ``[C]`` G(c), 1/(user unit)².
        standard_deviation: ``[C]`` u(c): half the width of the posterior where it answers, else 1/√G.
        resolvable: ``[C]`` k √2 u(c), the smallest difference of two samples that can be told at ``factor`` = k.
        factor: k.
        replicates: spectra per sample that all this is for.
    """

    concentrations: np.ndarray
    sensitivity: np.ndarray
    selectivity: np.ndarray
    information: np.ndarray
    standard_deviation: np.ndarray
    resolvable: np.ndarray
    factor: float
    replicates: int


@dataclass(frozen=True)
class DetectionLimits:
    """Multivariate limits; None where they cannot be claimed, ``reason`` says why.

    ``detection_holds``, ``quantification_holds``: the intervals (low, high) of the calibrated range in which the
    criterion holds; where a response levels off or folds back there are several, or they end below the range's end.
    ``definition`` and the factors k stand beside the values because the same words mean other things elsewhere.
    """

    detection: float | None
    quantification: float | None
    detection_factor: float
    quantification_factor: float
    definition: str
    reason: str
    detection_holds: tuple[tuple[float, float], ...] = ()
    quantification_holds: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class AmbiguousPair:
    """Two concentrations far apart that give nearly the same spectrum: ``distance`` in standard deviations."""

    first: float
    second: float
    distance: float


@dataclass(frozen=True)
class AmbiguityMap:
    """Mahalanobis distance between samples of any two concentrations.

    Attributes:
        concentrations: ``[C]``.
        distance: ``[C, C]`` √((m_i − m_j)ᵀ (C_i + C_j)⁻¹ (m_i − m_j)), symmetric, zero on the diagonal.
        pairs: local minima away from the diagonal, nearest first.
    """

    concentrations: np.ndarray
    distance: np.ndarray
    pairs: tuple[AmbiguousPair, ...]


def resolution(
    calibration: Calibration,
    concentrations: Any = None,
    factor: float = 2.0,
    replicates: int = 1,
    method: str | None = None,
) -> Resolution:
    """Sensitivity and resolvable difference over the calibrated range.

    Args:
        calibration: fitted.
        concentrations: ``[C]``, None for 201 points over the calibrated range.
        factor: k, how many standard deviations apart two samples must lie to count as different.
        replicates: spectra averaged per sample.
        method: whose u(c): ``"posterior"``, or ``"profile"`` for 1/√G; None for what answers by default.

    Raises:
        InputError: concentrations beyond the range that is searched, a factor or replicates that are not positive.
    """
    if not as_number(factor, "factor") > 0.0 or as_number(replicates, "replicates") < 1:
        raise InputError("resolution needs a positive factor k and at least one replicate.")
    model = calibration.inverse
    asked = np.linspace(*calibration.range, 201) if concentrations is None else concentrations
    c = as_numbers(asked, "concentrations")
    if c.ndim != 1 or not np.isfinite(c).all() or (c < model.low).any() or (c > model.high).any():
        raise InputError(f"resolution is known between {model.low:g} and {model.high:g}; ask for concentrations there.")
    rows, slope = tangents(model, c)
    information = fisher_information(model, c, replicates)
    with np.errstate(divide="ignore"):
        deviation = 1.0 / np.sqrt(information)
    if chosen_method(method, calibration.unfit_for_posterior)[0] == "posterior":
        # a width is smooth, and so few places are enough
        places = c if len(c) <= _PLACES else np.linspace(c.min(), c.max(), _PLACES)
        deviation = np.interp(c, places, posterior_widths(calibration, places, replicates).deviation)
    return Resolution(
        concentrations=c,
        sensitivity=np.sqrt(((rows @ calibration.gp.residual) ** 2).mean(axis=1)),
        selectivity=np.linalg.norm(slope, axis=1),
        information=information,
        standard_deviation=deviation,
        resolvable=factor * np.sqrt(2.0) * deviation,
        factor=factor,
        replicates=replicates,
    )


def fisher_information(model: InverseModel, concentrations: np.ndarray, replicates: int = 1) -> np.ndarray:
    """G(c) ``[C]`` of the mean of ``replicates`` spectra with the noise of the standards (φ = 1)."""
    _, slope = tangents(model, concentrations)
    covariance = measured_covariance(model, concentrations, replicates)
    return np.einsum("cr,cr->c", slope, np.linalg.solve(covariance, slope[..., None])[..., 0])


def measured_covariance(model: InverseModel, concentrations: np.ndarray, replicates: int = 1) -> np.ndarray:
    """C(c) ``[C, r, r]`` of the mean of ``replicates`` spectra: curve, standards, noise."""
    _, curve = model.curve(concentrations)
    return curve + (np.eye(model.rank) + model.projection.replicates) / replicates


def tangents(model: InverseModel, concentrations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """d/dc of the rows of weights ``[C, n]`` and of m(c) ``[C, r]``, by differences inside the searched range.

    The step is a thousandth of the distance from the lowest standard (a saturating response is steepest there), at
    least 1e-5 of the range.
    """
    levels = model.gp.levels
    step = np.maximum(1e-3 * np.abs(concentrations - levels[0]), 1e-5 * (levels[-1] - levels[0]))
    before = np.maximum(concentrations - step, model.low)
    after = np.minimum(concentrations + step, model.high)
    rows = model.gp.predict_rows(np.concatenate([before, after]))
    count = len(concentrations)
    slope = (rows[count:] - rows[:count]) / (after - before)[:, None]
    return slope, slope @ model.projection.levels


def detection_limits(calibration: Calibration, replicates: int = 1, method: str | None = None) -> DetectionLimits:
    """Multivariate limits of detection and quantification of ``calibration``, in user units.

    LOD: the smallest c with c ≥ 3.29 u(c); LOQ: the smallest c with c ≥ 10 u(c), with everything that makes a result
    uncertain in u(c) (Currie's limits with the uncertainty of the multivariate result in place of the blank's, as in
    Allegrini & Olivieri 2014, Anal. Chem. 86, 7858), that of the mean of ``replicates`` ≥ 1 spectra of the unknown.
    Where the posterior answers, u(c) is its own width, and both limits lie at least 1.645 u(c) above the critical
    value, from which on spectra are told from a blank as the verdict does it; else u(c) = 1/√G(c). Where no limit can
    be claimed it is None, and ``reason`` says why.

    Args:
        calibration: fitted.
        replicates: spectra averaged per sample.
        method: as for :func:`resolution`.

    Raises:
        InputError: fewer than one replicate, or no such method.
    """
    if as_number(replicates, "replicates") < 1:
        raise InputError(
            f"replicates must be at least 1, the spectra of the unknown that are averaged; got {replicates}."
        )
    by_posterior = chosen_method(method, calibration.unfit_for_posterior)[0] == "posterior"
    how = "half the width of the posterior" if by_posterior else "1/√G(c)"
    definition = f"smallest c with c ≥ k·u(c), u(c) = {how}, the standard uncertainty of one result"
    declines = calibration.standing.declines
    if declines or not (calibration.has_blank and calibration.checked):
        reason = "no blank among the standards" if calibration.checked else "fewer than four standards"
        return DetectionLimits(None, None, DETECTION_FACTOR, QUANTIFICATION_FACTOR, definition, declines or reason)
    low, high = calibration.range
    least, fine, even = (1e-4, _PLACES, 12) if by_posterior else (1e-5, 400, 401)
    c = np.concatenate([np.geomspace(least, 1.0, fine) * (high - low), np.linspace(low, high, even)])
    c = np.unique(c[(c > 0.0) & (c <= high)])
    if by_posterior:
        c, detected, signal = _by_widths(calibration, c, replicates)
    else:
        detected = signal = c * np.sqrt(fisher_information(calibration.inverse, c, replicates))
    detection = _where_above(c, detected, DETECTION_FACTOR)
    quantification = _where_above(c, signal, QUANTIFICATION_FACTOR)
    return DetectionLimits(
        detection[0][0] if detection else None,
        quantification[0][0] if quantification else None,
        DETECTION_FACTOR,
        QUANTIFICATION_FACTOR,
        definition,
        "" if quantification else "not reached within the calibrated range",
        detection,
        quantification,
    )


def _by_widths(calibration: Calibration, c: np.ndarray, replicates: int) -> tuple[np.ndarray, ...]:
    """Ascending places (``c``, finer where the critical value lies) and c ÷ u(c) there, by the posterior's widths; for
    the limit of detection, and for that of quantification, which is nowhere below it.

    The critical value c* is where half of the spectra are told from a blank. At a limit of detection a spectrum must be
    told that lies 1.645 u(c) lower than most, so c − c* ≥ 1.645 u(c); u(c) has what the curve is uncertain by, which is
    the same for all spectra, and not their noise alone.
    """
    found = posterior_widths(calibration, c, replicates)
    told, deviation = found.detected >= 0.5, found.deviation
    if not told.any():
        return c, np.zeros(len(c)), np.zeros(len(c))
    first = int(told.argmax())
    around = c[max(first - 1, 0) : first + 4]
    between = np.setdiff1d(np.geomspace(around[0], around[-1], _FINER), c)
    finer = posterior_widths(calibration, between, replicates)
    c = np.concatenate([c, between])
    order = np.argsort(c, kind="stable")
    c, told = c[order], np.concatenate([told, finer.detected >= 0.5])[order]
    deviation = np.maximum(np.concatenate([deviation, finer.deviation])[order], 1e-300)
    critical = c[int(told.argmax())]
    detection = np.minimum(c, 2.0 * np.maximum(c - critical, 0.0)) / deviation
    return c, detection, np.where(detection >= DETECTION_FACTOR, c / deviation, 0.0)


def ambiguity_map(calibration: Calibration, points: int = 121, far: float = 0.1, near: float = 2.0) -> AmbiguityMap:
    """Which concentrations give nearly the same spectrum.

    Args:
        calibration: fitted.
        points: C, spread over the calibrated range half evenly, half along the response curve.
        far: pairs closer in concentration than this fraction of the range are neighbours, not ambiguous.
        near: pairs further apart than this many standard deviations are told apart and not listed.
    """
    model = calibration.inverse
    low, high = calibration.range
    grid = model.grid[(model.grid >= low) & (model.grid <= high)]
    even = np.linspace(low, high, points - points // 2)
    along = np.interp(np.linspace(0.0, 1.0, points // 2), np.linspace(0.0, 1.0, len(grid)), grid)
    c = np.unique(np.concatenate([even, along]))
    mean, _ = model.curve(c)
    covariance = measured_covariance(model, c)
    distance = np.zeros((len(c), len(c)))
    for i in range(len(c)):  # one row at a time: C² systems of r equations would fill the memory for nothing
        step = mean[i] - mean
        solved = np.linalg.solve(covariance[i] + covariance, step[..., None])[..., 0]
        distance[i] = np.sqrt(np.maximum((step * solved).sum(axis=1), 0.0))
    distance = 0.5 * (distance + distance.T)
    return AmbiguityMap(c, distance, _pairs(c, distance, far * (high - low), near))


def _pairs(c: np.ndarray, distance: np.ndarray, far: float, near: float) -> tuple[AmbiguousPair, ...]:
    """Local minima (over the eight neighbours) of the distance above the diagonal."""
    padded = np.pad(distance, 1, constant_values=np.inf)
    count = len(c)
    around = [
        padded[1 + i : 1 + i + count, 1 + j : 1 + j + count] for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)
    ]
    lowest = distance <= np.min(around, axis=0)
    found = np.argwhere(lowest & (distance <= near) & (c[None, :] - c[:, None] >= far))
    pairs = [AmbiguousPair(float(c[i]), float(c[j]), float(distance[i, j])) for i, j in found]
    return tuple(sorted(pairs, key=lambda pair: pair.distance))


def _where_above(c: np.ndarray, signal: np.ndarray, factor: float) -> tuple[tuple[float, float], ...]:
    """Intervals with signal ≥ factor, their ends interpolated between grid points in log-log."""
    above = np.concatenate([[False], signal >= factor, [False]])
    starts, stops = np.flatnonzero(~above[:-1] & above[1:]), np.flatnonzero(above[:-1] & ~above[1:]) - 1
    return tuple(
        (_crossing(c, signal, factor, int(i) - 1, int(i)), _crossing(c, signal, factor, int(j) + 1, int(j)))
        for i, j in zip(starts, stops, strict=True)
    )


def _crossing(c: np.ndarray, signal: np.ndarray, factor: float, outside: int, inside: int) -> float:
    if not 0 <= outside < len(c) or signal[outside] <= 0.0:
        return float(c[inside])
    share = np.log(factor / signal[outside]) / np.log(signal[inside] / signal[outside])
    return float(c[outside] * (c[inside] / c[outside]) ** share)
