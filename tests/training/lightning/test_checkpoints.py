"""Killed, stopped, torn or diverged: training ends where the uninterrupted one would, or says why it cannot."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

from geonode.errors import InputError, Interrupted, OutputError, TrainingError
from geonode.training import SafetensorsIO, SpectralDataModule, train_module
from geonode.training.checkpoint import newest_checkpoint
from geonode.training.steps import LossStep

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent


def _weights(module):
    return {name: p.detach().clone() for name, p in module.ode.named_parameters()}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_twenty_times_and_resumed_the_weights_are_those_of_the_uninterrupted_run(tmp_path):
    code = [sys.executable, str(HERE.parent / "kill_and_resume.py"), str(tmp_path), "20", "1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(code, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert outcome == {"killed": 20, "unreadable": 0, "equal": True}


class _SigtermAfter:
    """Reports progress, and sends this process SIGTERM, or another signal, after an epoch."""

    def __init__(self, epoch: int, number: int = signal.SIGTERM) -> None:
        self.epoch, self.number = epoch, number

    def __call__(self, done: int, total: int) -> None:
        if done == self.epoch:
            os.kill(os.getpid(), self.number)


def test_sigterm_finishes_the_epoch_checkpoints_and_resumes_to_the_bit(assay, small, tmp_path, one_thread):
    config = small.replace(epochs=8, wavelengths_per_step=7)
    data = SpectralDataModule(assay, config)
    whole = train_module(data, config, "cpu")
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted, match="after epoch 3"):
        train_module(data, config, "cpu", checkpoint=tmp_path, progress=_SigtermAfter(3))
    assert signal.getsignal(signal.SIGTERM) == before
    assert [p.name for p in tmp_path.iterdir()] == ["epoch-000003.ckpt"]
    resumed = train_module(data, config, "cpu", checkpoint=tmp_path, resume=True)
    for name, value in _weights(resumed).items():
        assert torch.equal(value, _weights(whole)[name]), name
    assert resumed.history == whole.history


def test_sigterm_without_checkpoints_is_no_success(assay, small):
    """Left to itself Lightning would end the process with exit code 0 and no model."""
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted, match="after epoch 3, and nothing is kept"):
        train_module(SpectralDataModule(assay, small), small.replace(epochs=8), "cpu", progress=_SigtermAfter(3))
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.fixture
def ctrl_c():
    """Python's own handler of SIGINT, which a process started in the background does not have."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_is_a_keyboard_interrupt_and_works_a_second_time(assay, small, tmp_path, ctrl_c):
    data = SpectralDataModule(assay, small)
    before = ctrl_c
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            train_module(
                data, small.replace(epochs=8), "cpu", checkpoint=tmp_path, progress=_SigtermAfter(6, signal.SIGINT)
            )
        assert signal.getsignal(signal.SIGINT) == before
    assert [p.name for p in tmp_path.iterdir()] == ["epoch-000005.ckpt"]


def test_the_newest_intact_checkpoint_is_found_behind_torn_ones(assay, small, tmp_path):
    config = small.replace(epochs=12)
    train_module(SpectralDataModule(assay, config), config, "cpu", checkpoint=tmp_path)
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == ["epoch-000005.ckpt", "epoch-000010.ckpt", "epoch-000012.ckpt"]
    assert newest_checkpoint(tmp_path).name == names[2]
    last, middle = tmp_path / names[2], tmp_path / names[1]
    content = last.read_bytes()
    last.write_bytes(content[: len(content) // 2])  # torn
    middle.write_bytes(middle.read_bytes()[:-64] + bytes(64))  # its last block never reached the disk
    with pytest.warns(UserWarning, match="passed over"):
        assert newest_checkpoint(tmp_path).name == names[0]
    assert newest_checkpoint(tmp_path / "nothing") is None
    first = tmp_path / names[0]
    content = first.read_bytes()
    changed = content.replace(b"[0.003, 0.001]", b"[0.003, 0.009]", 1)  # the learning rates, which are no tensors
    assert changed != content
    first.write_bytes(changed)
    with pytest.warns(UserWarning, match="epoch-000005.ckpt was altered"):
        assert newest_checkpoint(tmp_path) is None


def test_a_checkpoint_of_another_training_is_refused(assay, small, tmp_path):
    data = SpectralDataModule(assay, small)
    train_module(data, small, "cpu", checkpoint=tmp_path)
    with pytest.raises(InputError, match="other standards, settings or seed"):
        train_module(data, small, "cpu", seed=5, checkpoint=tmp_path, resume=True)
    with pytest.raises(InputError, match="needs checkpoint"):
        train_module(data, small, "cpu", resume=True)
    # also without resuming: beside a later epoch of the other its own checkpoints would be the ones to go
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match="other standards, settings or seed"):
        train_module(data, small, "cpu", seed=5, checkpoint=tmp_path)
    assert sorted(tmp_path.iterdir()) == before
    train_module(data, small, "cpu", checkpoint=tmp_path)  # the same training may start anew


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a limit on the size of files")
def test_a_disk_that_is_full_is_a_sentence_and_leaves_the_checkpoint_before(tmp_path):
    import resource

    path = tmp_path / "epoch-000005.ckpt"
    SafetensorsIO().save_checkpoint({"w": torch.ones(10)}, path)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(OutputError, match=r"epoch-000005\.ckpt could not be written"):
            SafetensorsIO().save_checkpoint({"w": torch.ones(10_000)}, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert torch.equal(SafetensorsIO().load_checkpoint(path)["w"], torch.ones(10))


def _poison(monkeypatch, epochs):
    """Losses are NaN in these epochs."""
    usual = LossStep.inputs

    def inputs(self, epoch, batch):
        weights, *rest = usual(self, epoch, batch)
        return [weights * float("nan") if epoch in epochs else weights, *rest]

    monkeypatch.setattr(LossStep, "inputs", inputs)


def test_a_loss_that_is_no_number_rolls_back_and_halves_the_learning_rate(assay, small, tmp_path, monkeypatch):
    config = small.replace(epochs=20)
    data = SpectralDataModule(assay, config)
    _poison(monkeypatch, {7})
    with pytest.warns(UserWarning, match=r"after epoch 10: back to the weights of epoch 4.*roll-back 1 of 3"):
        module = train_module(data, config, "cpu", checkpoint=tmp_path)
    assert all(torch.isfinite(p).all() for p in module.ode.parameters())
    kept = SafetensorsIO().load_checkpoint(tmp_path / "epoch-000020.ckpt")
    rates = [group["initial_lr"] for group in kept["optimizer_states"][0]["param_groups"]]
    assert rates == [0.5 * config.metric_lr, 0.5 * config.flow_lr]
    assert kept["callbacks"]["Recovery"]["rollbacks"] == 1


def test_it_gives_up_after_three_roll_backs(assay, small, monkeypatch):
    config = small.replace(epochs=60)
    _poison(monkeypatch, set(range(60)))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with pytest.raises(TrainingError, match="3 roll-backs"):
            train_module(SpectralDataModule(assay, config), config, "cpu")
    assert sum("half the learning rate" in str(item.message) for item in said) == 3


def test_fit_checkpoints_and_resumes_on_the_command_line(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from geonode.cli import app
    from geonode.data import simulate_assay

    assay = simulate_assay(wavelengths=[300.0, 400.0, 500.0, 600.0, 700.0])
    table = tmp_path / "standards.csv"
    rows = [",".join(["wavelength", *(f"{c}" for c in assay.concentrations)])]
    rows += [
        f"{w:g}," + ",".join(f"{v:.6f}" for v in column)
        for w, column in zip(assay.wavelengths, assay.spectra.T, strict=True)
    ]
    table.write_text("\n".join(rows) + "\n")
    arguments = ["fit", str(table), "--out", str(tmp_path / "a.bundle")]
    arguments += ["--epochs", "6", "--margin", "0", "--quiet", "--device", "cpu"]
    refused = CliRunner().invoke(app, [*arguments, "--resume"])
    assert refused.exit_code == 2 and "--checkpoint" in refused.output
    done = CliRunner().invoke(app, [*arguments, "--checkpoint", str(tmp_path / "run"), "--resume"])
    assert done.exit_code == 0, done.output
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["epoch-000005.ckpt", "epoch-000006.ckpt"]
    again = CliRunner().invoke(
        app,
        [*arguments[:3], str(tmp_path / "b.bundle"), *arguments[4:], "--checkpoint", str(tmp_path / "run"), "--resume"],
    )
    assert again.exit_code == 0, again.output
