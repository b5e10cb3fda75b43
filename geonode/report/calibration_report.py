"""The report of a calibration: figures of merit, limits, uncertainty, warnings; as text, JSON, figures and CSVs."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from geonode.calibration.assessment.coverage import coverage, coverage_sentence
from geonode.calibration.assessment.standards_check import check_standards
from geonode.calibration.baselines.univariate import single_wavelength, wavelength_ratio
from geonode.calibration.calibration import Calibration
from geonode.calibration.design import merit
from geonode.calibration.design.budget import uncertainty_budget
from geonode.calibration.design.resolution import ambiguity_map
from geonode.calibration.design.suggest import PRIOR, suggest_standard
from geonode.errors import InputError
from geonode.report.calibration_sheets import Spectra, sheets
from geonode.report.calibration_tables import budget_table, merit_table
from geonode.report.conclusion import Conclusion
from geonode.report.pls_sheet import pls_sheet
from geonode.report.sheet import Sheet
from geonode.report.single_wavelength import single_sentences, single_sheet, single_table
from geonode.report.tables import number
from geonode.schema import versioned
from geonode_runtime.files import write_text


class CalibrationReport:
    """Everything there is to say about a calibration.

    Args:
        calibration: fitted.
        spectra, full_arc: see :func:`geonode.report.calibration_sheets.sheets`.
    """

    def __init__(
        self, calibration: Calibration, spectra: Spectra | None = None, full_arc: np.ndarray | None = None
    ) -> None:
        self.calibration, self.spectra, self.full_arc = calibration, spectra, full_arc
        self.data = _collect(calibration)

    def sheets(self) -> list[Sheet]:
        """All figures with their numbers."""
        more = (single_sheet(self.calibration, self.data["univariate"]), pls_sheet(self.calibration))
        return [*sheets(self.calibration, self.spectra, self.full_arc), *(s for s in more if s is not None)]

    def to_json(self) -> str:
        """The numbers as strict JSON."""
        return json.dumps(versioned("report", _plain(self.data)), indent=2, ensure_ascii=False, allow_nan=False)

    def to_markdown(self) -> str:
        """The report as text."""
        return _markdown(self.calibration, self.data)

    def write(self, folder: str | Path) -> list[Path]:
        """Write ``report.md``, ``report.json`` and every figure with its CSV into ``folder`` (made if need be).

        Raises:
            InputError: ``folder`` is a file, or its parent does not exist.
        """
        folder = Path(folder)
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file; give a folder for the report.")
        if not folder.absolute().parent.is_dir():
            raise InputError(f"the folder {folder.parent} does not exist; create it first.")
        folder.mkdir(exist_ok=True)
        pages = self.sheets()
        written = [path for sheet in pages for path in sheet.write(folder)]
        figures = "".join(f"\n## {s.title}\n\n![{s.title}]({s.name}.png) ([numbers]({s.name}.csv))\n" for s in pages)
        for name, text in (("report.json", self.to_json() + "\n"), ("report.md", self.to_markdown() + figures)):
            written.append(write_text(folder / name, text))
        return written


def _collect(calibration: Calibration) -> dict[str, Any]:
    held = calibration.held_out
    own = np.array([r.nearest for r in calibration.quantify_many(calibration.measured.spectra, genuine=True)])
    inner = ~held.edge
    checks = check_standards(calibration)
    conclusion = Conclusion(calibration)
    return {
        "date": datetime.now().astimezone().date().isoformat(),
        "conclusion": conclusion.headline(),
        "summary": conclusion.lines(),
        "errors_by_level": [asdict(one) for one in conclusion.errors],
        "unit": calibration.unit,
        "levels": calibration.levels,
        "spectra": len(calibration.spectra),
        "wavelengths": calibration.spectra.shape[1],
        "notes": [*calibration.standing.warnings],
        "fitted": merit.summary(own, calibration.concentrations),
        "cross_validated": merit.summary(held.estimate, held.concentration),
        "cross_validated_interior": merit.summary(held.estimate[inner], held.concentration[inner]),
        "coverage": coverage(calibration),
        "limits": asdict(conclusion.limits),
        "match_limits": {"q": calibration.q_limit, "t2": calibration.t2_limit},
        "univariate": _univariate(calibration),
        "standards": [asdict(check) for check in checks],
        "replicates": [asdict(check) for check in calibration.standing.replicates],
        "ambiguous_pairs": [asdict(pair) for pair in ambiguity_map(calibration).pairs],
        "budgets": _budgets(calibration),
        "next_standard": _suggestion(calibration),
        "rank": calibration.inverse.rank,
        "curve_scale": calibration.inverse.curve_scale,
        "warp_weights": calibration.gp.warp_weights,
        "participation_ratio": calibration.gp.participation_ratio,
    }


def _univariate(calibration: Calibration) -> dict[str, Any]:
    arguments = (calibration.concentrations, calibration.spectra, calibration.wavelengths)
    if len(calibration.spectra) < 3:
        return {}
    proven = calibration.response.proven
    single, ratio = single_wavelength(*arguments, proven), wavelength_ratio(*arguments, proven)
    if declines := calibration.standing.declines:
        reason = f"{declines}: no limit can be claimed"
        single, ratio = single.unclaimed(reason), None if ratio is None else ratio.unclaimed(reason)
    return {"single": asdict(single), "ratio": None if ratio is None else asdict(ratio)}


def _budgets(calibration: Calibration) -> list[dict[str, Any]]:
    """At the middle of the range and at a quarter and three quarters of it; without figures where they mean nothing."""
    low, high = calibration.range
    budgets = []
    for share in (0.25, 0.5, 0.75):
        c = low + share * (high - low)
        try:
            found = uncertainty_budget(calibration, c)
        except InputError:  # the spectrum does not change there at all
            found = None
        if found is not None and found.resolved and calibration.checked:
            budgets.append({**asdict(found), "prior": "none", "rests_on": "model"})
        else:
            reason = "not resolved by this calibration" if calibration.checked else "not claimed: too few standards"
            left = {"resolved": False, "reason": reason, "contributions": [], "prior": "none"}
            budgets.append({"concentration": c, **left})
    return budgets


def _suggestion(calibration: Calibration) -> dict[str, Any]:
    found = suggest_standard(calibration)
    return {
        "concentration": found.concentration,
        "before": found.before,
        "after": found.after,
        "prior": PRIOR,
        "sentence": found.sentence(calibration.unit),
    }


def _plain(value: Any) -> Any:
    """JSON's own types; numbers that are not finite become None."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


def _markdown(calibration: Calibration, data: dict[str, Any]) -> str:
    unit = f" {calibration.unit}" if calibration.unit else ""
    low, high = calibration.range
    good, wrong, apart = data["summary"]
    summary = [good, apart] if data["notes"] else [good, wrong, apart]  # the notes stand below, a sentence a line
    lines = [
        "# Calibration report",
        "",
        f"{data['date']}. **{data['conclusion']}**",
        "",
        *(f"- {line[0].upper() + line[1:]}." for line in summary),
        "",
        f"{data['spectra']} spectra of {len(calibration.levels)} levels, {low:g} to {high:g}{unit}, "
        f"{data['wavelengths']} wavelengths.",
        "",
    ]
    lines += [f"- **{note}.**" for note in data["notes"]]
    lines += ["", "## Figures of merit", "", *merit_table(data, unit).markdown(), ""]
    lines += [coverage_sentence(data["coverage"], len(calibration.levels)), ""]
    if data["univariate"]:
        lines += ["## One wavelength", "", *single_table(calibration, data).markdown(), ""]
        lines += [*single_sentences(calibration, data), ""]
    lines += ["## Limits", "", *limit_lines(data, unit), ""]
    lines += ["## Uncertainty budget", "", budget_sentence(unit), ""]
    lines += [*budget_table(data["budgets"], unit).markdown(), ""]
    if data["ambiguous_pairs"]:
        lines += ["## Concentrations that look alike", ""]
        lines += [
            f"- {number(p['first'])} and {number(p['second'], unit)}: {p['distance']:.2g} standard deviations apart"
            for p in data["ambiguous_pairs"][:10]
        ]
        lines.append("")
    advice = data["next_standard"]["sentence"]
    lines += ["## Next standard", "", advice[0].upper() + advice[1:] + ".", ""]
    return "\n".join(lines)


def limit_lines(data: dict[str, Any], unit: str) -> list[str]:
    """The limits as lines of Markdown, one bullet each."""
    limits, top = data["limits"], float(max(data["levels"]))
    lines = []
    for key, name in (("detection", "limit of detection"), ("quantification", "limit of quantification")):
        value = limits[key]
        reason = "for the same reason" if lines and limits["detection"] is None else limits["reason"]
        said = number(value, unit) if value is not None else f"none ({reason})"
        said += _holds(limits[f"{key}_holds"], top, unit)
        lines.append(f"- Multivariate {name}: {said}; {limits['definition']}, k = {limits[f'{key}_factor']:g}.")
    for key, name in (("single", "Single wavelength"), ("ratio", "Ratio of two wavelengths")):
        found = data["univariate"].get(key)
        if found is not None:
            lines.append(f"- {name} {_where(found)}: {_iso(found, unit)}")
    return lines


def _holds(intervals: Any, top: float, unit: str) -> str:
    """What to add where the criterion fails again above the limit."""
    if not intervals or (len(intervals) == 1 and intervals[0][1] >= top):
        return ""
    parts = " and ".join(f"{number(low, beside=high)} to {number(high)}" for low, high in intervals)
    return f" (the criterion holds only from {parts}{unit} and fails elsewhere in the range)"


def _where(found: dict[str, Any]) -> str:
    return f"{found['wavelength']:g}" + ("" if found["denominator"] is None else f" / {found['denominator']:g}")


def _iso(found: dict[str, Any], unit: str) -> str:
    line = found["line"]
    if line["detection"] is None:
        said = "no limit of detection or quantification"
    else:
        said = (
            f"ISO 11843-2 detection limit {number(line['detection'], unit)} (α = β = 0.05, "
            f"K = {line['measurements']}), quantification {number(line['quantification'], unit)} (k = 10)"
        )
    warned = "".join(f" **{reason[0].upper() + reason[1:]}.**" for reason in found["reasons"])
    return f"{said}, R² {line['r2']:.4f}, RMSECV {number(found['rmsecv'], unit)}.{warned}"


def budget_sentence(unit: str) -> str:
    """What the figures of the uncertainty budget are, to stand above them."""
    return (
        "No prior is in these figures (GUM, linearised at the concentration), unlike that of the next standard. "
        f"Standard uncertainties{' in' + unit if unit else ''}; u is not given where it would exceed that of a uniform "
        "distribution over the range, nor with fewer than four standards. Expanded uncertainties rest on the model's "
        "Student t."
    )
