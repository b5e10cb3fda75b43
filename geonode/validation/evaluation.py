"""`evaluate`: leave one concentration out, every method on the same folds, the choice made by inner validation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import geonode.validation.geodesic_methods  # noqa: F401 - registers geonode's own methods
from geonode.calibration.assessment.coverage import responding_wavelengths
from geonode.calibration.baselines.method import SpectralMethod, names_of, spectral_method
from geonode.calibration.leave_out import NestedSplits, nested_leave_one_level_out
from geonode.config import GeodesicConfig
from geonode.data.given_standards import given_standards
from geonode.data.preprocessing import Preprocessing
from geonode.errors import InputError
from geonode.prior.standards import with_weights
from geonode.validation.comparison import Comparison, NodeSettings, NodeTrainer, Progress
from geonode.validation.fold_spectra import FoldSpectra, as_measured, preprocessed
from geonode.validation.inverse_comparison import evaluate_inverse, failures
from geonode.validation.metrics import all_metrics, rmse
from geonode.validation.response_note import response_notes
from geonode.validation.result import EvaluationReport, MethodResult

METHODS = ("nearest", "linear", "pchip", "cubic", "quadratic", "line", "isotherm", "gp", "node")
"""Methods compared by default, in the order of the report."""

INNER_STRIDE = 4
"""Inner neural flows see every fourth wavelength (of at least ``_INNER_WAVELENGTHS`` left): they only rank methods."""
_INNER_WAVELENGTHS = 40
_NEURAL = {"node", "pretrained", "untrained", "path_independent", "velocity", "free"}


def evaluate(
    dataset: Any,
    config: Any = None,
    methods: Sequence[str] | None = None,
    *,
    inner: bool = True,
    inverse: bool = False,
    inverse_methods: Sequence[str] | None = None,
    seed: int | None = None,
    device: Any = "cpu",
    weights: str | Path | None = None,
    preprocessing: Preprocessing | str | Sequence[str] | None = None,
    node_trainer: NodeTrainer | None = None,
    progress: Progress | None = None,
) -> EvaluationReport:
    """Compare methods by leaving one concentration out at a time.

    All replicates of a level are left out together, everything is fitted inside the fold, and the held-out level's
    mean spectrum is what predictions are compared with. The winner is chosen by leaving a second level out inside
    every fold; the held-out level never takes part in the choice.

    Args:
        dataset: a :class:`geonode.SpectralDataset` with one analyte and at least three levels, or what
            :func:`geonode.data.given_standards` makes one of (a file, a DataFrame, a DataArray).
        config: :class:`geonode.GeodesicConfig` for the neural flow, None for the defaults.
        methods: names out of ``METHODS`` and of registered baselines; None for all of ``METHODS``.
        inner: False skips inner validation (and so names no winner).
        inverse: also compare how concentrations are found from spectra (four levels or more), against PLS and others.
        inverse_methods: which of those, see :func:`geonode.validation.inverse_comparison.evaluate_inverse`; None: all.
        seed: of the neural flows; None takes ``config.seed``.
        device: where they are trained.
        weights: of the row ``node``, a file that `geonode.adapt` or `geonode pretrain` wrote; None for the settings'.
        preprocessing: steps applied to the spectra before anything else, fitted inside each fold (`geonode.fit` says
            how they are written); errors are then those of preprocessed spectra. None: none.
        node_trainer: what trains the neural flows, None for geonode's own.
        progress: called as ``progress(what, done, total)``.

    Raises:
        InputError: several analytes, fewer than three levels, an unknown method, preprocessing that cannot be done,
            weights that cannot be had or that no method reads.
    """
    dataset = given_standards(dataset)
    chain = Preprocessing.of(preprocessing)
    names = _method_names(methods)
    config = with_weights(GeodesicConfig() if config is None else config, weights)
    if weights is not None and "node" not in names:
        raise InputError("weights are those of the row node, which is not asked for; leave them out, or add it.")
    seed = int(config.seed) if seed is None else seed
    notes: list[str] = []
    if chain is not None:
        dataset = _without_masked(dataset, chain, notes)
    levels, level_means = _levels_of(dataset)
    splits = _splits(len(levels), inner, notes)
    seen = _fold_spectra(dataset, level_means, chain, splits, notes)
    ranked = _inner_columns(len(seen.wavelengths), splits, names, notes)
    nodes = NodeSettings(node_trainer, config, seed, device)
    results = _results(names, Comparison(levels, seen, splits, ranked, nodes, progress), notes)
    report = EvaluationReport.build(
        levels=levels,
        level_means=seen.whole,
        wavelengths=seen.wavelengths,
        results=results,
        notes=notes,
        seed=seed,
    )
    report.signal, report.units = dataset.signal, dataset.units
    report.notes += response_notes(report, dataset, chain is not None)
    if inverse:
        report.inverse = evaluate_inverse(dataset, inverse_methods, progress=progress, preprocessing=chain)
        report.notes += failures(report.inverse)
    return report


def _results(names: Sequence[str], comparison: Comparison, notes: list[str]) -> dict[str, MethodResult]:
    """Every method on every fold; why one is not applicable is said in ``notes``."""
    results: dict[str, MethodResult] = {}
    for name in names:
        method = spectral_method(name)
        results[name] = _score(name, method.on_folds(comparison), comparison)
        results[name].coverage = _band_coverage(method, comparison)
        reason = method.unusable(comparison.levels[comparison.splits.training[0]])
        if reason:
            notes.append(f"{name}: not applicable ({reason}).")
    return results


def _splits(levels: int, inner: bool, notes: list[str]) -> NestedSplits:
    if inner and levels < 4:
        inner = False
        notes.append("Three levels leave none for inner validation, so no winner is named.")
    return nested_leave_one_level_out(levels, inner)


def _without_masked(dataset: Any, chain: Preprocessing, notes: list[str]) -> Any:
    """Steps transform whole spectra, so wavelengths that are masked in any of them are left out first."""
    learned = "fitted inside each fold" if chain.learns else "each spectrum by itself"
    notes.append(f"Spectra were preprocessed ({chain}; {learned}): all errors are those of preprocessed spectra.")
    masked = int((~np.isfinite(np.asarray(dataset.spectra)).all(axis=0)).sum())
    if not masked:
        return dataset
    notes.append(f"{masked} of {len(dataset.wavelengths)} wavelengths are masked in some spectrum and were left out.")
    return dataset.without_masked()


def _fold_spectra(
    dataset: Any, level_means: np.ndarray, chain: Preprocessing | None, splits: NestedSplits, notes: list[str]
) -> FoldSpectra:
    raw = np.asarray(dataset.levels, dtype=np.float64)
    # The dataset's own level numbers, renumbered to ascending order.
    index = np.argsort(np.argsort(raw))[np.asarray(dataset.level_index)]
    if chain is not None:
        return preprocessed(dataset, index, chain, splits)
    usable = _usable_wavelengths(level_means, notes)
    deviations = np.asarray(dataset.replicate_deviations())[:, usable]
    wavelengths = np.asarray(dataset.wavelengths, dtype=np.float64)[usable]
    return as_measured(level_means[:, usable], deviations, index, wavelengths, splits)


def _levels_of(dataset: Any) -> tuple[np.ndarray, np.ndarray]:
    levels = np.asarray(dataset.levels, dtype=np.float64)
    if levels.ndim != 1:
        raise InputError(
            f"evaluate compares methods for one analyte, but this dataset has {levels.shape[1]}; select the samples in "
            "which only one of them varies."
        )
    if len(levels) < 3:
        raise InputError(f"evaluate needs at least three concentration levels, but there are {len(levels)}.")
    means = np.asarray(dataset.level_means(), dtype=np.float64)
    order = np.argsort(levels)
    return levels[order], means[order]


def _usable_wavelengths(means: np.ndarray, notes: list[str]) -> np.ndarray:
    """Wavelengths with a value at every level, ``[W]``; what is left out is said in ``notes``."""
    usable = np.asarray(np.isfinite(means).all(axis=0))
    if not usable.any():
        raise InputError(
            "every wavelength is masked at some level, so there is nothing to compare; unmask some of them."
        )
    if not usable.all():
        notes.append(f"{(~usable).sum()} of {len(usable)} wavelengths are masked at some level and were left out.")
    return usable


def _method_names(methods: Sequence[str] | None) -> list[str]:
    names = list(METHODS if methods is None else methods)
    known = [*METHODS, *names_of(SpectralMethod)]
    for name in names:
        if name not in known:
            raise InputError(f"there is no method called '{name}'; choose from {', '.join(dict.fromkeys(known))}.")
    if not names or len(set(names)) < len(names):
        raise InputError("methods must name at least one method, each once.")
    return names


def _inner_columns(width: int, splits: NestedSplits, names: list[str], notes: list[str]) -> np.ndarray:
    """Wavelengths on which inner RMSEs are computed, the same for every method."""
    if not _NEURAL.intersection(names) or not splits.has_inner:
        return np.arange(width)
    stride = max(1, min(INNER_STRIDE, width // _INNER_WAVELENGTHS))
    if stride > 1:
        notes.append(
            f"Inner validation (which only ranks the methods) uses one wavelength in {stride}; "
            "every score of a held-out level uses all of them."
        )
    return np.arange(0, width, stride)


def _score(name: str, predicted: list[np.ndarray], comparison: Comparison) -> MethodResult:
    levels, seen, splits = comparison.levels, comparison.seen, comparison.splits
    ranked = comparison.ranked
    n, means = len(levels), seen.means
    scale = float(seen.whole.std())
    outer = np.stack([np.asarray(predicted[i], dtype=np.float64)[0] for i in range(n)])
    per_level = []
    for i in range(n):
        entry: dict[str, Any] = {"level": float(levels[i]), "edge": i in (0, n - 1)}
        entry.update(all_metrics(outer[i], means[i][i], seen.wavelengths, scale))
        per_level.append(entry)
    inner = planned = None
    if splits.has_inner:
        inner = np.full((n, n), math.nan)
        planned = (splits.pairs >= 0) & ~np.eye(n, dtype=bool)
        for i in range(n):
            for j, number, position in splits.inner(i):
                inner[i, j] = rmse(predicted[number][position][ranked], means[number][j, ranked])
    return MethodResult(name, outer, per_level, inner, planned)


def _band_coverage(method: SpectralMethod, comparison: Comparison) -> dict[str, float | None] | None:
    """Coverage of a method's 80 % bands on the held-out level means, apart for responding and silent wavelengths; None
    for a method without bands."""
    responding = responding_wavelengths(comparison.seen.whole)
    inside = []
    for i in range(len(comparison.levels)):
        band = method.band(comparison, i)
        if band is None:
            return None
        held_out = comparison.seen.means[i][i]
        inside.append((band[0] <= held_out) & (held_out <= band[1]))
    covered = np.stack(inside)
    return {
        "nominal": 0.8,
        "responding": float(covered[:, responding].mean()) if responding.any() else None,
        "silent": float(covered[:, ~responding].mean()) if (~responding).any() else None,
    }
