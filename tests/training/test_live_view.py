"""`geonode fit` on a terminal: progress, losses and throughput while it trains, and what a GPU says of itself."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from geonode.cli import app


@pytest.fixture
def table(tmp_path):
    rows = [f"{w},{0.1},{w / 1e3},{w / 6e2},{w / 4e2}" for w in range(400, 500, 9)]
    path = tmp_path / "s.csv"
    path.write_text("\n".join(["nm,0,1,2,3", *rows]) + "\n")
    return path


def fitted(table, monkeypatch, capfd, settings, *options, terminal=True):
    """What the command shows on stderr, without the terminal's own signs."""
    monkeypatch.setenv("COLUMNS", "160")
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, as far as rich is concerned
    given = table.parent / "settings.json"
    given.write_text(json.dumps({"members": 1, "epochs": 12, **settings}))
    words = ["fit", str(table), "--settings", str(given), "--device", "cpu", "--out", str(table.parent / "m"), *options]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capfd.readouterr().err + done.stderr)


@pytest.mark.parametrize("flow", ["path_independent", "velocity", "free"])
def test_losses_and_throughput_stand_below_the_progress_of_every_flow(flow, table, monkeypatch, capfd):
    shown = fitted(table, monkeypatch, capfd, {"flow": flow})
    assert "training the flow" in shown and "12/12" in shown
    assert re.search(r"loss [0-9.e+-]+ · .*[0-9.]+ steps/s · [0-9,]+ samples/s", shown), shown[-800:]


@pytest.mark.parametrize(
    ("probed", "says"),
    [
        ({"sm_activity": 91.0, "power_w": 402.0}, "SM 91 % · 402 W"),
        ({"coarse_busy": 77.0, "temperature_c": 41.0}, "GPU busy 77 % · 41 °C"),
        ({"memory_used_bytes": 2.5e9}, "2.5 GB"),
    ],
)
def test_the_figures_of_a_gpu_stand_beside_them(probed, says, table, monkeypatch, capfd):
    monkeypatch.setattr("geonode.commands.fit.nvml_probe", lambda: lambda: probed)
    assert says in fitted(table, monkeypatch, capfd, {"flow": "path_independent"})


@pytest.mark.parametrize("options", [("--quiet",), ("--quiet", "--log-dir", "log")])
def test_quiet_shows_nothing(options, table, monkeypatch, capfd):
    monkeypatch.chdir(table.parent)
    assert fitted(table, monkeypatch, capfd, {"flow": "path_independent"}, *options).strip() == ""


def test_where_there_is_no_terminal_nothing_is_drawn(table, monkeypatch, capfd):
    shown = fitted(table, monkeypatch, capfd, {"flow": "path_independent"}, terminal=False)
    assert "samples/s" not in shown
