"""Coordinates of the coupled ODEs: wavelengths scaled, the linear warp, and ends that must stay equal."""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.errors import InputError
from geonode.metric import WARPS, WarpMetric


def equal_where(condition: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """``second``, with the value of ``first`` (and still its own derivative) where the condition holds."""
    return torch.where(condition, first.detach() + (second - second.detach()), second)


def scaled_wavelengths(wavelengths: Tensor) -> Tensor:
    """A grid [W] of any unit scaled to [−1, 1], in the default dtype: what networks see.

    Raises:
        InputError: not one list of at least two.
    """
    wavelengths = torch.as_tensor(wavelengths, dtype=torch.float64)
    if wavelengths.ndim != 1 or len(wavelengths) < 2:
        raise InputError(f"wavelengths must be a list of at least two, got shape {tuple(wavelengths.shape)}.")
    low, high = wavelengths.min(), wavelengths.max()
    return (2.0 * (wavelengths - low) / (high - low) - 1.0).to(torch.get_default_dtype())


def linear_warp(c_min: float, c_max: float) -> WarpMetric:
    """A warp that only scales [c_min, c_max] linearly to [−1, 1]: the original recipe's coordinate."""
    weights = torch.zeros(len(WARPS), dtype=torch.float64)
    weights[0] = 1.0
    return WarpMetric.from_weights(weights, c0=c_min, c_min=c_min, c_max=c_max, trainable=False)
