"""`geonode demo`: the simulated assay end to end, with the noiseless truth beside every prediction."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from geonode.commands.common import Device, Quiet, Seed, columns_csv, prediction_csv, progress_bar, say, write_text
from geonode.commands.outputs import BUNDLE, check_folder

_BETWEEN = (5.0, 15.0, 25.0, 35.0, 50.0)


def register(app: typer.Typer) -> None:
    """Add the command to the program."""

    @app.command()
    def demo(
        out: Annotated[Path, typer.Option("--out", "-o", help="Folder for figures, table and spectra.")] = Path("demo"),
        seed: Seed = 0,
        device: Device = "auto",
        quiet: Quiet = False,
    ) -> None:
        """Simulate an arsenic assay, fit it, predict between the standards, and compare with simple methods.

        Writes demo.bundle, standards.csv, predicted.csv, predictions.png, evaluation.png, evaluation.json, table.txt.

        Example:

            geonode demo --out demo
        """
        from geonode.data import simulate_assay
        from geonode.device import resolve_device
        from geonode.model import fit
        from geonode.plotting import plot_predictions
        from geonode.validation import evaluate

        chosen = resolve_device(device)
        check_folder(out, "demo.bundle", BUNDLE, force=True)  # the same again: nothing of a user's is lost
        out.mkdir(parents=True, exist_ok=True)
        assay = simulate_assay(seed=seed, device=chosen)
        with progress_bar(quiet) as progress:
            model = fit(assay, device=device, seed=seed, progress=progress)
            report = evaluate(assay, seed=seed, device=chosen, progress=progress)
        mean, std = model.predict_spectra(_BETWEEN)
        truth = assay.truth(np.array(_BETWEEN)).double().cpu().numpy()
        model.save(out / "demo.bundle")
        heads = ["wavelength", *(f"{c}" for c in assay.concentrations.tolist())]
        write_text(out / "standards.csv", columns_csv(heads, [assay.wavelengths, *assay.spectra]))
        write_text(out / "predicted.csv", prediction_csv(mean, std))
        plot_predictions(model, mean, std, out / "predictions.png", truth=truth)
        report.plot(out / "evaluation.png")
        write_text(out / "evaluation.json", report.to_json())
        _write_table(out, report, quiet)
        error = float(np.sqrt(np.mean((mean.values - truth) ** 2)))
        # the band is that of one further measured spectrum, so measured spectra are what it must hold
        measured = simulate_assay(_BETWEEN, seed=seed + 1_000_003, device=chosen).spectra
        inside = float(np.mean(np.abs(mean.values - measured) <= 1.2816 * std.values))
        say(f"error against the noiseless truth between the standards: {error:.4f} absorbance", quiet)
        say(f"a further spectrum measured there lies inside the 80 % band at {inside:.0%} of wavelengths", quiet)
        say(f"figures, table and spectra are in {out}/", quiet)


def _write_table(out: Path, report: Any, quiet: bool) -> None:
    import io

    from rich.console import Console

    text = io.StringIO()
    Console(file=text, width=110).print(report.table())
    write_text(out / "table.txt", text.getvalue())
    if not quiet:
        Console().print(report.table())
