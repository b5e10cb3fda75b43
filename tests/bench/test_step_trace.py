"""Copies, synchronisations and dead time of a step: by hand on made-up traces, and recorded ones that open."""

from __future__ import annotations

import gzip
import json
import time

import pytest
import torch

from geonode.bench import profiler, step_trace
from geonode.bench.__main__ import main
from geonode.bench.case import CASES, Case, Setting, Size, Work
from geonode.errors import InputError

CPU = Setting("cpu", "quick")


def event(cat, name, ts, dur, **args):
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "args": args}


def gpu_trace():
    """Two steps of 100 µs; device work 10–40, 30–60, 120–190, a copy each way, one wait; the last kernel ends late."""
    return [
        {"ph": "M", "name": "process_name"},
        event("user_annotation", step_trace.STEP, 0, 100),
        event("user_annotation", step_trace.STEP, 100, 100),
        event("cpu_op", "aten::mm", 0, 15),
        event("cuda_runtime", "cudaLaunchKernel", 5, 2),
        event("kernel", "gemm", 10, 30),
        event("kernel", "add", 30, 30),
        event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 120, 10, bytes=4000),
        event("kernel", "gemm", 130, 50),
        event("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 180, 10, bytes=8),
        event("cuda_runtime", "cudaStreamSynchronize", 60, 55),
        event("kernel", "late", 190, 30),
        event("kernel", "before the first step", -50, 30),
    ]


def test_a_step_on_a_gpu_by_hand():
    found = step_trace.breakdown(gpu_trace())
    # window 0 … 220; busy 10–60 and 120–220
    assert (found["device"], found["steps"], found["step_us"]) == ("cuda", 2, 110)
    assert found["busy_us"] == 75 and found["idle_us"] == 35 and found["idle_share"] == pytest.approx(70 / 220)
    assert found["launches"] == 2
    assert found["copies"] == {
        "HtoD": {"count": 0.5, "bytes": 2000, "us": 5},
        "DtoH": {"count": 0.5, "bytes": 4, "us": 5},
    }
    assert found["synchronisations"] == {"count": 0.5, "us": 27.5}
    assert found["gaps"] == [
        {"us": 60, "during": "cudaStreamSynchronize"},
        {"us": 10, "during": "aten::mm"},
    ]


def test_a_step_on_a_cpu_by_hand():
    found = step_trace.breakdown([
        event("user_annotation", "ProfilerStep#7", 0, 100),
        event("cpu_op", "aten::add", 10, 30),
        event("cpu_op", "aten::copy_", 20, 10),  # within the other
        event("cpu_op", "aten::_local_scalar_dense", 60, 20),
    ])  # fmt: skip
    assert (found["device"], found["step_us"], found["busy_us"], found["idle_us"]) == ("cpu", 100, 50, 50)
    assert found["copies"] == {"aten::copy_": {"count": 1, "bytes": None, "us": 10}}
    assert found["synchronisations"] == {"count": 1, "us": 20}
    assert [gap["us"] for gap in found["gaps"]] == [20, 20, 10]
    assert all(gap["during"] == "Python" for gap in found["gaps"])


@pytest.mark.parametrize(
    ("spans", "merged"),
    [
        ([], []),
        ([(0, 5), (5, 7)], [(0, 7)]),
        ([(3, 4), (0, 10), (2, 3)], [(0, 10)]),
        ([(0, 1), (2, 3)], [(0, 1), (2, 3)]),
    ],
)
def test_union_of_spans(spans, merged):
    assert step_trace.union(spans) == merged


def _work(text):
    """A step that copies, waits for a value, and rests, by what its name says."""
    x = torch.randn(64, 64)

    def run(i):
        y = x @ x
        if "copy" in text:
            y = y.to(torch.float64)
        if "wait" in text:
            float(y.sum())
        if "rest" in text:
            time.sleep(0.02)
        return y

    return Work(run, lambda: [], {"gradient_steps": 1})


@pytest.mark.parametrize("what", ["nothing", "copy", "wait", "rest", "copy wait rest"])
def test_what_a_step_does_is_seen(what):
    _, events = profiler.traced(_work(what), CPU, steps=2)
    found = step_trace.breakdown(events)
    assert found["steps"] == 2 and found["launches"] >= 1
    assert ("aten::copy_" in found["copies"]) == ("copy" in what)
    assert found["synchronisations"]["count"] == ("wait" in what)
    assert (found["gaps"][0]["us"] > 15_000) == ("rest" in what)
    assert found["busy_us"] + found["idle_us"] == pytest.approx(found["step_us"])


def test_a_loop_of_its_own_is_recorded_after_it_has_settled():
    seen = []

    def drive(after):
        for step in range(1000):
            torch.ones(3 + step).sum()
            seen.append(step)
            if not after():
                return

    _, events = profiler.traced(Work(lambda i: None, lambda: [], {}, drive=drive), CPU, steps=3)
    found = step_trace.breakdown(events)
    assert len(seen) == profiler.SETTLE + 3 and found["steps"] == 3
    assert len([e for e in events if e.get("name") == "aten::ones"]) == 3
    assert found["launches"] == 2  # ones and sum; what they call in turn does not count


@pytest.fixture
def case(monkeypatch):
    one = Case("tiny", "a tiny step", lambda setting, size: _work("copy wait"), lambda setting: [Size(1, 1)])
    monkeypatch.setitem(CASES._items, "tiny", one)
    return one


def test_traces_are_small_and_open(case, tmp_path, capsys, monkeypatch):
    assert main(["--device", "cpu", "--only", "tiny", "--profile", str(tmp_path / "p")]) == 0
    said = capsys.readouterr().out
    assert "dead time" in said and "copies aten::copy_" in said and "synchronisations: 1" in said
    trace = tmp_path / "p/tiny.pt.trace.json.gz"
    assert trace.stat().st_size < 1e6
    whole = json.loads(gzip.decompress(trace.read_bytes()))
    assert {e["name"] for e in whole["traceEvents"]} >= {"aten::mm", step_trace.STEP, "process_name"}
    step = json.loads((tmp_path / "p/tiny.step.json").read_text())
    assert step["steps"] == profiler.STEPS and step["cut"] == 0
    # read again
    assert main(["--trace", str(trace)]) == 0
    again = capsys.readouterr().out
    assert "dead time" in again and again.splitlines()[0] in said


@pytest.mark.parametrize("most", [1, 10, 10_000])
def test_a_trace_too_long_for_a_viewer_is_cut_and_says_so(most, tmp_path):
    events = gpu_trace() * 100
    cut = profiler.write_trace(tmp_path / "t.json.gz", events, most)
    kept = step_trace.read(tmp_path / "t.json.gz")
    timed = [e for e in kept if e["ph"] == "X"]
    assert len(timed) + cut == 1200 and len(timed) == min(most, 1200)
    assert [e for e in kept if e["ph"] == "M"] and timed == sorted(timed, key=lambda e: e["ts"])


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"traceEvents": 3}', '{"traceEvents": []}', "\x1f\x8b broken"])
def test_what_is_no_trace_is_refused(text, tmp_path, capsys):
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(InputError, match=r"is no torch\.profiler trace|holds no steps"):
        step_trace.breakdown(step_trace.read(tmp_path / "t.json"))
    assert main(["--trace", str(tmp_path / "t.json")]) == 2 and main(["--trace", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.count("\n") == 2
