"""The report of `evaluate`: scores, the honest choice, JSON, a table and a figure."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from geonode.schema import SCHEMAS

if TYPE_CHECKING:
    import rich.table

SUMMARIES = ("interior_median", "interior_worst", "lowest", "highest")


@dataclass
class MethodResult:
    """One method on every fold.

    Attributes:
        name: the method.
        predictions: ``[n, W]`` spectrum predicted for every level from the others (NaN where not applicable).
        per_level: one dictionary of scores per level, as in the JSON.
        inner_rmse: ``[n, n]`` RMSE of inner level j inside outer fold i, NaN where there is none, or None.
        inner_planned: ``[n, n]`` which of them inner validation consists of.
        coverage: coverage of the method's 80 % bands, where it has bands.
    """

    name: str
    predictions: np.ndarray
    per_level: list[dict[str, Any]]
    inner_rmse: np.ndarray | None = None
    inner_planned: np.ndarray | None = None
    coverage: dict[str, float | None] | None = None

    @property
    def rmse(self) -> np.ndarray:
        """``[n]`` RMSE per held-out level (NaN where not applicable)."""
        return np.array([math.nan if entry["rmse"] is None else entry["rmse"] for entry in self.per_level])

    def inner_score(self, fold: int | None = None) -> float | None:
        """Geometric mean of the inner RMSEs, of one outer fold or pooled; None where any of them is missing.

        Geometric, because levels differ in size by orders of magnitude and a choice should not hang on the largest.
        """
        if self.inner_rmse is None or self.inner_planned is None:
            return None
        rows = slice(None) if fold is None else fold
        values = self.inner_rmse[rows][self.inner_planned[rows]]
        if values.size == 0 or not np.isfinite(values).all():
            return None
        return float(np.exp(np.log(np.maximum(values, np.finfo(float).tiny)).mean()))


def summarise(values: np.ndarray) -> dict[str, float | None]:
    """Median and worst over interior levels, lowest and highest level, of ``values [n]`` (n ≥ 3)."""
    numbers = (np.median(values[1:-1]), values[1:-1].max(), values[0], values[-1])
    return {name: _number(value) for name, value in zip(SUMMARIES, numbers, strict=True)}


@dataclass
class EvaluationReport:
    """What :func:`geonode.evaluate` returns.

    Attributes:
        levels: ``[n]`` ascending.
        level_means: ``[n, W]``.
        wavelengths: ``[W]``.
        results: per method, in the order they were asked for.
        winner: best pooled inner score, None where there is no inner validation.
        fold_winners: the winner by inner validation inside every outer fold.
        notes: sentences the reader must see beside the numbers.
        seed: seed of the neural flows.
        inverse: the comparison of inverse methods, where it was asked for.
        signal, units: what was measured, and the units of concentration, wavelength and signal, for the figure.
    """

    levels: np.ndarray
    level_means: np.ndarray
    wavelengths: np.ndarray
    results: dict[str, MethodResult]
    winner: str | None
    fold_winners: list[str | None]
    notes: list[str] = field(default_factory=list)
    seed: int = 0
    inverse: dict[str, Any] | None = None
    signal: str = "signal"
    units: dict[str, str] = field(default_factory=lambda: {"concentration": "", "wavelength": "nm", "signal": ""})

    @classmethod
    def build(
        cls,
        *,
        levels: np.ndarray,
        level_means: np.ndarray,
        wavelengths: np.ndarray,
        results: dict[str, MethodResult],
        notes: list[str],
        seed: int,
    ) -> EvaluationReport:
        """Choose the winners from the inner scores; the arguments are the attributes of the report that bear their
        names.

        ``levels`` ``[n]``, ``level_means`` ``[n, W]``, ``wavelengths`` ``[W]``, ``results`` by method, ``notes``,
        ``seed``.
        """
        winner = _best(results, None)
        folds = [_best(results, i) for i in range(len(levels))]
        return cls(levels, level_means, wavelengths, results, winner, folds, notes, seed)

    @property
    def response_scale(self) -> float:
        """What changes with concentration: RMS, over levels and wavelengths, of the level means less their mean. RMSE ÷
        this is the error relative to the response; ÷ the standard deviation of the level means (``nrmse_scale``), it is
        relative to the shape of the spectra too."""
        return float(np.sqrt(((self.level_means - self.level_means.mean(axis=0)) ** 2).mean()))

    def selected(self) -> list[dict[str, Any]] | None:
        """Per level, the scores of whatever the inner validation of that fold chose: the honest score of choosing."""
        if any(name is None for name in self.fold_winners):
            return None
        return [{"method": name, **self.results[name].per_level[i]} for i, name in enumerate(self.fold_winners) if name]

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries, lists and numbers; missing values are None."""
        chosen = self.selected()
        data: dict[str, Any] = {
            "schema_version": SCHEMAS["evaluate"],
            "levels": [float(level) for level in self.levels],
            "methods": {name: self._method(result) for name, result in self.results.items()},
            "winner": self.winner,
            "fold_winners": self.fold_winners,
            "selected": None
            if chosen is None
            else {"per_level": chosen, "rmse_summary": summarise(np.array([entry["rmse"] for entry in chosen]))},
            "wavelengths": {
                "count": len(self.wavelengths),
                "first": float(self.wavelengths[0]),
                "last": float(self.wavelengths[-1]),
            },
            "nrmse_scale": float(self.level_means.std()),
            "response_scale": self.response_scale,
            "seed": self.seed,
            "notes": self.notes,
        }
        if self.inverse is not None:
            data["inverse"] = self.inverse
        return data

    def _method(self, result: MethodResult) -> dict[str, Any]:
        inner = result.inner_rmse
        folds = range(len(self.levels)) if inner is not None else ()
        entry: dict[str, Any] = {
            "per_level": result.per_level,
            "rmse_summary": summarise(result.rmse),
            "inner_score": result.inner_score(),
            "inner_score_per_fold": [result.inner_score(i) for i in folds],
            "inner_rmse": None if inner is None else [[_number(value) for value in row] for row in inner],
        }
        if result.coverage is not None:
            entry["coverage"] = result.coverage
        return entry

    def to_json(self) -> str:
        """The report as JSON text (strict: no NaN)."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False, ensure_ascii=False)

    def table(self) -> rich.table.Table:
        """A rich table: NRMSE summaries and inner score per method, the winner marked."""
        from geonode.validation.result_tables import score_table

        return score_table(self)

    def inverse_table(self) -> rich.table.Table | None:
        """A rich table of the inverse comparison, None where it was not asked for."""
        from geonode.validation.result_tables import inverse_table

        return None if self.inverse is None else inverse_table(self.inverse)

    def plot(self, path: str | Path) -> Path:
        """Write the figure of the report (format by suffix); returns the path."""
        from geonode.report.evaluation_figure import plot_evaluation

        return plot_evaluation(self, path)


def _best(results: dict[str, MethodResult], fold: int | None) -> str | None:
    scores = {name: result.inner_score(fold) for name, result in results.items()}
    usable = {name: score for name, score in scores.items() if score is not None}
    return min(usable, key=lambda name: usable[name]) if usable else None


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
