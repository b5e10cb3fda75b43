"""The calibration line of one wavelength, or of a ratio of two: what most labs do, beside the whole spectrum."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from geonode.calibration.calibration import Calibration
from geonode.report.sheet import Sheet
from geonode.report.style import OKABE_ITO, legend_below
from geonode.report.tables import Table, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES = {"single": "one wavelength", "ratio": "ratio of two"}


def single_sheet(calibration: Calibration, univariate: dict[str, Any]) -> Sheet | None:
    """Signals of the standards at the best wavelength, and the line; None where there is no line."""
    found = univariate.get("single")
    if found is None:
        return None
    line = found["line"]
    column = int(np.abs(calibration.wavelengths - found["wavelength"]).argmin())
    c, signal = calibration.concentrations, calibration.spectra[:, column]
    fitted = line["intercept"] + line["slope"] * c
    columns = {"concentration": c, "signal": signal, "line": fitted}

    def draw(axis: Axes) -> None:
        ends = np.array([min(0.0, c.min()), c.max()])
        axis.plot(ends, line["intercept"] + line["slope"] * ends, color=OKABE_ITO[0], label="straight line")
        axis.plot(c, signal, "o", color=OKABE_ITO[1], markersize=5, label="standards")
        for name, dashes in (("detection", (0, (2, 2))), ("quantification", (0, (6, 2)))):
            value = line[name]
            if value is not None and value <= c.max():
                axis.axvline(value, color="0.45", linewidth=1.0, linestyle=dashes, label=f"{name} limit")
        axis.set_xlabel(f"concentration / {calibration.unit}" if calibration.unit else "concentration")
        axis.set_ylabel(calibration.signal)
        legend_below(axis)

    return Sheet("single_wavelength", f"Calibration line at {place(found, calibration)}", columns, draw)


def place(found: dict[str, Any], calibration: Calibration) -> str:
    """The wavelength, or the two, with their unit."""
    label = calibration.wavelength_label
    unit = f" {label.split(' / ')[-1]}" if " / " in label else ""
    if found["denominator"] is None:
        return f"{found['wavelength']:g}{unit}"
    return f"{found['wavelength']:g} / {found['denominator']:g}{unit}"


def single_table(calibration: Calibration, data: dict[str, Any]) -> Table:
    """One wavelength, the ratio and the whole spectrum side by side."""
    unit = f" {calibration.unit}" if calibration.unit else ""
    columns = [key for key in NAMES if data["univariate"].get(key) is not None]
    found = [data["univariate"][key] for key in columns]
    limits = data["limits"]
    rows = [
        ["where", *(place(one, calibration) for one in found), "all wavelengths"],
        ["line", *(_line(one["line"], unit) for one in found), "curve"],
        ["R² of the line", *(f"{one['line']['r2']:.4f}" for one in found), "–"],
        ["residual standard deviation", *(number(one["line"]["residual_std"]) for one in found), "–"],
        [
            "detection limit",
            *(number(one["line"]["detection"], unit) for one in found),
            number(limits["detection"], unit),
        ],
        [
            "quantification limit",
            *(number(one["line"]["quantification"], unit) for one in found),
            number(limits["quantification"], unit),
        ],
        [
            "error of left-out standards (RMSECV)",
            *(number(one["rmsecv"], unit) for one in found),
            number(data["cross_validated"]["rmse"], unit),
        ],
    ]
    return Table(
        "One wavelength beside the whole spectrum", ("", *(NAMES[key] for key in columns), "whole spectrum"), rows
    )


def _line(line: dict[str, Any], unit: str) -> str:
    sign = "+" if line["slope"] >= 0.0 else "−"
    return f"{number(line['intercept'])} {sign} {number(abs(line['slope']))} per{unit or ' unit'}"


def single_sentences(calibration: Calibration, data: dict[str, Any]) -> list[str]:
    """What to make of it: which is better, what is wrong with the line, what its limits are."""
    unit = f" {calibration.unit}" if calibration.unit else ""
    found = data["univariate"]["single"]
    own, whole = found["rmsecv"], data["cross_validated"]["rmse"]
    said = [*(f"At {place(found, calibration)}: {reason}." for reason in found["reasons"])]
    if np.isfinite(own) and np.isfinite(whole):
        better = "the line at one wavelength does as well" if own <= 1.1 * whole else "the whole spectrum does better"
        said.insert(
            0,
            f"Left-out standards, lowest and highest included, are found within {number(own, unit)} by the line and "
            f"within {number(whole, unit)} by the whole spectrum: {better}.",
        )
    if found["line"]["detection"] is not None:
        said.append(
            f"Limits of a line: ISO 11843-2, α = β = 0.05, K = {found['line']['measurements']} measurement of the "
            "unknown; quantification ten standard deviations. Those of the whole spectrum: 3.29 and 10 "
            "standard uncertainties."
        )
    return said


def single_html(calibration: Calibration, data: dict[str, Any], figure: str) -> str:
    """The section of the page."""
    said = "".join(f"<p>{escape(one)}</p>" for one in single_sentences(calibration, data))
    return f'<div class="beside">{figure}<div>{said}{single_table(calibration, data).html()}</div></div>'
