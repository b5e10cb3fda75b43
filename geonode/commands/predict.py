"""`geonode predict`: spectra at concentrations nobody measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from geonode.commands.common import Quiet, check_output, prediction_csv, say, write_text


def register(app: typer.Typer) -> None:
    """Add the command to the program."""

    @app.command()
    def predict(
        bundle: Annotated[Path, typer.Argument(help="Bundle written by `geonode fit`.")],
        at: Annotated[
            list[float], typer.Option("--at", help="Concentration, in the unit of the standards; repeatable.")
        ],
        out: Annotated[
            Path, typer.Option("--out", "-o", help="CSV to write: wavelength, mean and std per concentration.")
        ],
        predictor: Annotated[str | None, typer.Option(help="node or gp; default: as fitted.")] = None,
        quiet: Quiet = False,
    ) -> None:
        """Predict mean and standard deviation of the spectrum at given concentrations.

        Example:

            geonode predict assay.bundle --at 100 --at 300 --out predicted.csv
        """
        from geonode.model import load

        check_output(out)
        model = load(bundle)
        mean, std = model.predict_spectra(at, predictor=predictor)
        write_text(out, prediction_csv(mean, std))
        if model.preprocessing is not None:
            unit = model.dataset.units["signal"]
            what = model.dataset.signal + (f" in units of {unit}" if unit not in ("", "1") else "")
            say(f"note: these are preprocessed spectra ({model.preprocessing}), not measured ones: {what}", quiet)
        low, high = model.calibrated_range
        for c, extrapolated in zip(at, mean.extrapolated.values, strict=True):
            if extrapolated:
                unit = model.dataset.units["concentration"]
                say(f"note: {c:g} lies outside the calibrated range {low:g} … {high:g} {unit}: an extrapolation", quiet)
        say(f"{len(at)} spectra × {mean.sizes['wavelength']} wavelengths written to {out}", quiet)
