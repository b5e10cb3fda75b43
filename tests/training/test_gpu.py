"""On a CUDA device: no copies inside an epoch, every path captured, half precision by model, memory that runs out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from geonode.training import (
    BatchSource,
    SafetensorsIO,
    SpectralDataModule,
    build_problem,
    predict,
    train,
    train_module,
)
from geonode.training.chunks import select
from geonode.training.loss import losses
from geonode.training.memory import release

RUN = Path(__file__).with_name("under_lightning") / "ddp_run.py"

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here"),
]


def copies(action) -> int:
    """Copies between host and device while ``action`` runs."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        action()
        torch.cuda.synchronize()
    names = [event.name for event in profiler.events()]
    return sum("Memcpy HtoD" in name or "Memcpy DtoH" in name for name in names)


@pytest.mark.parametrize("backend", ["auto", "torch"])
@pytest.mark.parametrize("flow", ["path_independent", "velocity"])
def test_the_stacked_loop_copies_nothing_inside_an_epoch(folds, assay, small, backend, flow):
    config = small.replace(precision="32-true", wavelengths_per_step=7, flow=flow)
    problem = build_problem(folds, assay.wavelengths, config).to("cuda", torch.float32)

    def run(epochs):
        return lambda: train(problem, config.replace(epochs=epochs), backend=backend)

    run(2)()
    short, long = copies(run(5)), copies(run(25))
    print(f"{backend} {flow}: {(long - short) / 20} copies an epoch, {short} in 5 epochs with their start")
    assert long == short > 0  # zero would mean that the profiler saw nothing


def test_under_lightning_an_epoch_copies_no_more_than_its_log(assay, small):
    config = small.replace(precision="32-true", wavelengths_per_step=7)
    data = SpectralDataModule(assay, config)

    def run(epochs):
        return lambda: train_module(data, config.replace(epochs=epochs), "cuda")

    run(2)()
    per_epoch = (copies(run(25)) - copies(run(5))) / 20
    print(f"lightning: {per_epoch} copies an epoch")
    assert per_epoch <= 8  # losses of the history (four, at the end), a look every fifth epoch, Lightning's own


@pytest.mark.parametrize("changes", [{}, {"flow": "velocity", "batch_size": 8, "micro_batch": 4}], ids=str)
def test_under_lightning_the_step_is_captured_and_trains_the_same(assay, small, away, monkeypatch, changes):
    from geonode.training.lightning import module as lightning_module

    config = small.replace(precision="32-true", wavelengths_per_step=7, **changes)
    data = SpectralDataModule(assay, config)
    captured = train_module(data, config, "cuda")
    assert captured._steps._recorded  # the same step, forward, backward and update in one graph
    monkeypatch.setattr(lightning_module, "use_captured", lambda *_: False)
    plain = train_module(data, config, "cuda")
    assert not plain._steps._recorded
    spectra = [predict(m.ode, m.problem, m.problem.levels) for m in (captured, plain)]
    assert (spectra[0] - spectra[1]).abs().max() <= 1e-3 * spectra[1].abs().max()


def _trained_by_script(path, *words):
    """What `ddp_run.py` keeps; a process of its own, for its process group stays."""
    command = [sys.executable, str(RUN), str(path), "velocity", "cuda", "float32", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return SafetensorsIO().load_checkpoint(path)


@pytest.fixture(scope="module")
def unclipped(tmp_path_factory):
    """Trained by one process, without a strategy."""
    return _trained_by_script(tmp_path_factory.mktemp("unclipped") / "one.ckpt", "unclipped")


@pytest.mark.parametrize("strategy", ["fsdp", "deepspeed_stage_1", "deepspeed_stage_2", "deepspeed_stage_3"])
def test_strategies_that_cut_parameters_train_as_one_device_does(tmp_path, unclipped, strategy):
    if strategy.startswith("deepspeed"):
        pytest.importorskip("deepspeed", reason="needs the extra deepspeed")
    cut = _trained_by_script(tmp_path / "cut.ckpt", strategy)
    for ours, theirs in zip(cut["history"], unclipped["history"], strict=True):
        assert ours["reconstruction"] == pytest.approx(theirs["reconstruction"], rel=1e-3)
    shapes = [{name: tuple(w.shape) for name, w in kept["weights"].items()} for kept in (cut, unclipped)]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("precision", ["16-mixed", "bf16-mixed"])
@pytest.mark.parametrize("backend", ["torch", "triton"])
def test_half_precision_trains_in_the_stacked_loop(folds, assay, small, precision, backend):
    config = small.replace(precision=precision, epochs=12, scaler_init=2.0**40)
    problem = build_problem(folds, assay.wavelengths, config).to("cuda", torch.float32)
    seen = []
    ode = train(problem, config, seed=3, backend=backend, report=seen.append)
    exact = train(problem, config.replace(precision="32-true"), seed=3, backend="torch")
    assert not seen[0].rollbacks.any() and (seen[0].skipped.min() > 0) == (precision == "16-mixed")
    asked = problem.levels.cpu()
    error = (predict(ode, problem, asked) - predict(exact, problem, asked)).abs().max()
    assert error <= 2e-2 * float(problem.scale.max())


def test_velocity_paths_go_through_their_kernel_and_agree_with_torch(folds, assay, small):
    from geonode_kernels import _dispatch, paths_taken

    config = small.replace(flow="velocity", precision="32-true", batch_size=8)
    _dispatch._taken.clear()
    results = []
    for device, dtype in (("cpu", torch.float64), ("cuda", torch.float32)):
        problem = build_problem(folds, assay.wavelengths, config).to(device, dtype)
        ode = problem.build_model(config, 3)
        draws = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for parameter in ode.metric.parameters():
                noise = torch.randn(parameter.shape, generator=draws, dtype=torch.float64)
                parameter.add_(0.1 * noise.to(parameter))
        source = BatchSource(problem, ode.table, config, 3)
        drawn = source.batch(0, 0)
        pairs = torch.arange(4, device=device)  # the same pairs on both: each device draws its own
        batch = drawn._replace(
            start=problem.points[:, pairs], end=problem.points[:, pairs + 3], source=problem.target[:, pairs],
            target=problem.target[:, pairs + 3], weight=problem.weight[:, pairs], phi=None,
        )  # fmt: skip
        total = losses(ode, batch, {"reconstruction": 1.0})["total"]
        parameters = [*ode.metric.parameters(), *ode.flow.parameters()]
        gradients = torch.autograd.grad(total.sum(), parameters, allow_unused=True, materialize_grads=True)
        results.append([total.detach().cpu().double(), *(g.cpu().double() for g in gradients)])
    assert all(paths_taken()[op].startswith("triton") for op in ("path_points", "metric_value", "velocity_loss"))
    for exact, ours in zip(*results, strict=True):
        assert (exact - ours).norm() <= 2e-3 * exact.norm() + 1e-6


@pytest.mark.parametrize("flow", ["path_independent", "velocity"])
def test_training_together_equals_training_alone_in_float64(folds, assay, small, away, flow):
    config = small.replace(precision="64-true", epochs=10, flow=flow)
    problem = build_problem(folds * 5, assay.wavelengths, config).to("cuda", torch.float64)
    fresh = problem.build_model(config, config.seed)
    start = {name: parameter.detach().clone() for name, parameter in fresh.named_parameters()}
    together = dict(train(problem, config, ode=fresh, backend="torch").named_parameters())
    assert any(not torch.equal(together[name], value) for name, value in start.items())
    for m in (0, problem.models // 2, problem.models - 1):
        row = select(problem, m, 1)
        own = row.build_model(config, config.seed)
        with torch.no_grad():
            for name, parameter in own.named_parameters():
                if not name.startswith("warp."):
                    parameter.copy_(start[name][m : m + 1])
        for name, parameter in train(row, config, ode=own, backend="torch").named_parameters():
            if name != "metric.network.mlp.biases.2":  # a constant that changes nothing: Adam steps by its rounding
                torch.testing.assert_close(together[name][m], parameter[0], rtol=0, atol=1e-8, msg=name)


def test_memory_that_really_runs_out_ends_in_a_smaller_stack(folds, assay, small):
    # hidden units at every node, in no kernel
    config = small.replace(precision="32-true", epochs=2, flow="free", flow_hidden=256)
    problem = build_problem(folds * 16, assay.wavelengths, config).to("cuda", torch.float32)

    def reserved(models):
        release()
        torch.cuda.reset_peak_memory_stats()
        trained = train(select(problem, 0, models), config, seed=1, backend="torch")
        return trained, torch.cuda.max_memory_reserved()

    (whole, most), (_, half) = reserved(problem.models), reserved(problem.models // 2)
    assert most > half + 2**26
    release()
    torch.cuda.set_per_process_memory_fraction(0.5 * (most + half) / torch.cuda.get_device_properties(0).total_memory)
    try:
        with pytest.warns(UserWarning, match="Out of memory: anew with 24 models at a time"):
            parts = train(problem, config, seed=1, backend="torch")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    asked = problem.levels.cpu()
    torch.testing.assert_close(predict(parts, problem, asked), predict(whole, problem, asked), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("flow", ["path_independent", "velocity"])
def test_the_best_state_is_kept_by_captured_evaluations_too(folds, assay, small, away, flow):
    """Fixed draws, the same data loss captured or not, and never above the start."""
    config = small.replace(precision="32-true", epochs=20, flow=flow, wavelengths_per_step=7)
    problem = build_problem(folds, assay.wavelengths, config).to("cuda", torch.float32)
    outcomes = {}
    for backend in ("torch", "triton"):
        train(
            problem, config, seed=3, backend=backend, report=lambda outcome, at=backend: outcomes.update({at: outcome})
        )
    torch.testing.assert_close(outcomes["triton"].start, outcomes["torch"].start, rtol=1e-4, atol=0)
    torch.testing.assert_close(outcomes["triton"].best, outcomes["torch"].best, rtol=2e-2, atol=0)
    assert (outcomes["triton"].best < outcomes["triton"].start).all()


@pytest.mark.parametrize("changes", [{}, {"flow": "velocity", "batch_size": 8, "micro_batch": 4}], ids=str)
def test_a_captured_training_that_is_stopped_and_resumed_has_the_same_bits(assay, small, away, tmp_path, changes):
    from geonode.errors import Interrupted
    from geonode.training import fit_gp
    from geonode.training.standards import train_standards
    from tests.training.test_loop import _SigtermAfter

    config = small.replace(precision="32-true", epochs=10, wavelengths_per_step=7, **changes)
    gp = fit_gp(assay)
    whole = train_standards(assay, gp, config, device="cuda")
    with pytest.raises(Interrupted, match="after epoch 4"):
        train_standards(assay, gp, config, device="cuda", checkpoint=tmp_path, progress=_SigtermAfter(4))
    resumed = train_standards(assay, gp, config, device="cuda", checkpoint=tmp_path, resume=True)
    for (name, value), (_, other) in zip(resumed.ode.named_parameters(), whole.ode.named_parameters(), strict=True):
        assert torch.equal(value, other), name
