"""What commands share: options, progress, and how output is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from geonode import files
from geonode.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no table: only errors.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of initial weights and draws.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")]
Select = Annotated[
    str | None,
    typer.Option("--select", help="Keep the samples whose name contains this, where a file holds several series."),
]
Concentrations = Annotated[
    Path | None, typer.Option("--concentrations", help="Table of concentrations, where the files have none.")
]
Column = Annotated[
    list[str] | None, typer.Option("--column", help="Column of that table; once more for each further analyte.")
]
Unit = Annotated[str | None, typer.Option("--unit", help="Unit of concentration, where the file does not say it.")]
Files = Annotated[list[Path], typer.Argument(help="File(s) of standards, as the instrument wrote them or a tidy CSV.")]


@contextmanager
def progress_bar(quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """A rich progress bar on stderr with one line per step of the work; None where ``quiet``."""
    if quiet:
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True), transient=True
    ) as bar:
        tasks: dict[str, int] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total)  # type: ignore[arg-type]

        yield report


def say(text: str, quiet: bool) -> None:
    """Print a line unless ``quiet``."""
    if not quiet:
        typer.echo(text)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all.

    Raises:
        InputError: the folder does not exist, or ``path`` is a folder.
    """
    check_output(path)
    files.write_text(path, text)


def prediction_csv(mean: xr.DataArray, std: xr.DataArray) -> str:
    """Wavelength, then mean and std of each concentration: what `predict_spectra` gave, as CSV text."""
    heads = (f"{kind}_{c:g}" for c in mean.concentration.values for kind in ("mean", "std"))
    columns = [column for pair in zip(mean.values, std.values, strict=True) for column in pair]
    return columns_csv(["wavelength", *heads], [mean.wavelength.values, *columns])


def columns_csv(heads: Sequence[str], columns: Sequence[Any]) -> str:
    """Columns of numbers under their headings as CSV text, ten significant digits."""
    rows = (",".join(f"{value:.10g}" for value in row) for row in zip(*columns, strict=True))
    return "\n".join([",".join(heads), *rows]) + "\n"


def check_output(path: Path) -> None:
    """Refuse an output that cannot be written, before any work is done."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; give a file name.")
    if not path.absolute().parent.is_dir():
        raise InputError(f"The folder {path.parent} does not exist; create it first.")
