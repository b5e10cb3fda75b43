"""The network as it is trained: from the candidates' mixture to the posterior.

Every cell of concentration starts with the mass that the candidates' mixture gives it. The network adds to the
logarithm of that mass, and to those of *below*, *above* and *none of these*. Its last layers begin at zero, so that
training begins with the mixture. Answers come from :mod:`geonode_runtime.posterior.network`, the same layers in numpy.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from geonode_runtime.posterior.cells import CELL_FEATURES, CELLS, GLOBAL_FEATURES
from geonode_runtime.posterior.network import DILATIONS, TAIL

WIDTH = 40


class Outcome(NamedTuple):
    """``logs [U, CELLS + 3]`` log probability of every cell, below, above and none of these; ``strange [U]`` the log
    odds that the spectrum holds something that the standards do not."""

    logs: Tensor
    strange: Tensor


class _Along(nn.Module):
    """A convolution along the cells of ``x [U, C, in]``, one or three taps: on a CPU a product of channels is faster
    than what torch has for that."""

    def __init__(self, inside: int, outside: int, dilation: int = 0) -> None:
        super().__init__()
        self.dilation = dilation
        taps = 3 if dilation else 1
        bound = (inside * taps) ** -0.5
        self.weight = nn.Parameter(torch.empty(outside, inside, taps).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outside).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        if not self.dilation:
            return nn.functional.linear(x, self.weight[..., 0], self.bias)
        wide, far = nn.functional.pad(x, (0, 0, self.dilation, self.dilation)), 2 * self.dilation
        beside = torch.cat([wide[:, :-far], x, wide[:, far:]], 2)
        return nn.functional.linear(beside, self.weight.permute(0, 2, 1).flatten(1), self.bias)


class _Block(nn.Module):
    """A residual convolution along the cells, with what the whole unknown looks like."""

    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.along = _Along(width, width, dilation)
        self.whole = nn.Linear(width, width)
        self.out = _Along(width, width)

    def forward(self, x: Tensor, mass: Tensor) -> Tensor:
        pooled = self.whole(torch.bmm(mass[:, None], x)[:, 0])
        return x + self.out(nn.functional.gelu(self.along(x) + pooled[:, None]))


class PosteriorNetwork(nn.Module):
    """About 40 000 parameters shared by all cells."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.whole = nn.Sequential(nn.Linear(GLOBAL_FEATURES, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU())
        self.enter = _Along(CELL_FEATURES, width)
        self.tell = nn.Linear(64, width)
        self.blocks = nn.ModuleList(_Block(width, dilation) for dilation in DILATIONS)
        self.cell = _Along(width, 1)
        # In this order: the initial weights are a function of the seed.
        first, last = nn.Linear(64 + width, 48), nn.Linear(48, 4)
        self.classes = nn.Sequential(first, nn.GELU(), last)
        for parameter in (*self.cell.parameters(), *last.parameters()):
            nn.init.zeros_(parameter)

    def forward(self, values: Tensor, whole: Tensor, base: Tensor, odd: Tensor, even: Tensor) -> Outcome:
        """From the parts of :class:`~geonode_runtime.posterior.cells.Cells`.

        Args:
            values: ``[U, CELLS, CELL_FEATURES]``. whole: ``[U, GLOBAL_FEATURES]``. base: ``[U, CELLS + 2]``.
            odd: ``[U]``. even: ``[U, CELLS]`` each cell's share of the searched range.
        """
        mass = base[:, :CELLS].exp()
        seen = self.whole(whole)
        x = nn.functional.gelu(self.enter(values) + self.tell(seen)[:, None])
        for block in self.blocks:
            x = block(x, mass)
        own = self.classes(torch.cat([seen, torch.bmm(mass[:, None], x)[:, 0]], 1))
        cells = base[:, :CELLS] + self.cell(x)[..., 0]
        beyond = base[:, CELLS:] + own[:, :2]
        logs = torch.log_softmax(torch.cat([cells, beyond, (odd + own[:, 2])[:, None]], 1), 1)
        inside = torch.logaddexp(logs[:, :CELLS] + _KEPT, torch.log(TAIL * even))
        return Outcome(torch.cat([inside, logs[:, CELLS:] + _KEPT], 1), odd + own[:, 3])


_KEPT = float(torch.log(torch.tensor(1.0 - TAIL)))
