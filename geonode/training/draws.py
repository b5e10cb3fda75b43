"""What a training step draws, keyed by (seed, epoch, step): a resumed run draws what the uninterrupted one would."""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.data.pairs import keyed_generator

_WAVELENGTHS, _PAIRS = 1, 2  # streams: draws of different kinds never share a generator


def draw_wavelengths(
    width: int, count: int | None, seed: int, epoch: int, step: int, device: torch.device | str = "cpu"
) -> Tensor | None:
    """Indices of ``count`` of ``width`` wavelengths without replacement; None where all are used."""
    if count is None or count >= width:
        return None
    generator = keyed_generator(seed, epoch, step, _WAVELENGTHS, device=device)
    return torch.randperm(width, generator=generator, device=device)[:count]


def draw_points(
    size: int, count: int, seed: int, epoch: int, step: int, device: torch.device | str = "cpu"
) -> tuple[Tensor, Tensor]:
    """``count`` pairs (start, end) of point numbers below ``size``, stratified so that every region is visited."""
    generator = keyed_generator(seed, epoch, step, _PAIRS, device=device)
    # a type of its own: in float64 Lightning changes the default, and with it what would be drawn
    uniform = torch.rand(2, count, generator=generator, device=device, dtype=torch.float32)
    order = torch.randperm(count, generator=generator, device=device)
    start = (torch.arange(count, device=device) + uniform[0]) / count
    end = (order + uniform[1]) / count
    return (start * size).long().clamp(max=size - 1), (end * size).long().clamp(max=size - 1)
