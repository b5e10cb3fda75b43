"""Sweeps: every job once, resumed where they stopped, merged from files alone, and on Ray with a worker killed."""

from __future__ import annotations

import contextlib
import csv
import importlib.util
import json
import os
import signal
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from geonode.cli import app
from geonode.errors import InputError, TrainingError
from geonode.sweep import merge, read_spec, run_job, run_stack, stacks
from tests.forks import Program
from tests.sweep.sweep_spec import SPEC

ROOT = Path(__file__).resolve().parent.parent.parent


def _sweep(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["sweep", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def test_jobs_are_all_combinations_named_by_content(spec):
    jobs = read_spec(spec).jobs()
    assert len(jobs) == 24 == len({job.key for job in jobs})
    assert {(job.fold, job.seed, job.setting["flow_lr"]) for job in jobs} == {
        (fold, seed, rate) for fold in (0.0, 10.0, 20.0, 30.0, 40.0, 60.0) for seed in (0, 1) for rate in (0.001, 0.003)
    }
    spec.write_text(SPEC.replace("EPOCHS", "3"))
    assert not {job.key for job in jobs} & {job.key for job in read_spec(spec).jobs()}


def test_shards_without_ray_share_the_jobs_and_merge_into_one_table(spec, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    _sweep(spec, "--out", one, "--shard", "0/2", "--device", "cpu")
    _sweep(spec, "--out", two, "--shard", "1/2", "--device", "cpu")
    a, b = merge([one]), merge([two])
    assert len(a) == len(b) == 12 and not {r["job"] for r in a} & {r["job"] for r in b}
    table = tmp_path / "results.csv"
    result = CliRunner().invoke(app, ["merge", str(one), str(two), "--out", str(table)])
    assert result.exit_code == 0, result.output
    rows = list(csv.DictReader(table.open()))
    assert len(rows) == 24 == len({row["job"] for row in rows})
    assert all(0.0 < float(row["rmse"]) < 1.0 for row in rows)
    # resumed: what is there does not run again, what is lost does
    path = one / "results-shard-0-of-2.json"
    kept = json.loads(path.read_text())["rows"]
    path.write_text(json.dumps(kept[:-2]))  # the rows alone, as before there were versions: still read
    assert "12 done" not in _sweep(spec, "--out", one, "--shard", "0/2", "--device", "cpu")
    again = json.loads(path.read_text())["rows"]
    assert again[:10] == kept[:10]
    assert {r["job"]: r["rmse"] for r in again} == pytest.approx({r["job"]: r["rmse"] for r in kept}, rel=1e-6)


def test_a_job_of_the_sweep_equals_the_same_fold_of_the_batch(spec):
    """One fold of the sweep, trained again by hand from the same standards."""
    import numpy as np

    from geonode.calibration import GeodesicGP
    from geonode.config import GeodesicConfig
    from geonode.data import load_standards
    from geonode.training import fit_node_folds

    job = read_spec(spec).jobs()[2]
    data = load_standards(spec.parent / "standards.csv")
    levels, means = data.levels, data.level_means()
    keep = levels != job.fold
    gp = GeodesicGP().fit_levels(levels[keep], means[keep])
    config = GeodesicConfig.from_json(job.config)
    (spectrum,) = fit_node_folds([gp], [levels[~keep]], data.wavelengths, config, job.seed)
    assert run_job(job, "cpu")["rmse"] == pytest.approx(
        float(np.sqrt(np.mean((spectrum - means[~keep]) ** 2))), rel=1e-4
    )


@pytest.mark.parametrize(
    "changes", ["wavelengths_per_step: 7, members: 2", "members: 1", "flow: velocity, batch_size: 8, members: 1"]
)
def test_jobs_trained_as_one_stack_have_the_results_of_each_alone(spec, changes, one_thread, away):
    text = SPEC.replace("EPOCHS", "3").replace("members: 1", f"precision: 64-true, {changes}")
    middle = 20 if "velocity" in changes else 30  # without 30 there is a point less: the others are padded
    spec.write_text(f"folds: [0, {middle}, 60]{text}")
    jobs = read_spec(spec).jobs()
    lists = stacks(jobs, 48)
    # without anything drawn by seed, seeds share a stack too
    assert [len(group) for group in lists] == ([12] if changes == "members: 1" else [6, 6])
    assert [len(group) for group in stacks(jobs, 4)] == ([4, 4, 4] if changes == "members: 1" else [4, 2, 4, 2])
    for group in lists:
        rows = run_stack(group, "cpu")
        assert [row["job"] for row in rows] == [job.key for job in group]
        for k in (0, 4, len(group) - 1):
            alone = run_job(group[k], "cpu")
            assert rows[k].keys() == alone.keys() and rows[k]["job"] == alone["job"]
            assert (rows[k]["rmse"], rows[k]["nrmse"]) == pytest.approx((alone["rmse"], alone["nrmse"]), rel=1e-9)
    assert len({row["rmse"] for row in rows}) == len(rows)  # rates and folds reached the training


def test_jobs_of_other_settings_or_standards_are_not_stacked(spec):
    given = SPEC.replace("EPOCHS", "6").replace("flow_hidden: 12, ", "")
    spec.write_text(given + "  flow_hidden: [12, 16]\n")
    jobs = read_spec(spec).jobs()
    assert sorted(len(group) for group in stacks(jobs, 48)) == [24, 24]
    assert all(len({job.setting["flow_hidden"] for job in group}) == 1 for group in stacks(jobs, 48))


def test_a_job_that_fails_fails_alone(spec, monkeypatch):
    from geonode.commands import sweep
    from geonode.sweep import run as module

    jobs, kept = read_spec(spec).jobs()[:3], []

    def run(stack, device, keep=None, **options):
        if jobs[1] in stack:
            raise TrainingError("The loss is not finite.")
        return [{"job": job.key} for job in stack]

    monkeypatch.setattr(module, "run_stack", run)
    (failure,) = sweep.run_here([jobs], lambda row, bundle: kept.append(row), "cpu")
    assert [row["job"] for row in kept] == [jobs[0].key, jobs[2].key]
    assert f"fold {jobs[1].fold:g}" in failure and "not finite" in failure


def test_contradicting_results_are_refused_and_equal_ones_merged(tmp_path):
    row = {"job": "a", "fold": 1.0, "seed": 0, "rmse": 0.1, "nrmse": 0.2, "seconds": 1.0, "worker": "x"}
    for name, other in (("x", row), ("y", {**row, "seconds": 2.0, "worker": "y", "rmse": 0.1000001})):
        (tmp_path / f"results-{name}.json").write_text(json.dumps([other]))
    assert merge([tmp_path]) == [row]
    (tmp_path / "results-y.json").write_text(json.dumps([{**row, "rmse": 0.3}]))
    with pytest.raises(InputError, match="disagree on job a"):
        merge([tmp_path])
    for text in ("[{", '[{"job": "a"}]', '{"schema_version": 1, "rows": {}}', '[{"job": "a", "seed": "x"}]', "[1]"):
        (tmp_path / "results-y.json").write_text(text)
        with pytest.raises(InputError, match=r"results-y\.json is not a table"):
            merge([tmp_path])
    with pytest.raises(InputError, match="no results"):
        merge([tmp_path / "nowhere"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("data: [", "cannot be read as YAML"),
        ("- 1", "must be a mapping"),
        ("seeds: 2", "data is missing"),
        ("data: standards.csv\nseed: 1", "unknown key 'seed'"),
        ("data: standards.csv\ngrid: {epochs: 3}", "grid.epochs must be a list"),
        ("data: standards.csv\nfolds: [5]", "5 is not a level"),
        ("data: standards.csv\nconfig: {epoch: 5}", "Unknown setting 'epoch'"),
        ("data: standards.csv\nseeds: [1, 1]", "names a job twice"),
        ("data: nothing.csv", "nothing.csv"),
        ("data: [standards.csv, 3]", "data must be file names, and 3 is none"),
        ("data: standards.csv\nfolds: [low]", "folds must be numbers, and 'low' is none"),
        ("data: standards.csv\nseeds: [x]", "seeds must be whole numbers, and 'x' is none"),
        ("data: standards.csv\nseeds: 0", "has no job"),
        ("data: standards.csv\nfolds: []", "has no job"),
        ("data: standards.csv\nconfig: {epochs: five}", "epochs='five' must be a whole number"),
        ("data: standards.csv\nconfig: {epochs: null}", "epochs=None must be a whole number"),
        ("data: standards.csv\ngrid: {flow_lr: [1e-3]}", "flow_lr='1e-3' must be a number; in YAML"),
        ("data: standards.csv\nconfig: {loss: {smooth: 1}}", "loss term='smooth' is not known"),
    ],
)
def test_specs_that_cannot_be_run_are_refused_in_a_sentence(spec, text, says):
    spec.write_text(text)
    result = CliRunner().invoke(app, ["sweep", str(spec), "--out", str(spec.parent / "out"), "--shard", "0/1"])
    assert result.exit_code == 2 and says in " ".join(result.output.split()), result.output


@pytest.mark.parametrize("shard", ["2/2", "a/b", "1", "-1/3"])
def test_shards_out_of_range_are_refused(spec, shard):
    result = CliRunner().invoke(app, ["sweep", str(spec), "--out", str(spec.parent / "out"), f"--shard={shard}"])
    assert result.exit_code == 2 and "I/N" in result.output


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed (extra cluster)")
def test_ray_finishes_every_job_once_though_a_worker_is_killed(spec, tmp_path):
    spec.write_text(SPEC.replace("EPOCHS", "12"))
    out = tmp_path / "out"
    words = ["-m", "geonode", "sweep", spec, "--out", out, "--device", "cpu", "--cpus", "2", "--stack", "2"]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    }
    process = Program(words, env=environment)
    table, first, victim, other = out / "results-sweep.json", None, None, None
    deadline = time.monotonic() + 400
    try:
        while process.poll() is None and time.monotonic() < deadline:
            rows = json.loads(table.read_text())["rows"] if table.exists() else []
            seen = list(dict.fromkeys(int(row["worker"].split(":")[1]) for row in reversed(rows)))
            if first is None and seen:  # however late the second begins, there is something left for it
                first = other = seen[-1]
                os.kill(first, signal.SIGSTOP)
            if victim is None and len(seen) == 2:
                victim = next(worker for worker in seen if worker != first)
                os.kill(victim, signal.SIGKILL)  # and what is left waits for whoever takes the victim's place
                when_killed = len(rows)
            if other is not None and len(seen) > 2:
                os.kill(other, signal.SIGCONT)
                other = None
            time.sleep(0.05)
    finally:
        if other is not None:
            with contextlib.suppress(ProcessLookupError):  # the sweep has ended between two looks, and its workers
                os.kill(other, signal.SIGCONT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors[-3000:]
    assert "24 of 24 results" in " ".join(output.split())
    rows = list(csv.DictReader((out / "results.csv").open()))
    assert len(rows) == 24 == len({row["job"] for row in rows})
    assert victim is not None and when_killed < 24
    workers = {int(row["worker"].split(":")[1]) for row in rows}
    assert len(workers) >= 3  # two to begin with, and the one that took the victim's place
