"""`geonode export`: a fitted model as one file that needs neither geonode nor torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from geonode.commands.common import Quiet, say
from geonode.commands.outputs import ONNX, PACKAGE, Force, check_output


def register(app: typer.Typer) -> None:
    """Add the command to the program."""

    @app.command()
    def export(
        bundle: Annotated[Path, typer.Argument(help="Bundle written by `geonode fit`.")],
        onnx: Annotated[Path | None, typer.Option("--onnx", help="ONNX file to write, for geonode-runtime.")] = None,
        pt2: Annotated[Path | None, typer.Option("--pt2", help="torch.export package to write.")] = None,
        int8: Annotated[bool, typer.Option("--int8", help="Products of the mean spectra in eight bits.")] = False,
        distill: Annotated[
            bool, typer.Option("--distill", help="A table or a small network, whichever is faster.")
        ] = False,
        predictor: Annotated[str | None, typer.Option(help="node or gp; default: as fitted.")] = None,
        max_error: Annotated[
            float | None, typer.Option(help="Allowed error of spectra, as a fraction of their range.")
        ] = None,
        force: Force = False,
        quiet: Quiet = False,
    ) -> None:
        """Export spectra at given concentrations and quantification of unknowns.

        What is written is compared with the library first; above the allowed error nothing is written.

        Examples:

            geonode export assay.bundle --onnx assay.onnx

            geonode export assay.bundle --onnx small.onnx --distill --int8
        """
        from geonode.errors import InputError
        from geonode.export.export import export_onnx, export_package
        from geonode.model import load

        if onnx is None and pt2 is None:
            raise InputError("Nothing to write: give --onnx OUT.onnx, or --pt2 OUT.pt2.")
        idle = {"--int8": int8, "--distill": distill, "--max-error": max_error is not None}
        if onnx is None and any(idle.values()):
            named = " and ".join(name for name, given in idle.items() if given)
            raise InputError(
                f"{named} would have no effect on a torch.export package; leave it out, or give --onnx too."
            )
        if max_error is not None and not max_error > 0.0:
            raise InputError(f"--max-error must be a positive fraction of the range, not {max_error:g}.")
        if onnx is not None and pt2 is not None and onnx.resolve() == pt2.resolve():
            raise InputError(f"--onnx and --pt2 name the same file {onnx}; give two.")
        for path, kind in ((onnx, ONNX), (pt2, PACKAGE)):
            if path is not None:
                check_output(path, kind, [bundle], force=force)
        model = load(bundle)
        if onnx is not None:
            report = export_onnx(model, onnx, predictor=predictor, int8=int8, distill=distill, max_error=max_error)
            say(f"{onnx}: {report.sentence()}", quiet)
        if pt2 is not None:
            export_package(model, pt2, predictor)
            say(f"{pt2}: torch.export package, any batch", quiet)
