"""`geonode suggest`: which standard to measure next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from geonode.commands.common import Quiet, say, write_text
from geonode.commands.outputs import ANSWER, Force, check_output


def register(app: typer.Typer) -> None:
    """Add the command to the program."""

    @app.command()
    def suggest(
        bundle: Annotated[Path, typer.Argument(help="Bundle written by `geonode fit`.")],
        goal: Annotated[
            str,
            typer.Option(help="absolute: small errors; relative: small shares of the concentration."),
        ] = "absolute",
        json_path: Annotated[Path | None, typer.Option("--json", help="All candidates, as JSON.")] = None,
        force: Force = False,
        quiet: Quiet = False,
    ) -> None:
        """Name the concentration of the next standard that would reduce the uncertainty of results most.

        Or say that a further one is not worth it: less than a tenth of the uncertainty would go.

        Examples:

            geonode suggest assay.bundle

            geonode suggest assay.bundle --goal relative
        """
        from geonode.calibration import suggest_standard
        from geonode.calibration.design.suggest import PRIOR
        from geonode.model import load
        from geonode.schema import SCHEMAS

        if json_path is not None:
            check_output(json_path, ANSWER, [bundle], force=force)
        calibration = load(bundle).calibration
        found = suggest_standard(calibration, goal=goal)
        say(found.sentence(calibration.unit), quiet)
        notes = list(calibration.of_process.standing.warnings)
        if calibration.ensemble is not None:
            notes.insert(0, "this rests on the Gaussian process of the same standards, not on the neural flow")
        for note in notes:
            say(f"note: {note}", quiet)
        if json_path is not None:
            data = {
                "schema_version": SCHEMAS["suggest"],
                "unit": calibration.unit,
                "prior": PRIOR,
                "goal": found.goal,
                "worth_it": found.worth_it,
                "concentration": found.concentration,
                "replicate": found.repeats,
                "before": found.before,
                "after": found.after,
                "candidates": np.asarray(found.candidates).tolist(),
                "expected": np.asarray(found.expected).tolist(),
            }
            write_text(json_path, json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
