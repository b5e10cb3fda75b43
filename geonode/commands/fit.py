"""`geonode fit`: from a file of standards to a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from geonode.commands.amounts import said_of_uncertainty, standard_uncertainty
from geonode.commands.common import (
    Device,
    Files,
    Preprocess,
    Quiet,
    SeedOrSettings,
    Weights,
    nvml_probe,
    remarkable,
    say,
)
from geonode.commands.live import live_view
from geonode.commands.outputs import BUNDLE, Force, check_output, listed_files
from geonode.commands.plan import read_config
from geonode.commands.plane import fit_two
from geonode.commands.reading import Reading, reads_standards
from geonode.errors import InputError

if TYPE_CHECKING:
    from geonode.config import GeodesicConfig
    from geonode.model import GeodesicModel


def register(app: typer.Typer) -> None:
    """Add the command to the program."""

    @app.command()
    @reads_standards()
    def fit(
        context: typer.Context,
        files: Files,
        out: Annotated[Path, typer.Option("--out", "-o", help="Bundle to write.")],
        reading: Reading,
        preprocess: Preprocess = None,
        settings: Annotated[
            Path | None,
            typer.Option("--settings", help="Settings as JSON (GeodesicConfig.to_json); options given here go before."),
        ] = None,
        predictor: Annotated[
            str | None,
            typer.Option(help="node (neural flow, default) or gp (the Gaussian process alone)."),
        ] = None,
        folds: Annotated[
            bool | None,
            typer.Option(
                "--folds/--no-folds",
                help="Leave each standard out in turn too: predict, quantify and report then rest on the flow.",
            ),
        ] = None,
        flow: Annotated[
            str | None,
            typer.Option(help="pretrained (default: nothing is trained), path_independent, velocity or free."),
        ] = None,
        weights: Weights = None,
        epochs: Annotated[
            int | None, typer.Option(help="Epochs of a flow that is trained (--flow path_independent); default 60.")
        ] = None,
        margin: Annotated[
            float | None, typer.Option(help="Range served beyond the standards, as a fraction of theirs.")
        ] = None,
        blueprint: Annotated[
            bool, typer.Option("--blueprint", help="The original recipe instead of the default.")
        ] = False,
        precision: Annotated[
            str | None, typer.Option(help="32-true, 64-true, bf16-mixed; with CUDA also tf32 and 16-mixed.")
        ] = None,
        uncertainty: Annotated[
            str | None,
            typer.Option(
                "--standard-uncertainty",
                help="Standard uncertainty of the standards' concentrations: 0.5 (their unit) or 2% (of each).",
            ),
        ] = None,
        log: Annotated[
            # torchrun takes --log for an abbreviation of an option of its own, and refuses it
            Path | None,
            typer.Option("--log", "--log-dir", help="Folder for TensorBoard and CSV logs (torchrun wants --log-dir)."),
        ] = None,
        checkpoint: Annotated[
            Path | None, typer.Option("--checkpoint", help="Folder for checkpoints; SIGTERM stops there and exits 143.")
        ] = None,
        resume: Annotated[
            bool, typer.Option("--resume", help="Go on from the newest intact checkpoint in --checkpoint.")
        ] = False,
        strategy: Annotated[
            str,
            typer.Option("--strategy", help="auto (DDP under torchrun or SLURM), ddp, fsdp, deepspeed_stage_1 … 3."),
        ] = "auto",
        batch: Annotated[
            str | None,
            typer.Option("--batch", help="auto: the largest micro-batch that fits, less where memory runs out."),
        ] = None,
        compiled: Annotated[
            bool, typer.Option("--compile", help="Losses through torch.compile; pays where there is no kernel.")
        ] = False,
        recompute: Annotated[
            int, typer.Option(min=0, help="Parts of the wavelengths whose activations are computed again: less memory.")
        ] = 0,
        profile: Annotated[
            bool,
            typer.Option("--profile", help="torch.profiler's table and trace of a few epochs in --log-dir."),
        ] = False,
        force: Force = False,
        wandb: Annotated[
            bool, typer.Option("--wandb", help="Weights & Biases too, offline in --log-dir (extra wandb).")
        ] = False,
        seed: SeedOrSettings = None,
        device: Device = "auto",
        quiet: Quiet = False,
    ) -> None:
        """Calibrate with standards and save the model as a bundle.

        The pre-trained flow reads the standards and trains nothing; --flow trains one on them instead.

        Examples:

            geonode fit standards.csv --out assay.bundle

            geonode fit cary.csv --select DMSA --out gold.bundle --seed 3

            geonode fit cary.csv --select DMSA --flow path_independent --out gold.bundle --checkpoint run/ --resume

            torchrun --nproc-per-node 2 -m geonode fit standards.csv --flow path_independent --out assay.bundle

            geonode fit cary.csv --preprocess range:400-700 --preprocess savgol:15,2,1 --preprocess snv --out d.bundle

            geonode fit standards.csv --settings settings.json --epochs 200 --out velocity.bundle

            geonode fit standards.csv --weights ours.safetensors --out assay.bundle

            geonode fit plate.csv --concentrations note.csv --column Cl --select "pH=7.4" --out chloride.bundle

            geonode fit plate.csv --concentrations note.csv --column pH --column Cl --out plane.bundle
        """
        from geonode.data import Preprocessing
        from geonode.model import fit as fit_model
        from geonode.training.launch import is_main_process

        quiet = quiet or not is_main_process()
        check_output(
            out, BUNDLE, listed_files([*files, reading.concentrations, settings, weights]), force=force or resume
        )
        if resume and checkpoint is None:
            raise InputError("--resume needs --checkpoint, the folder to resume from.")
        if profile and log is None:
            raise InputError("--profile needs --log-dir, the folder for the trace.")
        dataset = reading.standards(files)
        if dataset.dim > 1:
            return fit_two(context, dataset, out, quiet)
        asked = {"predictor": predictor, "epochs": epochs, "margin": margin, "precision": precision, "folds": folds}
        changes = {name: value for name, value in {**asked, "flow": flow}.items() if value is not None}
        config = _config(settings, blueprint, changes)
        std = None
        if uncertainty is not None:
            std = standard_uncertainty(uncertainty, dataset.levels)
            say(said_of_uncertainty(uncertainty, std, dataset.units["concentration"]), quiet)
        with live_view(quiet) as (progress, watcher):
            model = fit_model(
                dataset,
                config,
                weights=weights,
                device=device,
                seed=seed,
                progress=progress,
                log_dir=log,
                concentration_std=std,
                preprocessing=Preprocessing.of(preprocess),
                checkpoint=checkpoint,
                resume=resume,
                strategy=strategy,
                batch=batch,
                compiled=compiled,
                recompute=recompute,
                profile=log if profile else None,
                probe=nvml_probe(),
                watcher=watcher,
                wandb=wandb,
            )
        if is_main_process():
            model.save(out)
        if not quiet:
            tell(model, out)


def tell(model: GeodesicModel, out: Path) -> None:
    """Print what was fitted, what was noted, and the three lines: how good, what is wrong, what can be told apart."""
    low, high = model.calibrated_range
    dataset, unit = model.standards, model.dataset.units["concentration"]
    unit = f" {unit}" if unit else ""
    levels = " ".join(f"{level:g}" for level in model.gp.levels)
    typer.echo(f"{len(dataset)} spectra × {dataset.shape[1]} wavelengths, levels {levels}{unit}")
    for note in remarkable(model.dataset.notes):
        typer.echo(f"note: {note}")
    if model.weights is not None:
        made = f", adapted from {model.weights['base']}" if "base" in model.weights else ""
        typer.echo(f"pre-trained weights {model.weights['name']}{made}: nothing was trained")
    typer.echo(f"calibrated range {low:g} … {high:g}{unit}; bundle written to {out}")
    for line in model.conclusion.lines():
        typer.echo(line)


def _config(settings: Path | None, blueprint: bool, changes: dict[str, Any]) -> GeodesicConfig:
    """The settings of the file, the blueprint's or the defaults, with what options changed."""
    from geonode.config import GeodesicConfig

    if settings is not None:
        return read_config(settings, blueprint).replace(**changes)
    return GeodesicConfig.blueprint(**changes) if blueprint else GeodesicConfig(**changes)
