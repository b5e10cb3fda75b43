"""`geonode quantify`: the concentration of an unknown, how sure that is, and when there is no single answer."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from geonode.commands.amounts import concentration
from geonode.commands.common import Quiet, remarkable, say, write_text
from geonode.commands.outputs import ANSWER, DRAWING, RESULTS, Force, check_output
from geonode.commands.plane import quantify_two
from geonode.commands.reading import Decimal, Sheet
from geonode.errors import InputError
from geonode_runtime.refused import Refused, answered, not_answered

if TYPE_CHECKING:
    from geonode.calibration.unknown_files import UnknownSpectra
    from geonode.model import GeodesicModel
    from geonode.report.answer import Answer


def register(app: typer.Typer) -> None:
    """Add the command to the program."""

    @app.command()
    def quantify(
        context: typer.Context,
        bundle: Annotated[Path, typer.Argument(help="Bundle written by `geonode fit`.")],
        unknowns: Annotated[
            list[Path], typer.Argument(help="File(s) of one unknown: several files are its replicates, unless --each.")
        ],
        json_path: Annotated[Path | None, typer.Option("--json", help="Everything that was found, as JSON.")] = None,
        dilution: Annotated[
            str, typer.Option(metavar="FACTOR", help="How the unknown was diluted before measuring: 5, 1:5 or 1+4.")
        ] = "1",
        dilution_std: Annotated[
            str, typer.Option(metavar="AMOUNT", help="Standard uncertainty of that factor: 0.1, or 2% of it.")
        ] = "0",
        blank: Annotated[
            list[Path] | None,
            typer.Option("--blank", help="Spectrum of the unknown's matrix without analyte; repeatable."),
        ] = None,
        level: Annotated[float, typer.Option(help="Nominal coverage of the interval, between 0 and 1.")] = 0.8,
        each: Annotated[bool, typer.Option("--each", help="Every spectrum is an unknown of its own.")] = False,
        average: Annotated[
            bool, typer.Option("--average", help="All spectra are replicates of one unknown, also several of a file.")
        ] = False,
        select: Annotated[
            str | None,
            typer.Option(
                "--select", help="Of a file with several spectra, the one of this name, or those named like this."
            ),
        ] = None,
        decimal: Decimal = None,
        sheet: Sheet = None,
        saturation: Annotated[float | None, typer.Option(help="Values at or above this are masked.")] = None,
        qc: Annotated[
            str | None,
            typer.Option(
                "--qc",
                metavar="AMOUNT",
                help="A control of this known concentration: pass or fail, and drift. Exit code 1 unless it passes.",
            ),
        ] = None,
        method: Annotated[
            str | None,
            typer.Option(
                help="posterior: learned on simulated unknowns (used wherever it can answer); profile: likelihood of "
                "the curve."
            ),
        ] = None,
        plot: Annotated[
            Path | None,
            typer.Option(
                "--plot", help="Unknown, prediction and residual: a figure (.png, .pdf, …) or a page (.html)."
            ),
        ] = None,
        table: Annotated[Path | None, typer.Option("--table", help="A row for each unknown, as .csv or .xlsx.")] = None,
        force: Force = False,
        quiet: Quiet = False,
    ) -> None:
        """Find the concentration of an unknown from its spectrum.

        The verdict is one of: quantified, ambiguous, below detection limit, outside calibrated range, does not match,
        no curve (PLS answers instead). What does not match is explained: where along the spectrum it is off, by how
        much, which simple cause fits best.

        Examples:

            geonode quantify assay.bundle unknown.csv --json result.json

            geonode quantify assay.bundle c1.csv c2.csv c3.csv --dilution 1:10 --dilution-std 1%

            geonode quantify assay.bundle plate.csv --select A1

            geonode quantify plane.bundle unknown.csv --plot plane.png     (two analytes: see `geonode fit`)

            geonode quantify assay.bundle plate.csv --each --plot answers.html --table results.xlsx

            geonode quantify assay.bundle unknown.csv --method profile
        """
        from geonode.analytes.plane_file import is_plane
        from geonode.calibration.unknown_files import read_unknowns
        from geonode.model import load
        from geonode.report.answer import can_draw, plot_answers
        from geonode.report.results_table import answer_rows, write_table
        from geonode.schema import SCHEMAS

        _check(method, json_path, plot, table, [bundle, *unknowns, *(blank or [])], force)
        if is_plane(bundle):
            how = {"select": select, "each": each, "average": average, "decimal": decimal, "sheet": sheet}
            quantify_two(
                context, bundle, unknowns, reading=how, level=level, saturation=saturation, json_path=json_path,
                plot=plot, quiet=quiet,
            )  # fmt: skip
            return
        model = load(bundle)
        nominal = None if qc is None else _nominal(model, qc, quiet)
        factor, factor_std = _diluted(dilution, dilution_std, level, quiet)
        found = read_unknowns(
            unknowns, model.standards, select=select, each=each, average=average, decimal=decimal, sheet=sheet
        )
        options: dict[str, Any] = {
            "level": level,
            "dilution": factor,
            "dilution_std": factor_std,
            "saturation": saturation,
            "method": method,
            **_blank(blank, model, decimal),
        }
        unit = model.dataset.units["concentration"]
        entries, answers = _answered(model, found, options, nominal, quiet)
        standing = _standing(model, method)
        say(standing["sentence"], quiet)
        if plot is not None and can_draw(answers, plot):
            say(f"drawn in {plot_answers(answers, plot)}", quiet)
        if table is not None:
            write_table(table, answer_rows(answers, unit))
        if json_path is not None:
            head = {"schema_version": SCHEMAS["quantify"], "bundle": str(bundle), "unit": unit, "standards": standing}
            text = json.dumps({**head, "unknowns": entries}, indent=2, ensure_ascii=False, allow_nan=False)
            write_text(json_path, text + "\n")
        if any(isinstance(one, Refused) for one in answers):
            raise InputError(not_answered(answers, said=not quiet))
        if not all(entry["qc"]["passed"] for entry in entries if "qc" in entry):
            raise typer.Exit(1)


def _answered(
    model: GeodesicModel, found: list[UnknownSpectra | Refused], options: dict[str, Any], qc: float | None, quiet: bool
) -> tuple[list[dict[str, Any]], list[Answer | Refused]]:
    """Entries for the JSON file, and answers, with what was refused in its place.

    Raises:
        InputError: the only unknown has none.
    """
    unit = model.dataset.units["concentration"]
    entries, answers = [], []
    shared = _shared_notes([one for one in found if not isinstance(one, Refused)])
    for note, count in shared.items():
        say(f"note: {f'all {count}' if count == len(found) else f'{count} of {len(found)}'} unknowns: {note}", quiet)
    elsewhere = "\n".join([*shared, *model.conclusion.caveats])
    for unknown in found:
        answer = answered(unknown, lambda one: model.quantify(one, **options), alone=len(found) == 1)
        answers.append(answer)
        if isinstance(unknown, Refused) or isinstance(answer, Refused):
            entries.append(answer.to_dict())
            say("\n".join(answer.lines()), quiet)
            continue
        entries.append(_told(unknown, answer, unit, elsewhere, quiet))
        if qc is not None:
            entries[-1]["qc"] = _control(model, unknown, qc, quiet)
    return entries, answers


def _shared_notes(found: list[UnknownSpectra]) -> dict[str, int]:
    """What must be said of the reading of several unknowns, and of how many: it is said once."""
    counts = Counter(note for unknown in found for note in dict.fromkeys(remarkable(unknown.notes)))
    return {note: count for note, count in counts.items() if count > 1}


def _told(unknown: UnknownSpectra, answer: Answer, unit: str, elsewhere: str, quiet: bool) -> dict[str, Any]:
    """One answer, said and as an entry of the JSON file; notes that are said ``elsewhere``, of several unknowns or of
    the standards, are not printed again."""
    from geonode.data.readers.concentrations import listing

    entry = _entry(unknown, answer)
    say(f"{unknown.name}: {answer.sentence(unit)}", quiet)
    if len(unknown.spectra_names) > 1:
        say(f"  average of {len(unknown.spectra_names)} spectra: {listing(unknown.spectra_names)}", quiet)
    for reason in answer.why:
        say(f"  cause: {reason}", quiet)
    for note in remarkable(entry["notes"]):
        if note not in elsewhere:
            say(f"  note: {note}", quiet)
    return entry


def _diluted(dilution: str, dilution_std: str, level: float, quiet: bool) -> tuple[float, float]:
    """The factor of dilution and its uncertainty, once they are known to be possible; says what was understood."""
    from geonode_runtime.amounts import diluted

    factor, factor_std, understood = diluted(dilution, dilution_std, level)
    if understood:
        say(understood, quiet)
    return factor, factor_std


def _check(
    method: str | None, json_path: Path | None, plot: Path | None, table: Path | None, read: list[Path], force: bool
) -> None:
    """Refuse a method that is not there and outputs that cannot be written, before any work is done."""
    from geonode.report.answer import require_drawable
    from geonode.report.results_table import require_table_name
    from geonode_runtime.posterior.methods import check_method

    check_method(method)
    if plot is not None:
        require_drawable(plot)
    if table is not None:
        require_table_name(table)
    for path, kind in ((json_path, ANSWER), (plot, DRAWING), (table, RESULTS)):
        if path is not None:
            check_output(path, kind, read, force=force)


def _blank(paths: list[Path] | None, model: GeodesicModel, decimal: str | None) -> dict[str, Any]:
    from geonode.calibration.unknown_files import read_unknowns

    if not paths:
        return {}
    (found,) = read_unknowns(paths, model.standards, decimal=decimal)
    assert not isinstance(found, Refused)  # replicates of one: refused whole
    return {"blank": found.spectra, "blank_wavelengths": found.wavelengths}


def _entry(unknown: UnknownSpectra, answer: Answer) -> dict[str, Any]:
    kept = {"name": unknown.name, "spectra": list(unknown.spectra_names), **answer.to_dict()}
    return {**kept, "explanation": answer.explanation_dict()}


def _nominal(model: GeodesicModel, text: str, quiet: bool) -> float:
    """The known concentration of a control; says what was understood of a unit."""
    from geonode.calibration.assessment.quality import check_nominal

    nominal, understood = concentration(text, "--qc", model.dataset.units["concentration"])
    if understood:
        say(understood, quiet)
    check_nominal(model.calibration, nominal, "a control (--qc)")
    return nominal


def _control(model: GeodesicModel, unknown: UnknownSpectra, nominal: float, quiet: bool) -> dict[str, Any]:
    from geonode.calibration import quality_check

    check = quality_check(
        model.calibration,
        unknown.spectra,
        nominal,
        wavelengths=unknown.wavelengths,
        mask=unknown.mask,
        name=unknown.name,
    )
    say(f"  QC: {check.sentence(model.dataset.units['concentration'])}", quiet)
    return check.to_dict()


def _standing(model: GeodesicModel, method: str | None) -> dict[str, Any]:
    """What stands beside every interval of a ``method``: how often held-out standards were covered, and what is wrong
    with them."""
    from geonode.calibration.assessment.coverage import coverage, coverage_sentence

    calibration = model.calibration
    notes = model.conclusion.caveats
    covered = coverage(calibration, method)
    text = "\n".join(
        [
            *(f"standards: {note}" for note in notes),
            coverage_sentence(covered, len(calibration.levels)),
        ]
    )
    return {"range": list(calibration.range), "notes": notes, **covered, "sentence": text}
