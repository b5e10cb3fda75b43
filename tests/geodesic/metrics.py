"""Metrics and ends of paths for tests of geodesics."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from geonode.metric import (
    Metric,
    MetricNetwork,
    PowerLaw,
)
from tests.tolerances import tolerance

DOUBLE = tolerance(torch.float64, "solver")


class RawPowerLaw(PowerLaw):
    """The power law without its chart, so that the table is built in c itself."""

    chart = None


class Watched(Metric):
    """g = 2 + sin(3c + λ); remembers the range it was asked for, and is NaN from λ = 10 on."""

    def __init__(self) -> None:
        super().__init__(dim=1)
        self.gain = torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))
        self.low, self.high = math.inf, -math.inf

    def forward(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        self.low, self.high = min(self.low, c.min().item()), max(self.high, c.max().item())
        wl = torch.zeros_like(c) if wavelength is None else wavelength
        return torch.where(wl < 10.0, self.gain + torch.sin(3.0 * c + wl), torch.nan)


def learned(seed: int = 0, hidden: tuple[int, ...] = (64, 64)) -> MetricNetwork:
    """A metric network whose metric varies several-fold over the range."""
    metric = MetricNetwork(hidden=hidden, seed=seed).double()
    with torch.no_grad():
        for parameter in metric.parameters():
            parameter.mul_(2.0)
    return metric


def ends(count: int, low: float, high: float, seed: int = 0) -> tuple[Tensor, Tensor]:
    draw = torch.rand(2, count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return tuple(low + (high - low) * draw)
