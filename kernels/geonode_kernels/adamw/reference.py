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
    slots: Tensor,
    betas: tuple[float, float],
    eps: float,
    decay: float,
    clips: tuple[float, float],
) -> Tensor:
    """Update in place; returns the gradient norms [M, 2] before clipping, of gradients divided by ``scale`` [M].

    A model whose norms are not finite, or whose ``active`` [M] is zero, stays as it is. ``rates`` [M, 2].

    ``layout``: (offset, elements a model, group, elements in all) of each parameter; model m's part of it is
    [offset + m·n, offset + (m + 1)·n). ``slots``: 2·model + group of each element, by which what is [M, 2] is spread
    over the buffers: one operation for all parameters, for on a CPU a small model's time is that of the calls.
    ``powers`` [M, 2]: β₁ᵗ and β₂ᵗ of the steps before.
    """
    norms = torch.zeros_like(rates)

    def spread(values: Tensor) -> Tensor:
        return values.expand_as(norms).reshape(-1)[slots]

    gradient = gradient * spread((1.0 / scale)[:, None])
    squares = gradient.square()
    for o, n, g, total in layout:
        norms[:, g] += squares[o : o + total].view(-1, n).sum(1)
    norms.sqrt_()
    go = (torch.isfinite(norms).all(1) & (active > 0))[:, None]
    new_powers = torch.stack([power * beta for power, beta in zip(powers.unbind(1), betas, strict=True)], 1)
    powers.copy_(torch.where(go, new_powers, powers))
    correct = (1.0 / (1.0 - new_powers)).to(parameter.dtype)
    if max(clips) > 0:
        shares = [(clip / (norms[:, g] + 1e-12)).clamp(max=1.0) if clip > 0 else torch.ones_like(norms[:, g])
                  for g, clip in enumerate(clips)]  # fmt: skip
        gradient = gradient * spread(torch.stack(shares, 1))
    new_mean = mean + (1.0 - betas[0]) * (gradient - mean)
    new_square = square * betas[1] + (1.0 - betas[1]) * gradient * gradient
    change = spread(correct[:, :1]) * new_mean / ((new_square * spread(correct[:, 1:])).sqrt() + eps)
    moves = spread(go)
    moved = parameter * spread(1.0 - rates * decay) - spread(rates) * change
    for old, new in ((parameter, moved), (mean, new_mean), (square, new_square)):
        old.copy_(torch.where(moves, new, old))
    return norms
