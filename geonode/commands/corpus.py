"""`geonode corpus`: a page of the simulated calibrations that the pre-trained flow learns from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from geonode.commands.common import Quiet, say
from geonode.commands.outputs import FIGURE, Force, check_output


def register(app: typer.Typer) -> None:
    """Add the command to the program."""

    @app.command()
    def corpus(
        out: Annotated[Path, typer.Option("--out", "-o", help="Figure to write: png, pdf or svg.")] = Path(
            "corpus.png"
        ),
        show: Annotated[int, typer.Option("--show", min=1, max=200, help="Number of assays.")] = 24,
        families: Annotated[
            str | None, typer.Option("--families", help="Kinds of chemistry, separated by commas; default: all.")
        ] = None,
        seed: Annotated[int, typer.Option("--seed", help="Another seed, other assays.")] = 0,
        wavelengths: Annotated[int, typer.Option("--wavelengths", min=8, max=5000, help="Readings a spectrum.")] = 200,
        force: Force = False,
        quiet: Quiet = False,
    ) -> None:
        """Draw a page of simulated assays: what the network that predicts spectra has seen.

        Each panel: spectra from the lowest concentration (dark) to the highest (yellow); in the corner the response
        at two wavelengths, measured (dots) and true (line).

        Examples:

            geonode corpus --show 24 --out page.png

            geonode corpus --families aggregation,acid_base --seed 3
        """
        from geonode.corpus import common_levels, draw
        from geonode.report.corpus import plot_corpus
        from geonode.report.style import figure_path

        out = figure_path(out)
        check_output(out, FIGURE, force=force)
        chosen = None if families is None else [name.strip() for name in families.split(",")]
        assays = [
            draw(1, common_levels(seed, i), wavelengths, queries=400, seed=seed, step=i, families=chosen)
            for i in range(show)
        ]
        say(f"{show} simulated assays drawn in {plot_corpus(assays, out)}", quiet)
