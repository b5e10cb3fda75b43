"""Uncertainty budget of one result (GUM, JCGM 100:2008).

The estimate responds to an error δ of the whitened coordinates as δĉ = gᵀ δ with g = C⁻¹ m′/(m′ᵀ C⁻¹ m′), m′ = dm/dc
and C their covariance (generalised least squares, linearised). So every part C_k of C contributes u_k² = gᵀ C_k g, and
the parts add up to 1/G exactly. Dilution multiplies the result and adds its relative variance (GUM 5.1.6). The coverage
factor is Student's t at the effective degrees of freedom of Welch and Satterthwaite (GUM G.4.1).

No prior is in it: not even that the result lies within the calibrated range. Where 1/√G exceeds the standard deviation
of a uniform distribution over that range (range/√12), the spectrum tells less than the range alone, the linearisation
means nothing, and the budget is not ``resolved``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from geonode.calibration.calibration import Calibration
from geonode.calibration.design.resolution import tangents
from geonode.calibration.inverse.model import InverseModel
from geonode.errors import InputError
from geonode_runtime.given_numbers import as_number


@dataclass(frozen=True)
class Contribution:
    """One source: standard uncertainty in user units of the result, GUM type A or B, degrees of freedom, and its share
    of the combined variance."""

    source: str
    standard_uncertainty: float
    kind: str
    dof: float
    share: float


@dataclass(frozen=True)
class UncertaintyBudget:
    """All contributions at one concentration (the diluted-back result), user units.

    ``expanded`` = ``coverage_factor`` × ``combined``, for ``level``. ``resolved``: whether the figures mean anything
    (module docstring).
    """

    concentration: float
    contributions: tuple[Contribution, ...]
    combined: float
    effective_dof: float
    coverage_factor: float
    expanded: float
    level: float
    resolved: bool


def uncertainty_budget(
    calibration: Calibration,
    concentration: float,
    *,
    replicates: int = 1,
    phi: float = 1.0,
    blanks: int = 0,
    dilution: float = 1.0,
    dilution_std: float = 0.0,
    level: float = 0.95,
) -> UncertaintyBudget:
    """Where the uncertainty of a result comes from.

    Args:
        calibration: fitted.
        concentration: of the measured (diluted) sample, user units, within the searched range.
        replicates: spectra averaged; phi: noise factor of the unknown (its Q, at least 1); blanks: spectra of a matrix
            blank that was subtracted, 0 for none.
        dilution, dilution_std: factor and its standard uncertainty.
        level: of the expanded uncertainty.

    Raises:
        InputError: a concentration outside the searched range, numbers out of range, or a place where the spectrum
            does not change with concentration at all.
    """
    model = calibration.inverse
    _require_in_range(model, concentration, replicates, phi, blanks, dilution, dilution_std, level)
    at = np.array([float(concentration)])
    _, slope = tangents(model, at)
    parts = _sources(model, at, replicates, phi, blanks)
    response, information = _response(parts, slope[0], concentration)
    rows = [
        (part.source, dilution * math.sqrt(max(float(response @ part.covariance @ response), 0.0)), part.kind, part.dof)
        for part in parts
    ]
    rows.append(("dilution", abs(concentration) * dilution_std, "B", math.inf))
    variance = sum(u * u for _, u, _, _ in rows)
    effective = _effective_dof(variance, [(u, dof) for _, u, _, dof in rows])
    # scipy's t quantile has no infinite degrees of freedom; a million give the normal one to six digits.
    factor = float(stdtrit(min(effective, 1e6), 0.5 + 0.5 * level))
    combined = math.sqrt(variance)
    contributions = tuple(
        Contribution(source, u, kind, dof, u * u / variance if variance > 0.0 else 0.0)
        for source, u, kind, dof in rows
        if u > 0.0
    )
    return UncertaintyBudget(
        concentration=dilution * float(concentration),
        contributions=contributions,
        combined=combined,
        effective_dof=effective,
        coverage_factor=factor,
        expanded=factor * combined,
        level=level,
        resolved=1.0 / information <= (calibration.range[1] - calibration.range[0]) ** 2 / 12.0,
    )


def _require_in_range(
    model: InverseModel,
    concentration: float,
    replicates: int,
    phi: float,
    blanks: int,
    dilution: float,
    dilution_std: float,
    level: float,
) -> None:
    concentration = as_number(concentration, "concentration")
    if not (np.isfinite(concentration) and model.low <= concentration <= model.high):
        raise InputError(
            f"an uncertainty budget is known between {model.low:g} and {model.high:g}, not at {concentration:g}."
        )
    if replicates < 1 or blanks < 0 or phi < 1.0 or not 0.0 < level < 1.0 or dilution <= 0.0 or dilution_std < 0.0:
        raise InputError(
            "replicates must be at least 1, blanks at least 0, phi at least 1, the level between 0 and 1, and the "
            "dilution positive with an uncertainty that is not negative."
        )


def _response(parts: Sequence[_Source], slope: np.ndarray, concentration: float) -> tuple[np.ndarray, float]:
    """g and G = m′ᵀ C⁻¹ m′ (module docstring), of the parts of C ``[r, r]`` and m′ ``[r]``."""
    solved = np.linalg.solve(sum(part.covariance for part in parts), slope)
    information = float(slope @ solved)
    if not information > 0.0:
        raise InputError(f"the spectrum does not change with concentration at {concentration:g}: there is no budget.")
    return solved / information, information


class _Source(NamedTuple):
    """A part C_k ``[r, r]`` of the whitened coordinates' covariance, its GUM type and its degrees of freedom."""

    source: str
    covariance: np.ndarray
    kind: str
    dof: float


def _sources(model: InverseModel, at: np.ndarray, replicates: int, phi: float, blanks: int) -> list[_Source]:
    """The parts of C at one concentration ``at [1]``; all but the dilution, which is no part of it."""
    curve = model.curve_parts(at)
    noise = phi * np.eye(model.rank)
    scatter = model.projection.replicates
    of_blank = (noise + scatter) / blanks if blanks else np.zeros_like(noise)
    return [
        _Source("noise of the measurement", noise / replicates, "A", math.inf),
        _Source("scatter between replicates", scatter / replicates, "A", float(model.projection.replicate_dof)),
        _Source("calibration curve between the standards", model.curve_scale * curve.interpolation[0], "A", model.dof),
        _Source("noise of the standards' measurement", curve.noise[0], "A", model.dof),
        _Source("concentrations of the standards", curve.concentrations[0], "B", math.inf),
        _Source("matrix blank", of_blank, "A", math.inf),
    ]


def _effective_dof(variance: float, parts: Sequence[tuple[float, float]]) -> float:
    """Welch and Satterthwaite's, of (standard uncertainty, degrees of freedom) that add up to ``variance``."""
    weight = sum(u**4 / dof for u, dof in parts if u > 0.0 and math.isfinite(dof))
    return variance**2 / weight if weight > 0.0 else math.inf
