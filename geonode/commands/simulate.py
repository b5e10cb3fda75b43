"""`geonode simulate`: data with a known truth."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from geonode.commands.common import Quiet, Seed, progress_bar, say
from geonode.commands.outputs import SCANS, Force, check_output


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    group = typer.Typer(help="Simulate data whose truth is known.", no_args_is_help=True)
    app.add_typer(group, name="simulate")

    @group.command()
    def methane(
        n: Annotated[int, typer.Option("--n", help="Number of scans.")],
        out: Annotated[Path, typer.Option("--out", "-o", help="HDF5 file to write.")],
        lines: Annotated[
            Path | None, typer.Option("--lines", help="HITRAN file (.par); default: the strong lines near 1653.7 nm.")
        ] = None,
        lowest: Annotated[float, typer.Option(help="Lowest mole fraction of methane.")] = 2e-6,
        highest: Annotated[float, typer.Option(help="Highest mole fraction of methane.")] = 0.1,
        path: Annotated[float, typer.Option(help="Path through the gas, cm.")] = 100.0,
        samples: Annotated[int, typer.Option(help="Readings in a scan.")] = 1000,
        workers: Annotated[int | None, typer.Option(help="Processes; default: one for each core.")] = None,
        device: Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")] = "auto",
        seed: Seed = 0,
        force: Force = False,
        quiet: Quiet = False,
    ) -> None:
        """Laser absorption scans of methane in air: detector voltages, with the state of the gas.

        The same seed gives the same file whatever the number of workers. An interrupted run goes on where it was.

        Examples:

            geonode simulate methane --n 10000 --out scans.h5

            geonode simulate methane --n 1000000 --out scans.h5 --lines 06_hit20.par --workers 8
        """
        import torch

        from geonode.data.methane import Gas, Spectrometer, read_hitran, simulate_scans

        check_output(out, SCANS, [lines], force=force)
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        instrument = Spectrometer(samples=samples, path=path)
        # Lines beyond the ramp reach into it with their wings: 25 half widths at 1 atm.
        chosen = None if lines is None else read_hitran(lines, instrument.start - 2, instrument.stop + 2)
        started = time.perf_counter()
        with progress_bar(quiet) as progress:
            simulate_scans(
                n,
                out,
                seed=seed,
                workers=workers,
                gas=Gas(lowest=lowest, highest=highest),
                instrument=instrument,
                lines=chosen,
                device=device,
                progress=progress,
            )
        seconds = time.perf_counter() - started
        rate = n / seconds
        say(f"{n} scans of {samples} readings in {seconds:.1f} s ({rate:.0f} per second) written to {out}", quiet)
        say(f"a million scans would take {1e6 / rate / 3600:.1f} h at this rate", quiet)
