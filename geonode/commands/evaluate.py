"""`geonode evaluate`: leave one concentration out, every method on the same folds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from geonode.commands.common import (
    Device,
    Files,
    Preprocess,
    Quiet,
    SeedOrSettings,
    Weights,
    progress_bar,
    say,
    write_text,
)
from geonode.commands.outputs import ANSWER, FIGURE, Force, check_output, listed_files
from geonode.commands.plan import read_config
from geonode.commands.reading import Reading, reads_standards


def register(app: typer.Typer) -> None:
    """Add the command to the program."""

    @app.command()
    @reads_standards()
    def evaluate(
        files: Files,
        reading: Reading,
        json_path: Annotated[Path | None, typer.Option("--json", help="Scores of every method at every level.")] = None,
        plot: Annotated[Path | None, typer.Option("--plot", help="Figure (PNG, SVG or PDF).")] = None,
        preprocess: Preprocess = None,
        method: Annotated[
            list[str] | None,
            typer.Option(
                "--method", help="Only this method, of spectra or (with --inverse) of concentrations; repeatable."
            ),
        ] = None,
        settings: Annotated[
            Path | None,
            typer.Option("--settings", help="Settings of the neural flow as JSON (GeodesicConfig.to_json)."),
        ] = None,
        weights: Weights = None,
        inverse: Annotated[
            bool, typer.Option("--inverse", help="Also concentration from spectrum, against PLS and others.")
        ] = False,
        force: Force = False,
        seed: SeedOrSettings = None,
        device: Device = "auto",
        quiet: Quiet = False,
    ) -> None:
        """Compare geonode with interpolation, fits and the binding isotherm on your standards.

        One concentration at a time is left out with all its replicates, everything is fitted without it, and its
        spectrum is predicted. The winner is chosen by a second, inner leave-one-out.

        Examples:

            geonode evaluate standards.csv --json scores.json --plot scores.png

            geonode evaluate cary.csv --select DMSA --method gp --method pchip

            geonode evaluate standards.csv --preprocess savgol:15,2,1 --preprocess snv --inverse

            geonode evaluate standards.csv --inverse --method geonode --method pls

            geonode evaluate standards.csv --weights ours.safetensors --method node --method pretrained
        """
        from geonode.data import Preprocessing
        from geonode.device import resolve_device
        from geonode.report.style import figure_path
        from geonode.validation import evaluate as evaluate_standards
        from geonode.validation.inverse_comparison import inverse_names

        if plot is not None:
            plot = figure_path(plot)
        read = listed_files([*files, reading.concentrations, settings, weights])
        for path, kind in ((json_path, ANSWER), (plot, FIGURE)):
            if path is not None:
                check_output(path, kind, read, force=force)
        chain = Preprocessing.of(preprocess)
        # Names of ways to find a concentration go to the inverse comparison, all others to that of spectra.
        finding = [name for name in method or () if inverse and name in inverse_names()]
        method = [name for name in method or () if name not in finding] or None
        config = read_config(settings, False)
        dataset = reading.standards(files)
        with progress_bar(quiet) as progress:
            report = evaluate_standards(
                dataset,
                config,
                methods=method,
                seed=seed,
                device=resolve_device(device),
                weights=weights,
                progress=progress,
                inverse=inverse,
                inverse_methods=finding or None,
                preprocessing=chain,
            )
        if json_path is not None:
            write_text(json_path, report.to_json())
        if plot is not None:
            report.plot(plot)
        if not quiet:
            from rich.console import Console

            Console().print(report.table())
            if report.inverse is not None:
                Console().print(report.inverse_table())
        for note in report.notes:
            say(f"note: {note}", quiet)
