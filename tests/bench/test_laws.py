"""The benchmark itself: laws of its arithmetic, a red case without a time, and what it refuses."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from geonode import training
from geonode.bench import (
    ceilings,
    extras,
    finish,
    host,
    peers,
    problem,
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
