"""`geonode report`: all there is to say about a calibration, as a page, text, JSON, figures and their numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from geonode.commands.common import Quiet, say
from geonode.commands.outputs import ANSWER, Force, check_folder


def register(app: typer.Typer) -> None:
    """Add the command to the program."""

    @app.command()
    def report(
        bundle: Annotated[Path, typer.Argument(help="Bundle written by `geonode fit`.")],
        out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write into.")],
        force: Force = False,
        quiet: Quiet = False,
    ) -> None:
        """Write the report of a calibration: report.html, report.md, report.json, each figure with its numbers as CSV.

        Figures of merit, limits with their definition, uncertainty budget, coverage of intervals by held-out standards,
        what differences in concentration can be told, which concentrations look alike. The page is one file that needs
        nothing else, and shows the spectrum at any concentration.

        Example:

            geonode report assay.bundle --out report
        """
        from geonode.model import load
        from geonode.report.write_report import write_report

        check_folder(out, "report.json", ANSWER, [bundle], force=force)
        written, notes = write_report(load(bundle), out, bundle)
        for note in notes:
            say(f"note: {note}", quiet)
        say(f"{len(written)} files written to {out}; begin with {out / 'report.html'}", quiet)
