"""Counter-based numbers: uniform, normal, independent of each other, and the same however they are asked for."""

from __future__ import annotations

import math

import pytest
import torch

from geonode.corpus.blocks import inverse, sizes
from geonode.corpus.numbers import Numbers, Source, key

CPU = torch.device("cpu")


def test_the_hash_is_splitmix64():
    # first outputs of SplitMix64 from state 0, published with the generator
    word, state = [], 0
    for _ in range(3):
        word.append(key(state))
        state += 0x9E3779B97F4A7C15
    assert word == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_words_on_the_device_are_those_of_the_host():
    source = Source(5, 7, 1000, CPU)
    words = source._words(4)
    other = Source(5, torch.tensor(7), 1000, CPU)._words(4)
    assert torch.equal(words, other)


def test_uniform_numbers_are_uniform():
    number = Source(1, 2, 1000, CPU).uniform(1000)
    assert number.min() > 0.0 and number.max() < 1.0
    counts = torch.histc(number, 100, 0.0, 1.0)
    chi = ((counts - 1e4) ** 2 / 1e4).sum()
    assert abs(chi - 99) < 5 * math.sqrt(2 * 99)


def test_normal_numbers_are_normal():
    z = Source(1, 2, 1000, CPU).normal(1001).double()
    assert abs(z.mean()) < 5e-3 and abs(z.var() - 1) < 1e-2
    assert abs((z**4).mean() - 3) < 0.05
    for limit, share in ((1.0, 0.3173), (2.0, 0.0455), (3.0, 0.0027)):
        assert abs((z.abs() > limit).double().mean() - share) < 5 * math.sqrt(share / z.numel())
    assert z.abs().max() < 7


@pytest.mark.parametrize("lag", [1, 2, 1024])
def test_numbers_of_neighbours_are_independent(lag):
    number = Source(3, 0, 64, CPU).uniform(4096).flatten().double() - 0.5
    correlation = (number[lag:] * number[:-lag]).mean() * 12
    assert abs(correlation) < 5 / math.sqrt(number.numel())


def test_steps_and_seeds_are_independent():
    draws = torch.stack([Source(seed, step, 1, CPU).uniform(5000)[0] for seed in range(3) for step in range(3)])
    correlation = torch.corrcoef(draws.double()) - torch.eye(9)
    assert correlation.abs().max() < 5 / math.sqrt(5000)


def test_a_permutation_has_every_row_once_and_can_be_undone():
    order = Source(0, 0, 5000, CPU).permutation(3000)
    assert torch.equal(order.sort().values, torch.arange(3000))
    assert torch.equal(order[inverse(order)], torch.arange(3000))


def test_numbers_have_their_distributions():
    table = Source(0, 0, 2000, CPU).table(600)
    assert abs(table.uniform(2.0, 4.0, 100).mean() - 3.0) < 0.01
    assert abs(table.log_uniform(0.1, 10.0, 100).log().mean()) < 0.02
    assert abs(table.log_normal(3.0, 0.5, 100).median() - 3.0) < 0.02
    assert abs(table.chance(0.2, 100).float().mean() - 0.2) < 0.005
    shares = torch.bincount(table.choice((1.0, 2.0, 1.0), 100).flatten()) / 200_000
    torch.testing.assert_close(shares, torch.tensor([0.25, 0.5, 0.25]), rtol=0, atol=0.01)


def test_too_many_numbers_are_an_error():
    with pytest.raises(IndexError, match="wider table"):
        Numbers(torch.rand(3, 4)).uniform(0, 1, 5)


@pytest.mark.parametrize("count", [1, 7, 24, 1000])
def test_shares_are_exact_in_the_mean(count):
    shares = (0.25, 0.1, 0.0, 0.65)
    many = torch.tensor([sizes(count, shares, (i + 0.5) / 400) for i in range(400)], dtype=torch.float64)
    assert (many.sum(1) == count).all()
    torch.testing.assert_close(many.mean(0) / count, torch.tensor(shares, dtype=torch.float64), rtol=0, atol=0.005)
    assert (many.amax(0) - many.amin(0) <= 1).all()
