"""`geonode pretrain`: make the weights of the pre-trained flow again, or others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from geonode.commands.common import Quiet, say
from geonode.errors import InputError


def register(app: typer.Typer) -> None:
    """Add the command to the program."""

    @app.command()
    def pretrain(
        out: Annotated[Path, typer.Option("--out", "-o", help="Folder for weights, model card and checkpoint.")],
        steps: Annotated[int, typer.Option("--steps", min=1, help="Optimiser steps in all.")] = 20_000,
        seconds: Annotated[float | None, typer.Option("--seconds", help="Stop after so many seconds.")] = None,
        tokens: Annotated[
            int | None,
            typer.Option("--tokens", min=1, help="Places × wavelengths of a batch; default by the device."),
        ] = None,
        width: Annotated[
            int | None, typer.Option("--width", min=8, help="Width of the network; default 128, on a CPU 48.")
        ] = None,
        blocks: Annotated[
            int | None, typer.Option("--blocks", min=1, help="Blocks of the network; default 5, on a CPU 2.")
        ] = None,
        exclude: Annotated[
            str, typer.Option("--exclude", help="Families of chemistry left out, and validated on, by commas.")
        ] = "competitive,kinetic,redox",
        care: Annotated[
            tuple[float, float] | None,
            typer.Option("--care", help="Median and spread of the factor on all errors; default as the corpus has it."),
        ] = None,
        seed: Annotated[int, typer.Option("--seed", help="Another seed: other initial weights, other assays.")] = 0,
        resume: Annotated[Path | None, typer.Option("--resume", help="Checkpoint to go on from.")] = None,
        start: Annotated[
            Path | None, typer.Option("--start", help="Weights (.safetensors) that a new run begins with.")
        ] = None,
        accumulate: Annotated[
            int | None,
            typer.Option("--accumulate", min=1, help="Batches of a step in all; default one a process, or as resumed."),
        ] = None,
        devices: Annotated[
            int, typer.Option("--devices", min=1, help="Devices of this machine; under torchrun or SLURM theirs.")
        ] = 1,
        quiet: Quiet = False,
    ) -> None:
        """Pre-train the flow on simulated assays: a GPU makes what ships, a minute on a CPU shows it learn.

        Examples:

            geonode pretrain --out weights/ --steps 40000

            geonode pretrain --out trial/ --seconds 60

            python -m geonode.prior --out weights/ --start prior-4.safetensors

            torchrun --nproc-per-node 8 -m geonode pretrain --out weights/ --steps 40000
        """
        import torch

        from geonode.prior.settings import PretrainSettings, cpu_settings

        left_out = tuple(name.strip() for name in exclude.split(",") if name.strip())
        changes: dict[str, Any] = {"steps": steps, "seed": seed, "exclude": left_out}
        base = PretrainSettings() if torch.cuda.is_available() else cpu_settings()
        if tokens is not None:
            changes["tokens"] = tokens
        if care is not None:
            changes["care"] = care
        if resume is not None and start is not None:
            raise InputError("--resume goes on with a run and --start begins one; give either.")
        changes["accumulate"] = accumulate or _accumulated(resume, devices)
        settings = base.resized(width, blocks).with_changes(**changes)
        _run(settings, out, seconds, resume, start, devices, quiet)


def _accumulated(resume: Path | None, devices: int) -> int:
    """Batches of a step: those of the run that goes on, else one a process."""
    from geonode.training.launch import launched

    if resume is None:
        job = launched() if devices == 1 else None
        return devices if job is None else job[1]
    if not resume.is_file():
        raise InputError(f"The checkpoint {resume} is not there; give one that `geonode pretrain` wrote.")
    from geonode.training.checkpoint import load_checkpoint

    return int(load_checkpoint(resume).get("accumulate", 1))


def _run(
    settings: Any, out: Path, seconds: float | None, resume: Path | None, start: Path | None, devices: int, quiet: bool
) -> None:
    from geonode.prior.stored import load_network, save_network
    from geonode.prior.training import card_of, pretrain

    module = pretrain(
        settings,
        out,
        devices=devices,
        resume=resume,
        start=None if start is None else load_network(start),
        max_seconds=seconds,
        report=lambda line: say(_line(line), quiet),
    )
    if module.trainer.is_global_zero:
        card = save_network(module.average, card_of(module), out, "pretrained")
        say(f"weights: {card}", quiet)


def _line(line: dict[str, Any]) -> str:
    """One line of the log for people."""
    if "validation" in line:
        parts = [
            f"{name}: held out {values['held out']:+.3f}, truth {values['truth']:+.3f}"
            for name, values in line["validation"].items()
        ]
        return f"step {line['step']}, averaged weights, log error less the GP's; " + "; ".join(parts)
    change = line["held out"] - line["held out, start"], line["truth"] - line["truth, start"]
    return (
        f"step {line['step']}: {line['assays']} assays, {line['assays/s']:.0f}/s, log error less the GP's: "
        f"held out {change[0]:+.3f}, truth {change[1]:+.3f}, surprise {line['surprise']:.3f}"
    )
