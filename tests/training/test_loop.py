"""The loop: checkpoints that resume to the bit, SIGTERM, roll-back, logs, and the best state that it ends in."""

from __future__ import annotations

import csv
import json
import os
import signal
from functools import partial
from pathlib import Path

import pytest
import torch

import geonode
from geonode.errors import InputError, Interrupted, TrainingError
from geonode.flow.base import FLOWS
from geonode.training import BatchSource, SpectralDataModule, build_problem, fit_gp, train
from geonode.training.checkpoint import CheckpointFolder, StopOnSigterm, newest_checkpoint
from geonode.training.monitoring import Monitoring
from geonode.training.standards import train_standards
from geonode.training.steps import LossStep, data_loss
from tests.forks import python

HERE = Path(__file__).resolve().parent


def _weights(ode):
    return {name: p.detach().clone() for name, p in ode.named_parameters()}


def _problem(assay, config):
    return SpectralDataModule(assay, config).problem.to("cpu", torch.float64)


class _SigtermAfter:
    """Keeps the progress it is told, and sends this process SIGTERM, or another signal, after an epoch."""

    def __init__(self, epoch: int | None, number: int = signal.SIGTERM) -> None:
        self.epoch, self.number = epoch, number
        self.seen: list[tuple[int, int]] = []

    def __call__(self, done: int, total: int) -> None:
        self.seen.append((done, total))
        if done == self.epoch:
            os.kill(os.getpid(), self.number)


# ------------------------------------------------------------------ the best state

FLOWS_OF_ONE = [name for name in FLOWS.names() if not FLOWS[name].several_analytes and FLOWS[name].needs_training]


def _random(problem, config, seed=0):
    """A model whose every parameter is drawn: no least squares, no singular vectors."""
    ode = problem.build_model(config, seed)
    draws = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in [*ode.metric.parameters(), *ode.flow.parameters()]:
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=draws, dtype=torch.float64))
    return ode


@pytest.mark.parametrize("flow", FLOWS_OF_ONE)
def test_from_a_random_start_the_data_loss_of_every_flow_falls_far_below_it(folds, assay, small, flow):
    config = small.replace(flow=flow, epochs=70, metric_lr=1e-2, flow_lr=3e-2, nodes=8)
    problem = build_problem(folds[:2], assay.wavelengths, config).to("cpu", torch.float64)
    outcomes = []
    ode = train(problem, config, ode=_random(problem, config), report=outcomes.append)
    (outcome,) = outcomes
    assert (outcome.best < 0.3 * outcome.start).all(), outcome.best / outcome.start
    own = data_loss(ode, BatchSource(problem, ode.table, config))
    torch.testing.assert_close(own, outcome.best, rtol=1e-9, atol=0)


@pytest.mark.parametrize("flow", FLOWS_OF_ONE)
@pytest.mark.parametrize("rate", [1e-3, 0.3], ids=["usual rate", "a rate that throws it about"])
def test_from_a_fitted_start_the_data_loss_of_every_flow_never_ends_above_it(folds, assay, small, flow, rate):
    config = small.replace(flow=flow, epochs=12, metric_lr=rate, flow_lr=rate, nodes=8)
    problem = build_problem(folds[:2], assay.wavelengths, config).to("cpu", torch.float64)
    source = lambda ode: BatchSource(problem, ode.table, config)  # noqa: E731
    fitted = problem.build_model(config, 0)
    start = data_loss(fitted, source(fitted))
    once = train(problem, config)
    then = data_loss(once, source(once))
    assert (then <= start).all()
    again = train(problem, config, seed=1, ode=once)  # from where it ended
    assert (data_loss(again, source(again)) <= then).all()


# ------------------------------------------------------------------ checkpoints


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_twenty_times_and_resumed_the_weights_are_those_of_the_uninterrupted_run(tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = python(HERE / "kill_and_resume.py", tmp_path, 20, 1, env=environment, timeout=500)
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert outcome == {"killed": 20, "unreadable": 0, "equal": True}


VARIANTS = [
    {},
    {"flow": "velocity", "batch_size": 8, "micro_batch": 4, "precision": "32-true"},
    {"flow": "free", "wavelengths_per_step": 5},
]


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_sigterm_finishes_the_epoch_checkpoints_and_resumes_to_the_bit(assay, small, tmp_path, one_thread, changes):
    """Twice in one training: between two looks at the losses, and at a look. Finished, it is given again."""
    config = small.replace(epochs=7, **{"wavelengths_per_step": 7, **changes})
    gp = fit_gp(assay)
    whole = train_standards(assay, gp, config, device="cpu")
    before, done = signal.getsignal(signal.SIGTERM), 0
    for stop in (3, 5, None, None):
        progress = _SigtermAfter(stop)
        run = partial(train_standards, assay, gp, config, device="cpu", progress=progress, checkpoint=tmp_path)
        if stop is not None:
            with pytest.raises(Interrupted, match=f"after epoch {stop}, which is kept in .*resume=True"):
                run(resume=done > 0)
            assert newest_checkpoint(tmp_path).name == f"epoch-{stop:06d}.ckpt"
        else:
            resumed = run(resume=True)
            assert resumed.outcome.history == whole.outcome.history and len(whole.outcome.history) == 7
            for name, value in _weights(resumed.ode).items():
                assert torch.equal(value, _weights(whole.ode)[name]), name
        assert signal.getsignal(signal.SIGTERM) == before
        assert progress.seen == [(epoch, 7) for epoch in range(done + 1, (stop or 7) + 1)]
        done = stop or 7


def test_resuming_a_finished_fit_gives_it_again_with_its_history(assay, small, tmp_path):
    once = geonode.fit(assay, small, device="cpu", checkpoint=tmp_path)
    again = geonode.fit(assay, small, device="cpu", checkpoint=tmp_path, resume=True)
    assert again.history == once.history and len(once.history) == 4
    for name, value in _weights(again.ode).items():
        assert torch.equal(value, _weights(once.ode)[name]), name


@pytest.mark.parametrize("first, second", [(1, 2), (2, 1), (2, 6)])
def test_a_checkpoint_is_of_models_not_of_the_chunks_they_were_trained_in(
    folds, assay, small, tmp_path, monkeypatch, first, second, away
):
    from geonode.training import ensemble

    config = small.replace(epochs=8)
    problem = build_problem(folds * 2, assay.wavelengths, config).to("cpu", torch.float64)
    whole = train(problem, config)
    keep = CheckpointFolder(tmp_path, "this training")
    monkeypatch.setattr(ensemble, "chunk_size", lambda *_: first)
    with pytest.raises(Interrupted):
        train(problem, config, progress=_SigtermAfter(3), keep=keep, stops=True)
    monkeypatch.setattr(ensemble, "chunk_size", lambda *_: second)
    resumed = train(problem, config, keep=keep, resume=True)
    for name, value in _weights(resumed).items():
        torch.testing.assert_close(value, _weights(whole)[name], rtol=0, atol=1e-9, msg=name)


def test_sigterm_without_checkpoints_is_no_success(assay, small):
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted, match="after epoch 3, and nothing is kept; with checkpoint it would be"):
        train_standards(assay, fit_gp(assay), small.replace(epochs=8), device="cpu", progress=_SigtermAfter(3))
    assert signal.getsignal(signal.SIGTERM) == before


def test_outside_the_main_thread_no_signal_is_listened_for():
    from threading import Thread

    def run():
        with StopOnSigterm() as stop:
            found.append((signal.getsignal(signal.SIGTERM), stop.asked))

    found: list = []
    thread = Thread(target=run)
    thread.start()
    thread.join()
    assert found == [(signal.getsignal(signal.SIGTERM), False)]


def test_a_checkpoint_of_another_training_is_refused(assay, small, tmp_path):
    gp = fit_gp(assay)

    def fit(**changes):
        options = {name: changes.pop(name) for name in ("resume", "checkpoint") if name in changes}
        return train_standards(assay, gp, small.replace(**changes), device="cpu", **{"checkpoint": tmp_path, **options})

    fit()
    before = sorted(tmp_path.iterdir())
    for changes in ({"seed": 5}, {"epochs": 6}, {"flow_lr": 0.1}):
        for resume in (True, False):  # beside a later epoch of the other its own checkpoints would be the ones to go
            with pytest.raises(InputError, match="other standards, settings or seed"):
                fit(resume=resume, **changes)
    with pytest.raises(InputError, match="needs checkpoint"):
        fit(resume=True, checkpoint=None)
    with pytest.raises(InputError, match=r"written by a training on one device, and this one runs on several devices"):
        CheckpointFolder(tmp_path, kind="lightning")
    assert sorted(tmp_path.iterdir()) == before
    fit()  # the same training may start anew


def test_the_micro_batch_may_differ_when_a_training_is_resumed(assay, small, tmp_path):
    gp, config = fit_gp(assay), small.replace(flow="velocity", batch_size=12, epochs=6)
    options = {"device": "cpu", "checkpoint": tmp_path}
    whole = train_standards(assay, gp, config, device="cpu")
    with pytest.raises(Interrupted):
        train_standards(assay, gp, config.replace(micro_batch=4), progress=_SigtermAfter(3), **options)
    resumed = train_standards(assay, gp, config.replace(micro_batch=6), resume=True, **options)
    for name, value in _weights(resumed.ode).items():
        if name != "metric.network.mlp.biases.2":  # scales every length alike: Adam makes steps of its rounding
            torch.testing.assert_close(value, _weights(whole.ode)[name], rtol=0, atol=1e-9, msg=name)


# ------------------------------------------------------------------ losses that are no numbers


def _poison(monkeypatch, epochs):
    """Losses are NaN in these epochs."""
    usual = LossStep.inputs

    def inputs(self, epoch, batch):
        weights, *rest = usual(self, epoch, batch)
        return [weights * float("nan") if epoch in epochs else weights, *rest]

    monkeypatch.setattr(LossStep, "inputs", inputs)


def test_a_loss_that_is_no_number_rolls_back_and_resuming_remembers_it(assay, small, tmp_path, monkeypatch):
    config = small.replace(epochs=20)
    _poison(monkeypatch, {7})
    gp = fit_gp(assay)
    with pytest.warns(UserWarning, match="model 1 was not finite: back to its last good state .*1 of 3"):
        once = train_standards(assay, gp, config, device="cpu", checkpoint=tmp_path)
    assert all(torch.isfinite(p).all() for p in once.ode.parameters())
    with pytest.warns(UserWarning, match="model 1 was not finite"):
        again = train_standards(assay, gp, config, device="cpu", checkpoint=tmp_path, resume=True)
    assert again.outcome.rollbacks.tolist() == once.outcome.rollbacks.tolist() == [1, 1]


@pytest.mark.filterwarnings("ignore:.*was not finite")
def test_it_gives_up_after_three_roll_backs(assay, small, monkeypatch):
    config = small.replace(epochs=60)
    _poison(monkeypatch, set(range(60)))
    with pytest.raises(TrainingError, match="3 roll-backs"):
        train(_problem(assay, config), config)


@pytest.mark.filterwarnings("ignore:.*was not finite")
@pytest.mark.parametrize("solver", ["dopri5", "adjoint"])
@pytest.mark.parametrize("path", ["arc_length", "shooting"])
def test_where_an_adaptive_solver_finds_no_step_training_rolls_back(assay, small, solver, path):
    """torchdiffeq says so by an assertion, in the forward pass or, for the adjoint, backwards."""
    config = small.replace(
        flow="free", solver=solver, path=path, epochs=11, batch_size=30, wavelengths_per_step=None, newton_steps=2,
        ode_steps=4, rtol=1e-3, atol=1e-4,
    )  # fmt: skip
    problem = _problem(assay.select_wavelengths(slice(None, None, 4)), config)
    ode = problem.build_model(config, 0)
    good = _weights(ode)
    outcomes = []

    def broken(done, total):
        if done == 6:  # weights that no path survives, after the look that keeps the good ones
            with torch.no_grad():
                for parameter in stacks[0].optimizer.parameters:
                    parameter.fill_(1e30)

    from geonode.training import ensemble

    stacks = []

    class Watched(ensemble.StackSteps):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            stacks.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ensemble, "StackSteps", Watched)
        train(problem, config, ode=ode, progress=broken, report=outcomes.append)
    assert outcomes[0].rollbacks.tolist() == [1, 1] and outcomes[0].skipped.min() > 0
    assert all(torch.isfinite(p).all() for p in ode.parameters()) and good.keys() == _weights(ode).keys()
    assert (outcomes[0].best <= outcomes[0].start).all()


# ------------------------------------------------------------------ logs


def test_losses_norms_rates_and_counters_reach_csv_tensorboard_and_whoever_watches(assay, small, tmp_path):
    config = small.replace(epochs=7, flow="velocity", batch_size=10)
    told, calls = [], []

    def probe():
        calls.append(1)
        return {"power_w": 321.0}

    trained = train_standards(
        assay, fit_gp(assay), config, device="cpu", log_dir=tmp_path, probe=probe, watcher=told.append
    )
    (table,) = tmp_path.glob("csv/version_0/metrics.csv")
    rows = list(csv.DictReader(table.open()))
    assert [int(row["step"]) for row in rows] == [3 * epoch for epoch in range(1, 8)]  # 30 pairs, 10 in a step
    for row, past in zip(rows, trained.outcome.history, strict=True):
        assert float(row["loss/total"]) == pytest.approx(past["total"], rel=1e-9)
        assert float(row["gradient_norm/metric"]) >= 0 and float(row["gradient_norm/flow"]) > 0
        assert 0 < float(row["learning_rate/flow"]) <= config.training.flow_lr
    looks = [row for row in rows if row["rate/steps_per_s"]]
    assert [int(row["step"]) for row in looks] == [15, 21] and len(calls) == 2
    for row in looks:
        ratio = float(row["rate/samples_per_s"]) / float(row["rate/steps_per_s"])
        assert ratio == pytest.approx(2 * 20)  # two members, ten measured pairs and as many of the teacher's
        assert float(row["device/power_w"]) == 321.0 and float(row["metric/low"]) <= float(row["metric/high"])
    assert [values["epoch"] for values in told] == [5, 7] and told[-1]["epochs"] == 7
    assert told[-1]["evaluation/data_loss"] == pytest.approx(float(trained.outcome.best.mean()), rel=1e-9)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path / "tensorboard" / "version_0")).Reload()
    assert [event.step for event in events.Scalars("loss/total")] == [3 * epoch for epoch in range(1, 8)]
    train_standards(assay, fit_gp(assay), small, device="cpu", log_dir=tmp_path)
    assert (tmp_path / "csv/version_1/metrics.csv").is_file(), "a second training wrote over the first one's log"


def test_watching_changes_no_weight(assay, small):
    problem = _problem(assay, small)
    plain, watched = train(problem, small), train(problem, small, watch=Monitoring(watcher=lambda values: None))
    for name, value in _weights(plain).items():
        assert torch.equal(value, _weights(watched)[name]), name
