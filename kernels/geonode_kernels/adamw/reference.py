"""Clipping per model and group, then AdamW, in plain torch on flat buffers."""

import torch
from torch import Tensor


def step(
    parameter: Tensor,
    gradient: Tensor,
    mean: Tensor,
    square: Tensor,
    powers: Tensor,
    rates: Tensor,
    layout: list[tuple[int, int, int, int]],
    models: int,
    betas: tuple[float, float],
    eps: float,
    decay: float,
    clips: tuple[float, float],
) -> Tensor:
    """Update in place; returns the gradient norms [M, 2] before clipping.

    ``layout``: (offset, elements a model, group, elements in all) of each parameter; model m's part of it is
    [offset + m·n, offset + (m + 1)·n). ``powers`` [M, 2]: β₁ᵗ and β₂ᵗ of the steps before.
    """
    norms = torch.zeros(models, 2, dtype=parameter.dtype, device=parameter.device)
    views = [(o, n, g, gradient[o : o + t].view(models, n)) for o, n, g, t in layout]
    for _, _, g, view in views:
        norms[:, g] += view.square().sum(1)
    norms.sqrt_()
    powers *= torch.tensor(betas, dtype=powers.dtype, device=powers.device)
    correct = (1.0 / (1.0 - powers)).to(parameter.dtype)
    for o, n, g, view in views:
        if clips[g] > 0:
            view = view * (clips[g] / (norms[:, g] + 1e-12)).clamp(max=1.0)[:, None]
        p, m1, m2 = (buffer[o : o + models * n].view(models, n) for buffer in (parameter, mean, square))
        m1 += (1.0 - betas[0]) * (view - m1)
        m2.mul_(betas[1]).add_((1.0 - betas[1]) * view * view)
        change = correct[:, :1] * m1 / ((m2 * correct[:, 1:]).sqrt() + eps)
        p.mul_(1.0 - rates[g] * decay).sub_(rates[g] * change)
    return norms
