"""Leave cells of a grid of concentrations out: geonode's surface and flow against interpolators, on the same folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from geonode.analytes.interpolators import INTERPOLATORS
from geonode.analytes.node import fit_surface_nodes
from geonode.analytes.surface_gp import SurfaceGP
from geonode.errors import InputError
from geonode.validation.evaluation import responding_wavelengths
from geonode.validation.metrics import rmse

METHODS = (*INTERPOLATORS, *(f"{name} (log)" for name in INTERPOLATORS), "gp", "node")
"""Methods by name: the interpolators, the same on logarithmic axes, and geonode's process and neural flow."""


@dataclass
class HeldOut:
    """RMSE of every method at every held-out level, and coverage of the process's 80 % bands there.

    ``rmse[name] [n]`` in units of the spectra; ``scale`` is the standard deviation of all level means.
    """

    levels: np.ndarray
    scale: float
    rmse: dict[str, np.ndarray]
    coverage: dict[str, float] = field(default_factory=dict)

    def ratio(self, name: str, against: Sequence[str]) -> np.ndarray:
        """``[n]`` RMSE of the method ``name`` ÷ that of the best of ``against`` at the same level, chosen with
        hindsight.
        """
        return self.rmse[name] / np.min([self.rmse[other] for other in against], axis=0)

    def summary(self, name: str) -> dict[str, float]:
        """Geometric mean, root mean square and worst over the levels of the method ``name``, ÷ ``scale``."""
        value = self.rmse[name] / self.scale
        return {
            "geometric_mean": float(np.exp(np.log(value).mean())),
            "rms": float(np.sqrt((value**2).mean())),
            "worst": float(value.max()),
        }


def leave_cells_out(levels: np.ndarray) -> list[np.ndarray]:
    """One fold per level of ``levels [n, D]``: the indices left out."""
    return [np.array([i]) for i in range(len(levels))]


def leave_rows_out(levels: np.ndarray, analyte: int = 0) -> list[np.ndarray]:
    """One fold per concentration of ``analyte``: all levels that have it."""
    return [np.flatnonzero(levels[:, analyte] == value) for value in np.unique(levels[:, analyte])]


def evaluate_surface(
    levels: Any,
    level_means: Any,
    wavelengths: Any,
    folds: Sequence[np.ndarray],
    methods: Sequence[str] = METHODS,
    gp: SurfaceGP | None = None,
) -> HeldOut:
    """Fit every method without each fold and compare with what was measured there.

    Everything that is fitted or chosen is fitted or chosen inside the fold; the held-out levels are seen last.

    Args:
        levels: ``[n, D]``; level_means ``[n, W]``; wavelengths ``[W]``.
        folds: index arrays of levels left out together; each level in at most one.
        methods: names of METHODS.
        gp: settings of the process (fitted copies are made).

    Raises:
        InputError: an unknown method, or too few levels left by a fold (see `SurfaceGP.fit`).
    """
    levels, means = np.asarray(levels, dtype=np.float64), np.asarray(level_means, dtype=np.float64)
    for name in methods:
        if name not in METHODS:
            raise InputError(f"there is no method called '{name}'; choose from {', '.join(METHODS)}.")
    training = [np.setdiff1d(np.arange(len(levels)), fold) for fold in folds]
    gps = (gp or SurfaceGP()).fit_folds(levels, means, training) if {"gp", "node"} & set(methods) else []
    errors: dict[str, np.ndarray] = {}
    for name in methods:
        if name == "gp":
            predicted = [process.predict_mean(levels[fold]) for process, fold in zip(gps, folds, strict=True)]
        elif name == "node":
            nodes = fit_surface_nodes(gps, np.asarray(wavelengths), [levels[fold] for fold in folds])
            predicted = [node.predict(levels[fold]) for node, fold in zip(nodes, folds, strict=True)]
        else:
            kind, logarithmic = INTERPOLATORS[name.removesuffix(" (log)")], name.endswith(" (log)")
            predicted = [
                kind(logarithmic).fit(levels[rest], means[rest]).predict(levels[fold])
                for rest, fold in zip(training, folds, strict=True)
            ]
        errors[name] = np.full(len(levels), np.nan)
        for fold, spectra in zip(folds, predicted, strict=True):
            errors[name][fold] = rmse(spectra, means[fold])
    held = HeldOut(levels, float(means.std()), errors)
    if gps:
        held.coverage = _coverage(gps, levels, means, folds)
    return held


def _coverage(
    gps: list[SurfaceGP], levels: np.ndarray, means: np.ndarray, folds: Sequence[np.ndarray]
) -> dict[str, float]:
    """Share of (held-out level, wavelength) inside the 80 % bands, apart by response.

    ``claimed`` is the share of levels at which bands claim a coverage, ``responding_claimed`` the coverage there.
    """
    inside, claimed = np.zeros_like(means, dtype=bool), np.zeros(len(means), dtype=bool)
    for gp, fold in zip(gps, folds, strict=True):
        predicted = gp.predict(levels[fold])
        low, high = predicted.interval(0.8)
        inside[fold], claimed[fold] = (low <= means[fold]) & (means[fold] <= high), predicted.claimed
    tested = np.concatenate([np.asarray(fold) for fold in folds])
    responding = responding_wavelengths(means)
    found = {
        "nominal": 0.8,
        "responding": float(inside[tested][:, responding].mean()),
        "claimed": float(claimed[tested].mean()),
    }
    if claimed.any():
        found["responding_claimed"] = float(inside[claimed][:, responding].mean())
    if not responding.all():
        found["silent"] = float(inside[tested][:, ~responding].mean())
    return found
