"""`geonode sweep` and `geonode merge`: many trainings, one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from geonode.commands.common import Device, Quiet, progress_bar, say, write_text
from geonode.errors import GeonodeError, InputError, TrainingError

if TYPE_CHECKING:
    from geonode.sweep.jobs import Job


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""

    @app.command()
    def sweep(
        spec: Annotated[Path, typer.Argument(help="YAML file: data, folds, seeds, config, grid (docs/scale.md).")],
        out: Annotated[
            Path, typer.Option("--out", "-o", help="Folder for results; jobs that have one do not run again.")
        ],
        address: Annotated[
            str | None, typer.Option("--address", help="Ray cluster; without it, Ray on this machine.")
        ] = None,
        cpus: Annotated[int | None, typer.Option("--cpus", min=1, help="Cores of a local Ray; default all.")] = None,
        shard: Annotated[
            str | None, typer.Option("--shard", help="I/N: every N-th job from the I-th (from 0), here, without Ray.")
        ] = None,
        worker: Annotated[
            str | None, typer.Option("--worker", help="Name in results-WORKER.json; default sweep, or the shard.")
        ] = None,
        stack: Annotated[
            int | None,
            typer.Option("--stack", min=1, help="Most jobs trained as one stack; default 48 on a GPU, 6 on a CPU."),
        ] = None,
        device: Device = "auto",
        quiet: Quiet = False,
    ) -> None:
        """Leave every level out, with every seed and setting: each job trained once, results in OUT/results.csv.

        Examples:

            geonode sweep sweep.yaml --out results/

            geonode sweep sweep.yaml --out results/ --address auto

            geonode sweep sweep.yaml --out results/ --shard $SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT
        """
        from geonode.device import resolve_device
        from geonode.sweep.jobs import stacks
        from geonode.sweep.ray_pool import run_on_ray
        from geonode.sweep.results import Results, merge, read_rows
        from geonode.sweep.spec import read_spec

        # a worker that is lost loses its stack, and more than some models at a time gain nothing on a CPU
        most = stack or (48 if resolve_device(device).type == "cuda" else 6)
        jobs = read_spec(spec).jobs()
        number, count = shard_of(shard)
        results = Results(out, worker or ("sweep" if shard is None else f"shard-{number}-of-{count}"))
        done = {row["job"] for path in out.glob("results-*.json") for row in read_rows(path)}
        mine = [job for job in jobs[number::count] if job.key not in done]
        say(f"{len(jobs)} jobs, {len(done & {job.key for job in jobs})} done, {len(mine)} to run here", quiet)
        failures, before = [], len(results.rows)
        with progress_bar(quiet) as progress:

            def keep(row: dict) -> None:
                results.add(row)
                if progress is not None:
                    progress("jobs", len(results.rows) - before, len(mine))

            if mine and shard is None:
                failures = run_on_ray(stacks(mine, most), keep, address, device, cpus)
            else:
                failures = run_here(stacks(mine, most), keep, device)
        if shard is None and (done or results.rows):  # where all failed there is no table, and what failed is said
            rows = [row for row in merge([out]) if row["job"] in {job.key for job in jobs}]
            write_merged(rows, out / "results.csv")
            say(f"{len(rows)} of {len(jobs)} results in {out / 'results.csv'}", quiet)
        if failures:
            for failure in failures:
                say(f"failed: {failure}", quiet)
            raise GeonodeError(
                f"{len(failures)} of {len(mine)} jobs failed (the first: {failures[0]}); what succeeded is kept, and "
                "the same command runs the others again."
            )

    @app.command("merge")
    def merge_command(
        folders: Annotated[list[Path], typer.Argument(help="Folder(s) with results-*.json.")],
        out: Annotated[Path, typer.Option("--out", "-o", help="Table to write.")] = Path("results.csv"),
        quiet: Quiet = False,
    ) -> None:
        """Merge the results of workers that share nothing but files: every job once.

        Example:

            geonode merge node1/ node2/ --out results.csv
        """
        from geonode.sweep.results import merge

        rows = merge(folders)
        write_merged(rows, out)
        say(f"{len(rows)} results in {out}", quiet)


def run_here(stacks: Sequence[Sequence[Job]], keep: Callable[[dict], None], device: str) -> list[str]:
    """Run jobs in this process; one sentence per job whose training failed."""
    from geonode.sweep.jobs import run_stack, sentence

    failures = []
    for stack in stacks:
        try:
            for row in run_stack(stack, device):
                keep(row)
        except TrainingError as error:
            if len(stack) > 1:  # the others alone
                failures += run_here([[job] for job in stack], keep, device)
            else:
                failures.append(sentence(stack[0], error))
    return failures


def write_merged(rows: list[dict], path: Path) -> None:
    """The table as CSV."""
    from geonode.sweep.results import table

    write_text(path, table(rows))


def shard_of(text: str | None) -> tuple[int, int]:
    """(I, N) of "I/N"; (0, 1) where there is none.

    Raises:
        InputError: not two whole numbers with 0 ≤ I < N.
    """
    if text is None:
        return 0, 1
    try:
        number, count = (int(part) for part in text.split("/"))
    except ValueError:
        number, count = -1, 0
    if not 0 <= number < count:
        raise InputError(f"--shard {text} must be I/N with 0 ≤ I < N, for example 0/4.")
    return number, count
