"""Weights & Biases: an offline run with the numbers of the other logs, ended whatever happens, or refused."""

from __future__ import annotations

import csv
import sys
from types import ModuleType

import pytest
from typer.testing import CliRunner

import geonode
from geonode.cli import app
from geonode.errors import InputError, TrainingError
from tests.training.test_loop import _poison


class Run:
    def __init__(self, **settings):
        self.settings, self.rows, self.finished = settings, [], False

    def log(self, values, step):
        self.rows.append((step, values))

    def finish(self):
        self.finished = True


@pytest.fixture
def runs(monkeypatch):
    """What is asked of a package of that name."""
    made, module = [], ModuleType("wandb")
    module.init = lambda **settings: made.append(Run(**settings)) or made[-1]
    monkeypatch.setitem(sys.modules, "wandb", module)
    return made


@pytest.mark.parametrize("changes", [{}, {"flow": "velocity", "batch_size": 10}, {"metric_network": False}])
def test_it_has_the_numbers_of_the_table(assay, small, tmp_path, runs, changes):
    config = small.replace(epochs=7, **{"flow": "path_independent", **changes})
    geonode.fit(assay, config, device="cpu", log_dir=tmp_path, wandb=True)
    (run,) = runs
    assert run.settings["mode"] == "offline" and run.settings["dir"] == str(tmp_path) and run.finished
    assert run.settings["config"]["training"]["epochs"] == 7
    table = list(csv.DictReader((tmp_path / "csv/version_0/metrics.csv").open()))
    assert [int(row["step"]) for row in table] == [step for step, _ in run.rows] and len(table) == 7
    for row, (_, values) in zip(table, run.rows, strict=True):
        assert {name: float(text) for name, text in row.items() if text and name != "step"} == values


@pytest.mark.filterwarnings("ignore:.*was not finite")
def test_the_run_is_ended_where_the_training_fails(assay, small, tmp_path, runs, monkeypatch):
    _poison(monkeypatch, set(range(60)))
    with pytest.raises(TrainingError):
        geonode.fit(assay, small.replace(epochs=60), device="cpu", log_dir=tmp_path, wandb=True)
    assert runs[0].finished


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "wandb=True needs log_dir"),
        ({"log_dir": "log", "strategy": "ddp"}, "for trainings on one device"),
        ({"log_dir": "log"}, r"pip install 'geodesic-node\[wandb\]'"),
    ],
)
def test_what_cannot_be_is_refused(assay, small, tmp_path, monkeypatch, options, words):
    monkeypatch.setitem(sys.modules, "wandb", None)  # as where it is not installed
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=words):
        geonode.fit(assay, small, device="cpu", wandb=True, **options)
    assert list(tmp_path.iterdir()) == []


def test_the_command_needs_a_folder(tmp_path):
    rows = [f"{w},{0.1},{w / 1e3},{w / 6e2},{w / 4e2}" for w in range(400, 500, 9)]
    (tmp_path / "s.csv").write_text("\n".join(["nm,0,1,2,3", *rows]) + "\n")
    settings = tmp_path / "s.json"
    settings.write_text('{"flow": "path_independent"}')
    done = CliRunner().invoke(
        app, ["fit", str(tmp_path / "s.csv"), "--settings", str(settings), "--out", str(tmp_path / "m"), "--wandb"]
    )
    assert done.exit_code == 2 and "--wandb needs --log-dir" in done.output
