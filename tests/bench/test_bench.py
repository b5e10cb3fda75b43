"""The benchmark itself: laws of its arithmetic, a red case without a time, and what it refuses."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from rich.console import Console

from geonode import training
from geonode.bench import (
    activity,
    activity_ncu,
    advice,
    ceilings,
    compare,
    extras,
    finish,
    host,
    nvml,
    peers,
    plots,
    problem,
    targets,
    terminal,
    timing,
    worker,
)
from geonode.bench.case import CASES, Case, Checked, Setting, Size, Work, load, select
from geonode.bench.ceilings import floor
from geonode.bench.correctness import compare as compare_tensors
from geonode.bench.correctness import relative_error
from geonode.bench.noise import noise
from geonode.bench.timing import quantiles
from geonode.errors import InputError

ROOT = Path(__file__).resolve().parent.parent.parent
CPU = Setting("cpu", "quick")


@pytest.mark.parametrize(("name", "peer"), peers.PEERS.items())
def test_a_peer_that_is_not_installed_is_skipped_and_named(monkeypatch, name, peer):
    monkeypatch.setattr(peers, "find_spec", lambda module: None)
    (answer,) = peers.run(name, [5, 7], "cpu", 0.01)
    assert answer["status"] == "skipped" and answer["reason"].startswith(f"{peer.needs[0]} is not installed (pip")


def test_waiting_threads_sleep_on_a_cpu_unless_told_otherwise(monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    assert host.environment("cpu")["OMP_WAIT_POLICY"] == "PASSIVE"
    assert "OMP_WAIT_POLICY" not in host.environment("cuda")
    assert host.environment("cuda")["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    assert host.environment("cpu")["OMP_WAIT_POLICY"] == "ACTIVE"


# ---------------------------------------------------------------------- laws


def test_reference_is_converged_and_prefix_stable():
    assert problem.error(problem.reference(16, steps=60), problem.reference(16, steps=120)) < 1e-9
    assert np.array_equal(problem.points(10)[1], problem.points(1000)[1][:10])


def test_reference_conserves_energy():
    c, v, wavelength = (a.astype("float64") for a in problem.points(64))
    w = [x.astype("float64") for x in problem.weights()]

    def metric(c):
        h = np.tanh(np.tanh(np.outer(c, w[0][:, 0]) + np.outer(wavelength, w[0][:, 1]) + w[1]) @ w[2].T + w[3])
        return np.logaddexp(0.0, h @ w[4][0] + w[5][0]) + problem.FLOOR

    end = problem.reference(64)
    assert np.allclose(metric(c) * v**2, metric(end[0]) * end[1] ** 2, rtol=1e-8)


def test_quantiles_are_ordered_and_exact_on_a_line():
    assert quantiles([float(x) for x in range(11)]) == {"median": 5.0, "q20": 2.0, "q80": 8.0}
    assert quantiles([3.0]) == {"median": 3.0, "q20": 3.0, "q80": 3.0}


def test_the_headline_lies_between_its_quantiles_where_processes_differ():
    row = {
        "status": "green", "samples_ms": [12.0, 13.0, 14.0, 12.5, 13.5], "restarts_ms": [[28.0, 29.0, 30.0]],
        "counts": {"odes": 1}, "operations": {}, "bytes": 8.0,
    }  # fmt: skip
    finish.finish([row], {}, {})
    assert row["ms"] == (13.0 + 29.0) / 2
    assert row["q20_ms"] < row["ms"] < row["q80_ms"]


def test_noise_covers_repeated_runs():
    """Two runs of the same cases differ by less than the reported noise in at least 90 % of them."""
    rng = np.random.default_rng(0)
    inside = total = 0
    for _ in range(60):
        spread = rng.uniform(0.005, 0.02, 12)
        one, two = (np.exp(spread[:, None] * rng.standard_normal((12, 3))) for _ in range(2))
        allowed = np.maximum(*(np.array(noise(x.tolist()), dtype=float) for x in (one, two)))
        inside += (np.abs(np.log(np.median(one, 1) / np.median(two, 1))) <= allowed).sum()
        total += 12
    assert inside / total > 0.93
    assert (allowed < 0.12).all()  # and it is not so wide that it says nothing


@pytest.mark.parametrize(("processes", "all_of_them", "noisy"), [(2, 0.90, 0.79), (3, 0.94, 0.88)])
def test_noise_of_unlike_cases_covers_what_its_description_says(processes, all_of_them, noisy):
    rng = np.random.default_rng(0)
    spread = np.r_[np.full(10, 0.003), np.full(9, 0.12)]
    inside = []
    for _ in range(400):
        one, two = (np.exp(spread[:, None] * rng.standard_normal((19, processes))) for _ in range(2))
        allowed = np.maximum(*(np.array(noise(x.tolist()), dtype=float) for x in (one, two)))
        inside.append(np.abs(np.log(np.median(one, 1) / np.median(two, 1))) <= allowed)
    assert np.mean(inside) == pytest.approx(all_of_them, abs=0.02)
    assert np.mean(np.array(inside)[:, 10:]) == pytest.approx(noisy, abs=0.02)


def test_energy_is_per_spectrum_per_ode_per_point_or_per_call():
    seen = {"energy_counter_j": 20.0, "energy_seconds": 2.0}
    for counts, unit, joules in (
        ({"samples": 2.0, "odes": 10.0}, "samples", 2.5),
        ({"odes": 10.0}, "odes", 0.5),
        ({"points": 5.0}, "points", 1.0),
        ({}, "call", 5.0),
    ):
        row = {"counts": counts, "activity": seen, "window": {"begin": 0.0, "end": 2.0, "calls": 4}}
        finish._energy(row, {"power_w": 4.0})
        energy = row["energy"]
        assert energy["unit"] == unit and energy["per_unit_gross_j"] == pytest.approx(joules)
        assert energy["per_unit_net_j"] == pytest.approx(0.6 * joules)  # 4 of 10 W are there at rest


@pytest.mark.parametrize(
    ("name", "size", "least"),
    [
        ("geodesic-shoot", Size(3, 5), 15 * (3 + 6) * 4),  # two ends and λ read, six results written
        ("node-step-closed-form", Size(3, 5), 15 * 2 * 4),  # source and target read
        ("train-step", Size(6, 5), 3 * 5 * 4 * 3),  # three levels make the six pairs; three steps a call on a CPU
    ],
)
def test_bytes_are_the_least(name, size, least):
    assert load()[name].build(CPU, size).bytes == least


def test_values_of_a_formula_are_not_called_odes():
    for name in ("christoffel-exact", "christoffel-fd", "christoffel-grid"):
        counts = load()[name].build(CPU, Size(2, 3)).counts
        assert counts == {"points": 6} and terminal.rate({"rates": {"points": 6.0}}) == "6 points"


def test_noise_of_one_process_is_unknown():
    assert noise([[1.0], [2.0]]) == [None, None]


def test_floor_is_the_slowest_unit():
    rates = {"copy": 1e12, "fp32": 1e13}
    assert floor({"fp32": 1e10}, 1e8, rates) == {
        "ms": 1.0,
        "binding": "fp32",
        "by_ceiling_ms": {"fp32": 1.0, "copy": 0.1},
    }
    assert floor({}, 0.0, rates) == {}


class _Clock:
    """A device of NVML that tells this highest clock (MHz), or raises what ``told`` is."""

    api = SimpleNamespace(NVML_CLOCK_SM=1)

    def __init__(self, told):
        if isinstance(told, Exception):
            raise told
        self.told = told

    def ask(self, function, *arguments):
        assert (function, arguments) == ("nvmlDeviceGetMaxClockInfo", (1,))
        return self.told


@pytest.mark.parametrize(
    ("kilohertz", "told", "rate", "says"),
    [
        ({"clock_rate": 1_980_000}, RuntimeError("not asked"), 132 * 16 * 1.98e9, "derived, not measured"),
        ({}, 1980, 132 * 16 * 1.98e9, "derived, not measured"),
        ({}, None, 0.0, "NVML does not tell"),
        ({}, RuntimeError("nvidia-ml-py is not installed"), 0.0, "nvidia-ml-py is not installed"),
    ],
)
def test_a_ceiling_without_a_clock_says_why(monkeypatch, kilohertz, told, rate, says):
    monkeypatch.setattr(ceilings, "Device", lambda: _Clock(told))
    found, how = ceilings._special(SimpleNamespace(multi_processor_count=132, **kilohertz))
    assert found == pytest.approx(rate) and says in how


def test_nan_and_wrong_shapes_are_never_right():
    assert relative_error(torch.tensor([float("nan")]), torch.ones(1)) == float("inf")
    assert not compare_tensors([torch.ones(2)], [torch.ones(3)], ["x"], 1.0)[0].ok
    assert not Checked("x", float("nan"), 1.0).ok


@pytest.mark.parametrize(
    "name",
    [
        "christoffel-exact",
        "christoffel-fd",
        "christoffel-grid",
        "geodesic-closed-form",
        "node-step-fused",
        "infer-one",
    ],
)
def test_cases_are_green_at_a_small_size(name):
    work = load()[name].build(CPU, Size(3, 13))
    for i in range(work.rotations):
        work.run(i)
    assert all(row.ok for row in work.check()), work.check()


@pytest.mark.parametrize(("name", "size"), [("train-step", Size(6, 13)), ("ensemble-step", Size(2, 13))])
def test_training_is_green_and_one_step_short_is_not(monkeypatch, name, size):
    work = load()[name].build(CPU, size)
    assert all(row.ok for row in work.check()), work.check()
    real = training.train

    def wrong(problem, config, **options):
        single = problem.target.dtype == torch.float32
        return real(problem, config.replace(epochs=9) if single else config, **options)

    monkeypatch.setattr(training, "train", wrong)
    assert not all(row.ok for row in load()[name].build(CPU, size).check())


def test_a_long_call_is_measured_once_and_a_short_one_left_to_the_others(monkeypatch):
    monkeypatch.setattr(timing, "LONG", 0.02)
    found = timing.long_calls(lambda i: time.sleep(0.03), 1, "cpu", 0.0)
    assert found is not None and len(found["samples_ms"]) == found["window"]["calls"] == 1
    assert found["samples_ms"][0] >= 30.0 and found["host_us"] >= 30e3
    assert timing.long_calls(lambda i: None, 1, "cpu", 0.0) is None


def test_on_a_cpu_there_is_no_launch_to_tell_from_the_work(monkeypatch):
    monkeypatch.setattr(timing, "LONG", 0.02)
    case = Case("slow", "t", lambda s, z: Work(lambda i: time.sleep(0.03), list, {}), lambda s: [Size(1, 1)])
    row = worker.measure(case, CPU, Size(1, 1), {"first": True, "budget": 0.0, "longest_window": 0.0})
    assert row["mode"] == worker.LONG_CALLS and "host_us" not in row


def test_memory_of_a_sweep_is_each_size_s_own(monkeypatch):
    top = {"gb": 5.0}  # what the counter has seen since it was reset: a case before used much
    monkeypatch.setattr(extras, "reset_peak", lambda device: top.update(gb=0.0))
    monkeypatch.setattr(extras, "peak", lambda device: {"peak_gb": top["gb"]})

    def build(setting, size):
        return Work(lambda i: top.update(gb=max(top["gb"], size.pairs)), list, {})

    case = Case("x", "t", build, lambda s: [], sweep=lambda s: [Size(3, 1), Size(2, 1)])
    assert [point["memory_gb"] for _, point in extras.sweep(case, CPU, 0.0)] == [3, 2]


def test_select_takes_names_and_prefixes():
    assert [c.name for c in select(load(), ["geodesic-s"])] == ["geodesic-shoot"]
    with pytest.raises(InputError, match="--only x"):
        select(CASES, ["x"])


# ---------------------------------------------------------------------- activity


class FakeApi:
    """As much of pynvml as the device asks; its counters stand for 80 % busy multiprocessors."""

    NVML_SUCCESS, NVML_GPM_METRICS_GET_VERSION = 0, 1

    class NVMLError(Exception):
        pass

    class c_nvmlGpmMetricsGet_t:
        def __init__(self):
            metric = type("Metric", (), {"metricId": 0, "nvmlReturn": 0, "value": 0.0})
            self.metrics = [metric() for _ in range(8)]

    def __getattr__(self, name):
        if name.startswith("NVML_GPM_METRIC_"):
            return list(nvml.GPM.values()).index(name)
        raise AttributeError(name)

    def nvmlGpmMetricsGet(self, request):
        for metric in request.metrics[: request.numMetrics]:
            metric.value = 80.0 - 10.0 * metric.metricId
        request.metrics[4].nvmlReturn = 1  # this one is not told
        return request


def test_gpm_metrics_are_read_by_name_and_missing_ones_left_out():
    device = object.__new__(nvml.Device)
    device.handle, device.api = None, FakeApi()
    values = device.gpm_between("first", "last")
    assert values == {"sm_activity": 80.0, "sm_occupancy": 70.0, "tensor_activity": 60.0, "fp32_activity": 50.0}


@pytest.mark.parametrize(
    ("told", "found"),
    [(None, ("index", 0)), ("", ("index", 0)), ("2,1", ("index", 2)), ("GPU-ab12,GPU-cd34", ("uuid", "GPU-ab12"))],
)
def test_the_device_watched_is_the_one_cuda_shows_first(monkeypatch, told, found):
    if told is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", told)
    api = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByIndex=lambda index: ("index", index),
        nvmlDeviceGetHandleByUUID=lambda uuid: ("uuid", uuid),
    )
    monkeypatch.setitem(sys.modules, "pynvml", api)
    assert nvml.Device().handle == found


def test_energy_by_integration_and_by_counter():
    rows = [{"t": 0.1 * k, "power_w": 300.0, "energy_j": 30.0 * k, "throttle": 4 * (k == 3)} for k in range(101)]
    summary = activity.summarise(rows)
    assert summary["energy_seconds"] == pytest.approx(10.0)
    assert summary["energy_counter_j"] == pytest.approx(summary["energy_integrated_j"]) == pytest.approx(3000.0)
    assert summary["throttle_reasons"] == ["software power cap"]
    check = finish.energy_check([{"case": "x", "label": "1×1", "activity": summary}])
    assert check is not None and abs(check["difference"]) < 1e-6 and "agree" in check["trusted"]
    off = {**summary, "energy_counter_j": 2000.0}
    check = finish.energy_check([{"case": "x", "label": "1×1", "activity": off}])
    assert check is not None and "trust the counter" in check["trusted"]


def test_dcgm_lines():
    line = "GPU 0     0.912     0.450     0.301     0.120     0.210   \n"
    expected = {
        "sm_activity": 91.2,
        "sm_occupancy": 45.0,
        "tensor_activity": 30.1,
        "dram_activity": 12.0,
        "fp32_activity": 21.0,
    }
    assert activity.parse_dcgm(line) == pytest.approx(expected)
    assert activity.parse_dcgm("#Entity   SMACT        SMOCC") == {}
    assert activity.parse_dcgm("GPU 0  N/A N/A N/A N/A N/A") == {}


NCU = """==PROF== Connected
"ID","Kernel Name","gpu__time_duration.sum","sm__cycles_active.avg.pct_of_peak_sustained_elapsed"
"","","usecond","%"
"0","a","30.0","90.0"
"1","b","10.0","50.0"
"""


def test_ncu_activity_is_weighted_by_time_and_by_the_idle_time_between():
    kernels = activity_ncu.parse(NCU)
    assert [k["ns"] for k in kernels] == [30e3, 10e3]
    assert activity_ncu.combine(kernels, call_ms=0.04)["sm_activity"] == pytest.approx(80.0)
    assert activity_ncu.combine(kernels, call_ms=0.08)["sm_activity"] == pytest.approx(40.0)


def test_monitor_on_a_cpu_names_its_rung():
    monitor = activity.Monitor("cpu")
    begin = time.monotonic()
    time.sleep(0.5)
    window = monitor.window(begin, begin + 0.5)
    monitor.stop()
    assert window["rung"] == monitor.rung == "cpu" and 0.0 <= window["cpu_busy"] <= 100.0


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
