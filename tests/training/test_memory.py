"""The largest step is found whatever it is, and a training that runs out of memory ends as one that did not."""

from __future__ import annotations

import pytest
import torch

from geonode.errors import DeviceError, InputError
from geonode.training import SpectralDataModule, build_problem, memory, train, train_module
from geonode.training.batches import step_counts
from geonode.training.checkpoint import CheckpointFolder
from geonode.training.lightning import trainer
from geonode.training.loop import TrainingLoop
from geonode.training.memory import Size, fitted, is_out_of_memory, largest_that_fits, shrinking, with_micro_batch

BLIND = "metric.network.mlp.biases.2"  # scales every length alike: no data loss sees it, Adam makes steps of rounding


def _weights(ode):
    return {name: p.detach() for name, p in ode.named_parameters() if name != BLIND}


def _assert_same(one, other):
    for name, value in _weights(one).items():
        torch.testing.assert_close(_weights(other)[name], value, rtol=0, atol=1e-9, msg=name)


def _limited(limit, seen=None):
    def attempt(size):
        if seen is not None:
            seen.append(size)
        if size > limit:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    return attempt


@pytest.fixture
def velocity(small):
    """Batches of pairs."""
    return small.replace(flow="velocity", batch_size=24)


def _limit(monkeypatch, fits):
    """Steps fit where ``fits(config, parts)`` says so; what was tried."""
    tried = []

    def attempt(problem, size):
        tried.append((size.config.training.micro_batch, size.recompute))
        if not fits(size.config, size.recompute):
            raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(memory, "try_step", attempt)
    return tried


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 48, 63, 64, 65, 100])
@pytest.mark.parametrize("start", [1, 16, 100])
def test_the_largest_that_fits_is_found_within_an_eighth(limit, start, monkeypatch):
    monkeypatch.setattr(memory, "release", lambda: None)  # nothing was held, and collecting garbage takes its time
    seen = []
    found = largest_that_fits(_limited(limit, seen), 100, start)
    assert found <= limit and limit - found <= max(1, found // 8)
    assert len(seen) <= 15 and max(seen) <= 100
    assert limit < 100 or found == 100


def test_nothing_fits_and_other_errors_are_told_apart():
    with pytest.raises(DeviceError, match="Not even"):
        largest_that_fits(_limited(0), 10, 8)

    def broken(size):
        raise RuntimeError("shapes differ")

    with pytest.raises(RuntimeError, match="shapes differ"):
        largest_that_fits(broken, 10)
    assert is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate"))
    assert not is_out_of_memory(RuntimeError("shapes differ"))


def test_a_real_allocation_that_fails_is_recognised():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60, dtype=torch.uint8)
    assert is_out_of_memory(caught.value)


def test_sizes_shrink_step_by_step_and_end_in_a_sentence(small, velocity):
    def all_from(size, cut):
        found = []
        with pytest.raises(DeviceError, match="Not even one model"):
            while True:
                size = size.smaller(6, cut)
                found.append(size)
        return found

    assert [size.models for size in all_from(Size(8, small), False)] == [4, 2, 1]
    parts = all_from(Size(2, small), True)
    assert [(size.models, size.recompute) for size in parts] == [(2, 2**k) for k in range(1, 7)] + [(1, 64)]
    micro = all_from(Size(1, velocity.replace(micro_batch=8)), True)
    assert [size.config.training.micro_batch for size in micro] == [4, 2, 1]
    with pytest.raises(DeviceError, match="use batch='auto'"):
        Size(1, small).smaller(6, False)


@pytest.mark.parametrize("batch, micro, found", [(24, 9, 8), (24, 24, 24), (24, 5, 4), (None, 9, 9), (None, 99, 30)])
def test_micro_batches_divide_the_mega_batch_where_one_is_set(small, batch, micro, found):
    config = with_micro_batch(small.replace(flow="velocity", batch_size=batch), micro, 6)
    assert config.training.micro_batch == found and config.training.batch_size == batch


def test_the_largest_micro_batch_is_found_and_gradients_accumulate_to_the_mega_batch(assay, velocity, monkeypatch):
    monkeypatch.setattr(memory, "release", lambda: None)
    problem = SpectralDataModule(assay, velocity).problem
    assert fitted(problem, Size(2, velocity)).config == velocity.replace(micro_batch=24)
    _limit(monkeypatch, lambda c, _: c.training.micro_batch <= 10)
    found = fitted(problem, Size(2, velocity)).config
    assert step_counts(6, found)[1:] == (3, 8, 24) and found.accumulate == 3
    _limit(monkeypatch, lambda *_: False)
    with pytest.raises(DeviceError, match="Not even"):
        fitted(problem, Size(2, velocity))


def test_where_there_are_no_micro_batches_wavelengths_are_taken_in_parts(assay, small, monkeypatch):
    monkeypatch.setattr(memory, "release", lambda: None)
    problem = SpectralDataModule(assay, small).problem
    tried = _limit(monkeypatch, lambda _, parts: parts >= 4)
    assert fitted(problem, Size(2, small)) == Size(2, small, 4)
    assert [parts for _, parts in tried] == [0, 2, 4]


def test_a_stack_that_runs_out_of_memory_trains_in_smaller_parts_to_the_same_weights(folds, assay, small, monkeypatch):
    problem = build_problem(folds, assay.wavelengths, small).to("cpu", torch.float64)
    whole = train(problem, small, seed=1)
    real = TrainingLoop.run

    def hungry(self, resume=False):
        if self.stacks[0].optimizer.models > 1:
            with torch.no_grad():  # it fails half way, with the weights already changed
                next(self.stacks[0].ode.parameters()).add_(1.0)
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return real(self, resume)

    monkeypatch.setattr(TrainingLoop, "run", hungry)
    with pytest.warns(UserWarning, match="Out of memory: anew with 1 models at a time"):
        _assert_same(whole, train(problem, small, seed=1))
    with pytest.raises(DeviceError, match="Not even"):
        shrinking(lambda size: _limited(0)(size.models), Size(4, small), 6, False, lambda _: None)


@pytest.fixture(scope="module")
def in_micro_batches(assay, small):
    """A configuration, its data, and what becomes of it where memory is enough."""
    config = small.replace(flow="velocity", batch_size=8, micro_batch=4, epochs=8)
    data = SpectralDataModule(assay, config)
    return config, data, train(data.problem.to("cpu", torch.float64), config)


@pytest.mark.parametrize("under", ["loop", "lightning"])
def test_memory_that_runs_out_later_goes_on_with_less_and_ends_as_one_that_did_not(
    in_micro_batches, tmp_path, monkeypatch, under
):
    """From the checkpoint of the epoch before, where there is one."""
    config, data, whole = in_micro_batches
    problem = data.problem.to("cpu", torch.float64)
    monkeypatch.setattr(trainer if under == "lightning" else memory, "fitted", lambda problem, size: size)
    monkeypatch.setattr("geonode.training.ensemble.fitted", lambda problem, size: size)
    met, seen = [], []

    def hungry(done, total):
        seen.append(done)
        if done == 7 and not met:  # after epoch 5 is written
            met.append(done)
            raise torch.OutOfMemoryError("out of memory")

    with pytest.warns(UserWarning, match="Out of memory: anew with .*micro-batches of 2"):
        if under == "lightning":
            options = {"checkpoint": tmp_path, "progress": hungry, "batch": "auto"}
            ode = train_module(data, config, "cpu", **options).ode
        else:
            ode = train(problem, config, progress=hungry, batch="auto", keep=CheckpointFolder(tmp_path, "this"))
    assert seen == [1, 2, 3, 4, 5, 6, 7, 6, 7, 8]
    _assert_same(whole, ode)


@pytest.mark.parametrize("under", ["loop", "lightning"])
def test_an_unknown_batch_is_refused(assay, small, under):
    data = SpectralDataModule(assay, small)
    with pytest.raises(InputError, match="batch='largest'"):
        if under == "loop":
            train(data.problem.to("cpu", torch.float64), small, batch="largest")
        else:
            train_module(data, small, "cpu", batch="largest")


def test_several_processes_do_not_each_find_their_own_micro_batch(assay, small, monkeypatch):
    for name, value in {"WORLD_SIZE": "2", "RANK": "1", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match="set micro_batch in the settings"):
        train_module(SpectralDataModule(assay, small), small, "cpu", batch="auto")
