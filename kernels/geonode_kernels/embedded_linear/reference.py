"""Per-wavelength coefficients as a linear map of the wavelength embedding, in plain torch."""

import torch
from torch import Tensor


def embedded_linear(embedding: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """embedding [M, W, E] · weight [M, E, K] + bias [M, K] → [M, W, K]."""
    return torch.baddbmm(bias[:, None], embedding, weight)
