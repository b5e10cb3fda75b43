"""`geonode inspect`: what a file is, before anything is made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from geonode.commands.common import Column, Concentrations, Decimal, Select, Sheet


def register(app: typer.Typer) -> None:
    """Add the command to the program."""

    @app.command()
    def inspect(
        files: Annotated[
            list[Path],
            typer.Argument(help="File(s) of spectra, or a folder of them, as `geonode fit` would read them."),
        ],
        concentrations: Concentrations = None,
        column: Column = None,
        decimal: Decimal = None,
        sheet: Sheet = None,
        select: Select = None,
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
        from geonode.data.readers.inspection import inspect_file
        from geonode.data.readers.loading import load_standards
        from geonode.schema import versioned

        how = {"concentrations": concentrations, "column": column or None, "select": select}
        how |= {"decimal": decimal, "sheet": sheet}
        found = inspect_file(files, **how)
        warnings = []
        if not found.problem:
            data = load_standards(list(files), **how)
            warnings = dataset_warnings(data)
        if as_json:
            said = {**found.as_dict(), "warnings": warnings}
            typer.echo(json.dumps(versioned("inspect", said), indent=2, ensure_ascii=False))
        else:
            typer.echo("\n".join([*found.lines(), *(f"warning: {one}" for one in warnings)]))
