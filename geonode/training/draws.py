"""Random draws keyed by (seed, epoch, step): a resumed run draws what the uninterrupted one would have drawn."""

from __future__ import annotations

import torch
from torch import Tensor


def keyed_generator(seed: int, epoch: int, step: int, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator whose state depends on (seed, epoch, step) alone."""
    mixed = (seed * 0x9E3779B97F4A7C15 + epoch * 0xBF58476D1CE4E5B9 + step * 0x94D049BB133111EB) % (1 << 63)
    return torch.Generator(device=device).manual_seed(mixed)


def draw_wavelengths(
    width: int, count: int | None, seed: int, epoch: int, step: int, device: torch.device | str = "cpu"
) -> Tensor | None:
    """Indices of ``count`` of ``width`` wavelengths without replacement; None where all are used."""
    if count is None or count >= width:
        return None
    generator = keyed_generator(seed, epoch, step, device)
    return torch.randperm(width, generator=generator, device=device)[:count]
