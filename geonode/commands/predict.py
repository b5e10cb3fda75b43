"""`geonode predict`: spectra at concentrations nobody measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from geonode.commands.amounts import concentration
from geonode.commands.common import Quiet, prediction_csv, say, write_text
from geonode.commands.outputs import ANSWER, PREDICTION, Force, check_output
from geonode.schema import versioned


def register(app: typer.Typer) -> None:
    """Add the command to the program."""

    @app.command()
    def predict(
        bundle: Annotated[Path, typer.Argument(help="Bundle written by `geonode fit`.")],
        at: Annotated[
            list[str],
            typer.Option(
                "--at",
                metavar="AMOUNT",
                help="Concentration, in the unit of the standards or with its own (15 µM); repeatable.",
            ),
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
        model = load(bundle)
        concentrations = _understood(at, model.dataset.units["concentration"], quiet)
        mean, std = model.predict_spectra(concentrations, predictor=predictor)
        low, high = model.calibrated_range
        unit = model.dataset.units["concentration"]
        notes = []
        if model.preprocessing is not None:
            signal = model.dataset.units["signal"]
            what = model.dataset.signal + (f" in units of {signal}" if signal not in ("", "1") else "")
            notes.append(f"these are preprocessed spectra ({model.preprocessing}), not measured ones: {what}")
        for c, extrapolated in zip(concentrations, mean.extrapolated.values, strict=True):
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
                "concentrations": concentrations,
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
        what = "spectrum" if len(concentrations) == 1 else "spectra"
        say(f"{len(concentrations)} {what} × {mean.sizes['wavelength']} wavelengths written to {out}", quiet)


def _understood(at: list[str], unit: str, quiet: bool) -> list[float]:
    """The concentrations that were asked for, each once; says what was converted and what was given twice."""
    found = [concentration(text, "--at", unit) for text in at]
    for _, said in found:
        if said:
            say(f"note: {said}", quiet)
    once = list(dict.fromkeys(value for value, _ in found))
    if len(once) < len(at):
        say(
            f"note: {len(at) - len(once)} of the {len(at)} concentrations were given before and are written once", quiet
        )
    return once
