"""`evaluate --inverse`: concentration from spectrum, geonode and other methods on identical folds.

One level at a time is left out with all its replicates; every method is fitted to the rest and given the left-out
spectra one by one. Errors are in percent of the calibrated range of all standards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from geonode.calibration.baselines.method import InverseMethod, inverse_method, names_of
from geonode.calibration.calibration import Calibration
from geonode.calibration.inverse.model import searched_range
from geonode.calibration.leave_out import leave_each_out, levels_kept
from geonode.data.preprocessing import Preprocessing
from geonode.errors import GeonodeError, InputError
from geonode_runtime.sets import Component
from geonode_runtime.verdicts import Quantification

LEVEL = 0.8
"""Nominal coverage of the sets and intervals that are compared."""
OWN = {"geonode": None, "profile": "profile"}
"""The library's own ways, and what `Calibration.quantify_many` calls them; None is what answers by default."""
INVERSE_METHODS = (*OWN, "pls", "pls_warped", "pcr", "gp_pca", "pchip_curve")
"""What is compared, in the order of the report; methods that others registered come behind them."""


@dataclass(frozen=True)
class Fold:
    """One level left out.

    Attributes:
        levels: ``[n]`` of all standards, ascending.
        left_out: position of the level that is left out.
        spectra, concentrations: ``[N, W]``, ``[N]`` of the standards that stay.
        unknown: ``[U, W]`` spectra of the level that is left out.
        wavelengths: ``[W]``.
        std: standard uncertainty of the concentrations that stay, or None.
    """

    levels: np.ndarray
    left_out: int
    spectra: np.ndarray
    concentrations: np.ndarray
    unknown: np.ndarray
    wavelengths: np.ndarray
    std: np.ndarray | None

    @cached_property
    def calibration(self) -> Calibration:
        """With the standards that stay; the library's own ways share it."""
        return Calibration(self.concentrations, self.spectra, self.wavelengths, concentration_std=self.std)

    @property
    def truth(self) -> float:
        """The concentration that is left out."""
        return float(self.levels[self.left_out])

    @cached_property
    def searched(self) -> tuple[float, float]:
        """The range in which concentrations are looked for."""
        return searched_range(np.unique(self.concentrations))

    def off(self, concentration: float) -> float:
        """How far a concentration is from the truth, percent of the calibrated range of all standards."""
        return 100.0 * float((concentration - self.truth) / (self.levels[-1] - self.levels[0]))


def evaluate_inverse(
    dataset: Any,
    methods: Sequence[str] | None = None,
    concentration_std: Any = None,
    progress: Callable[[str, int, int], None] | None = None,
    preprocessing: Preprocessing | None = None,
) -> dict[str, Any]:
    """Leave every level out once and quantify its spectra with each method.

    Args:
        dataset: a :class:`geonode.SpectralDataset` with one analyte and at least four levels.
        methods: "geonode" (what answers by default: the posterior learned on simulated unknowns), "profile"
            (likelihood of the curve) and names of registered inverse methods; None for all.
        concentration_std: standard uncertainty of the standards' concentrations (one number or one per level).
        progress: called as ``progress(what, done, total)``.
        preprocessing: a chain (fitted or not) that is fitted in every fold on the standards that are left.

    Returns:
        Per method ``per_level`` (level, edge, errors in percent of range, covered; of the library's own how far the
        truth lies outside the 95 % set and the sets' widths, of others the ends of the intervals and of the range
        searched less the truth, in percent of range), ``rmsep_percent_interior``,
        ``coverage`` (of nominal 80 % intervals; levels count equally; None where the method has no interval),
        ``median_relative_error_percent`` over interior levels; for the library's own also verdicts, sets,
        ``refused`` (share of levels called `does not match`) and ``confidently_wrong`` (spectra). A level that a method
        cannot do has no errors, and ``failed`` says why; the summary is of the others (None where there are none).

    Raises:
        InputError: several analytes, fewer than four levels, an unknown method.
    """
    names = inverse_names() if methods is None else list(methods)
    for name in names:
        if name not in OWN:
            inverse_method(name)
    folds = _folds(dataset, concentration_std, preprocessing)
    result: dict[str, Any] = {}
    for name in names:
        rows = []
        for number, fold in enumerate(folds):
            rows.append(_attempt(name, fold))
            if progress is not None:
                progress(f"inverse: {name}", number + 1, len(folds))
        result[name] = _summary(rows, folds[0].levels)
    return result


def inverse_names() -> list[str]:
    """Names of everything that finds concentrations, in the order of the report."""
    return list(dict.fromkeys([*INVERSE_METHODS, *names_of(InverseMethod)]))


def _folds(dataset: Any, concentration_std: Any, preprocessing: Preprocessing | None) -> list[Fold]:
    usable = np.asarray(np.isfinite(dataset.spectra).all(axis=0))
    c = np.asarray(dataset.concentrations, dtype=np.float64)
    if c.ndim != 1:
        raise InputError("the inverse comparison is for one analyte; select samples in which only one of them varies.")
    levels, index = np.unique(c, return_inverse=True)
    if len(levels) < 4:
        raise InputError(
            f"the inverse comparison needs at least four concentration levels, but there are {len(levels)}."
        )
    if not usable.any():
        raise InputError("every wavelength is masked in some standard, so there is nothing to compare.")
    spectra, wavelengths = np.asarray(dataset.spectra)[:, usable], np.asarray(dataset.wavelengths)[usable]
    seen = _seen_by_folds(spectra, wavelengths, index, preprocessing)
    std = None if concentration_std is None else np.broadcast_to(concentration_std, levels.shape)
    folds = []
    for i, (kept, left_out) in enumerate(leave_each_out(index)):
        spectra, left = seen[i]
        fold_std = None if std is None else std[levels_kept(len(levels), i)]
        folds.append(Fold(levels, i, spectra[kept], c[kept], spectra[left_out], left, fold_std))
    return folds


def _seen_by_folds(
    spectra: np.ndarray, wavelengths: np.ndarray, index: np.ndarray, preprocessing: Preprocessing | None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Per level left out all spectra ``[N, W']``, by steps fitted without it, and the wavelengths they leave."""
    n = int(index.max()) + 1
    if preprocessing is None:
        return [(spectra, wavelengths)] * n
    chain = preprocessing.fresh()
    _, left = chain.fit_arrays(spectra, wavelengths)
    return [(chain.fitted_without(index == i), left) for i in range(n)]


def _attempt(name: str, fold: Fold) -> dict[str, Any]:
    """What a method makes of one level; where that cannot be done, why, and the other levels go on."""
    try:
        return _own(fold, OWN[name]) if name in OWN else _other(name, fold)
    except (GeonodeError, np.linalg.LinAlgError) as error:
        return {**_entry(fold, []), "covered": None, "failed": str(error)}


def _own(fold: Fold, method: str | None) -> dict[str, Any]:
    answers = fold.calibration.quantify_many(fold.unknown, LEVEL, genuine=True, method=method)
    entry = _entry(fold, [a.nearest for a in answers])
    entry["covered"] = [any(k.contains(fold.truth) for k in a.components) for a in answers]
    entry["beyond_95"] = [_beyond(a, fold) for a in answers]
    entry["widths"] = [sum(b - a for a, b in _ends(a.components, fold)) for a in answers]
    entry["verdicts"] = [a.verdict for a in answers]
    entry["sets"] = [[[k.low, None if k.open_high else k.high, k.probability] for k in a.components] for a in answers]
    entry["confidently_wrong"] = [confidently_wrong(a, fold.truth) for a in answers]
    return entry


def confidently_wrong(answer: Quantification, truth: float) -> bool:
    """One component, verdict `quantified`, and the truth outside the 95 % set by more than the set's width."""
    if answer.verdict != "quantified" or len(answer.verdict_components) != 1:
        return False
    (only,) = answer.verdict_components
    if only.contains(truth):
        return False
    return bool(truth < only.low - only.width or truth > only.high + only.width)


def _other(name: str, fold: Fold) -> dict[str, Any]:
    method = inverse_method(name).fit(fold.spectra, fold.concentrations)
    entry = _entry(fold, method.predict(fold.unknown))
    limits, truth = method.interval(fold.unknown, LEVEL), fold.truth
    entry["covered"] = None if limits is None else [bool(a <= truth <= b) for a, b in zip(*limits, strict=True)]
    if limits is not None:
        entry["intervals"] = [[fold.off(float(v)) for v in ends] for ends in zip(*limits, strict=True)]
        entry["searched"] = [fold.off(v) for v in fold.searched]
    return entry


def _ends(pieces: Sequence[Component], fold: Fold) -> list[tuple[float, float]]:
    """Of a set's pieces, in percent of the range less the truth; open ones end where the search does."""
    low, high = fold.searched
    ends = [(low if k.open_low else max(k.low, low), high if k.open_high else min(k.high, high)) for k in pieces]
    return [(fold.off(a), fold.off(max(a, b))) for a, b in ends]


def _beyond(answer: Quantification, fold: Fold) -> float:
    """How far the truth lies outside the 95 % set, percent of the range."""
    if any(k.contains(fold.truth) for k in answer.verdict_components):
        return 0.0
    return min(max(a, -b, 0.0) for a, b in _ends(answer.verdict_components, fold))


def _entry(fold: Fold, estimates: Any) -> dict[str, Any]:
    levels = fold.levels
    errors = 100.0 * (np.asarray(estimates) - fold.truth) / (levels[-1] - levels[0])
    return {"level": fold.truth, "edge": fold.left_out in (0, len(levels) - 1), "errors": errors.tolist()}


def _summary(rows: list[dict[str, Any]], levels: np.ndarray) -> dict[str, Any]:
    done = [row for row in rows if "failed" not in row]
    inner = [row for row in done if not row["edge"]]
    errors = np.concatenate([row["errors"] for row in inner]) if inner else np.zeros(0)
    span, tiny = levels[-1] - levels[0], np.finfo(float).tiny
    relative = [np.abs(row["errors"]) * span / max(abs(row["level"]), tiny) for row in inner]
    known = [row["covered"] for row in done if row["covered"] is not None]
    summary: dict[str, Any] = {
        "per_level": rows,
        "rmsep_percent_interior": float(np.sqrt((errors**2).mean())) if len(errors) else None,
        "coverage": float(np.mean([np.mean(row) for row in known])) if known else None,
        "median_relative_error_percent": float(np.median(np.concatenate(relative))) if relative else None,
    }
    judged = [row for row in done if "verdicts" in row]
    if judged:
        said = [np.mean([v == "does not match" for v in row["verdicts"]]) for row in judged]
        summary["refused"] = float(np.mean(said))
        summary["confidently_wrong"] = int(sum(sum(row["confidently_wrong"]) for row in judged))
    return summary


def failures(found: dict[str, Any]) -> list[str]:
    """A sentence for every level that a method could not do."""
    return [
        f"Concentration from spectrum by {name}: the level {row['level']:g} could not be done ({row['failed']})"
        for name, entry in found.items()
        for row in entry["per_level"]
        if "failed" in row
    ]
