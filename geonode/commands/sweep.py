"""`geonode sweep` and `geonode merge`: many trainings, one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from geonode.commands.common import Device, Quiet, progress_bar, say, write_text
from geonode.commands.outputs import TABLE, Force, check_output
from geonode.errors import GeonodeError, InputError, Interrupted, TrainingError

if TYPE_CHECKING:
    from geonode.sweep.jobs import Job

Row = dict[str, Any]
Keep = Callable[[Row, "bytes | None"], None]


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""

    @app.command()
    def sweep(
        spec: Annotated[
            Path, typer.Argument(help="YAML file: data or sets, folds, seeds, config, grid (docs/scale.md).")
        ],
        out: Annotated[
            Path, typer.Option("--out", "-o", help="Folder for results; jobs that have one do not run again.")
        ],
        keep_bundles: Annotated[
            bool, typer.Option("--keep-bundles", help="Keep every job's trained model too, in OUT/bundles.")
        ] = False,
        checkpoints: Annotated[
            Path | None,
            typer.Option(
                "--checkpoints",
                help="Folder for the state of trainings that are not finished, shared by all workers; default "
                "OUT/checkpoints, and none with --address.",
            ),
        ] = None,
        address: Annotated[
            str | None, typer.Option("--address", help="Ray cluster; without it, Ray on this machine.")
        ] = None,
        cpus: Annotated[int | None, typer.Option("--cpus", min=1, help="Cores of a local Ray; default all.")] = None,
        shard: Annotated[
            str | None, typer.Option("--shard", help="I/N: the share of worker I (from 0) of N, here, without Ray.")
        ] = None,
        weights: Annotated[
            str | None,
            typer.Option("--weights", help="Speeds of the N workers, for example 4,1,1; equal without it."),
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

        Interrupted, the same command goes on: jobs that have a result do not run again, and a training that was not
        finished goes on from its last checkpoint.

        Examples:

            geonode sweep sweep.yaml --out results/

            geonode sweep sweep.yaml --out results/ --address auto --keep-bundles

            geonode sweep sweep.yaml --out results/ --shard $SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT

            geonode sweep sweep.yaml --out results/ --shard 0/3 --weights 4,1,1
        """
        from geonode.device import resolve_device
        from geonode.sweep.bundles import bundle_path
        from geonode.sweep.jobs import share
        from geonode.sweep.ray_pool import run_on_ray
        from geonode.sweep.results import Results, read_rows
        from geonode.sweep.spec import read_spec

        # a worker that is lost loses its stack, and more than some models at a time gain nothing on a CPU
        most = stack or (48 if resolve_device(device).type == "cuda" else 6)
        number, speeds = shard_of(shard, weights)
        jobs = read_spec(spec).jobs()
        if out.is_dir() and (out / "results.csv").exists():
            check_output(out / "results.csv", TABLE, [spec], force=True)  # a sweep goes on where it was
        results = Results(out, worker or ("sweep" if shard is None else f"shard-{number}-of-{len(speeds)}"))
        done = {row["job"] for path in out.glob("results-*.json") for row in read_rows(path)}
        if keep_bundles:  # a result without its model is not all that is asked for
            done = {key for key in done if bundle_path(out, key).is_file()}
        mine, lists = _to_do(share(jobs, number, speeds), done, most)
        if checkpoints is None and address is None:
            checkpoints = (out / "checkpoints").absolute()
        say(f"{len(jobs)} jobs, {len(done & {job.key for job in jobs})} done, {len(mine)} to run here", quiet)
        with progress_bar(quiet) as progress:
            keep = _keeper(out, mine, results, progress)
            if mine and shard is None:
                failures = run_on_ray(lists, keep, address, device, cpus, keep_bundles, checkpoints)
            else:
                failures = run_here(lists, keep, device, keep_bundles, checkpoints)
        if shard is None and (done or results.rows):  # where all failed there is no table, and what failed is said
            _write_table(out, jobs, quiet)
        _raise_failed(failures, len(mine), quiet)

    @app.command("merge")
    def merge_command(
        folders: Annotated[list[Path], typer.Argument(help="Folder(s) with results-*.json.")],
        out: Annotated[Path, typer.Option("--out", "-o", help="Table to write.")] = Path("results.csv"),
        bundles: Annotated[
            Path | None,
            typer.Option("--bundles", help="Folder for one model of each fold and setting, the seeds its members."),
        ] = None,
        force: Force = False,
        quiet: Quiet = False,
    ) -> None:
        """Merge the results of workers that share nothing but files: every job once.

        Examples:

            geonode merge node1/ node2/ --out results.csv

            geonode merge node1/ node2/ --out results.csv --bundles models/
        """
        from geonode.sweep.bundles import merge_bundles
        from geonode.sweep.results import merge

        check_output(out, TABLE, force=force)
        rows = merge(folders)
        if bundles is not None:
            written = merge_bundles(folders, rows, bundles)
            say(f"{len(written)} models in {bundles}", quiet)
        write_merged(rows, out)
        say(f"{len(rows)} results in {out}", quiet)


def _to_do(jobs: Sequence[Job], done: set[str], most: int) -> tuple[list[Job], list[list[Job]]]:
    """Jobs without a result, and the lists in which they are trained: those of all jobs, so that a list that was
    interrupted is the same again."""
    from geonode.sweep.jobs import stacks

    lists = [[job for job in stack if job.key not in done] for stack in stacks(jobs, most)]
    return [job for job in jobs if job.key not in done], [stack for stack in lists if stack]


def _keeper(out: Path, mine: Sequence[Job], results: Any, progress: Any) -> Keep:
    """Files what comes back of a job: its row, and its model first where there is one, so that a row never stands
    without the model that was asked for."""
    from geonode.sweep.bundles import write_bundle

    jobs, before = {job.key: job for job in mine}, len(results.rows)

    def keep(row: Row, bundle: bytes | None = None) -> None:
        if bundle is not None:
            write_bundle(out, jobs[row["job"]], bundle)
        results.add(row)
        if progress is not None:
            progress("jobs", len(results.rows) - before, len(mine))

    return keep


def _write_table(out: Path, jobs: Sequence[Job], quiet: bool) -> None:
    from geonode.sweep.results import merge

    keys = {job.key for job in jobs}
    rows = [row for row in merge([out]) if row["job"] in keys]
    write_merged(rows, out / "results.csv")
    say(f"{len(rows)} of {len(jobs)} results in {out / 'results.csv'}", quiet)


def _raise_failed(failures: Sequence[str], tried: int, quiet: bool) -> None:
    for failure in failures:
        say(f"failed: {failure}", quiet)
    if failures:
        raise GeonodeError(
            f"{len(failures)} of {tried} jobs failed (the first: {failures[0]}); what succeeded is kept, and "
            "the same command runs the others again."
        )


def run_here(
    stacks: Sequence[Sequence[Job]], keep: Keep, device: str, bundles: bool = False, checkpoints: Path | None = None
) -> list[str]:
    """Run jobs in this process; one sentence per job whose training failed.

    Raises:
        Interrupted: SIGTERM stopped a training; its state is in ``checkpoints``.
    """
    from geonode.sweep import run
    from geonode.sweep.bundles import as_bytes
    from geonode.sweep.jobs import sentence

    failures = []
    for stack in stacks:
        models: dict[str, bytes] = {}
        take = (lambda job, model, models=models: models.update({job.key: as_bytes(model)})) if bundles else None
        try:
            rows = run.run_stack(stack, device, take, checkpoints=checkpoints, stops=checkpoints is not None)
            for row in rows:
                keep(row, models.get(row["job"]))
        except Interrupted:
            raise Interrupted("Stopped by SIGTERM; the same command goes on from there.") from None
        except TrainingError as error:
            if len(stack) > 1:  # the others alone
                failures += run_here([[job] for job in stack], keep, device, bundles, checkpoints)
            else:
                failures.append(sentence(stack[0], error))
    return failures


def write_merged(rows: list[dict], path: Path) -> None:
    """The table as CSV."""
    from geonode.sweep.results import table

    write_text(path, table(rows))


def shard_of(text: str | None, weights: str | None = None) -> tuple[int, list[float]]:
    """(I, speeds of the N workers) of "I/N" and "4,1,1"; (0, [1]) where there is no shard.

    Raises:
        InputError: not two whole numbers with 0 ≤ I < N, not N positive speeds, or speeds without a shard.
    """
    if text is None:
        if weights is not None:
            raise InputError("--weights are speeds of the workers of --shard; Ray itself gives each as much as it can.")
        return 0, [1.0]
    try:
        number, count = (int(part) for part in text.split("/"))
    except ValueError:
        number, count = -1, 0
    if not 0 <= number < count:
        raise InputError(f"--shard {text} must be I/N with 0 ≤ I < N, for example 0/4.")
    if weights is None:
        return number, [1.0] * count
    try:
        speeds = [float(part) for part in weights.split(",")]
    except ValueError:
        speeds = []
    if len(speeds) != count or not all(0.0 < speed < float("inf") for speed in speeds):
        raise InputError(f"--weights {weights} must be {count} positive numbers, one a worker, for example 4,1,1.")
    return number, speeds
