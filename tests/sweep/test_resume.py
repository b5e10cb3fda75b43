"""A sweep that is stopped in the middle of a training goes on from its last checkpoint, and ends as if it never was."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from geonode.errors import Interrupted
from geonode.sweep import read_spec, run, run_stack, stacks
from geonode.training.loop import TrainingLoop
from tests.forks import Program

SMALL = "metric_hidden: [8, 8], flow_hidden: 12, table_nodes: 16, collocation: 8, precision: 64-true"


@pytest.fixture
def jobs(spec):
    def make(text):
        spec.write_text(f"data: standards.csv\nfolds: [0, 20, 60]\n{text}")
        return read_spec(spec).jobs()

    return make


@pytest.mark.parametrize(
    "text, after",
    [
        (f"config: {{{SMALL}, epochs: 24, members: 2}}", 3),
        (f"config: {{{SMALL}, epochs: 24, members: 2}}", 13),
        (f"config: {{{SMALL}, epochs: 24, members: 1}}\ngrid: {{flow_lr: [0.001, 0.01]}}", 13),
        (f"config: {{{SMALL}, epochs: 5, members: 1, flow: velocity, batch_size: 8}}", 3),
    ],
)
def test_interrupted_lists_go_on_and_end_the_same(text, after, jobs, tmp_path, monkeypatch, one_thread):
    """SIGTERM after some epochs: the state is kept, the next run begins there, and its rows are the uninterrupted."""
    whole = [row for stack in stacks(jobs(text), 6) for row in run_stack(stack, "cpu")]
    begun = []
    real_epoch = TrainingLoop._after

    def watched(self, epoch, stop):
        begun.append(epoch)
        if epoch == after and not resumed:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)
        real_epoch(self, epoch, stop)

    monkeypatch.setattr(TrainingLoop, "_after", watched)
    rows, resumed, folder = [], False, tmp_path / "checkpoints"
    assert threading.current_thread() is threading.main_thread()
    for stack in stacks(jobs(text), 6):
        resumed = False
        with pytest.raises(Interrupted):
            run_stack(stack, "cpu", checkpoints=folder, stops=True)
        assert len(list(folder.glob("*/epoch-*.ckpt"))) >= 1
        resumed = True
        begun.clear()
        rows += run_stack(stack, "cpu", checkpoints=folder, stops=True)
        assert begun[0] == after + 1  # not from the start
    assert [row["job"] for row in rows] == [row["job"] for row in whole]
    assert [row["rmse"] for row in rows] == pytest.approx([row["rmse"] for row in whole], rel=1e-9)
    assert not list(folder.iterdir())  # what has ended needs no checkpoint


def test_a_killed_sweep_goes_on_inside_the_job(spec, tmp_path):
    """The command, killed without a chance to say goodbye, and given again."""
    spec.write_text(f"data: standards.csv\nfolds: [20]\nconfig: {{{SMALL}, members: 1, epochs: 4000}}")
    out = tmp_path / "out"
    command = ["-m", "geonode", "sweep", spec, "--out", out, "--device", "cpu", "--shard", "0/1"]
    process = Program(command)
    deadline = time.monotonic() + 120
    while not list(out.glob("checkpoints/*/epoch-*.ckpt")):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.02)
    process.kill()
    process.communicate()
    kept = max(int(path.stem.split("-")[1]) for path in out.glob("checkpoints/*/epoch-*.ckpt"))
    assert kept > 0 and not (out / "results-shard-0-of-1.json").exists()
    process = Program(command)
    while max((int(p.stem.split("-")[1]) for p in out.glob("checkpoints/*/epoch-*.ckpt")), default=0) <= kept:
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.02)
    process.terminate()  # as a scheduler does
    _, said = process.communicate(timeout=60)
    assert process.returncode == 143 and "Stopped by SIGTERM; the same command goes on from there." in said
    assert max(int(p.stem.split("-")[1]) for p in out.glob("checkpoints/*/epoch-*.ckpt")) > kept


def test_a_training_that_fails_leaves_no_state(jobs, tmp_path, monkeypatch):
    from geonode.errors import TrainingError

    def fail(*arguments, keep, **options):
        (keep.folder / "epoch-000005.ckpt").write_text("state")
        raise TrainingError("The loss is not finite.")

    monkeypatch.setattr(run, "train", fail)
    with pytest.raises(TrainingError):
        run_stack(jobs(f"config: {{{SMALL}}}")[:1], "cpu", checkpoints=tmp_path / "c")
    assert not list((tmp_path / "c").iterdir())


def test_what_is_to_do_is_stacked_as_it_was(jobs):
    """Whatever has a result already, a list that was interrupted is the same list again."""
    from geonode.commands.sweep import _to_do

    every = jobs(f"seeds: 2\nconfig: {{{SMALL}, members: 1}}\ngrid: {{flow_lr: [0.001, 0.01]}}")
    _, lists = _to_do(every, set(), 4)
    for finished in lists:
        done = {job.key for job in finished}
        mine, rest = _to_do(every, done, 4)
        assert rest == [one for one in lists if one is not finished]
        assert len(mine) == len(every) - len(finished)
