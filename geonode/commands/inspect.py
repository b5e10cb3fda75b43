"""`geonode inspect`: what a file is, before anything is made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from geonode.commands.reading import Reading, reads_standards


def register(app: typer.Typer) -> None:
    """Add the command to the program."""

    @app.command()
    @reads_standards(without=["unit"])
    def inspect(
        files: Annotated[
            list[Path],
            typer.Argument(help="File(s) of spectra, or a folder of them, as `geonode fit` would read them."),
        ],
        reading: Reading,
        as_json: Annotated[bool, typer.Option("--json", help="Everything, as JSON.")] = False,
    ) -> None:
        """Say what a file is, how many spectra it holds, which concentrations were found and where.

        Also lists what was dropped, masked, averaged or assumed, and what it lacks to be a set of standards.

        Examples:

            geonode inspect example.csv

            geonode inspect fibre_spectra/ --concentrations note.csv

            geonode inspect plate.csv --concentrations note.csv --column Cl --select "pH=7.4"
        """
        from geonode.calibration.assessment.warnings import dataset_warnings
        from geonode.data.readers.inspection import inspected
        from geonode.data.readers.loading import record
        from geonode.schema import versioned

        options = reading.options()
        select = options.pop("select")
        found, standards = inspected(record(list(files), **options), select)
        warnings = [] if standards is None else dataset_warnings(standards)
        if as_json:
            said = {**found.as_dict(), "warnings": warnings}
            typer.echo(json.dumps(versioned("inspect", said), indent=2, ensure_ascii=False))
        else:
            typer.echo("\n".join([*found.lines(), *(f"warning: {one}" for one in warnings)]))
