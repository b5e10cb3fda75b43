"""Random numbers that a counter gives: the same on every device, without a generator's state and without a copy.

Number i of stream s in step t of seed r is a hash of (r, t, s, i): the finaliser of SplitMix64 (Steele, Lea and Flood,
OOPSLA 2014) on a 64-bit counter, in torch's integer operations, which wrap alike on CPU and GPU. The integers are equal
to the bit; what is computed from them (logarithm, cosine) to rounding. Any draw can be made again without those before.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_WORD = (1 << 64) - 1


def _signed(word: int) -> int:
    """The two's complement integer of a 64-bit word, as torch's int64 holds it."""
    word &= _WORD
    return word - (1 << 64) if word >> 63 else word


def key(*parts: int) -> int:
    """One 64-bit key of several integers: a chain of SplitMix64 steps, on the host."""
    word = 0
    for part in parts:
        word = (word + _GOLDEN + part) & _WORD
        word = ((word ^ (word >> 30)) * _FIRST) & _WORD
        word = ((word ^ (word >> 27)) * _SECOND) & _WORD
        word ^= word >> 31
    return word


def _words(count: int, start: int, device: torch.device) -> Tensor:
    """int64 [count]: hashed counters, all 64 bits random."""
    word = torch.arange(count, dtype=torch.int64, device=device)
    word.mul_(_signed(_GOLDEN)).add_(_signed(start))
    for shift, factor in ((30, _FIRST), (27, _SECOND), (31, None)):
        # torch's shift is arithmetic: the mask makes it logical
        word.bitwise_xor_((word >> shift).bitwise_and_((1 << (64 - shift)) - 1))
        if factor is not None:
            word.mul_(_signed(factor))
    return word


@functools.lru_cache(maxsize=256)
def _edges(weights: tuple[float, ...], device: torch.device) -> Tensor:
    """Cumulative shares but the last, kept on the device: making them anew would wait for it."""
    total = sum(weights)
    return torch.tensor(
        [edge / total for edge in itertools.accumulate(weights)][:-1], dtype=torch.float32, device=device
    )


class Source:
    """All random numbers of one draw: `Source(seed, step, device)`.

    Args:
        seed, step: any integers; a draw is a function of both.
        device: where the numbers are made.
    """

    def __init__(self, seed: int, step: int, device: torch.device) -> None:
        self._key = key(seed, step)
        self.device = device
        self._streams = 0

    def _stream(self) -> int:
        self._streams += 1
        return key(self._key, self._streams)

    def host(self) -> float:
        """One uniform number as a Python float: for sizes, which the host must know."""
        return (self._stream() >> 11) * 2.0**-53

    def uniform(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Uniform on the open interval (0, 1), of any shape."""
        # so many that half a step more is still exact: the ends are never reached
        bits = 23 if dtype == torch.float32 else 52
        word = _words(math.prod(shape), self._stream(), self.device)
        word = (word >> (64 - bits)).bitwise_and_((1 << bits) - 1)
        return word.to(dtype).add_(0.5).mul_(2.0**-bits).view(shape)

    def normal(self, *shape: int) -> Tensor:
        """Standard normal float32 of any shape: both numbers of Box and Muller's pair from one 64-bit word."""
        count = math.prod(shape)
        word = _words((count + 1) // 2, self._stream(), self.device)
        low = word.bitwise_and(0xFFFFFFFF).to(torch.float32).mul_(2.0**-32 * 2.0 * math.pi)
        high = (word >> 32).bitwise_and_(0xFFFFFFFF).to(torch.float32).add_(0.5).mul_(2.0**-32)
        radius = high.clamp_(max=1.0 - 2.0**-24).log_().mul_(-2.0).sqrt_()
        return torch.cat([radius * torch.cos(low), radius * torch.sin(low)])[:count].view(shape)

    def permutation(self, count: int) -> Tensor:
        """int64 [count]: a random order."""
        return torch.argsort(_words(count, self._stream(), self.device))

    def table(self, rows: int, columns: int, dtype: torch.dtype = torch.float32) -> Numbers:
        """Numbers for ``rows`` assays, ``columns`` for each."""
        return Numbers(self.uniform(rows, columns, dtype=dtype))


class Numbers:
    """The random numbers of some assays, taken column by column: one hash for all parameters of a stage.

    Every method gives [rows, *shape], or [rows, 1] without a shape, so that a parameter broadcasts over samples.

    Args:
        table: uniform numbers [rows, columns].
    """

    def __init__(self, table: Tensor) -> None:
        self._table = table
        self._taken = 0
        self.rows, self.device, self.dtype = table.shape[0], table.device, table.dtype

    def __getitem__(self, rows: slice) -> Numbers:
        """The numbers of some of the assays, from their first column."""
        return Numbers(self._table[rows])

    def _take(self, shape: tuple[int, ...]) -> Tensor:
        shape = shape or (1,)
        start, self._taken = self._taken, self._taken + math.prod(shape)
        if self._taken > self._table.shape[1]:
            raise IndexError(f"{self._taken} random numbers an assay, of {self._table.shape[1]}: ask for a wider table")
        return self._table[:, start : self._taken].reshape(self.rows, *shape)

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        """Uniform between two numbers."""
        return self._take(shape) * (high - low) + low

    def log_uniform(self, low: float, high: float, *shape: int) -> Tensor:
        """Uniform in the logarithm, between two positive numbers."""
        return torch.exp(self.uniform(math.log(low), math.log(high), *shape))

    def normal(self, *shape: int) -> Tensor:
        """Standard normal."""
        return torch.erfinv(self._take(shape) * 2.0 - 1.0) * math.sqrt(2.0)

    def log_normal(self, median: float, sigma: float, *shape: int) -> Tensor:
        """A median times exp(σ z)."""
        return torch.exp(self.normal(*shape) * sigma + math.log(median))

    def chance(self, probability: float, *shape: int) -> Tensor:
        """True with a probability."""
        return self._take(shape) < probability

    def sign(self, *shape: int) -> Tensor:
        """+1 or −1."""
        return torch.where(self._take(shape) < 0.5, -1.0, 1.0)

    def choice(self, weights: Sequence[float], *shape: int) -> Tensor:
        """int64: a number from 0 on, in proportion to the weights."""
        number = self._take(shape)
        return torch.bucketize(number.float().contiguous(), _edges(tuple(weights), number.device))
