"""On a CPU a stack is trained in chunks of models: the same weights as one batch, as alone, and nothing left behind;
with a thread a chunk, whoever trains, and the threads that its step is worth where there is one chunk."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import geonode
from geonode.training import build_problem, fit_node_folds, train
from geonode.training import ensemble as module
from geonode.training.chunks import chunk_size, select, side_by_side, step_size


def _trained(ode):
    return [(name, p.detach()) for name, p in ode.named_parameters() if not name.startswith("warp.")]


def _problem(folds, assay, config):
    return build_problem(folds, assay.wavelengths, config).to("cpu", torch.float64)


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("threads", [1, 2])
def test_chunks_equal_one_batch_and_one_at_a_time(folds, assay, small, monkeypatch, size, threads, away):
    config = small.replace(wavelengths_per_step=7)
    problem = _problem(folds, assay, config)
    whole = train(problem, config, seed=4)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        monkeypatch.setattr(module, "chunk_size", lambda *_: size)
        seen, outcomes = [], []
        chunked = train(problem, config, 4, lambda done, total: seen.append((done, total)), report=outcomes.append)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)] and outcomes[0].epochs.tolist() == [4, 4, 4]
    assert len(outcomes[0].history) == 4 and outcomes[0].losses.shape[:2] == (3, 4)
    start = dict(_trained(problem.build_model(config, 4)))
    for (name, a), (_, b) in zip(_trained(whole), _trained(chunked), strict=True):
        torch.testing.assert_close(b, a, rtol=0, atol=1e-9, msg=name)
    assert any(not torch.equal(start[name], value) for name, value in _trained(chunked))
    for m in range(len(folds)):
        row = select(problem, m, 1)
        own = row.build_model(config, 4)
        with torch.no_grad():
            for name, value in _trained(own):
                value.copy_(start[name][m : m + 1])
        for (name, a), (_, b) in zip(_trained(chunked), _trained(train(row, config, 4, ode=own)), strict=True):
            torch.testing.assert_close(a[m], b[0], rtol=0, atol=1e-9, msg=f"{name} of model {m}")


def test_large_models_are_trained_one_at_a_time_on_a_cpu_and_small_ones_stacked(folds, assay, small):
    problem = build_problem(folds, assay.wavelengths, small)
    assert chunk_size(problem, small) == 3
    assert chunk_size(problem, small.replace(metric_hidden=(4096, 8))) == 1
    assert chunk_size(problem.to("meta", torch.float32), small.replace(metric_hidden=(4096, 8))) == 3


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_a_failure_beside_others_is_raised_and_threads_are_as_before(workers):
    def broken(number):
        if number == 1:
            raise ValueError("broken chunk")
        return number

    before = torch.get_num_threads()
    with pytest.raises(ValueError, match="broken chunk"), side_by_side(workers) as each:
        each(broken, range(3))
    with side_by_side(workers) as each:
        assert each(lambda n: n * n, range(5)) == [0, 1, 4, 9, 16]
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(("size", "workers"), [(1, 2), (2, 1)])
def test_a_fit_and_the_folds_of_evaluate_have_the_same_threads(folds, assay, small, monkeypatch, size, workers):
    """Counted as cores before torch's are limited by the size of a step: two small models are two chunks on two threads
    in either, each with one of its own."""
    seen = []

    class Loop(module.TrainingLoop):
        def run(self, resume=False):
            seen.append((self.workers, torch.get_num_threads()))
            return super().run(resume)

    monkeypatch.setattr(module, "TrainingLoop", Loop)
    monkeypatch.setattr(module, "chunk_size", lambda *_: size)
    config = small.replace(epochs=1, flow="path_independent")
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        geonode.fit(assay, config, device="cpu")
        fit_node_folds(folds[:2], [np.array([1.0])] * 2, assay.wavelengths, config)
        assert torch.get_num_threads() == 4
    finally:
        torch.set_num_threads(before)
    assert seen == [(workers, 1)] * 2


def test_a_step_is_worth_pairs_of_levels_times_wavelengths_of_every_model_in_it():
    problem = SimpleNamespace(levels=torch.zeros(3, 6), target=torch.zeros(1).expand(3, 40, 601))
    assert step_size(problem, 1) == 36 * 601
    assert step_size(problem, 3) == 3 * 36 * 601
