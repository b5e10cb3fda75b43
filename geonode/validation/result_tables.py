"""The tables of an evaluation for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from geonode.report.tables import Table, percent
from geonode.validation.result import SUMMARIES, summarise

if TYPE_CHECKING:
    import rich.table

    from geonode.validation.result import EvaluationReport


def score_table(report: EvaluationReport) -> rich.table.Table:
    """NRMSE summaries and inner score per method, the winner marked."""
    scale = float(report.level_means.std())
    rows, emphasised = [], []
    for name, result in report.results.items():
        summary = summarise(result.rmse)
        mark = ""
        if name == report.winner:
            mark = "  ← winner" if not report.choice.rests_on_nothing else "  ← winner of a tie"
            emphasised.append(len(rows))
        cells = [_relative(summary[key], scale) for key in SUMMARIES]
        rows.append([name + mark, *cells, _relative(result.inner_score(), scale)])
    summary = report.selected_summary()
    if summary is not None:
        rows.append(["chosen in each fold", *(_relative(summary[key], scale) for key in SUMMARIES), ""])
    head = ("method", "interior median", "interior worst", "lowest", "highest", "inner score")
    title = "Leave one concentration out (RMSE ÷ standard deviation of the level means)"
    return Table(title, head, rows).rich(emphasised)


def inverse_table(found: dict[str, Any]) -> rich.table.Table:
    """The inverse comparison, percent of the calibrated range."""
    rows = []
    for name, entry in found.items():
        errors = [entry[key] for key in ("rmsep_percent_interior", "median_relative_error_percent")]
        rows.append([name, *("–" if e is None else f"{e:.2f} %" for e in errors), percent(entry["coverage"])])
    head = ("method", "RMSEP interior", "median relative error", "coverage at 80 %")
    return Table("Concentration from spectrum, one level left out (percent of the calibrated range)", head, rows).rich()


def _relative(value: float | None, scale: float) -> str:
    return "–" if value is None or scale == 0.0 else f"{value / scale:.4f}"
