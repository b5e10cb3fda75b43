"""The tables of the report as HTML: the same numbers as report.json and the CSVs."""

from __future__ import annotations

import math
from html import escape
from typing import Any

from geonode.calibration.calibration import Calibration
from geonode.report.shell import table
from geonode_runtime.verdicts import MEANING


def number(value: float | None) -> str:
    """Four digits; a dash where there is no number."""
    return "–" if value is None or not math.isfinite(value) else f"{value:.4g}"


def end(value: float, which: str) -> str:
    """An end of a set; words where the data set none."""
    return f"{value:.4g}" if math.isfinite(value) else f"no {which} limit"


def verdict_table(calibration: Calibration, names: tuple[str, ...], data: dict[str, Any]) -> str:
    """Every standard twice: quantified with all standards in place, and with its own level left out."""
    held, unit = calibration.held_out, f" / {calibration.unit}" if calibration.unit else ""
    own = calibration.quantify_many(calibration.measured.spectra)
    left = {int(row): k for k, row in enumerate(held.rows)}
    flagged = {check["level"] for check in data["standards"] if check["flagged"]}
    rows = []
    for i, result in enumerate(own):
        name = names[i] if i < len(names) else f"spectrum {i + 1}"
        mark = "<br><strong>contradicts the others</strong>" if calibration.concentrations[i] in flagged else ""
        cells = [escape(name) + mark, f"{calibration.concentrations[i]:g}", escape(result.verdict)]
        cells.append(number(result.estimate if result.verdict != "does not match" else None))
        k = left.get(i)
        if k is None:
            cells += ["not left out", "", ""]
        else:
            low, high = held.interval[k]
            inside = "inside" if held.coverage[k] <= 0.8 else "<strong>outside</strong>"
            if not calibration.checked:
                inside = "no set is claimed"
            cells += [number(held.estimate[k]), f"{end(low, 'lower')} to {end(high, 'upper')}", inside]
        rows.append(cells)
    head = ("standard", f"prepared{unit}", "verdict, all standards in place", "found", "found, its level left out",
            "80 % set, left out", "truth")  # fmt: skip
    meaning = "".join(f"<li><em>{escape(v)}</em>: {escape(said)}</li>" for v, said in MEANING.items())
    limits = data["match_limits"]
    said = f"Limits of “does not match”: Q {number(limits['q'])}, T² {number(limits['t2'])}."
    return (
        table(head, rows, "Verdicts")
        + f"<p>{said}</p><details><summary>The verdicts</summary><ul>{meaning}</ul></details>"
    )


def merit_table(data: dict[str, Any], unit: str) -> str:
    """Figures of merit, fitted and cross-validated."""
    kinds = (
        ("fitted", "own calibration (RMSEC)"),
        ("cross_validated", "left out (RMSECV)"),
        ("cross_validated_interior", "interior left out"),
    )
    keys = ("rmse", "bias", "sep", "r2", "rpd", "rpiq")
    rows = [[name, *(number(data[key][k]) for k in keys)] for key, name in kinds]
    return table(("", f"RMSE{unit}", "bias", "SEP", "R² / Q²", "RPD", "RPIQ"), rows, "Figures of merit")


def limits_list(lines: list[str]) -> str:
    """The sentences of the text report, their emphasis kept."""
    items = []
    for line in lines:
        parts = escape(line.removeprefix("- ")).split("**")
        items.append("".join(f"<strong>{p}</strong>" if k % 2 else p for k, p in enumerate(parts)))
    return "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"


def budget_table(budgets: list[dict[str, Any]], unit: str) -> str:
    """The uncertainty budget at each concentration: type, standard uncertainty, share of the variance."""
    rows = []
    for budget in budgets:
        at = f"<strong>at {number(budget['concentration'])}{escape(unit)}</strong>"
        if not budget["resolved"]:
            rows.append([at, "", escape(budget["reason"]), ""])
            continue
        expanded = (
            f" (k = {budget['coverage_factor']:.2f}, expanded {budget['expanded']:.3g}, {100 * budget['level']:g} %, "
            "rests on the model)"
        )
        rows.append([at + expanded, "", f"<strong>{budget['combined']:.3g}</strong>", ""])
        for part in budget["contributions"]:
            share = f"{100 * part['share']:.0f} %"
            rows.append([escape(part["source"]), escape(part["kind"]), f"{part['standard_uncertainty']:.3g}", share])
    return table(("source", "type", "u", "share of the variance"), rows, "Uncertainty budget")
