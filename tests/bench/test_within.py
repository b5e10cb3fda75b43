"""The bench needs nothing but the package: no file of a checkout is read, and peers run as modules of it."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import geonode
import geonode_kernels
import geonode_runtime
from geonode.bench import case, peers, problem, processes, suite
from geonode.bench.__main__ import main
from geonode.bench.worker import LONG_CALLS
from geonode.errors import InputError

BENCH = Path(geonode.__file__).parent / "bench"


@pytest.mark.parametrize("path", sorted(BENCH.rglob("*.py")), ids=lambda p: str(p.relative_to(BENCH)))
def test_no_module_names_a_folder_of_the_checkout(path):
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"""["'/](benchmarks|tests|examples|tools|shared)["'/]""", text.replace("docs/benchmarks", ""))


@pytest.mark.parametrize("name", peers.PEERS)
def test_every_peer_is_a_module_of_the_package(name):
    assert importlib.util.find_spec(peers.PEERS[name].module) is not None


def test_a_peer_that_is_installed_runs_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (answer,) = peers.run("torchdiffeq", [problem.CHECKED], "cpu", 0.01)
    assert answer["status"] == "green", answer
    (row,) = answer["rows"]
    assert row["error"] < 1e-4 and row["ms"] > 0.0


def test_a_peer_or_a_case_that_is_unknown_is_refused_with_the_names():
    with pytest.raises(InputError, match="torchdiffeq, torchode, diffrax, compile"):
        peers.run("scipy", [7], "cpu", 0.01)
    with pytest.raises(InputError, match="geodesic-ivp"):
        _ = case.CASES["geodesic"]


def test_cases_are_listed_without_a_checkout(tmp_path):
    """From a copy of the packages alone, what is compiled of them included: to compile it anew takes seconds."""
    for package in (geonode, geonode_kernels, geonode_runtime):
        source = Path(package.__file__).parent
        shutil.copytree(source, tmp_path / source.name)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "geonode.bench", "--device", "cpu", "--list"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "blueprint-step" in done.stdout


@pytest.mark.parametrize(
    ("asked", "restarts", "limit"),
    [
        ((), 2, 220.0),
        (("--time-limit", "700"), 2, 700.0),
        (("--restarts", "5"), 5, 220.0),
        (("--suite", "full"), 3, None),
        (("--suite", "full", "--time-limit", "7"), 3, 7.0),
    ],
    ids=str,
)
def test_the_quick_suite_has_its_minutes_and_the_full_one_as_many_as_it_takes(monkeypatch, asked, restarts, limit):
    class Planned(Exception):
        pass

    def run(cases, options, say):
        assert options.restarts == restarts and options.limit == limit
        raise Planned

    monkeypatch.setattr(suite, "run", run)
    with pytest.raises(Planned):
        main(["--device", "cpu", *asked])


def test_dear_rows_are_measured_in_one_process_and_cheap_ones_in_all(monkeypatch):
    """Of the quick suite; a third process leaves out long calls too, which say the same twice."""
    cases = [
        case.Case(name, name, lambda s, z: case.Work(lambda i: i, list, {}), lambda s: [case.Size(1, 1)])
        for name in ("cheap", "long", "dear")
    ]
    seconds = {"cheap": 1.0, "long": 1.0, "dear": suite.DEAR + 1.0}
    asked = []

    def events(todo, options, first):
        asked.append([row["case"] for row in todo])
        for row in todo:
            found = {"kind": "row", "case": row["case"], "size": row["size"], "status": "green", "samples_ms": [1.0]}
            mode = "wall clock" if row["case"] == "cheap" else LONG_CALLS
            told = {"wall_s": seconds[row["case"]], "mode": mode, "counts": {}, "operations": {}, "bytes": 0.0}
            yield {**found, **(told if first else {})}

    monkeypatch.setattr(suite, "events", events)
    suite.run(cases, processes.Options(case.Setting("cpu", "quick"), restarts=3, peers=False))
    assert asked == [["cheap", "long", "dear"], ["cheap", "long"], ["cheap"]]
    asked.clear()
    suite.run(cases, processes.Options(case.Setting("cpu", "full"), restarts=2, peers=False))
    assert asked[1] == ["cheap", "long", "dear"]


@pytest.mark.parametrize(("seconds", "status"), [(0.2, "skipped"), (60.0, "failed")])
def test_a_peer_that_the_time_limit_cuts_short_is_skipped_and_one_that_breaks_has_failed(monkeypatch, seconds, status):
    options = processes.Options(case.Setting("cpu", "quick"), limit=seconds)

    def run(name, counts, device, budget, timeout):
        assert 0.0 < timeout <= min(seconds, 150.0)
        if status == "skipped":
            time.sleep(timeout)
        return [{"library": name, "n": n, "status": "failed", "reason": "no answer"} for n in counts]

    monkeypatch.setattr(peers, "run", run)
    row = {"case": peers.CASE, "label": "2×3", "size": [2, 3], "status": "green"}
    found = suite._peers([row], options, lambda text: None)
    assert found[0]["status"] == status and [p["library"] for p in found] == list(peers.PEERS)
    assert all(p["reason"] == (suite.LATE if status == "skipped" else "no answer") for p in found)
