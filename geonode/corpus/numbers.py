"""Random numbers that a counter gives: the same on every device, without a generator's state and without a copy.

Number i of stream s in step t of seed r is a hash of (r, t, s, i): the finaliser of SplitMix64 (Steele, Lea and Flood,
OOPSLA 2014) on a 64-bit counter, in torch's integer operations, which wrap alike on CPU and GPU. The integers are equal
to the bit; what is computed from them (logarithm, cosine) to rounding. Any draw can be made again without those before.

The step may be a tensor on the device, so that one CUDA graph serves all steps (`graph`).
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
_STOCK = 1024  # uniform numbers an assay that are made at once: about what a draw takes


def _signed(word: int) -> int:
    """The two's complement integer of a 64-bit word, as torch's int64 holds it."""
    word &= _WORD
    return word - (1 << 64) if word >> 63 else word


def _finalised(word: int) -> int:
    """The finaliser of SplitMix64, on the host."""
    word &= _WORD
    word = ((word ^ (word >> 30)) * _FIRST) & _WORD
    word = ((word ^ (word >> 27)) * _SECOND) & _WORD
    return word ^ (word >> 31)


def key(*parts: int) -> int:
    """One 64-bit key of several integers: a chain of SplitMix64 steps, on the host."""
    word = 0
    for part in parts:
        word = _finalised(word + _GOLDEN + part)
    return word


def _finalise(word: Tensor) -> Tensor:
    """The finaliser of SplitMix64, in place on int64."""
    for shift, factor in ((30, _FIRST), (27, _SECOND), (31, None)):
        # torch's shift is arithmetic: the mask makes it logical
        word.bitwise_xor_((word >> shift).bitwise_and_((1 << (64 - shift)) - 1))
        if factor is not None:
            word.mul_(_signed(factor))
    return word


@functools.lru_cache(maxsize=4096)
def constant(value: float | tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Constants kept on the device: making them anew would wait for it, which no CUDA graph may do."""
    with torch.inference_mode(False):
        return torch.tensor(value, dtype=dtype, device=device)


class Source:
    """All random numbers of one draw of B assays.

    Args:
        seed: any integer.
        step: any integer, or an int64 tensor [] on the device; then what the host must know (`host`) depends on the
            seed alone.
        assays: B.
        device: where the numbers are made.
    """

    def __init__(self, seed: int, step: int | Tensor, assays: int, device: torch.device) -> None:
        self.device, self.assays = device, assays
        self._seed, self._step = key(seed), step
        self._streams = 0
        self._uniform, self._normal = (torch.zeros(assays, 0, dtype=torch.float32, device=device) for _ in range(2))

    def _stream(self) -> int:
        self._streams += 1
        return key(self._seed, self._streams)

    def _words(self, count: int) -> Tensor:
        """int64 [count]: hashed counters of a stream of their own, all 64 bits random."""
        stream, word = self._stream(), torch.arange(count, dtype=torch.int64, device=self.device)
        word.mul_(_signed(_GOLDEN))
        if isinstance(self._step, Tensor):
            start = _finalise(self._step * _signed(_FIRST) + _signed(stream))
            return _finalise(word.add_(start))
        return _finalise(word.add_(_signed(_finalised(self._step * _FIRST + stream))))

    def host(self) -> float:
        """One uniform number as a Python float: for sizes, which the host must know."""
        step = 0 if isinstance(self._step, Tensor) else self._step
        return (_finalised(step * _FIRST + self._stream()) >> 11) * 2.0**-53

    def normal(self, *shape: int) -> Tensor:
        """Standard normal float32 [B, *shape]."""
        count = math.prod(shape)
        if count > self._normal.shape[1]:
            # a stock for many small requests, made at once
            self._normal = self._normals(self.assays * max(count, 4096)).view(self.assays, -1)
        taken, self._normal = self._normal[:, :count], self._normal[:, count:]
        return taken.view(self.assays, *shape)

    def _normals(self, count: int) -> Tensor:
        """Box and Muller's pair from the two halves of one 64-bit word."""
        word = self._words((count + 1) // 2)
        angle = word.bitwise_and(0xFFFFFFFF).to(torch.float32).mul_(2.0**-32 * 2.0 * math.pi)
        radius = (word >> 32).bitwise_and_(0xFFFFFFFF).to(torch.float32).add_(0.5).mul_(2.0**-32)
        radius = radius.clamp_(max=1.0 - 2.0**-24).log_().mul_(-2.0).sqrt_()
        return torch.cat([radius * torch.cos(angle), radius * torch.sin(angle)])[:count]

    def _columns(self, count: int) -> Tensor:
        """Uniform on the open interval (0, 1), float32 [B, count], from a stock that is made at once."""
        if count > self._uniform.shape[1]:
            word = self._words(self.assays * max(count, _STOCK))
            # 23 bits, so that half a step more is still exact: the ends are never reached
            number = (word >> 41).bitwise_and_((1 << 23) - 1).to(torch.float32).add_(0.5).mul_(2.0**-23)
            self._uniform = number.view(self.assays, -1)
        taken, self._uniform = self._uniform[:, :count], self._uniform[:, count:]
        return taken

    def uniform(self, *shape: int) -> Tensor:
        """Uniform on the open interval (0, 1), float32 [B, *shape]."""
        return self._columns(math.prod(shape)).reshape(self.assays, *shape)

    def permutation(self, count: int) -> Tensor:
        """int64 [count ≤ B]: a random order."""
        return torch.argsort(self._columns(1)[:count, 0], stable=True)

    def table(self, columns: int, dtype: torch.dtype = torch.float32) -> Numbers:
        """Numbers for all assays, ``columns`` for each."""
        return Numbers(self._columns(columns).to(dtype))


class Numbers:
    """The random numbers of some assays, taken column by column: one hash for all parameters of a draw.

    Every method gives [rows, *shape], or [rows, 1] without a ``shape``, so that a parameter broadcasts over samples.

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
        return self._table[:, start : self._taken].view(self.rows, *shape)

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        """Uniform between ``low`` and ``high``, of any ``shape``."""
        number = self._take(shape)
        if (low, high) == (0.0, 1.0):
            return number
        low_, high_ = (constant(value, self.dtype, self.device) for value in (low, high))
        return torch.lerp(low_, high_, number)

    def log_uniform(self, low: float, high: float, *shape: int) -> Tensor:
        """Uniform in the logarithm between ``low`` and ``high``, both positive, of any ``shape``."""
        return torch.exp(self.uniform(math.log(low), math.log(high), *shape))

    def normal(self, *shape: int) -> Tensor:
        """Standard normal, of any ``shape``."""
        return torch.erfinv(self.uniform(-1.0, 1.0, *shape)) * math.sqrt(2.0)

    def log_normal(self, median: float, sigma: float, *shape: int) -> Tensor:
        """``median`` × exp(``sigma`` z), of any ``shape``."""
        z = torch.erfinv(self.uniform(-1.0, 1.0, *shape))
        return torch.exp(z * (sigma * math.sqrt(2.0))) * median

    def chance(self, probability: float, *shape: int) -> Tensor:
        """True with a ``probability``, of any ``shape``."""
        return self._take(shape) < probability

    def sign(self, *shape: int) -> Tensor:
        """+1 or −1, of any ``shape``."""
        return torch.sign(self._take(shape) - 0.5)

    def choice(self, weights: Sequence[float], *shape: int) -> Tensor:
        """int64: a number from 0 on, in proportion to the ``weights``, of any ``shape``."""
        total, number = sum(weights), self._take(shape).float()
        edges = tuple(edge / total for edge in itertools.accumulate(weights))[:-1]
        return torch.bucketize(number.contiguous(), constant(edges, torch.float32, number.device))
