"""Draws: each pair once an epoch, a function of the key alone, inside the range."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from geonode.data import PairSampler, all_pairs, continuous_concentrations, keyed_generator
from geonode.errors import InputError


@given(st.integers(2, 12))
def test_all_pairs(n):
    source, target = all_pairs(n)
    assert source.dtype == torch.int64
    assert list(zip(source.tolist(), target.tolist(), strict=True)) == list(itertools.permutations(range(n), 2))


@given(n=st.integers(2, 9), batch=st.integers(1, 80), seed=st.integers(0, 2**62), epoch=st.integers(0, 10**6))
def test_each_pair_exactly_once_an_epoch(n, batch, seed, epoch):
    sampler = PairSampler(n, batch, seed)
    batches = list(sampler.epoch(epoch))
    assert len(batches) == len(sampler) and all(len(s) == batch for s, _ in batches[:-1])
    pairs = [p for s, t in batches for p in zip(s.tolist(), t.tolist(), strict=True)]
    assert sorted(pairs) == list(itertools.permutations(range(n), 2))


def test_a_batch_depends_on_its_key_alone():
    sampler, again = PairSampler(6, 7, seed=5), PairSampler(6, 7, seed=5)
    first = list(sampler.epoch(3))
    for step, (source, target) in enumerate(first):
        s, t = again.batch(3, step)
        assert torch.equal(s, source) and torch.equal(t, target)
    rest = list(sampler.epoch(3, start=2))
    assert all(torch.equal(a[0], b[0]) for a, b in zip(rest, first[2:], strict=True))
    assert not torch.equal(first[0][0], sampler.batch(4, 0)[0])
    assert not torch.equal(first[0][0], PairSampler(6, 7, seed=6).batch(3, 0)[0])


def test_keys_do_not_collide_by_arithmetic():
    draws = {
        torch.rand(1, generator=keyed_generator(*key)).item()
        for key in itertools.product(range(6), repeat=3)  # seed + epoch + step would collide
    }
    assert len(draws) == 6**3
    assert torch.rand(1, generator=keyed_generator(-1)).isfinite()


@given(
    low=st.floats(-1e6, 1e6),
    span=st.floats(1e-3, 1e6),
    count=st.integers(1, 200),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_stratified_draws_fill_the_range(low, span, count, dtype):
    high = low + span
    c = continuous_concentrations(low, high, count, seed=1, dtype=torch.float64)
    assert c.shape == (count,) and c.min() >= low and c.max() <= high
    stratum = ((c.sort().values - low) / (high - low) * count - torch.arange(count)).double()
    assert stratum.min() > -1e-3 and stratum.max() < 1 + 1e-3
    narrow = continuous_concentrations(low, high, count, seed=1, dtype=dtype)
    assert narrow.dtype == dtype and bool(narrow.isfinite().all())


def test_continuous_draws_are_keyed():
    one = continuous_concentrations(0, 60, 50, seed=1, epoch=2, step=3)
    assert torch.equal(one, continuous_concentrations(0, 60, 50, seed=1, epoch=2, step=3))
    for key in ({"seed": 2}, {"epoch": 1}, {"step": 1}, {"stream": 1}):
        other = continuous_concentrations(0, 60, 50, **{"seed": 1, "epoch": 2, "step": 3, **key})
        assert not torch.equal(one, other)


def test_latin_hypercube_of_two_analytes():
    c = continuous_concentrations([5.0, 0.0], [8.0, 600.0], 40)
    assert c.shape == (40, 2)
    for column, (low, high) in zip(c.T, [(5, 8), (0, 600)], strict=True):
        counts = ((column - low) / (high - low) * 40).floor().clamp(max=39)
        assert counts.unique().numel() == 40
    loose = continuous_concentrations(0, 1, 1000, stratified=False)
    assert loose.min() >= 0 and loose.max() <= 1 and abs(loose.mean() - 0.5) < 0.05


def test_bad_arguments():
    with pytest.raises(InputError, match="at least 2"):
        all_pairs(1)
    with pytest.raises(InputError, match="batch_size is 0"):
        PairSampler(3, 0)
    with pytest.raises(InputError, match="steps 0 to 2"):
        PairSampler(3, 2).batch(0, 3)
    with pytest.raises(InputError, match="empty or infinite"):
        continuous_concentrations(1, 1, 3)
    with pytest.raises(InputError, match="empty or infinite"):
        continuous_concentrations([1, 2], [3], 3)
    with pytest.raises(InputError, match="at least 1"):
        continuous_concentrations(0, 1, 0)


@pytest.mark.gpu
def test_on_the_gpu():
    source, target = PairSampler(6, 30, device="cuda").batch(0, 0)
    assert source.is_cuda and sorted(zip(source.tolist(), target.tolist(), strict=True)) == list(
        itertools.permutations(range(6), 2)
    )
    assert continuous_concentrations(0, 1, 5, device="cuda").is_cuda
