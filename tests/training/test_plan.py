"""Plans against measurement: the estimate for the real size lies within 25 % of what that size then takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from typer.testing import CliRunner

from geonode.cli import app
from geonode.config import GeodesicConfig
from geonode.data import simulate_assay
from geonode.training.memory import workspace_bytes, workspaces_of
from geonode.training.plan import Plan, measured_step, peak_allocated, plan
from geonode.training.problem import fit_gp


def test_the_peak_is_what_was_held_at_once():
    def action():
        first = torch.zeros(1_000_000)
        second = first + 1.0
        del first, second
        torch.zeros(1_500_000)

    assert peak_allocated(action) == pytest.approx(8_000_000, rel=0.01)


@pytest.mark.parametrize(
    ("config", "models"),
    [
        (GeodesicConfig(flow="path_independent", wavelengths_per_step=None), 2),  # 601 wavelengths from 150 and 300
        (GeodesicConfig(flow="path_independent"), 6),  # six from one
        (GeodesicConfig(flow="velocity", batch_size=8, micro_batch=4, wavelengths_per_step=32), 3),
    ],
    ids=["wavelengths", "models", "pairs"],
)
def test_memory_is_foretold_within_a_quarter(config, models):
    assay = simulate_assay()
    estimate = plan(config, assay, models)
    width = config.wavelengths_per_step or 601
    measured = measured_step(config, fit_gp(assay), assay, width, models, "cpu")
    assert estimate.activations + estimate.solver == pytest.approx(measured, rel=0.25)


@pytest.mark.parametrize("above", [2**9, 2**10, 2**30], ids=["between both", "behind both", "never"])
def test_memory_of_shooting_is_foretold_on_either_side_of_rebuilding(above, monkeypatch):
    """Beyond a number of paths less is kept: a line through one point before and one behind leads below zero."""
    from geonode.geodesic import ivp
    from geonode.training import plan as module

    monkeypatch.setattr(ivp, "_CHECKPOINT_ABOVE", above)
    monkeypatch.setattr(module, "_FEW", 8)
    monkeypatch.setattr(module, "measured_rate", lambda *_: module.Rate(0.0, 1.0, 0.0))
    assay = simulate_assay(wavelengths=[300.0 + 10.0 * k for k in range(40)])
    config = GeodesicConfig.blueprint(
        precision="32-true", solver="rk4", batch_size=4, micro_batch=4, metric_hidden=(16, 16), ode_steps=3,
        newton_steps=2,
    )  # fmt: skip
    estimate = plan(config, assay)
    measured = measured_step(config, fit_gp(assay), assay, 40, 1, "cpu")
    assert estimate.activations + estimate.solver == pytest.approx(measured, rel=0.25)
    assert estimate.activations > 0


@pytest.mark.parametrize(
    ("parts", "measured"),
    [(17_390_216, 190_726_144), (417_365_184, 650_345_984)],  # 2 and 48 models on an H100, each in its own process
)
def test_memory_recorded_on_a_gpu_lies_within_a_quarter_of_parts_and_workspaces(parts, measured):
    assert parts + workspaces_of(9) == pytest.approx(measured, rel=0.25)
    assert workspaces_of(7) == 5 * (8192 + 128) * 1024 < workspaces_of(9) and workspace_bytes("cpu") == 0


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize("models", [2, 48])
def test_memory_on_a_gpu_is_foretold_within_a_quarter(models):
    """Against a process of its own, in which no workspace is held beforehand."""
    code = f"""
import torch
from geonode.config import GeodesicConfig
from geonode.data import simulate_assay
from geonode.training import build_problem, train
from geonode.training.problem import fit_gp
assay, config = simulate_assay(), GeodesicConfig(flow="path_independent", epochs=5)
train(build_problem([fit_gp(assay)] * {models}, assay.wavelengths, config).to("cuda", torch.float32), config)
print(torch.cuda.max_memory_allocated())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    measured, foretold = (
        int(done.stdout.splitlines()[-1]),
        plan(GeodesicConfig(flow="path_independent", epochs=5), simulate_assay(), models, "cuda"),
    )
    print(
        f"{models} models: {foretold.total} bytes foretold, {foretold.library} of them libraries, {measured} measured"
    )
    assert foretold.total == pytest.approx(measured, rel=0.25)


class _Machine(TorchDispatchMode):
    """A clock that nothing on this machine disturbs: of a processor on which an operator takes 2 µs, and 1 ns for each
    number that it returns."""

    now = 0.0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        numbers = sum(
            part.numel() for part in (out if isinstance(out, list | tuple) else [out]) if torch.is_tensor(part)
        )
        self.now += 2e-6 + 1e-9 * numbers
        return out

    def perf_counter(self) -> float:
        return self.now


@pytest.mark.parametrize(("models", "wavelengths"), [(1, 64), (4, 64), (1, None)])
def test_time_is_foretold_within_a_quarter(models, wavelengths, monkeypatch):
    from geonode.training import build_problem, train
    from geonode.training import plan as module

    assay = simulate_assay()
    config = GeodesicConfig(flow="path_independent", epochs=12, wavelengths_per_step=wavelengths)
    problem = build_problem([fit_gp(assay)] * models, assay.wavelengths, config).to("cpu", torch.float32)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # several stacks would be measured in threads, which the clock does not see
    try:
        with _Machine() as machine:
            monkeypatch.setattr(module, "time", machine)
            estimate, start = plan(config, assay, models).total_seconds, machine.now
            train(problem, config)
    finally:
        torch.set_num_threads(threads)
    assert estimate == pytest.approx(machine.now - start, rel=0.25)
    assert machine.now - start > 0.01  # a training, not nothing


def test_stacks_that_are_trained_at_once_are_measured_at_once(monkeypatch):
    """Three threads that wait for each other: one after another they would wait for ever. Wall-clock time of several
    threads is no test beside other tests."""
    from geonode.training import plan as module

    together, before = threading.Barrier(3, timeout=60), torch.get_num_threads()

    def rate(problem, config):
        together.wait()
        return 1.0, 2.0 + torch.get_num_threads(), 0.5

    monkeypatch.setattr(module, "measured_rate", rate)
    assert module.measured_side_by_side(None, GeodesicConfig(flow="path_independent"), 3) == (
        1.0,
        3.0,
        0.5,
    )  # a thread of its own each
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    "models, stacked, threads, rounds",
    [
        (1, 1, 2, [(1, 1)]),
        (4, 1, 2, [(1, 2), (1, 2)]),
        (5, 1, 2, [(1, 2), (1, 2), (1, 1)]),
        (5, 2, 2, [(2, 2), (1, 1)]),
        (48, 42, 1, [(42, 1), (6, 1)]),
        (90, 42, 2, [(42, 2), (6, 1)]),
        (48, 42, 2, [(42, 2)]),
        (3, 1, 8, [(1, 3)]),
    ],
)
def test_stacks_are_foretold_in_the_rounds_they_are_trained_in(monkeypatch, models, stacked, threads, rounds):
    """(size, at once) of each round; a round takes seconds of its own, and each kind is measured once."""
    from geonode.training.plan import _in_rounds

    def seconds(size, at_once):
        asked.append((size, at_once))
        return 0.1, 100.0 * size + at_once

    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    _, whole = _in_rounds(seconds, models, stacked, torch.device("cpu"))
    assert whole == sum(100.0 * size + at_once for size, at_once in rounds)
    assert sorted(asked) == sorted(set(rounds))


def test_on_a_gpu_the_stack_is_one_round():
    from geonode.training.plan import _in_rounds

    assert _in_rounds(lambda size, at_once: (0.1, size * at_once), 48, 48, torch.device("cuda")) == (0.1, 48)


def test_slow_steps_are_taken_once(monkeypatch):
    from geonode.training import build_problem
    from geonode.training import plan as module

    assay, config = simulate_assay(), GeodesicConfig(flow="path_independent", epochs=12, wavelengths_per_step=16)
    problem = build_problem([fit_gp(assay)], assay.wavelengths, config).to("cpu", torch.float32)
    taken, take = [], module.StackSteps.take
    monkeypatch.setattr(module.StackSteps, "take", lambda self, *key: taken.append(key) or take(self, *key))
    monkeypatch.setattr(module, "_SLOW", 0.0)
    rate = module.measured_rate(problem, config)
    assert min(rate) > 0.0 and len(taken) == 1


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.skipif(
    os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1") != "1",
    reason="time is foretold for a card that does nothing else: pytest -n0 -m gpu tests/training/test_plan.py",
)
@pytest.mark.parametrize("models", [2, 48])
@pytest.mark.parametrize("epochs", [500, 2000])  # 48 models take 0.3 s to begin, and as long for 300 epochs
def test_time_on_a_gpu_is_foretold_within_a_quarter(models, epochs):
    from geonode.training import build_problem, train

    assay, config = simulate_assay(), GeodesicConfig(flow="path_independent", epochs=epochs)
    problem = build_problem([fit_gp(assay)] * models, assay.wavelengths, config).to("cuda", torch.float32)
    train(problem, config.replace(epochs=3))
    ratios = []
    for _ in range(3):
        estimate = plan(config, assay, models, "cuda").total_seconds
        torch.cuda.synchronize()
        start = time.perf_counter()
        train(problem, config)
        torch.cuda.synchronize()
        ratios.append(estimate / (time.perf_counter() - start))
    print(f"{models} models, {epochs} epochs: {ratios} of the time measured was foretold")
    assert 0.75 <= sorted(ratios)[1] <= 1.25, ratios


def test_memory_foretold_is_memory_the_process_grows_by():
    """Not by torch's own counting but by the kernel's: resident memory of a process that takes one large step."""
    code = """
import json, torch
torch.set_num_threads(1)
from geonode.config import GeodesicConfig
from geonode.data import simulate_assay
from geonode.training import BatchSource, build_problem, losses
from geonode.training.problem import fit_gp
from geonode.training.plan import plan
assay = simulate_assay()
config = GeodesicConfig(flow="path_independent", wavelengths_per_step=None)
estimate = plan(config, assay, 12)
problem = build_problem([fit_gp(assay)] * 12, assay.wavelengths, config).to("cpu", torch.float32)
ode = problem.build_model(config, 0)
batch = BatchSource(problem, ode.table, config).batch(0, 0)
status = lambda name: int(open("/proc/self/status").read().split(name + ":")[1].split()[0]) * 1024
before, earlier = status("VmRSS"), status("VmHWM")  # not ru_maxrss, which a process inherits from its parent
losses(ode, batch, config.loss.at(1.0))["total"].sum().backward()
peak = status("VmHWM")
assert peak > earlier, "nothing is seen of the step: more was held before it"
print(json.dumps([estimate.activations + estimate.gradients, peak - before]))
"""
    if sys.platform != "linux":
        pytest.skip("reads /proc")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    foretold, grown = json.loads(done.stdout.splitlines()[-1])
    assert foretold == pytest.approx(grown, rel=0.25)


def test_what_fits_follows_from_the_parts():
    one = Plan(1, 1, 2, 6, 60, 30, 0.1, 1.0, 10, 2, 2, 5, 18.0)
    assert one.fixed == 10 and one.total == 100
    assert one.fits(120) and not one.fits(100)  # 85 % of a device are usable
    assert one.largest_micro_batch(200) == 8  # (170 − 10) / 18
    assert one.largest_stack(1000) == 17
    held = Plan(1, 1, 2, 6, 60, 30, 0.1, 1.0, 10, 2, 2, 5, 18.0, library=20)
    assert held.total == 120 and held.largest_stack(1000) == 16  # (850 − 20) / 50
    assert Plan(1, 1, 2, 6, 60, 30, 0.1, 1.0, 10, 2, 2, 5, 0.0).largest_micro_batch(200) is None


def test_the_command_names_parts_and_devices(tmp_path):
    settings = tmp_path / "settings.json"
    settings.write_text(GeodesicConfig(epochs=3, metric_hidden=(8, 8), table_nodes=16).to_json())
    result = CliRunner().invoke(app, ["plan", str(settings), "--device", "cpu"])
    assert result.exit_code == 0, result.output
    for word in (
        "weights",
        "optimizer",
        "activations",
        "solver",
        "T4, 16 GB",
        "H100",
        "fits",
        "3 steps",
        "laptop with MPS",
    ):
        assert word in result.output
    result = CliRunner().invoke(app, ["doctor", "--fit", str(settings), "--device", "cpu"])
    assert result.exit_code == 0, result.output
    assert "python" in result.output and "H100, 80 GB" in result.output and "3 steps" in result.output
    settings.write_text(json.dumps({"epoch": 3}))
    result = CliRunner().invoke(app, ["plan", str(settings)])
    assert result.exit_code == 2 and "Unknown setting 'epoch'" in result.output
    result = CliRunner().invoke(app, ["plan", str(tmp_path / "nothing.json")])
    assert result.exit_code == 2 and "nothing.json" in result.output
