"""`geonode pretrain`: make the weights of the pre-trained flow again, or others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from geonode.commands.common import Quiet, say
from geonode.commands.outputs import Force
from geonode.errors import InputError

if TYPE_CHECKING:
    from geonode.prior.settings import PretrainSettings


def register(app: typer.Typer) -> None:
    """Add the command to the program."""

    @app.command()
    def pretrain(
        out: Annotated[Path, typer.Option("--out", "-o", help="Folder for weights, model card and checkpoint.")],
        steps: Annotated[
            int | None, typer.Option("--steps", min=1, help="Optimiser steps in all; default 20 000.")
        ] = None,
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
            str | None,
            typer.Option(
                "--exclude",
                help="Families of chemistry left out, and validated on, by commas; default competitive,kinetic,redox.",
            ),
        ] = None,
        care: Annotated[
            tuple[float, float] | None,
            typer.Option("--care", help="Median and spread of the factor on all errors; default as the corpus has it."),
        ] = None,
        departures: Annotated[
            float | None,
            typer.Option(
                "--departures", help="Share of the assays that depart from the law of their chemistry; default 0."
            ),
        ] = None,
        seed: Annotated[
            int | None, typer.Option("--seed", help="Other initial weights, other assays; default 0.")
        ] = None,
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
        force: Force = False,
        quiet: Quiet = False,
    ) -> None:
        """Pre-train the flow on simulated assays: a GPU makes what ships, a minute on a CPU shows it learn.

        A run that goes on (--resume) keeps its settings, but for those that are given.

        Examples:

            geonode pretrain --out weights/ --steps 40000

            geonode pretrain --out trial/ --seconds 60

            python -m geonode.prior --out weights/ --start prior-6.safetensors

            torchrun --nproc-per-node 8 -m geonode pretrain --out weights/ --steps 40000
        """
        if resume is not None and start is not None:
            raise InputError("--resume goes on with a run and --start begins one; give either.")
        if seconds is not None and not seconds > 0:
            raise InputError(f"--seconds {seconds:g} is no time to train in; give more than 0, or leave it out.")
        if not force:
            _refuse_earlier(out, resume)
        given: dict[str, Any] = {"steps": steps, "seed": seed, "tokens": tokens, "accumulate": accumulate}
        given |= {"care": care, "departures": departures}
        if exclude is not None:
            given["exclude"] = tuple(name.strip() for name in exclude.split(",") if name.strip())
        changes = {name: value for name, value in given.items() if value is not None}
        settings = _base(resume, devices).resized(width, blocks).with_changes(**changes)
        _run(settings, out, seconds, resume, start, devices, quiet)


def _refuse_earlier(out: Path, resume: Path | None) -> None:
    """Hours of another run are not replaced without a word; the run that goes on writes where it wrote."""
    there = next((out / name for name in ("pretrained.safetensors", "last.ckpt") if (out / name).exists()), None)
    if there is None or (resume is not None and resume.resolve().parent == out.resolve()):
        return
    raise InputError(
        f"{there} is there already, of a run before; give another folder, --resume {out / 'last.ckpt'} to go on with "
        "that run, or --force to replace it."
    )


def _base(resume: Path | None, devices: int) -> PretrainSettings:
    """What holds where nothing else is asked for: the settings of the run that goes on, or those of a new one, with a
    batch a process in a step."""
    import torch

    from geonode.prior.settings import LEFT_OUT, PretrainSettings, cpu_settings
    from geonode.training.checkpoint import load_checkpoint
    from geonode.training.launch import launched

    base = replace(PretrainSettings() if torch.cuda.is_available() else cpu_settings(), exclude=LEFT_OUT)
    if resume is None:
        job = launched() if devices == 1 else None
        return replace(base, accumulate=devices if job is None else job[1])
    if not resume.is_file():
        raise InputError(f"The checkpoint {resume} is not there; give one that `geonode pretrain` wrote.")
    kept = load_checkpoint(resume)
    if "settings" in kept:
        return PretrainSettings.from_dict(kept["settings"])
    return replace(base, accumulate=int(kept.get("accumulate", 1)))  # written before settings were kept


def _before(start: Path | None, seen: int) -> dict[str, int]:
    """For the card: all assays that the weights have seen, where those that they began with have a card of theirs."""
    from geonode.prior.stored import model_card

    if start is None or not start.with_suffix(".json").is_file():
        return {}
    card = model_card(start)
    return {"assays with those before": seen + card.get("assays with those before", card["assays"])}


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
        card = card_of(module) | _before(start, module.seen)
        written = save_network(module.average.as_network(), card, out, "pretrained")
        say(f"weights: {written}", quiet)


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
