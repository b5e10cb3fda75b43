"""Whatever a sweep's file says is done, or refused in a sentence: predictors, folds, seeds, settings, several sets."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from geonode.cli import app
from geonode.config import GeodesicConfig
from geonode.data import load_standards
from geonode.errors import InputError
from geonode.sweep import read_spec, run, run_job, share
from geonode.sweep.jobs import cost, load_data
from geonode.training.problem import fit_gp

SMALL = "metric_hidden: [8, 8], flow_hidden: 12, table_nodes: 16, collocation: 8, members: 1, epochs: 2"


def write(spec, text):
    spec.write_text(text)
    return read_spec(spec)


def _rows(spec, *options):
    out = spec.parent / "out"
    result = CliRunner().invoke(
        app, ["sweep", str(spec), "--out", str(out), "--device", "cpu", "--shard", "0/1", *options]
    )
    assert result.exit_code == 0, result.output
    table = spec.parent / "results.csv"
    result = CliRunner().invoke(app, ["merge", str(out), "--out", str(table)])
    assert result.exit_code == 0, result.output
    return list(csv.DictReader(table.open()))


def test_each_predictor_is_the_one_that_answers(spec):
    """Two rows of one fold differ, and the one labelled gp is the process's own error."""
    write(spec, f"data: standards.csv\nfolds: [20, 60]\nconfig: {{{SMALL}}}\ngrid: {{predictor: [node, gp]}}")
    rows = {(row["predictor"], float(row["fold"])): float(row["rmse"]) for row in _rows(spec)}
    data = load_standards(spec.parent / "standards.csv")
    for fold in (20.0, 60.0):
        k = int(np.flatnonzero(data.levels == fold)[0])
        by_hand = fit_gp(data.without_level(k)).predict([fold]).mean[0] - data.level_means()[k]
        assert rows["gp", fold] == pytest.approx(float(np.sqrt(np.mean(by_hand**2))), rel=1e-9)
        assert abs(rows["node", fold] / rows["gp", fold] - 1.0) > 1e-5  # the flow starts at the process's mean
    assert len(rows) == 4


@pytest.mark.parametrize(
    ("text", "jobs"),
    [
        ("seeds: 3\nconfig: {predictor: gp}", None),  # seeds would be ignored
        ("config: {predictor: gp, epochs: 3}", None),
        ("config: {predictor: gp}\ngrid: {epochs: [3, 4]}", None),
        ("config: {predictor: gp}", 6),
        ("seeds: 3\ngrid: {predictor: [gp, node]}", 6 + 18),  # the process once a fold, the flow with every seed
        ("grid: {predictor: [gp, node], epochs: [3, 4]}", 6 + 12),
    ],
)
def test_what_the_process_does_not_have_is_refused_or_not_repeated(text, jobs, spec):
    sweep = write(spec, f"data: standards.csv\n{text}")
    if jobs is None:
        with pytest.raises(InputError, match="would be ignored: with predictor='gp' nothing but the standards counts"):
            sweep.jobs()
    else:
        found = sweep.jobs()
        assert len(found) == jobs == len({job.key for job in found})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("config: {folds: true}", "folds=True is for the bands"),
        ("grid: {folds: [false, true]}", "folds=True is for the bands"),
        ("config: {seed: 3}\nseeds: [0, 1]", "The seed stands under config and under seeds"),
        ("config: {seed: 0}\nseeds: [1, 2]", "The seed stands under config and under seeds"),
        ("config: {training: {seed: 0}}\nseeds: [1, 2]", "The seed stands under config and under seeds"),
        ("config: {epochs: 3}\ngrid: {epochs: [4, 5]}", "'epochs' stands under config and under grid"),
        ("config: {training: {epochs: 3}}\ngrid: {epochs: [4, 5]}", "'epochs' stands under config and under grid"),
        ("config: {training: {epochs: 3}, epochs: 4}", "'epochs' stands twice, as training.epochs too"),
        ("grid: {epochs: [3, 3]}", "names a job twice"),
        ("grid: {seed: [0, 1]}", "list the seeds under seeds"),
        ("grid: {epoch: [3]}", "Unknown setting 'epoch'"),
    ],
)
def test_what_cannot_be_honoured_is_refused(text, says, spec):
    with pytest.raises(InputError, match=says):
        write(spec, f"data: standards.csv\n{text}").jobs()


@pytest.mark.parametrize(
    "setting",
    [
        "seed: 7", "margin: 0.6", "flow: velocity", "warp: false", "path: arc_length", "solver: rk4", "nodes: 5",
        "teacher: false", "collocation: 3", "batch_size: 8", "wavelengths_per_step: 5", "metric_lr: 0.0",
        "weight_decay: 0.1", "loss: {smoothness: 0.5}", "precision: 64-true", "members: 3", "epochs: 4",
    ],
)  # fmt: skip
def test_every_setting_reaches_the_training(setting, spec, monkeypatch):
    """Under config and in the grid alike."""
    seen, name = [], setting.split(":")[0]
    real = run.train

    def watched(problem, config, seed, ode, rates, **options):
        seen.append((config, seed, rates))
        return real(problem, config.replace(epochs=1), seed, ode=ode, rates=rates)

    monkeypatch.setattr(run, "train", watched)
    small = ", ".join(part for part in SMALL.split(", ") if not part.startswith(f"{name}:"))
    wanted = GeodesicConfig.from_json(json.dumps({**yaml.safe_load(f"{{{small}}}"), **yaml.safe_load(setting)}))
    texts = [f"data: standards.csv\nfolds: [20]\nconfig: {{{setting}, {small}}}"]
    if name != "seed":
        one = setting.split(":", 1)[1].strip()
        texts.append(f"data: standards.csv\nfolds: [20]\nconfig: {{{small}}}\ngrid: {{{name}: [{one}]}}")
    for text in texts:
        seen.clear()
        (job,) = write(spec, text).jobs()
        run_job(job, "cpu")
        ((config, seed, rates),) = seen
        assert config == wanted and seed == wanted.seed
        assert rates[0].tolist() == pytest.approx([wanted.metric_lr, wanted.flow_lr])


@pytest.fixture
def two(spec):
    """The standards of the sweep, and others: twice the signal, without the two highest levels."""
    lines = (spec.parent / "standards.csv").read_text().splitlines()
    other = [lines[0].rsplit(",", 2)[0]]
    for line in lines[1:]:
        wavelength, *values = line.split(",")
        other.append(",".join([wavelength, *(f"{2 * float(value):.6f}" for value in values[:-2])]))
    (spec.parent / "other.csv").write_text("\n".join(other) + "\n")
    return spec


def test_several_sets_of_standards_in_one_sweep(two):
    write(
        two,
        f"sets:\n  one: {{data: standards.csv, folds: [10, 60]}}\n  other: other.csv\nconfig: {{{SMALL}}}\nseeds: 2",
    )
    rows = _rows(two)
    assert {(row["set"], float(row["fold"])) for row in rows} == {
        ("one", 10.0), ("one", 60.0), ("other", 0.0), ("other", 10.0), ("other", 20.0), ("other", 30.0),
    }  # fmt: skip
    assert len(rows) == 12 and all(0.0 < float(row["nrmse"]) < 2.0 for row in rows)
    # each is what it is in a sweep of its own
    alone = write(two, f"data: other.csv\nfolds: [10]\nconfig: {{{SMALL}}}").jobs()
    (row,) = [row for row in rows if row["job"] == alone[0].key]
    assert float(row["rmse"]) == pytest.approx(run_job(alone[0], "cpu")["rmse"], rel=1e-4)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sets: {a: standards.csv}\ndata: other.csv", "data stands beside sets"),
        ("sets: {a: standards.csv}\nfolds: [0]", "folds stands beside sets"),
        ("sets: {a: {data: standards.csv, unti: mM}}", "unknown key 'sets.a.unti'"),
        ("sets: {a: {unit: mM}}", "sets.a.data is missing"),
        ("sets: {a: {data: standards.csv, folds: [5]}}", r"sets\.a\.folds: 5 is not a level"),
        ("sets: {a: standards.csv, b: standards.csv}", "names a job twice"),
        ("sets: {a: standards.csv, b: standards.csv}\nconfig: {predictor: gp}", "names a job twice"),
        ("sets: [standards.csv]", "sets must be a mapping"),
        ("sets: {}", "sets is empty"),
        ("data: standards.csv\nselect: 3", "select must be text"),
    ],
)
def test_sets_that_cannot_be_run_are_refused(text, says, two):
    with pytest.raises(InputError, match=says):
        write(two, text).jobs()


@pytest.mark.parametrize("weights", [(1.0, 1.0), (4.0, 1.0, 1.0), (0.5, 2.0, 3.0, 1.0), (1e-6, 1.0)])
def test_unequal_workers_share_the_work_by_their_speeds(weights, spec):
    jobs = read_spec(spec).jobs() * 5
    jobs = [replace(job, key=f"{k:03d}") for k, job in enumerate(jobs)]
    parts = [share(jobs, k, weights) for k in range(len(weights))]
    assert sorted(job.key for part in parts for job in part) == [job.key for job in jobs]
    for part, weight in zip(parts, weights, strict=True):
        assert len(part) == pytest.approx(len(jobs) * weight / sum(weights), abs=1.0)
    if len(set(weights)) == 1:
        assert parts[0] == jobs[:: len(weights)]


def test_jobs_of_unequal_cost_are_shared_by_cost(spec):
    write(spec, "data: standards.csv\nseeds: 4\ngrid: {epochs: [10, 90]}")
    jobs = read_spec(spec).jobs()
    loads = [sum(map(cost, share(jobs, k, (3.0, 1.0)))) for k in range(2)]
    assert loads[0] / loads[1] == pytest.approx(3.0, rel=0.1)


@pytest.mark.parametrize("weights", ["1", "1,2,3", "1,0", "1,-1", "a,b", "1,inf"])
def test_weights_that_do_not_fit_the_shard_are_refused(weights, spec):
    command = ["sweep", str(spec), "--out", str(spec.parent / "out"), "--shard", "0/2", f"--weights={weights}"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2 and "must be 2 positive numbers" in " ".join(result.output.split())
    result = CliRunner().invoke(app, ["sweep", str(spec), "--out", str(spec.parent / "out"), "--weights=1,2"])
    assert result.exit_code == 2 and "--weights are speeds of the workers of --shard" in " ".join(result.output.split())


def test_a_worker_with_other_standards_under_the_same_name_refuses(spec):
    jobs = read_spec(spec).jobs()
    path = spec.parent / "standards.csv"
    path.write_text(path.read_text().replace("0.", "0.1", 1))
    load_data.cache_clear()  # as in another process
    with pytest.raises(InputError, match=r"standards\.csv holds other standards here"):
        run_job(jobs[0], "cpu")


@pytest.mark.parametrize(
    "text",
    ["seeds: 2\nseeds: 3", "config: {epochs: 3, epochs: 4}", "grid: {epochs: [3]}\nconfig: {}\ngrid: {members: [1]}"],
)
def test_what_stands_twice_in_the_file_is_refused(text, spec):
    with pytest.raises(InputError, match=r"sweep\.yaml: '\w+' stands twice; leave one"):
        write(spec, f"data: standards.csv\n{text}")
