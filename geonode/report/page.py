"""The report of a model as one HTML page: figures, numbers, warnings, and what it was made with."""

from __future__ import annotations

import base64
import hashlib
import platform
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geonode.bundle import environment
from geonode.metric.warp import WARPS
from geonode.report.browser import answer_scripts, answer_section, answer_style
from geonode.report.calibration_report import budget_sentence, coverage_sentence, limit_lines
from geonode.report.calibration_tables import ambiguity_table, budget_table, merit_table, verdict_table
from geonode.report.results_table import can_write_workbooks, standard_rows, workbook
from geonode.report.sheet_words import describe
from geonode.report.shell import document, table
from geonode.report.single_wavelength import single_html
from geonode.report.slider import slider_data, slider_section
from geonode.report.svg import figure_html
from geonode.report.tables import csv_rows, number
from geonode.report.training_sheet import training_sheet
from geonode_runtime.verdicts import MEANING

if TYPE_CHECKING:
    from geonode.calibration.calibration import Calibration
    from geonode.model import GeodesicModel
    from geonode.report.calibration_report import CalibrationReport
    from geonode.report.sheet import Sheet

SECTIONS = (
    ("spectra", "Spectra at any concentration"),
    ("unknown", "The concentration of an unknown"),
    ("predicted", "Predicted against measured"),
    ("single", "One wavelength"),
    ("pls", "PLS"),
    ("resolution", "What can be told apart"),
    ("metric", "The learned metric"),
    ("training", "Training"),
    ("uncertainty", "Uncertainty budget"),
    ("verdicts", "Verdicts on the standards"),
    ("provenance", "Environment and provenance"),
)


def html_report(
    model: GeodesicModel, report: CalibrationReport, pages: Sequence[Sheet], bundle: Path | None = None
) -> str:
    """The page.

    Args:
        model: fitted. report: of its calibration. pages: the report's sheets, and the training's where there is one.
        bundle: the file it was loaded from, whose SHA-256 is then given.
    """
    unit = f" {model.calibration.unit}" if model.calibration.unit else ""
    found = {page.name: figure_html(page, describe(page, model.calibration.unit)) for page in pages}
    parts = {
        "spectra": _spectra(model, report)
        + f"<details><summary>All in one figure</summary>{found['spectra']}</details>",
        "unknown": answer_section(model),
        "predicted": f'<div class="figures">{found["predicted"]}{found["residuals"]}</div>'
        + merit_table(report.data, unit).html(),
        "resolution": f'<div class="figures">{found["resolution"]}{found["ambiguity"]}</div>' + _apart(report, unit),
        "metric": f'<div class="beside">{found["metric"]}{_metric(report)}</div>',
        "training": found.get("training") or f"<p>{_untrained(model)}</p>",
        "uncertainty": _budget(report, unit),
        "verdicts": _verdicts(model, report),
        "provenance": table(("", ""), _provenance(model, bundle), "Environment and provenance"),
    }
    if "single_wavelength" in found:
        parts["single"] = single_html(model.calibration, report.data, found["single_wavelength"])
    if "pls" in found:
        parts["pls"] = (
            found["pls"] + f"<p>{escape(model.calibration.curve_check.sentence(model.calibration.unit))}.</p>"
        )
    sections = [(key, title) for key, title in SECTIONS if key in parts]
    links = "".join(f'<li><a href="#{key}">{title}</a></li>' for key, title in sections)
    body = "".join(
        f'<section id="{key}" aria-labelledby="head-{key}"><h2 id="head-{key}">{title}</h2>{parts[key]}</section>'
        for key, title in sections
    )
    source = ", ".join(Path(name).name for name in model.standards.files) or "standards"
    title = f"Calibration report: {source}"
    own = files("geonode.report")
    return document(
        title,
        f'<main><h1>{escape(title)}</h1>{_head(model, report, unit)}<nav aria-label="Sections"><ul>{links}</ul></nav>'
        f"{body}</main>",
        style=own.joinpath("page.css").read_text(encoding="utf-8") + answer_style(),
        script=own.joinpath("slider.js").read_text(encoding="utf-8") + answer_scripts(),
    )


def training_page(model: GeodesicModel) -> list[Sheet]:
    """The sheet of the training, where there was one."""
    sheet = training_sheet(model.history)
    return [] if sheet is None else [sheet]


def _head(model: GeodesicModel, report: CalibrationReport, unit: str) -> str:
    data, (low, high) = report.data, model.calibrated_range
    said = (
        f"{data['spectra']} spectra of {len(data['levels'])} levels, {low:g} to {high:g}{unit}, {data['wavelengths']} "
        "wavelengths."
    )
    good, _, apart = data["summary"]  # what is wrong stands below, a sentence a line
    lines = "".join(f"<li>{escape(line[0].upper() + line[1:])}.</li>" for line in (good, apart))
    notes = "".join(f"<li>{escape(note[0].upper() + note[1:])}.</li>" for note in data["notes"])
    return (
        f'<p class="conclusion"><time datetime="{data["date"]}">{data["date"]}</time>: {escape(data["conclusion"])}</p>'
        + (f'<div class="note"><ul>{notes}</ul></div>' if notes else "")
        + f'<ul class="summary">{lines}</ul><p>{escape(said)}</p>'
    )


def _spectra(model: GeodesicModel, report: CalibrationReport) -> str:
    measured = coverage_sentence(report.data["coverage"], len(report.data["levels"]))
    if model.flow is None and model.ode is not None and model.folds is None:
        measured += (
            " The coverage is that of the bands of the Gaussian process; the neural flow's are those around its own "
            "mean, wider by the spread of its members."
        )
    return slider_section(slider_data(model), measured)


def _metric(report: CalibrationReport) -> str:
    """What the figure means, and what it does not."""
    weights = zip(WARPS, report.data["warp_weights"], strict=True)
    largest = sorted(weights, key=lambda item: -item[1])[:3]
    mixed = ", ".join(f"{warp.name} {100 * share:.0f} %" for warp, share in largest)
    return (
        "<div><p>Arc length is concentration on the scale on which the spectrum changes evenly: where the curve is "
        "steep the assay responds, where it is flat it hardly does. It mixes thirteen candidate scales, each weighted "
        "by how well it explains the standards, and is no physical quantity. The dashed line counts standard "
        "deviations of a measured spectrum instead.</p>"
        f"<p>Largest weights: {escape(mixed)} (u: concentration as a share of the highest standard).</p></div>"
    )


def _apart(report: CalibrationReport, unit: str) -> str:
    lines = [f"<h3>Limits</h3>{_limits_list(limit_lines(report.data, unit))}"]
    pairs = report.data["ambiguous_pairs"][:10]
    if pairs:
        lines.append("<h3>Concentrations that look alike</h3>" + ambiguity_table(pairs, unit).html())
    advice = report.data["next_standard"]["sentence"]
    lines.append(f"<h3>Next standard</h3><p>{escape(advice[0].upper() + advice[1:])}.</p>")
    return "".join(lines)


def _limits_list(lines: list[str]) -> str:
    """The sentences of the text report, their emphasis kept."""
    items = []
    for line in lines:
        parts = escape(line.removeprefix("- ")).split("**")
        items.append("".join(f"<strong>{p}</strong>" if k % 2 else p for k, p in enumerate(parts)))
    return "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"


def _budget(report: CalibrationReport, unit: str) -> str:
    return f"<p>{escape(budget_sentence(unit))}</p>" + budget_table(report.data["budgets"], unit).html()


def _verdicts(model: GeodesicModel, report: CalibrationReport) -> str:
    """The table of the standards' verdicts, the limits behind them, and what each verdict means."""
    made = verdict_table(model.calibration, tuple(model.standards.names), report.data)
    meaning = "".join(f"<li><em>{escape(v)}</em>: {escape(said)}</li>" for v, said in MEANING.items())
    limits = report.data["match_limits"]
    said = f"Limits of “does not match”: Q {number(limits['q'])}, T² {number(limits['t2'])}."
    misfits = _misfits(model.calibration, tuple(model.standards.names))
    links = _results_links(model)
    verdicts = f"<details><summary>The verdicts</summary><ul>{meaning}</ul></details>"
    return f"{made.html()}{links}{misfits}<p>{said}</p>{verdicts}"


def _misfits(calibration: Calibration, names: tuple[str, ...]) -> str:
    """Why standards do not match, in the words of an answer."""
    said = []
    for i, result in enumerate(calibration.quantify_many(calibration.measured.spectra, genuine=True)):
        if result.verdict != "does not match" or calibration.curve_check.pls_is_better:
            continue
        aligned = calibration.measured.aligned(calibration.measured.spectra[i], genuine=True)
        found = calibration.explainer.explained(aligned)
        if found is not None:
            name = names[i] if i < len(names) else f"spectrum {i + 1}"
            said.append(f"<li>{escape(name)}: {escape('. '.join(found.sentences(calibration.unit)))}.</li>")
    return f"<h3>Why standards do not match</h3><ul>{''.join(said)}</ul>" if said else ""


def _results_links(model: GeodesicModel) -> str:
    """The table as files to keep."""
    rows = standard_rows(model.calibration, tuple(model.standards.names))
    kinds = [("results.csv", "text/csv", csv_rows(rows).encode())]
    if can_write_workbooks():
        kinds.append(
            ("results.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", workbook(rows))
        )
    links = ", ".join(
        f'<a download="{name}" href="data:{kind};base64,{base64.b64encode(content).decode()}">{name}</a>'
        for name, kind, content in kinds
    )
    return f'<p class="downloads">The table as a file: {links}</p>'


def _predictor(model: GeodesicModel) -> str:
    if model.weights is not None:
        base = f", adapted from {model.weights['base']}" if "base" in model.weights else ""
        return f"node, pre-trained weights {model.weights['name']}{base} (SHA-256 {model.weights['sha256']})"
    return model.config.predictor + (f", {model.config.members} members" if model.ode is not None else "")


def _untrained(model: GeodesicModel) -> str:
    if model.weights is not None:
        return f"No training curves: the pre-trained weights {model.weights['name']} read the standards as they are."
    if model.config.predictor == "gp":
        return "No training curves: this model is the Gaussian process alone, which is not trained by epochs."
    return "No training curves: the bundle has none."


def _provenance(model: GeodesicModel, bundle: Path | None) -> list[list[str]]:
    from geonode import __version__

    made, kept = model.made, model.made.get("bundle", {})
    then, now = made.get("environment", {}), {"geonode": __version__, **environment()}
    rows: list[tuple[str, Any]] = [
        ("seed", model.config.seed),
        ("predictor", _predictor(model)),
        ("preprocessing", model.preprocessing or "none"),
        ("standards", model.standards.source or "given as arrays"),
    ]
    rows += [(f"SHA-256 of {name}, when fitted", digest) for name, digest in made.get("files", {}).items()]
    if not made.get("files"):
        rows.append(("SHA-256 of the data file", "not in the bundle: no file was at hand when it was fitted"))
    rows += [
        ("bundle version", kept.get("version", "not saved yet")),
        ("bundle written by", f"geonode {kept['geonode']}" if "geonode" in kept else "–"),
        ("checksum of its content", kept.get("checksum", "–")),
    ]
    if bundle is not None:
        rows.append((f"SHA-256 of {bundle.name}", hashlib.sha256(bundle.read_bytes()).hexdigest()))
    rows += [
        ("fitted with", ", ".join(f"{k} {v}" for k, v in then.items()) or "not in the bundle"),
        ("this page made with", ", ".join(f"{k} {v}" for k, v in now.items())),
        ("on", f"{platform.system()} {platform.machine()}"),
    ]
    cells = [[escape(name), f"<code>{escape(str(value))}</code>"] for name, value in rows]
    settings = f"<details><summary>all settings</summary><pre>{escape(model.config.to_json())}</pre></details>"
    return [*cells, ["configuration", settings]]
