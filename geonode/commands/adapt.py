"""`geonode adapt`: the pre-trained flow fine-tuned to an instrument's own earlier calibrations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from geonode.commands.common import Device, Preprocess, Quiet, Seed, progress_bar, say
from geonode.commands.outputs import CARD, WEIGHTS, Force, check_output, listed_files
from geonode.commands.reading import Reading, reads_standards

if TYPE_CHECKING:
    from geonode.data import SpectralDataset


def register(app: typer.Typer) -> None:
    """Add the command to the program."""

    @app.command()
    @reads_standards(without=["select"])
    def adapt(
        series: Annotated[
            list[Path], typer.Argument(help="Earlier calibrations of the instrument, a file each; two or more.")
        ],
        out: Annotated[
            Path, typer.Option("--out", "-o", help="Weights to write (.safetensors); the card lies beside them.")
        ],
        reading: Reading,
        select: Annotated[
            list[str] | None,
            typer.Option("--select", help="Samples whose name contains this are a series; once more for each further."),
        ] = None,
        preprocess: Preprocess = None,
        weights: Annotated[
            Path | None, typer.Option("--weights", help="Weights to begin with, as geonode pretrain wrote them.")
        ] = None,
        rank: Annotated[int, typer.Option("--rank", min=1, help="Rank of the adapters.")] = 4,
        steps: Annotated[int, typer.Option("--steps", min=1, help="Optimiser steps of each tuning.")] = 60,
        anyway: Annotated[
            bool, typer.Option("--anyway", help="Write the weights also where they did not help.")
        ] = False,
        seed: Seed = 0,
        device: Device = "auto",
        force: Force = False,
        quiet: Quiet = False,
    ) -> None:
        """Adapt the pre-trained flow to an instrument's own earlier calibrations, and say whether that helps.

        Series left out as a whole judge, and where adapting did not help there nothing is written. Use the weights by
        `geonode fit --weights` and `geonode evaluate --weights`.

        Examples:

            geonode adapt january.csv march.csv june.csv --out ours.safetensors

            geonode adapt year.csv --select "pH 6" --select "pH 7" --select "pH 8" --out ours.safetensors
        """
        from geonode.adaptation import AdaptSettings
        from geonode.adaptation import adapt as adapt_weights

        read = listed_files([*series, reading.concentrations, weights])
        check_output(out, WEIGHTS, read, force=force)
        check_output(out.with_suffix(".json"), CARD, read, force=force)
        datasets: list[SpectralDataset] = []
        names: list[str] = []
        for path in series:
            for one in select or [None]:
                datasets.append(reading.only(one).standards([path]))
                names.append(path.name if one is None else f"{path.name}: {one}")
        with progress_bar(quiet) as progress:
            adapted = adapt_weights(
                datasets,
                weights=weights,
                settings=AdaptSettings(rank=rank, steps=steps, seed=seed),
                names=names,
                preprocessing=preprocess,
                device=device,
                progress=progress,
            )
        say(adapted.judgement.table(), quiet)
        adapted.save(out, anyway=anyway)
        say(f"{adapted.judgement.sentence()}; weights written to {out}", quiet)
