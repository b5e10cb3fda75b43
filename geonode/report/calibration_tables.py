"""The tables of a calibration's report, for the page and the text alike."""

from __future__ import annotations

import math
from typing import Any

from geonode.calibration.calibration import Calibration
from geonode.report.tables import Cell, Strong, Table, number


def merit_table(data: dict[str, Any], unit: str) -> Table:
    """Figures of merit, fitted and cross-validated."""
    kinds = (
        ("fitted", "own calibration (RMSEC)"),
        ("cross_validated", "left out (RMSECV)"),
        ("cross_validated_interior", "interior left out"),
    )
    keys = ("rmse", "bias", "sep", "r2", "rpd", "rpiq")
    rows = [[name, *(number(data[key][k]) for k in keys)] for key, name in kinds]
    of = f" /{unit}" if unit else ""
    head = ("", f"RMSE{of}", f"bias{of}", f"SEP{of}", "R² / Q²", "RPD", "RPIQ")
    return Table("Figures of merit", head, rows)


def budget_table(budgets: list[dict[str, Any]], unit: str) -> Table:
    """The uncertainty budget at each concentration: type, standard uncertainty, share of the variance."""
    rows: list[list[Cell]] = []
    for budget in budgets:
        at = Strong(f"at {number(budget['concentration'])}{unit}")
        if not budget["resolved"]:
            rows.append([at, "", budget["reason"], ""])
            continue
        expanded = (
            f"(k = {budget['coverage_factor']:.2f}, expanded {budget['expanded']:.3g}, {100 * budget['level']:g} %, "
            "rests on the model)"
        )
        rows.append([(at, expanded), "", Strong(f"{budget['combined']:.3g}"), ""])
        for part in budget["contributions"]:
            share = f"{100 * part['share']:.0f} %"
            rows.append([part["source"], part["kind"], f"{part['standard_uncertainty']:.3g}", share])
    return Table("Uncertainty budget", ("source", "type", f"u /{unit}" if unit else "u", "share of the variance"), rows)


def ambiguity_table(pairs: list[dict[str, Any]], unit: str) -> Table:
    """Concentrations that look alike, nearest first."""
    rows = [[number(p["first"]), number(p["second"]), f"{p['distance']:.2g}"] for p in pairs]
    of = f" /{unit}" if unit else ""
    head = (f"concentration{of}", f"looks like{of}", "standard deviations apart")
    return Table("Concentrations that look alike", head, rows)


def verdict_table(calibration: Calibration, names: tuple[str, ...], data: dict[str, Any]) -> Table:
    """Every standard twice: quantified with all standards in place, and with its own level left out."""
    held, unit = calibration.held_out, f" / {calibration.unit}" if calibration.unit else ""
    left = {int(row): k for k, row in enumerate(held.rows)}
    flagged = {check["level"] for check in data["standards"] if check["flagged"]}
    off = {row for check in data["replicates"] if len(check["rows"]) == 1 for row in check["rows"]}
    rows: list[list[Cell]] = []
    for i, result in enumerate(calibration.quantify_many(calibration.measured.spectra, genuine=True)):
        name = names[i] if i < len(names) else f"spectrum {i + 1}"
        said = "contradicts the others" if calibration.concentrations[i] in flagged else ""
        said = "is not of its level" if i in off else said
        cells: list[Cell] = [(name, Strong(said)) if said else name]
        cells += [f"{calibration.concentrations[i]:g}", result.verdict]
        cells.append(number(result.estimate, beside=result.components[0].size))
        rows.append(cells + _held_out_cells(calibration, left.get(i)))
    head = ("standard", f"prepared{unit}", "verdict, all standards in place", "found", "found, its level left out",
            "80 % set by the curve", "truth")  # fmt: skip
    return Table("Verdicts", head, rows)


def _held_out_cells(calibration: Calibration, k: int | None) -> list[Cell]:
    """What the calibration without a standard's level makes of the standard; ``k``: its row among the left-out ones."""
    if k is None:
        return ["not left out", "", ""]
    held = calibration.held_out
    low, high = held.interval[k]
    inside = "inside" if held.coverage[k] <= 0.8 else Strong("outside")
    if not calibration.checked:
        inside = "no set is claimed"
    size = max((abs(float(one)) for one in (held.estimate[k], low, high) if math.isfinite(one)), default=0.0)
    ends = f"{_end(low, 'lower', size)} to {_end(high, 'upper', size)}"
    return [number(held.estimate[k], beside=size), ends, inside]


def _end(value: float, which: str, size: float) -> str:
    return number(value, beside=size) if math.isfinite(value) else f"no {which} limit"
