"""What commands share: options, progress, and how output is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from geonode_runtime import files
from geonode_runtime.outputs import check_writable

if TYPE_CHECKING:
    import xarray as xr

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no table: only errors.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of initial weights and draws.")]
# Of commands that take settings: an option that is not given leaves what the file says.
SeedOrSettings = Annotated[
    int | None, typer.Option("--seed", help="Seed of initial weights and draws; default: the settings', else 0.")
]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")]
Preprocess = Annotated[
    list[str] | None,
    typer.Option(
        "--preprocess",
        metavar="STEP",
        help="snv, savgol:15,2,1, range:400-700, baseline:asls,1e6, …; repeatable, applied in this order.",
    ),
]
Weights = Annotated[
    Path | None,
    typer.Option("--weights", help="Weights of the pre-trained flow, as geonode adapt or pretrain wrote them."),
]
Files = Annotated[
    list[Path],
    typer.Argument(help="File(s) of standards, or a folder of them, as the instrument wrote them; or a tidy CSV."),
]


@contextmanager
def progress_bar(quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """A rich progress bar on stderr with one line per step of the work; plain lines, a few for each step, where stderr
    is no terminal; None where ``quiet``."""
    if quiet:
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        yield line_reporter()
        return
    with Progress(*progress_columns(), console=console, transient=True) as bar:
        yield reporter(bar)


def line_reporter(parts: int = 4) -> Callable[[str, int, int], None]:
    """``report(what, done, total)`` that writes a line to stderr when a step begins and each time another of its
    ``parts`` is done."""
    reached: dict[str, int] = {}

    def report(what: str, done: int, total: int) -> None:
        part = parts * done // max(total, 1)
        if reached.get(what, -1) < part:
            reached[what] = part
            typer.echo(f"{what}: {done} of {total}", err=True)

    return report


def progress_columns() -> tuple[Any, ...]:
    """Columns of a progress bar: what, the bar, done of all, rate, time gone and time left."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Any) -> Text:
            return Text("" if not task.speed else f"{task.speed:.3g}/s")

    first = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Rate())
    return *first, TimeElapsedColumn(), TimeRemainingColumn()


def reporter(bar: Any) -> Callable[[str, int, int], None]:
    """``report(what, done, total)`` for a rich ``Progress``: a line for each step of the work."""
    tasks: dict[str, int] = {}

    def report(what: str, done: int, total: int) -> None:
        if what not in tasks:
            tasks[what] = bar.add_task(what, total=total)
        bar.update(tasks[what], completed=done, total=total)

    return report


def say(text: str, quiet: bool) -> None:
    """Print a line unless ``quiet``."""
    if not quiet:
        typer.echo(text)


def remarkable(notes: Sequence[str]) -> list[str]:
    """Notes of readers without those that say only that a file was read as it stands; everything else changed
    something or is to be known."""
    return [note for note in notes if not any(note.endswith(f"read as {plain}") for plain in _AS_IT_STANDS)]


_AS_IT_STANDS = ("separated by commas, decimal point", "separated by tabs, decimal point")


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all.

    Raises:
        InputError: the folder does not exist, or ``path`` is a folder.
    """
    check_writable(path)
    files.write_text(path, text)


def prediction_csv(mean: xr.DataArray, std: xr.DataArray) -> str:
    """Wavelength, then mean and std of each concentration: what `predict_spectra` gave, as CSV text; headings say where
    they are those of preprocessed spectra, and where of an extrapolation."""
    kinds = ("mean", "std") if "preprocessing" not in mean.attrs else ("preprocessed_mean", "preprocessed_std")
    asked = zip(mean.concentration.values, mean.extrapolated.values, strict=True)
    heads = (f"{kind}_{c:g}{'_extrapolated' * bool(far)}" for c, far in asked for kind in kinds)
    columns = [column for pair in zip(mean.values, std.values, strict=True) for column in pair]
    return columns_csv(["wavelength", *heads], [mean.wavelength.values, *columns])


def columns_csv(heads: Sequence[str], columns: Sequence[Any]) -> str:
    """Columns of numbers under their headings as CSV text, ten significant digits."""
    rows = (",".join(f"{value:.10g}" for value in row) for row in zip(*columns, strict=True))
    return "\n".join([",".join(heads), *rows]) + "\n"


def nvml_probe() -> Callable[[], dict[str, float]] | None:
    """Power, memory and SM activity (NVML's GPM, Hopper and newer) of the first GPU since the last call.

    None where there is no NVML; what a driver does not tell is left out.
    """
    from geonode.bench import nvml

    try:
        device = nvml.Device()
    except RuntimeError:
        return None
    samples = [device.gpm_sample()] if device.has_gpm() else []

    def probe() -> dict[str, float]:
        reading = device.reading()
        values = {name: reading[name] for name in ("power_w", "temperature_c", "coarse_busy")}
        memory = device.ask("nvmlDeviceGetMemoryInfo")
        values["memory_used_bytes"] = None if memory is None else float(memory.used)
        if samples:
            samples.append(device.gpm_sample())
            values.update(device.gpm_between(samples[0], samples[1]))
            device.free(samples.pop(0))
        return {name: float(value) for name, value in values.items() if value is not None}

    return probe
