"""`geonode report`: all there is to say about a calibration, as text, JSON, figures and the numbers behind them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from geonode.commands.common import Quiet, say


def register(app: typer.Typer) -> None:
    """Add the command to the program."""

    @app.command()
    def report(
        bundle: Annotated[Path, typer.Argument(help="Bundle written by `geonode fit`.")],
        out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write into.")],
        quiet: Quiet = False,
    ) -> None:
        """Write the report of a calibration: report.md, report.json, and each figure with its numbers as CSV.

        Figures of merit, limits with their definition, uncertainty budget, coverage of intervals by held-out standards,
        what differences in concentration can be told, which concentrations look alike.

        Example:

            geonode report assay.bundle --out report
        """
        from geonode.model import load
        from geonode.validation.calibration_figures import arc_grid
        from geonode.validation.calibration_report import CalibrationReport

        model = load(bundle)
        arc = model.arc_length(arc_grid(model.calibration))

        def spectra(concentrations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            mean, std = model.predict_spectra(concentrations)
            return mean.values, std.values

        made = CalibrationReport(model.calibration, spectra if model.ode is not None else None, arc)
        written = made.write(out)
        for note in made.data["notes"]:
            say(f"note: {note}", quiet)
        say(f"{len(written)} files written to {out}; begin with {out / 'report.md'}", quiet)
