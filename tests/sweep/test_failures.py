"""Stacked jobs of a sweep that fail on Ray: by what the training raises, and by a worker that dies each time."""

from __future__ import annotations

import csv
import importlib.util
import os
import signal
import socket

import pytest
import torch
from typer.testing import CliRunner

from geonode.cli import app
from geonode.errors import TrainingError
from geonode.sweep import ray_pool, read_spec, run_stack
from geonode.sweep.jobs import sentence
from tests.sweep.sweep_spec import SPEC

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed (extra cluster)")


def _sweep(spec, *options):
    """Exit code, and what was said as one line; everything in this process but the trainings."""
    out = spec.parent / "out"
    result = CliRunner().invoke(
        app, ["sweep", str(spec), "--out", str(out), "--device", "cpu", "--cpus", "1", *options]
    )
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, " ".join(result.output.split())


def table_of(spec):
    return spec.parent / "out" / "results.csv"


def _rows(spec):
    table = table_of(spec)
    return list(csv.DictReader(table.open())) if table.exists() else []


@pytest.mark.slow
@needs_ray
@pytest.mark.filterwarnings("ignore:The loss of model")
def test_jobs_that_raise_or_kill_their_worker_are_named_and_the_others_keep_their_results(spec, tmp_path, monkeypatch):
    """Learning rates of 1e30, whose losses are never finite, and a job that kills its worker each time, on one Ray, for
    its start and that of every worker take seconds. Who loses a worker once: test_sweep.py."""
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")  # another's cluster, which a sweep without --address does not join
    monkeypatch.setattr(ray_pool, "RETRIES", 1)
    text = (
        SPEC.replace("EPOCHS", "30")
        .replace("seeds: 2", "folds: [0, 20, 60]")
        .replace("[0.001, 0.003]", "[1.0e+30, 0.001]")
    )
    spec.write_text(text)
    jobs = read_spec(
        spec
    ).jobs()  # lists of four: three that raise and one that does not; one that does not and the deadly
    good, deadly, tried = {job.key for job in jobs[3:5]}, jobs[5].key, tmp_path / "tried"
    run = ray_pool._one_thread

    def train(stack, *rest):  # local to a function, so that Ray sends it to the worker as it is
        keys = [job.key for job in stack]
        with tried.open("a") as file:
            file.write(" ".join(keys) + "\n")
        if deadly in keys:
            os.kill(os.getpid(), signal.SIGKILL)
        return run(stack, *rest)

    monkeypatch.setattr(ray_pool, "_one_thread", train)
    code, said = _sweep(spec, "--stack", "4", "--keep-bundles")
    assert code == 2 and "2 of 6 results" in said and "4 of 6 jobs failed" in said
    for fold in (0, 20, 60):
        assert said.count(f"failed: fold {fold}, seed 0, flow_lr=1e+30: The loss of model 0") == 1
    assert said.count("failed: fold 60, seed 0, flow_lr=0.001: its worker was lost each of the 2 times") == 1
    lists = [line.split() for line in tried.read_text().splitlines()]
    one, other = [job.key for job in jobs[:4]], [job.key for job in jobs[4:]]
    assert lists.count(one) == 1 and lists.count(other) == 2  # what lost its worker ran again as it was,
    alone = [keys[0] for keys in lists if len(keys) == 1]
    assert sorted(alone) == sorted([*one, *other, deadly])  # then all one by one, the deadly one twice
    rows = _rows(spec)
    assert len(rows) == 2 and {row["job"] for row in rows} == good
    assert {path.stem for path in (spec.parent / "out" / "bundles").iterdir()} == good
    for row in rows:  # trained beside a stack that went wrong, and as without it
        (same,) = run_stack([job for job in jobs if job.key == row["job"]], "cpu")
        assert float(row["rmse"]) == pytest.approx(same["rmse"], rel=1e-4)

    # the same command again: what succeeded does not run again, and what is to be done is what failed
    monkeypatch.undo()
    code, said = _sweep(spec, "--stack", "4", "--shard", "0/1")  # here: another Ray would only take time
    assert code == 2 and "6 jobs, 2 done, 4 to run here" in said and "3 of 4 jobs failed" in said
    assert _rows(spec) == rows
    merged = ["merge", str(spec.parent / "out"), "--out", str(table_of(spec)), "--force"]
    assert CliRunner().invoke(app, merged).exit_code == 0
    again = {row["job"]: row for row in _rows(spec)}
    assert again.keys() == {*good, deadly} and len(_rows(spec)) == 3
    assert all(again[row["job"]] == row for row in rows)  # seconds and worker too: neither of them ran again


def test_where_every_job_fails_the_first_is_named(spec, monkeypatch):
    """There is no table then, and its absence is not what is said."""
    jobs = read_spec(spec).jobs()
    monkeypatch.setattr(ray_pool, "run_on_ray", lambda *_: [sentence(job, TrainingError("Why.")) for job in jobs])
    code, said = _sweep(spec)
    assert code == 2 and "24 of 24 jobs failed (the first: fold 0, seed 0, flow_lr=0.001: Why);" in said
    assert not (spec.parent / "out" / "results.csv").exists()


def test_what_failed_is_a_sentence_whatever_was_raised(spec):
    job = read_spec(spec).jobs()[0]
    where = "fold 0, seed 0, flow_lr=0.001: "
    assert sentence(job, TrainingError("Not finite;  lower it.")) == where + "Not finite; lower it"
    assert sentence(job, RuntimeError("first line\nsecond")) == where + "RuntimeError: first line"
    assert sentence(job, MemoryError()) == where + "MemoryError"


def test_the_device_of_a_sweep_is_chosen_before_ray_hides_it(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert ray_pool._device("auto", None, {}) == "cuda" and ray_pool._device("cpu", None, {}) == "cpu"
    assert ray_pool._device("auto", "auto", {"GPU": 8.0}) == "cuda"
    assert ray_pool._device("auto", "auto", {"CPU": 8.0}) == "cpu"  # whatever this machine has


@needs_ray
@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_at_which_nothing_listens_is_refused_at_once(spec, scheme):
    with socket.socket() as taken:  # bound and not listening: nobody else listens there either
        taken.bind(("127.0.0.1", 0))
        address = f"{scheme}127.0.0.1:{taken.getsockname()[1]}"
        code, said = _sweep(spec, "--address", address)
    assert code == 2 and f"Ray cannot be reached at {address} (" in said
