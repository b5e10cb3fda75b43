"""Under Lightning: stopped, torn, finished or diverged, a training ends as the uninterrupted one, or says why not."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace

import pytest
import torch

from geonode.errors import BundleError, InputError, Interrupted, OutputError, TrainingError
from geonode.training import SafetensorsIO, SpectralDataModule, train_module
from geonode.training.checkpoint import load_checkpoint, newest_checkpoint, save_checkpoint
from geonode.training.lightning.checkpoints import KeepCheckpoints
from tests.training.test_loop import _poison, _SigtermAfter, _weights


@pytest.mark.parametrize("changes", [{}, {"flow": "velocity", "batch_size": 8, "micro_batch": 4}], ids=str)
def test_sigterm_finishes_the_epoch_checkpoints_and_resumes_to_the_bit(assay, small, tmp_path, one_thread, changes):
    config = small.replace(epochs=8, wavelengths_per_step=7, **changes)
    data = SpectralDataModule(assay, config)
    whole = train_module(data, config, "cpu")
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted, match="after epoch 3"):
        train_module(data, config, "cpu", checkpoint=tmp_path, progress=_SigtermAfter(3))
    assert signal.getsignal(signal.SIGTERM) == before
    assert [p.name for p in tmp_path.iterdir()] == ["epoch-000003.ckpt"]
    resumed = train_module(data, config, "cpu", checkpoint=tmp_path, resume=True)
    for name, value in _weights(resumed.ode).items():
        assert torch.equal(value, _weights(whole.ode)[name]), name
    assert resumed.history == whole.history and len(whole.history) == 8
    again = train_module(data, config, "cpu", checkpoint=tmp_path, resume=True)  # nothing is left to do
    assert again.history == whole.history
    for name, value in _weights(again.ode).items():
        assert torch.equal(value, _weights(whole.ode)[name]), name
    with pytest.raises(InputError, match="was written by a training on several devices or a strategy"):
        newest_checkpoint(tmp_path, kind="loop")


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
    changed = content.replace(b"pytorch-lightning_version", b"pytorch-lightning_verSion", 1)  # no tensor
    assert changed != content
    first.write_bytes(changed)
    with pytest.warns(UserWarning, match="epoch-000005.ckpt was altered"):
        assert newest_checkpoint(tmp_path) is None


def test_a_checkpoint_of_another_training_is_refused(assay, small, tmp_path):
    data = SpectralDataModule(assay, small)
    train_module(data, small, "cpu", checkpoint=tmp_path)
    before = sorted(tmp_path.iterdir())
    for resume in (True, False):
        with pytest.raises(InputError, match="other standards, settings or seed"):
            train_module(data, small, "cpu", seed=5, checkpoint=tmp_path, resume=resume)
    with pytest.raises(InputError, match="needs checkpoint"):
        train_module(data, small, "cpu", resume=True)
    assert sorted(tmp_path.iterdir()) == before
    train_module(data, small, "cpu", checkpoint=tmp_path)  # the same training may start anew


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a limit on the size of files")
def test_a_disk_that_is_full_is_a_sentence_and_leaves_the_checkpoint_before(tmp_path):
    import resource

    path = tmp_path / "epoch-000005.ckpt"
    save_checkpoint({"w": torch.ones(10)}, path)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(OutputError, match=r"epoch-000005\.ckpt could not be written"):
            save_checkpoint({"w": torch.ones(10_000)}, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert torch.equal(load_checkpoint(path)["w"], torch.ones(10))


def test_checkpoints_hold_trees_of_tensors_and_numbers(tmp_path):
    io = SafetensorsIO()
    tree = {"a": torch.arange(3), 1: {"b": (1, 2.5, None, True, [torch.ones(2, 2)])}, "c": "text"}
    io.save_checkpoint(tree, tmp_path / "x.ckpt")
    read = io.load_checkpoint(tmp_path / "x.ckpt")
    assert torch.equal(read["a"], tree["a"])
    assert read[1]["b"][:4] == (1, 2.5, None, True)
    assert torch.equal(read[1]["b"][4][0], torch.ones(2, 2))
    assert not list(tmp_path.glob(".*part"))


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"\x80\x04\x95pickle"])
def test_torn_and_foreign_checkpoints_are_refused(tmp_path, content):
    path = tmp_path / "x.ckpt"
    path.write_bytes(content)
    with pytest.raises(BundleError, match=r"x\.ckpt"):
        load_checkpoint(path)


def test_objects_are_refused_in_checkpoints(tmp_path):
    with pytest.raises(BundleError, match="cannot hold"):
        save_checkpoint({"x": object()}, tmp_path / "x.ckpt")
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore:.*was not finite")
def test_a_loss_that_is_no_number_rolls_back_as_in_the_loop(assay, small, monkeypatch):
    from geonode.training import train

    config = small.replace(epochs=20)
    data = SpectralDataModule(assay, config)
    _poison(monkeypatch, {7})
    outcomes = []
    plain = train(data.problem.to("cpu", torch.float64), config, report=outcomes.append)
    module = train_module(data, config, "cpu")
    assert module.outcome.rollbacks.tolist() == outcomes[0].rollbacks.tolist() == [1, 1]
    for name, value in _weights(plain).items():
        torch.testing.assert_close(_weights(module.ode)[name], value, rtol=0, atol=1e-12, msg=name)
    _poison(monkeypatch, set(range(60)))
    with pytest.raises(TrainingError, match="3 roll-backs"):
        train_module(data, config.replace(epochs=25), "cpu")


def test_a_stop_advises_what_the_strategy_can_do():
    from lightning.pytorch.strategies import FSDPStrategy, SingleDeviceStrategy

    for strategy, advice in (
        (FSDPStrategy, "with strategy='ddp' and with checkpoint "),
        (SingleDeviceStrategy, "with checkpoint "),
    ):
        stop = KeepCheckpoints()
        before = signal.getsignal(signal.SIGTERM)
        try:
            stop.on_train_start(SimpleNamespace(strategy=strategy.__new__(strategy)), None)
        finally:
            signal.signal(signal.SIGTERM, before)
        stop.stopped_at = 3
        with pytest.raises(Interrupted, match=f"nothing is kept; {advice}"):
            stop.require_finished()


@pytest.mark.parametrize("name", ["FSDPStrategy", "DeepSpeedStrategy"])
def test_what_is_cut_across_devices_is_not_set_back(name):
    from lightning.pytorch import strategies

    kind = getattr(strategies, name)
    metrics = {"loss/total": torch.tensor(float("nan"))}
    trainer = SimpleNamespace(
        current_epoch=4, max_epochs=9, world_size=1, callback_metrics=metrics, strategy=kind.__new__(kind)
    )
    with pytest.raises(TrainingError, match="after epoch 5, and weights that are cut across devices cannot"):
        KeepCheckpoints().on_train_epoch_end(trainer, None)
