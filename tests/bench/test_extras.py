"""What the full suite measures beside its cases: every point of every curve, whatever breaks before it."""

from __future__ import annotations

import math
from collections import defaultdict

import pytest

from geonode.bench import curves, extras, problem, suite, timing
from geonode.bench.case import Case, Setting, Size, load

FULL = Setting("cpu", "full")


@pytest.fixture
def untimed(monkeypatch):
    monkeypatch.setattr(timing, "median_ms", lambda *_: 1.0)


@pytest.mark.parametrize("measure", [curves.initial_value, curves.two_points, curves.coupled])
def test_every_solver_of_the_full_suite_is_measured_and_more_work_errs_less(measure, untimed):
    points = defaultdict(list)
    for kind, point in measure(FULL, 0.0):
        assert kind == "curve" and math.isfinite(point["error"])
        points[point["problem"], point["solver"]].append(point["error"])
    assert len(points) >= 2
    for solver, errors in points.items():
        assert errors[-1] <= errors[0] or errors[0] < 3e-6, solver  # what float32 rounds to
        assert errors[-1] < 3e-4, solver


def test_what_breaks_beside_the_cases_is_said_and_the_rest_is_measured(untimed, monkeypatch):
    def breaking(*_):
        yield "curve", {"solver": "a"}
        raise ValueError("no such method")

    monkeypatch.setattr(curves, "initial_value", breaking)
    case = Case("geodesic-ivp", "t", lambda s, z: None, lambda s: [Size(1, 1)])  # type: ignore[arg-type, return-value]
    first, broken, loop = extras.all_of([case], FULL, {"budget": 0.0})
    assert first == ("curve", {"solver": "a"})
    assert broken == ("broken", {"text": "work–precision of the initial-value problem: ValueError: no such method"})
    assert loop[0] == "sequential" and loop[1]["seconds_each"] > 0 and loop[1]["error"] < 1e-5
    assert loop[1]["problems"] < problem.CHECKED


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_size_is_one_row(device):
    twice = Case("twice", "t", lambda s, z: None, lambda s: [Size(1, 1), Size(1, 1)])  # type: ignore[arg-type, return-value]
    cases, setting = [*load().values(), twice], Setting(device, "full")
    rows = [(row["case"], tuple(row["size"])) for row in suite._rows(cases, setting)]
    assert len(rows) == len(set(rows)) and ("twice", (1, 1)) in rows
    assert all(len(set(case.sizes(setting))) == len(case.sizes(setting)) for case in cases[:-1])
