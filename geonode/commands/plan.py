"""`geonode plan`: where a training fits, and how long it takes here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from geonode.commands.common import Device
from geonode.commands.reading import Reading, reads_standards
from geonode.errors import InputError, cause

if TYPE_CHECKING:
    from geonode.training.plan import Plan


def register(app: typer.Typer) -> None:
    """Add the command to the program."""

    @app.command()
    @reads_standards()
    def plan(
        reading: Reading,
        config: Annotated[
            Path | None, typer.Argument(help="Settings as JSON (GeodesicConfig.to_json); default settings without.")
        ] = None,
        data: Annotated[
            list[Path] | None, typer.Option("--data", help="File(s) of standards; else 6 simulated spectra × 601.")
        ] = None,
        models: Annotated[int | None, typer.Option(min=1, help="Models (folds × seeds) trained together.")] = None,
        blueprint: Annotated[bool, typer.Option("--blueprint", help="The original recipe (in 32-true).")] = False,
        device: Device = "auto",
    ) -> None:
        """Say where a training fits, part by part, and how long it takes here, from small steps measured here.

        Examples:

            geonode plan

            geonode plan settings.json --data standards.csv --models 48
        """
        from geonode.data import simulate_assay
        from geonode.device import resolve_device
        from geonode.training.plan import plan as make_plan

        where = resolve_device(device)
        chosen = read_config(config, blueprint, "path_independent")  # what is trained is what is planned
        dataset = reading.standards(data) if data else simulate_assay()
        for line in lines(make_plan(chosen, dataset, models, where), where):
            typer.echo(line)


def read_config(path: Path | None, blueprint: bool, flow: str | None = None) -> Any:
    """Settings from a JSON file, the defaults, or the original recipe; ``flow`` where neither names one.

    Raises:
        InputError: both, an unreadable file, or unknown settings.
    """
    from geonode.config import GeodesicConfig

    if path is None:
        return GeodesicConfig.blueprint(precision="32-true") if blueprint else GeodesicConfig(flow=flow)
    if blueprint:
        raise InputError(f"Give either the settings {path} or --blueprint, not both.")
    try:
        return GeodesicConfig.from_json(path.read_text(encoding="utf-8"), flow)
    except (OSError, UnicodeDecodeError, ValueError, TypeError) as error:
        raise InputError(
            f"{path} is not a file of settings ({cause(error)}); write one with GeodesicConfig.to_json."
        ) from None


def lines(plan: Plan, device: Any) -> list[str]:
    """What the command prints."""
    from geonode.training.plan import DEVICES

    out = [f"{plan.models} models as one batch need {size(plan.total)}:"]
    for part in ("weights", "gradients", "optimizer", "data", "activations", "solver", "library"):
        out.append(f"  {part:<12}{size(getattr(plan, part)):>12}")
    capacity = capacity_of(device)
    devices = {f"here ({device.type})": capacity, **DEVICES} if capacity else dict(DEVICES)
    for name, room in devices.items():
        largest = plan.largest_micro_batch(room)
        detail = (
            f"up to {plan.largest_stack(room)} models at once"
            if largest is None
            else f"micro-batch up to {largest} pairs"
        )
        out.append(f"  {name:<24}{'fits' if plan.fits(room) else 'does not fit':<14}{detail}")
    out.append(
        f"here: {plan.step_seconds * 1e3:.3g} ms a step ({plan.stacked} models at a time), "
        f"{plan.steps} steps, about {duration(plan.total_seconds)} in all on {device.type}"
    )
    if device.type == "cpu":
        out.append("measured in plain torch: on CUDA the kernels keep less, so its lines are upper bounds")
        out.append(
            "a CPU will do"
            if plan.total_seconds < 600
            else "a CUDA GPU may pay: the same command there says how long it takes"
        )
    return out


def capacity_of(device: Any) -> int | None:
    """Bytes of memory that a training here may take; None where the system does not tell."""
    import torch

    from geonode.commands.probes import memory

    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    found = memory()
    return None if found is None else found[1]


def size(count: float) -> str:
    """Bytes for people."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} B"


def duration(seconds: float) -> str:
    """Seconds for people."""
    for unit, factor in (("h", 3600.0), ("min", 60.0)):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds:.3g} s"
