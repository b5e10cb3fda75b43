"""Anchor wavelengths: the few evenly spaced ones that all wavelengths listen to."""

from __future__ import annotations

import torch
from torch import Tensor


def anchors_first(width: int, anchors: int, device: torch.device | str | None = None) -> Tensor:
    """An order of ``width`` wavelengths with ``anchors`` evenly spaced ones in front: ``[width]`` indices."""
    anchors = min(anchors, width)
    first = torch.linspace(0, width - 1, anchors, device=device).round().long()
    others = torch.ones(width, dtype=torch.bool, device=device)
    others[first] = False
    return torch.cat([first, torch.argsort(~others, stable=True)[: width - anchors]])
