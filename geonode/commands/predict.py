"""`geonode predict`: spectra at concentrations nobody measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from geonode.commands.common import Quiet, prediction_csv, say, write_text
from geonode.commands.outputs import ANSWER, PREDICTION, Force, check_output
from geonode.schema import versioned


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
        json_path: Annotated[
            Path | None, typer.Option("--json", help="What the std rests on and how often such bands covered, as JSON.")
        ] = None,
        force: Force = False,
        quiet: Quiet = False,
    ) -> None:
        """Predict mean and standard deviation of the spectrum at given concentrations.

        Example:

            geonode predict assay.bundle --at 100 --at 300 --out predicted.csv
        """
        from geonode.calibration.assessment.coverage import band_sentence
        from geonode.model import load

        for path, kind in ((out, PREDICTION), (json_path, ANSWER)):
            if path is not None:
                check_output(path, kind, [bundle], force=force)
        at, given = list(dict.fromkeys(at)), len(at)
        if len(at) < given:
            say(f"note: {given - len(at)} of the {given} concentrations were given before and are written once", quiet)
        model = load(bundle)
        mean, std = model.predict_spectra(at, predictor=predictor)
        low, high = model.calibrated_range
        unit = model.dataset.units["concentration"]
        notes = []
        if model.preprocessing is not None:
            signal = model.dataset.units["signal"]
            what = model.dataset.signal + (f" in units of {signal}" if signal not in ("", "1") else "")
            notes.append(f"these are preprocessed spectra ({model.preprocessing}), not measured ones: {what}")
        for c, extrapolated in zip(at, mean.extrapolated.values, strict=True):
            if extrapolated:
                text = f"{c:g} lies outside the calibrated range {low:g} … {high:g} {unit}".rstrip()
                notes.append(f"{text}: an extrapolation")
        notes += model.calibration.standing.doubts
        covered = model.coverage(predictor)
        sentence = band_sentence(covered, len(model.gp.levels))
        if (predictor or model.config.predictor) == "node" and model.folds is None and model.flow is None:
            sentence += " That is of the Gaussian process's bands, around whose width the flow's are drawn; fit with "
            sentence += "--folds for the flow's own."
        write_text(out, prediction_csv(mean, std))
        if json_path is not None:
            data = {
                "bundle": str(bundle),
                "spectra": str(out),
                "predictor": predictor or model.config.predictor,
                "unit": unit,
                "concentrations": at,
                "extrapolated": mean.extrapolated.values.tolist(),
                "std": "standard deviation of one further measured spectrum",
                "coverage": covered,
                "sentence": sentence,
                "notes": notes,
            }
            text = json.dumps(versioned("predict", data), indent=2, ensure_ascii=False, allow_nan=False)
            write_text(json_path, text + "\n")
        for note in notes:
            say(f"note: {note}", quiet)
        say(sentence, quiet)
        what = "spectrum" if len(at) == 1 else "spectra"
        say(f"{len(at)} {what} × {mean.sizes['wavelength']} wavelengths written to {out}", quiet)
