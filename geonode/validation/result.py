"""The report of `evaluate`: scores, the honest choice, JSON, a table and a figure."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from geonode.schema import SCHEMAS
from geonode.validation.choice import ROUNDING, Choice, choose

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
        rounding: inner RMSEs below this are rounding, and count as this much.
    """

    name: str
    predictions: np.ndarray
    per_level: list[dict[str, Any]]
    inner_rmse: np.ndarray | None = None
    inner_planned: np.ndarray | None = None
    coverage: dict[str, float | None] | None = None
    rounding: float = 0.0

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
        return float(np.exp(np.log(np.maximum(values, max(self.rounding, np.finfo(float).tiny))).mean()))


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
        choice: by pooled inner scores. They contain every level, so this is what to use from here on, and its own row
            of the table is no honest score of having chosen it: that is `selected`.
        fold_choices: by inner validation inside every outer fold, which never saw that fold's level.
        notes: sentences the reader must see beside the numbers.
        seed: seed of the neural flows.
        inverse: the comparison of inverse methods, where it was asked for.
        signal, units: what was measured, and the units of concentration, wavelength and signal, for the figure.
    """

    levels: np.ndarray
    level_means: np.ndarray
    wavelengths: np.ndarray
    results: dict[str, MethodResult]
    choice: Choice
    fold_choices: list[Choice]
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
        signal = float(np.abs(level_means).max())
        for result in results.values():
            result.rounding = ROUNDING * signal
        choice = choose(_scores(results, None), signal)
        folds = [choose(_scores(results, i), signal) for i in range(len(levels))]
        report = cls(levels, level_means, wavelengths, results, choice, folds, notes, seed)
        return replace(report, notes=[*notes, *report.choice_notes()])

    @property
    def winner(self) -> str | None:
        """The method with the best pooled inner score, None where there is no inner validation. `selected` is the
        honest score of choosing, and stands beside it."""
        return self.choice.name

    @property
    def fold_winners(self) -> list[str | None]:
        """The winner by inner validation inside every outer fold."""
        return [choice.name for choice in self.fold_choices]

    def choice_notes(self) -> list[str]:
        """Sentences on choices that rest on nothing."""
        if self.winner is None:
            return []
        said = [f"Winner {self.winner}: {self.choice.sentence()}."] if self.choice.rests_on_nothing else []
        empty = [level for level, one in zip(self.levels, self.fold_choices, strict=True) if one.rests_on_nothing]
        if empty:
            most = max(len(one.alike) for one in self.fold_choices)
            where = ", ".join(f"{level:g}" for level in empty)
            said.append(
                f"Chosen in each fold: without the level {where} the choice rests on nothing: up to {most} methods are "
                "alike there, and the plainest of them was taken."
            )
        return said

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

    def selected_summary(self) -> dict[str, float | None] | None:
        """`selected` as the summary that every method has; None without inner validation."""
        chosen = self.selected()
        return None if chosen is None else summarise(np.array([entry["rmse"] for entry in chosen]))

    def choice_sentence(self) -> str:
        """The winner and, beside it, what choosing came to: one line. Empty without inner validation."""
        summary = self.selected_summary()
        if self.winner is None or summary is None:
            return ""
        own = summarise(self.results[self.winner].rmse)
        figures = "; ".join(f"{key.replace('_', ' ')} {summary[key]:.4g} ({own[key]:.4g})" for key in SUMMARIES)
        return (
            f"winner by pooled inner scores: {self.winner}; RMSE of what each fold chose without its level (of the "
            f"winner): {figures}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries, lists and numbers; missing values are None."""
        chosen = self.selected()
        data: dict[str, Any] = {
            "schema_version": SCHEMAS["evaluate"],
            "levels": [float(level) for level in self.levels],
            "methods": {name: self._method(result) for name, result in self.results.items()},
            "winner": self.winner,
            "winner_alike": list(self.choice.alike),
            "fold_winners": self.fold_winners,
            "fold_alike": [list(one.alike) for one in self.fold_choices],
            "selected": None if chosen is None else {"per_level": chosen, "rmse_summary": self.selected_summary()},
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


def _scores(results: dict[str, MethodResult], fold: int | None) -> dict[str, float | None]:
    return {name: result.inner_score(fold) for name, result in results.items()}


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
