"""What a run is told of: targets, baselines, advice, and what is left out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from geonode.bench import (
    advice,
    compare,
    finish,
    peers,
    plots,
    targets,
    terminal,
)
from geonode.bench.case import Case, Setting, Size, Work
from geonode.errors import InputError

ROOT = Path(__file__).resolve().parent.parent.parent
CPU = Setting("cpu", "quick")


# ---------------------------------------------------------------------- verdicts


def training_row(busy=95.0, ms=4.0):
    return {
        "case": targets.TRAIN, "label": "2048×601", "title": "training step", "status": "green", "size": [2048, 601],
        "counts": {"odes": 1_230_848, "samples": 2048, "gradient_steps": 1},
        "rates": {"samples": 2048e3 / ms}, "ms": ms, "peak_gb": 0.5,
        "activity": {"sm_activity": busy}, "window": {"begin": 0.0, "end": 10.0, "calls": 2500},
    }  # fmt: skip


def outcome(*rows):
    return {
        "setting": {"device": "cuda"}, "ceilings": {"copy": 3e12, "fp32": 50e12, "fp16": 700e12}, "rows": list(rows),
        "activity": {"title": "t"}, "sequential": None,
    }  # fmt: skip


def test_targets_pass_fail_and_stay_open():
    verdict = lambda *rows: {r["target"]: r["verdict"] for r in targets.verdicts(outcome(*rows))}  # noqa: E731
    good = verdict(training_row())
    assert good["GPU utilisation > 90 %"] == good["> 6 000 samples/s"] == good["1.23 M parallel ODEs"] == "pass"
    assert verdict(training_row(busy=80.0))["GPU utilisation > 90 %"] == "fail"
    assert verdict(training_row(ms=1000.0))["> 6 000 samples/s"] == "fail"
    coarse = training_row()
    coarse["activity"] = {"coarse_busy": 100.0}
    assert verdict(coarse)["GPU utilisation > 90 %"] == "not measured"
    small = training_row()
    small["counts"] = {"odes": 18_030, "samples": 30, "gradient_steps": 1}
    assert set(verdict(small).values()) == {"not measured"}  # neither pass nor fail of a target for 1.23 M
    assert set(verdict().values()) == {"not measured"}
    recipe = {**training_row(ms=500.0), "case": targets.RECIPE}
    both = verdict(training_row(), recipe)
    assert both["> 6 000 samples/s"] == "pass" and both["> 6 000 samples/s, the original recipe"] == "fail"
    assert both["GPU utilisation > 90 %, the original recipe"] == both["epoch < 3 s, the original recipe"] == "pass"


def test_an_a100_is_scaled_by_the_least_favourable_ceiling():
    assert targets.a100_factor(outcome()) == pytest.approx(50.0 / 19.5)


def recorded(ms, noise: float | None = 0.02, status="green"):
    row = {"case": "x", "label": "1×1", "status": status, "ms": ms, "noise": noise}
    return {"setting": {"device": "cpu"}, "device": {}, "host": {}, "rows": [row]}


def test_baseline_flags_only_what_exceeds_the_noise():
    assert compare.regressions(compare.compare(recorded(1.0), recorded(1.01))) == []
    assert compare.regressions(compare.compare(recorded(1.0), recorded(1.05))) == ["x 1×1"]
    assert compare.regressions(compare.compare(recorded(1.0), recorded(0.5))) == []
    assert compare.regressions(compare.compare(recorded(1.0), recorded(1.0, status="red"))) == ["x 1×1"]


def test_without_any_noise_and_without_a_common_row_nothing_is_judged():
    unknown = compare.compare(recorded(1.0, noise=None), recorded(2.0, noise=None))
    assert unknown["rows"][0]["verdict"] == "noise unknown" and compare.regressions(unknown) == []
    assert "--restarts 2" in unknown["warnings"][0]
    terminal.show_comparison(unknown, Console())
    half = compare.compare(recorded(1.0, noise=None), recorded(2.0))
    assert half["warnings"] == [] and compare.regressions(half) == ["x 1×1"]
    assert "nothing was compared" in compare.compare(recorded(1.0, status="red"), recorded(1.0))["warnings"][0]


def test_foreign_baselines_are_refused(tmp_path):
    rows = '{"schema": 1, "setting": {"device": "cpu"}, "device": {}, "host": {}, "rows": [{"status": "green"}]}'
    for name, text in (
        ("a", "no json"), ("b", "[1]"), ("c", '{"schema": 99}'), ("d", '{"schema": 1}'), ("e", rows),
    ):  # fmt: skip
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=f"--baseline .*{name}"):
            compare.read(tmp_path / name)


def test_a_peer_that_says_nothing_has_failed():
    line = peers.MARK + json.dumps({"library": "torchode", "n": 5, "rows": [], "curve": []})
    good, bad = peers.read("torchode", [5, 7], f"chatter\n{line}\n", "Traceback\nValueError: no\n")
    assert good["status"] == "green" and good["n"] == 5
    assert bad["status"] == "failed" and bad["n"] == 7 and bad["reason"] == "ValueError: no"


def test_advice_names_the_crossover():
    points = [
        {"case": "x", "size": [1, n], "device": d, "ms": ms}
        for n, d, ms in ((8, "cpu", 0.1), (8, "cuda", 0.3), (601, "cpu", 5.0), (601, "cuda", 0.3))
    ]
    result = {"setting": {"device": "cuda"}, "rows": [], "crossover": points}
    assert any("up to 8 ODEs" in s for s in advice.sentences(result))


def test_launch_bound_is_what_a_graph_or_an_idle_device_shows():
    def said(**more):
        row = {"case": "x", "label": "1×1", "status": "green", "ms": 1.0, "host_us": 1100.0, **more}
        return "launch-bound" in " ".join(advice._bound({"rows": [row]}, gpu=True))

    assert said(eager_ms=3.0) and not said(eager_ms=1.01)  # the host takes long, but the device is not waiting
    assert said(activity={"sm_activity": 2.0}) and not said(activity={"sm_activity": 98.0})
    assert said() and not said(host_us=100.0)
    graph = {"case": "x", "label": "1×1", "status": "green", "ms": 1.0, "host_us": 3e3, "eager_ms": 3.0}
    both = advice._bound({"rows": [{**graph, "floor": {"share": 0.4, "binding": "copy"}}]}, gpu=True)
    assert "launch-bound without a graph" in both[0] and "memory-bound, at 40 %" in both[1]


def test_a_peer_without_a_finite_error_is_shown_as_such():
    ours = {"case": "x", "label": "1×1", "status": "green", "ms": 2.0}
    peer = {"case": "x", "label": "1×1"}
    row = finish.finite({"ms": 1.0, "error": float("nan"), "more": [float("inf"), 1, "a"]})
    assert row == {"ms": 1.0, "error": None, "more": [None, 1, "a"]}
    assert terminal.error(row) == "not finite" and terminal.error({"error": 1e-7}) == "1.0e-07"
    assert terminal.over_ours({"rows": [ours]}, peer, row) == "0.5 ×"


def test_a_curve_is_joined_in_the_order_of_its_steps_and_leaves_out_what_is_not_finite():
    points = [
        {"problem": "p", "solver": "s", "label": f"{n} steps", "error": e, "ms": ms}
        for n, e, ms in ((2, 1e-2, 3.0), (5, 1e-4, 1.0), (20, None, 2.0))
    ]
    _, axes = plots.plt.subplots()
    assert plots._curves({"curve": points}, axes, "p") is None
    assert np.array_equal(axes.lines[0].get_xdata(), [3.0, 1.0])
    plots.plt.close()


def test_a_quick_run_says_what_it_left_out():
    quick, full = Setting("cuda", "quick"), Setting("cuda", "full")
    assert advice.left_out(full, 3, True) == []
    assert "torch.compile at the second size" in advice.left_out(quick, 3, True)
    assert "torch.compile at the second size" not in advice.left_out(quick, 3, False)
    assert "the third process for the noise" in advice.left_out(CPU, 2, True)
    assert "the third process for the noise of long calls" in advice.left_out(quick, 3, True)


def test_work_defaults_describe_a_plain_case():
    case = Case("plain", "t", lambda s, z: Work(lambda i: i, list, {}), lambda s: [Size(2, 3)])
    assert case.absent(CPU) is None and Size(2, 3).trajectories == 6 and case.window(Size(2, 3)) >= 2.0
