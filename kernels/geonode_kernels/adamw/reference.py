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
    scale: Tensor,
    active: Tensor,
    layout: list[tuple[int, int, int, int]],
    models: int,
    betas: tuple[float, float],
    eps: float,
    decay: float,
    clips: tuple[float, float],
) -> Tensor:
    """Update in place; returns the gradient norms [M, 2] before clipping, of gradients divided by ``scale`` [M].

    A model whose norms are not finite, or whose ``active`` [M] is zero, stays as it is. ``rates`` [M, 2].

    ``layout``: (offset, elements a model, group, elements in all) of each parameter; model m's part of it is
    [offset + m·n, offset + (m + 1)·n). ``powers`` [M, 2]: β₁ᵗ and β₂ᵗ of the steps before.
    """
    norms = torch.zeros(models, 2, dtype=parameter.dtype, device=parameter.device)
    inverse = (1.0 / scale)[:, None]
    views = [(o, n, g, gradient[o : o + t].view(models, n) * inverse) for o, n, g, t in layout]
    for _, _, g, view in views:
        norms[:, g] += view.square().sum(1)
    norms.sqrt_()
    go = (torch.isfinite(norms).all(1) & (active > 0))[:, None]
    new_powers = torch.stack([power * beta for power, beta in zip(powers.unbind(1), betas, strict=True)], 1)
    powers.copy_(torch.where(go, new_powers, powers))
    correct = (1.0 / (1.0 - new_powers)).to(parameter.dtype)
    for o, n, g, view in views:
        if clips[g] > 0:
            view = view * (clips[g] / (norms[:, g] + 1e-12)).clamp(max=1.0)[:, None]
        p, m1, m2 = (buffer[o : o + models * n].view(models, n) for buffer in (parameter, mean, square))
        new_mean = m1 + (1.0 - betas[0]) * (view - m1)
        new_square = m2 * betas[1] + (1.0 - betas[1]) * view * view
        change = correct[:, :1] * new_mean / ((new_square * correct[:, 1:]).sqrt() + eps)
        rate = rates[:, g, None]
        p.copy_(torch.where(go, p * (1.0 - rate * decay) - rate * change, p))
        m1.copy_(torch.where(go, new_mean, m1))
        m2.copy_(torch.where(go, new_square, m2))
    return norms
