"""On a CPU a stack is trained in chunks of models: the same weights as one batch, as alone, and nothing left behind."""

from __future__ import annotations

import pytest
import torch

from geonode.training import BatchSource, build_problem, train
from geonode.training.chunks import chunk_size, select, train_chunks
from geonode.training.steps import train_stack


def _trained(ode):
    return [(name, p.detach()) for name, p in ode.named_parameters() if not name.startswith("warp.")]


def _stack(config, seed):
    def run(ode, problem, rows, progress):
        return train_stack(ode, BatchSource(problem, ode.table, config, seed), config, progress)

    return run


@pytest.mark.parametrize("size", [1, 2])
def test_chunks_equal_one_batch_and_one_at_a_time(folds, assay, small, size):
    config = small.replace(wavelengths_per_step=7)
    problem = build_problem(folds, assay.wavelengths, config).to("cpu", torch.float64)
    whole = train(problem, config, seed=4)
    threads = torch.get_num_threads()
    chunked = problem.build_model(config, 4)
    outcome = train_chunks(_stack(config, 4), problem, config, chunked, size)
    assert outcome.epochs.tolist() == [4, 4, 4]
    assert torch.get_num_threads() == threads
    start = dict(_trained(problem.build_model(config, 4)))
    for (name, a), (_, b) in zip(_trained(whole), _trained(chunked), strict=True):
        torch.testing.assert_close(b, a, rtol=0, atol=1e-9, msg=name)
    assert any(not torch.equal(start[name], value) for name, value in _trained(chunked))
    for m in range(len(folds)):
        row = select(problem, m, 1)
        alone = train(row, config, seed=4, ode=row.build_model(config, 4 + m))
        for (name, a), (_, b) in zip(_trained(chunked), _trained(alone), strict=True):
            torch.testing.assert_close(a[m], b[0], rtol=0, atol=1e-9, msg=f"{name} of model {m}")


def test_large_models_are_trained_one_at_a_time_on_a_cpu_and_small_ones_stacked(folds, assay, small):
    problem = build_problem(folds, assay.wavelengths, small)
    assert chunk_size(problem, small) == 3
    assert chunk_size(problem, small.replace(metric_hidden=(4096, 8))) == 1
    assert chunk_size(problem.to("meta", torch.float32), small.replace(metric_hidden=(4096, 8))) == 3


def test_progress_counts_epochs_of_all_chunks(folds, assay, small):
    problem = build_problem(folds, assay.wavelengths, small).to("cpu", torch.float64)
    seen = []
    ode = problem.build_model(small, 0)
    train_chunks(_stack(small, 0), problem, small, ode, 2, lambda done, total: seen.append((done, total)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_a_failure_in_a_chunk_is_raised(folds, assay, small):
    problem = build_problem(folds, assay.wavelengths, small).to("cpu", torch.float64)

    def broken(*_):
        raise ValueError("broken chunk")

    with pytest.raises(ValueError, match="broken chunk"):
        train_chunks(broken, problem, small, problem.build_model(small, 0), 2)
