"""The largest size is found whatever it is, and a training that runs out of memory ends as one that did not."""

from __future__ import annotations

import pytest
import torch

from geonode.errors import DeviceError
from geonode.training import build_problem, memory, train
from geonode.training.memory import is_out_of_memory, largest_that_fits, shrinking


def _limited(limit, seen=None):
    def attempt(size):
        if seen is not None:
            seen.append(size)
        if size > limit:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    return attempt


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


def test_a_stack_that_runs_out_of_memory_trains_in_smaller_parts_to_the_same_weights(folds, assay, small, monkeypatch):
    from geonode.training import ensemble

    problem = build_problem(folds, assay.wavelengths, small).to("cpu", torch.float64)
    whole = train(problem, small, seed=1)
    stack = ensemble.train_stack

    def hungry(ode, *rest, **options):
        if ode.models > 1:
            with torch.no_grad():  # it fails half way, with the weights already changed
                next(ode.parameters()).add_(1.0)
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return stack(ode, *rest, **options)

    monkeypatch.setattr(ensemble, "train_stack", hungry)
    with pytest.warns(UserWarning, match="Out of memory: going on with 1 at a time"):
        parts = train(problem, small, seed=1)
    for (name, a), (_, b) in zip(whole.named_parameters(), parts.named_parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10, msg=name)
    with pytest.raises(DeviceError, match="Not even"):
        shrinking(_limited(0), 4, print)
