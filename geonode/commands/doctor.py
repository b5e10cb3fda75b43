"""`geonode doctor`: versions, devices, which kernels are usable, free memory."""

from __future__ import annotations

import importlib.metadata
import platform
from pathlib import Path
from typing import Annotated

import typer

from geonode.commands.common import Device

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
        """Say what this machine has and what geonode can use of it.

        Examples:

            geonode doctor

            geonode doctor --fit settings.json
        """
        from rich.console import Console
        from rich.table import Table

        table = Table(show_header=False, box=None)
        for name, value in findings():
            table.add_row(name, value)
        Console().print(table)
        if fit is not None:
            from geonode.commands.plan import lines, read_config
            from geonode.data import simulate_assay
            from geonode.training import resolve_device
            from geonode.training.plan import plan

            where = resolve_device(device)
            typer.echo(f"{fit} on six simulated spectra × 601 (geonode plan takes others):")
            for line in lines(plan(read_config(fit, False), simulate_assay(), None, where), where):
                typer.echo(line)


def findings() -> list[tuple[str, str]]:
    """(what, value) rows: versions, devices with free memory, kernels."""
    rows = [("python", platform.python_version()), ("system", f"{platform.system()} {platform.machine()}")]
    rows += [(name, _version(name)) for name in _PACKAGES]
    rows += _devices()
    rows += _kernels()
    return rows


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _devices() -> list[tuple[str, str]]:
    import os

    import torch

    rows = [("cpu", f"{os.cpu_count()} cores, {torch.get_num_threads()} used by torch, {_free_memory()} free")]
    if torch.cuda.is_available():
        for i in range(torch.cuda.device_count()):
            free, total = torch.cuda.mem_get_info(i)
            rows.append(
                (f"cuda:{i}", f"{torch.cuda.get_device_name(i)}, {free / 2**30:.1f} of {total / 2**30:.1f} GiB free")
            )
    else:
        rows.append(("cuda", "no usable device"))
    rows.append(("mps", "available" if torch.backends.mps.is_available() else "no usable device"))
    return rows


def _free_memory() -> str:
    import os

    try:
        return f"{os.sysconf('SC_AVPHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.1f} GiB"
    except (ValueError, OSError):  # not told by this system
        return "unknown memory"


def _kernels() -> list[tuple[str, str]]:
    """Whether the fused kernels can run here, and why not; the path each operation took in this process."""
    import geonode_kernels

    try:
        import triton
    except ImportError:
        return [("kernels", "torch (Triton is not installed)")]
    usable = geonode_kernels.triton_available()
    rows = [("kernels", f"triton {triton.__version__}" if usable else "torch (no CUDA device for Triton)")]
    return rows + [(f"  {op}", path) for op, path in sorted(geonode_kernels.paths_taken().items())]
