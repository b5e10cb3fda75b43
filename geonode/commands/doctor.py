"""`geonode doctor`: versions, devices with free memory, what is usable here, and why the rest is not."""

from __future__ import annotations

import importlib.metadata
import platform
from pathlib import Path
from typing import Annotated

import typer

from geonode.commands import probes
from geonode.commands.common import Device
from geonode.threads import cores

_PACKAGES = (
    "geodesic-node", "torch", "torchdiffeq", "lightning", "numpy", "scipy", "xarray", "h5netcdf", "scikit-learn",
    "chemotools", "safetensors", "triton", "nvidia-ml-py",
)  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add the command to the program."""

    @app.command()
    def doctor(
        fit: Annotated[
            Path | None, typer.Option("--fit", help="Settings (JSON): say too where their training fits, and how long.")
        ] = None,
        device: Device = "auto",
    ) -> None:
        """Say what this machine has and what geonode can use of it: every part is tried, not looked up.

        Examples:

            geonode doctor

            geonode doctor --fit settings.json
        """
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(show_header=False, box=None)
        for name, value in findings():
            table.add_row(name, Text(value))
        Console().print(table)
        if fit is not None:
            _plan(fit, device)


def findings() -> list[tuple[str, str]]:
    """(what, value) rows: versions, devices with free memory, what is usable here and why the rest is not."""
    from geonode.device import current_setup

    rows = [("python", platform.python_version()), ("system", f"{platform.system()} {platform.machine()}")]
    rows += [(name, _version(name)) for name in _PACKAGES]
    rows += _devices()
    rows += [("torch is set to", str(current_setup())), ("weights of the flow", _weights())]
    return rows + probes.parts()


def _plan(settings: Path, device: str) -> None:
    """Where a training fits, how long it takes, and which of its operations went through a kernel."""
    import geonode_kernels
    from geonode.commands.plan import lines, read_config
    from geonode.data import simulate_assay
    from geonode.device import resolve_device
    from geonode.training.plan import plan

    where = resolve_device(device)
    typer.echo(f"{settings} on six simulated spectra × 601 (geonode plan takes others):")
    for line in lines(plan(read_config(settings, False, "path_independent"), simulate_assay(), None, where), where):
        typer.echo(line)
    for operation, path in sorted(geonode_kernels.paths_taken().items()):
        typer.echo(f"  {operation} went through {path}")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _weights() -> str:
    """The weights that `fit` takes by default, read to see that they are whole."""
    from geonode.prior import load_network, model_card

    load_network()
    card = model_card()
    seen = card.get("assays with those before", card["assays"])
    return f"{card['name']}, trained on {1e-6 * seen:.1f} million simulated assays and no real ones"


def _devices() -> list[tuple[str, str]]:
    import torch

    found = probes.memory()
    room = "unknown memory" if found is None else f"{found[0] / 2**30:.1f} of {found[1] / 2**30:.1f} GiB free"
    rows = [("cpu", f"{cores()} cores, {torch.get_num_threads()} used by torch, {room}")]
    if torch.cuda.is_available():
        for i in range(torch.cuda.device_count()):
            free, total = torch.cuda.mem_get_info(i)
            capability = ".".join(map(str, torch.cuda.get_device_capability(i)))
            rows.append(
                (
                    f"cuda:{i}",
                    f"{torch.cuda.get_device_name(i)}, compute capability {capability}, "
                    f"{free / 2**30:.1f} of {total / 2**30:.1f} GiB free",
                )
            )
    else:
        rows.append(("cuda", f"not usable: {probes.no_cuda()}"))
    rows.append(("mps", "usable" if torch.backends.mps.is_available() else "not usable: no Apple GPU"))
    return rows
