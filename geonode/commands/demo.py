"""`geonode demo`: the simulated assay end to end. What spectra lie between the standards, what concentration an unknown
has, what the calibration is worth: three questions, each answered beside the truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from geonode.commands.common import Device, Quiet, Seed, columns_csv, prediction_csv, progress_bar, say, write_text
from geonode.commands.outputs import BUNDLE, check_folder

if TYPE_CHECKING:
    from geonode.data.simulate import SimulatedAssay
    from geonode.model import GeodesicModel

_BETWEEN = (5.0, 15.0, 25.0, 35.0, 50.0)
_UNKNOWN = 33.0  # ppb
_FRESH = 1_000_003
"""Added to the seed: spectra that no standard shares its noise with."""


def register(app: typer.Typer) -> None:
    """Add the command to the program."""

    @app.command()
    def demo(
        out: Annotated[Path, typer.Option("--out", "-o", help="Folder for figures, table and spectra.")] = Path("demo"),
        seed: Seed = 0,
        device: Device = "auto",
        quiet: Quiet = False,
    ) -> None:
        """Simulate an arsenic assay, fit it, and answer three questions beside the known truth.

        What spectra lie between the standards (and how simple methods do); what concentration an unknown has; what the
        calibration is worth (a report to open in a browser).

        Writes demo.bundle, standards.csv, predicted.csv, predictions.png, evaluation.png, evaluation.json, table.txt,
        unknown.csv and the folder report.

        Example:

            geonode demo --out demo
        """
        from geonode.data import simulate_assay
        from geonode.device import resolve_device
        from geonode.model import fit
        from geonode.validation import evaluate

        chosen = resolve_device(device)
        check_folder(out, "demo.bundle", BUNDLE, force=True)  # the same again: nothing of a user's is lost
        out.mkdir(parents=True, exist_ok=True)
        assay = simulate_assay(seed=seed, device=chosen)
        heads = ["wavelength", *(f"{c}" for c in assay.concentrations.tolist())]
        write_text(out / "standards.csv", columns_csv(heads, [assay.wavelengths, *assay.spectra]))
        with progress_bar(quiet) as progress:
            model = fit(assay, device=device, seed=seed, progress=progress)
            report = evaluate(assay, seed=seed, device=chosen, progress=progress)
        model.save(out / "demo.bundle")
        report.plot(out / "evaluation.png")
        write_text(out / "evaluation.json", report.to_json())
        _write_table(out, report, quiet)
        say("\n1. Which spectra lie between the standards?", quiet)
        _between(out, assay, model, seed, quiet)
        say("\n2. What concentration has an unknown?", quiet)
        _unknown(out, assay, model, seed, quiet)
        say("\n3. What is the calibration worth?", quiet)
        _report(out, model, quiet)
        say(f"\nfigures, table and spectra are in {out}/", quiet)


def _between(out: Path, assay: SimulatedAssay, model: GeodesicModel, seed: int, quiet: bool) -> None:
    """Predicted spectra beside the noiseless truth, and how often their bands hold fresh measurements."""
    from geonode.data import simulate_assay
    from geonode.data.labelled import half_width
    from geonode.plotting import plot_predictions

    mean, std = model.predict_spectra(_BETWEEN)
    truth = assay.truth(np.array(_BETWEEN)).double().cpu().numpy()
    write_text(out / "predicted.csv", prediction_csv(mean, std))
    plot_predictions(model, mean, std, out / "predictions.png", truth=truth)
    error = float(np.sqrt(np.mean((mean.values - truth) ** 2)))
    # the band is that of one further measured spectrum, so measured spectra are what it must hold
    measured = simulate_assay(_BETWEEN, seed=seed + _FRESH, device=assay.device.type).spectra
    inside = float(np.mean(np.abs(mean.values - measured) <= half_width(std)))
    if model.weights is not None:
        say(f"   read by the pre-trained flow, weights {model.weights['name']}", quiet)
    say(f"   error against the noiseless truth between the standards: {error:.4f} absorbance", quiet)
    say(f"   a further spectrum measured there lies inside the 80 % band at {inside:.0%} of wavelengths", quiet)


def _unknown(out: Path, assay: SimulatedAssay, model: GeodesicModel, seed: int, quiet: bool) -> None:
    """One fresh spectrum as a file, quantified."""
    from geonode.data import simulate_assay

    spectrum = simulate_assay([_UNKNOWN], seed=seed + _FRESH + 1, device=assay.device.type).spectra[0]
    path = out / "unknown.csv"
    write_text(path, columns_csv(["wavelength", "unknown"], [assay.wavelengths, spectrum]))
    answer = model.quantify(spectrum, name="unknown.csv")
    say(f"   {path} holds {_UNKNOWN:g} ppb; found from its spectrum:", quiet)
    say(f"   {answer.sentence(model.calibration.unit)}", quiet)
    for note in answer.notes:
        say(f"   note: {note}", quiet)


def _report(out: Path, model: GeodesicModel, quiet: bool) -> None:
    """The report's page, and where it is."""
    from geonode.report.write_report import write_report

    write_report(model, out / "report", out / "demo.bundle")
    page = (out / "report" / "report.html").absolute().as_uri()
    say(f"   open {page} in a browser, and drop unknown.csv on it", quiet)


def _write_table(out: Path, report: Any, quiet: bool) -> None:
    import io

    from rich.console import Console

    text = io.StringIO()
    Console(file=text, width=110).print(report.table())
    write_text(out / "table.txt", text.getvalue())
    if not quiet:
        Console().print(report.table())
