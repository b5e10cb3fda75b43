"""Sizes and inputs the cases share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from geonode.bench import problem
from geonode.bench.case import Setting, Size
from geonode.metric import MetricNetwork
from geonode_kernels._nodes import nodes_for

# one flow evaluation: a product [row, 64]·[64, 64] for the value and one for the derivative
DOTS = 2 * 2 * problem.HIDDEN**2
TANH = 2 * problem.HIDDEN

EPOCH = Size(30, 601)  # every ordered pair of six standards, the whole grid
MEGA = Size(2048, 601)  # the blueprint's mega-batch: 1 230 848 trajectories
Sizes = Callable[[Setting], Sequence[Size]]


def sizes(cpu: Sequence[Size], cuda: Sequence[Size], more: Sequence[Size] = ()) -> Sizes:
    """Sizes by device, each once; the full suite adds ``more``."""
    return lambda s: (*dict.fromkeys([*(cuda if s.device == "cuda" else cpu), *(more if s.suite == "full" else ())]),)


def arguments(setting: Setting, n: int, rotation: int = 0, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """c, v, λ [1, n] of one input set; the first set (rotation 0, seed 0) is the one the peers get."""
    arrays = problem.points(n, 1 + setting.seed + 1000 * rotation)
    return [torch.from_numpy(a)[None].to(setting.device, dtype) for a in arrays]


def network_weights(device: str, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """The six weights with a model axis, M = 1."""
    return [torch.from_numpy(w)[None].to(device, dtype) for w in problem.weights()]


def metric_network(device: str, dtype: torch.dtype = torch.float32) -> MetricNetwork:
    """The same network as geonode's `MetricNetwork`."""
    metric = MetricNetwork().to(device, dtype)
    values = network_weights(device, dtype)
    with torch.no_grad():
        for parameter, value in zip(metric.network.mlp.weights, values[::2], strict=True):
            parameter.copy_(value)
        for parameter, value in zip(metric.network.mlp.biases, values[1::2], strict=True):
            parameter.copy_(value)
    return metric


def evaluations(device: str, along: int) -> int:
    """How often the network is asked for ``along`` values of one path: the kernels interpolate where they may."""
    return (nodes_for(along) or along) if device == "cuda" else along


def products(device: str, path: str, count: float) -> dict[str, float]:
    """``count`` operations of fp32 accuracy by the unit that does them: the kernels split each into three of fp16."""
    return {"fp16": 3.0 * count} if path == "kernel" and device == "cuda" else {"fp32": count}
