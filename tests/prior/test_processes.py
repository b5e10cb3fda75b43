"""Several processes pre-train as one does, go on as fewer, and say so where one of them is lost."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
import time
import types
from functools import partial
from pathlib import Path

import lightning
import pytest
import torch
from lightning.pytorch.trainer.connectors.signal_connector import _SignalConnector

from geonode.commands.pretrain import _base
from geonode.errors import InputError, Interrupted, TrainingError
from geonode.prior.lanes import Lanes, lanes_of
from geonode.prior.settings import PretrainSettings
from geonode.prior.stopping import Stopping, Vote, told
from geonode.prior.training import PretrainModule, pretrain
from geonode.training import SafetensorsIO
from tests.forks import Program, python
from tests.prior import pretrain_run

ROOT = Path(__file__).resolve().parent.parent.parent
TWO = ["-m", "tests.torchrun", 2, ROOT / "tests" / "prior" / "pretrain_run.py"]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]  # on GPUs: no forks
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "OMP_NUM_THREADS": "1"}


def _weights(folder: Path) -> dict[str, torch.Tensor]:
    return SafetensorsIO().load_checkpoint(folder / "last.ckpt")["state_dict"]


def _same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        torch.testing.assert_close(other[name], value, rtol=0, atol=1e-9, msg=name)


@pytest.mark.slow
def test_two_processes_take_the_steps_of_one_and_one_goes_on_for_two(tmp_path, one_thread):
    """Three batches a step, float64: weights, averages and logs within 1e-9, and so after going on alone."""
    alone = pretrain_run.run(tmp_path / "one")
    done = python(*TWO, tmp_path / "two", env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"done 4 {alone.seen}" in done.stdout and alone.seen > 0

    begun, one = _weights(tmp_path / "one"), SafetensorsIO().load_checkpoint(tmp_path / "one" / "last.ckpt")
    two = SafetensorsIO().load_checkpoint(tmp_path / "two" / "last.ckpt")
    _same(begun, two["state_dict"])
    for mine, theirs in zip(one["history"], two["history"], strict=True):
        assert mine.keys() == theirs.keys()
        for name in mine.keys() - {"assays/s", "validation"}:
            assert theirs[name] == pytest.approx(mine[name], abs=1e-4), name  # logs are rounded to this

    half = tmp_path / "two" / "last-2.ckpt"
    assert SafetensorsIO().load_checkpoint(half)["global_step"] == 2
    gone_on = pretrain_run.run(tmp_path / "on", resume=half)
    _same(begun, _weights(tmp_path / "on"))
    assert gone_on.trainer.global_step == 4 and gone_on.seen == alone.seen


@pytest.mark.slow
def test_a_process_that_is_killed_ends_the_others_with_a_sentence(tmp_path):
    """By SIGKILL in mid-training; the state that was kept is where the next run begins."""
    process = Program([*TWO, tmp_path, 100000], env=ENVIRONMENT)
    deadline = time.monotonic() + 200
    while not (tmp_path / "last.ckpt").is_file():
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.02)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[-1]), signal.SIGKILL)
    _, said = process.communicate(timeout=100)
    assert process.returncode != 0
    assert "Another process of this pre-training is gone" in said
    assert f"go on from {tmp_path / 'last.ckpt'} with --resume" in said
    kept = SafetensorsIO().load_checkpoint(tmp_path / "last.ckpt")["global_step"]
    gone_on = pretrain_run.run(tmp_path / "on", kept + 2, resume=tmp_path / "last.ckpt")
    assert kept > 0 and gone_on.trainer.global_step == kept + 2


def test_lanes_are_shared_without_overlap_and_their_weights_make_a_mean():
    settings = pretrain_run.settings(accumulate=5)
    for processes in (1, 2, 3, 5):
        shared = [list(lanes_of(5, rank, processes)) for rank in range(processes)]
        assert sorted(itertools.chain(*shared)) == [0, 1, 2, 3, 4]
        total = 0.0
        for rank in range(processes):
            lanes = Lanes(settings, 0, rank, processes, "cpu")
            weights = [lanes.batch(number)[1] for number in range(lanes.each)]
            assert sum(weight > 0 for weight in weights) == len(shared[rank])
            total += sum(weights) / lanes.each / processes
        assert total == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("accelerator", "kind"), [("cpu", r"3 processors; give 1 to 3"), ("cuda", r"1 graphics card; give 1 to 1")]
)
def test_more_devices_than_there_are_are_refused_before_anything_starts(tmp_path, monkeypatch, accelerator, kind):
    monkeypatch.setattr("geonode.training.launch.cores", lambda: 3)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    settings = PretrainSettings(accumulate=99)
    with pytest.raises(InputError, match=rf"devices=99 cannot be had: this process may use {kind}, or start"):
        pretrain(settings, tmp_path / "out", accelerator=accelerator, devices=99)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("processes", [2, 3, 8])
def test_more_processes_than_batches_in_a_step_are_refused(processes):
    with pytest.raises(InputError, match=f"step of 1 batches cannot be shared by {processes} processes; give acc"):
        lanes_of(1, 0, processes)


def test_only_a_lost_partner_is_called_one(tmp_path):
    other = RuntimeError("shapes differ")
    assert told(other, tmp_path) is other
    assert "nothing was kept yet" in str(told(RuntimeError("[gloo] Connection closed by peer"), tmp_path / "a"))
    assert isinstance(told(torch.distributed.DistBackendError("NCCL"), tmp_path), TrainingError)


@pytest.mark.parametrize("moment", ["on_train_batch_end", "on_exception", "teardown", "afterwards"])
def test_a_lost_partner_is_told_whenever_the_launchers_sigterm_comes(tmp_path, monkeypatch, moment):
    """In the reduction that breaks, while Lightning cleans up, when it has put back what it found, and after that."""
    unheard = []
    before = signal.signal(signal.SIGTERM, lambda *_: unheard.append(moment))
    sigterm = partial(os.kill, os.getpid(), signal.SIGTERM)

    class Broken(lightning.Callback):
        def on_train_batch_end(self, *_: object) -> None:
            if moment == "on_train_batch_end":
                sigterm()
            raise RuntimeError("[gloo/transport/tcp/pair.cc:534] Connection closed by peer")

        def on_exception(self, *_: object) -> None:
            if moment == "on_exception":
                sigterm()

    def put_back(connector):
        real(connector)
        if moment == "teardown":
            sigterm()

    real = _SignalConnector.teardown
    monkeypatch.setattr(_SignalConnector, "teardown", put_back)
    monkeypatch.setattr("geonode.prior.training.Stopping", lambda checkpoint, _: Stopping(checkpoint, 2))
    try:
        with pytest.raises(TrainingError, match="Another process of this pre-training is gone"):
            pretrain_run.run(tmp_path, callbacks=[Broken()])
        if moment == "afterwards":
            sigterm()
        assert unheard == []
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_process_that_waits_for_a_lost_partner_is_left_though_its_main_thread_hears_nothing(tmp_path, monkeypatch):
    """As in a reduction that never ends, the main thread is in one long operation of torch's."""
    left = []
    stopping = Stopping(tmp_path / "last.ckpt", 2)
    monkeypatch.setattr("geonode.prior.stopping._PATIENCE", 0.01)
    monkeypatch.setattr(stopping, "_leave", lambda: left.append(time.monotonic()))
    matrix = torch.randn(900, 900, dtype=torch.float64)
    with stopping:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM)).start()
        torch.linalg.eig(matrix)
        ended = time.monotonic()
    assert stopping.asked and len(left) == 1 and left[0] < ended
    assert signal.set_wakeup_fd(-1) == -1


def test_a_handler_is_put_back_where_no_partner_was_lost(tmp_path):
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        pretrain_run.run(tmp_path, 1)
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGTERM, before)


def test_sigterm_keeps_the_state_and_says_how_to_go_on(tmp_path, monkeypatch):
    real = PretrainModule.on_train_batch_end
    told_at = []

    def watched(self, outputs, batch, batch_idx):
        if self.trainer.global_step == 3 and not told_at:
            told_at.append(3)
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)
        real(self, outputs, batch, batch_idx)

    monkeypatch.setattr(PretrainModule, "on_train_batch_end", watched)
    with pytest.raises(Interrupted, match=r"after step 10, which is kept in .*last.ckpt; give it to --resume"):
        pretrain_run.run(tmp_path, 40)
    assert SafetensorsIO().load_checkpoint(tmp_path / "last.ckpt")["global_step"] == 10


def test_the_command_gives_each_process_a_batch_and_goes_on_with_as_many_as_before(tmp_path, monkeypatch):
    assert _base(None, 1).accumulate == 1 and _base(None, 4).accumulate == 4
    monkeypatch.setattr("geonode.training.launch.launched", lambda: (0, 8, 4))
    assert _base(None, 1).accumulate == 8
    SafetensorsIO().save_checkpoint({"accumulate": 8}, tmp_path / "last.ckpt")
    monkeypatch.setattr("geonode.training.launch.launched", lambda: (0, 7, 7))
    assert _base(tmp_path / "last.ckpt", 1).accumulate == 8
    with pytest.raises(InputError, match="is not there"):
        _base(tmp_path / "none.ckpt", 1)


def test_a_vote_on_a_gpu_is_answered_a_look_later(monkeypatch):
    """With a stand-in for device and partners, so that it runs anywhere: the others say yes at the third look."""
    looks, ready = iter([0.0, 0.0, 1.0, 1.0]), types.SimpleNamespace(record=lambda: None, synchronize=lambda: None)
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "all_reduce", lambda answer, _: answer.clamp_min_(next(looks)))
    monkeypatch.setattr(torch.cuda, "Event", lambda: ready)
    vote = Vote(torch.device("cpu"))
    vote._read = torch.zeros(())
    assert [vote.take(False) for _ in range(4)] == [False, False, False, True]


def test_a_process_alone_votes_for_itself():
    assert [Vote(torch.device("cpu")).take(yes) for yes in (False, True)] == [False, True]
