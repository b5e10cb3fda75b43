"""Muon for the blocks' matrices, AdamW for everything else, in one optimiser that Lightning can step and checkpoint.

Muon (K. Jordan and others, 2024) replaces the momentum of a matrix by the nearest orthogonal matrix, found by five
Newton–Schulz steps, so that all directions of a layer learn at the same speed. Matrices of one shape are stacked and
done at once. The step is scaled so that its root mean square is 0.2 of the learning rate, which is about AdamW's, and
one learning rate serves both (J. Liu and others 2025, arXiv:2502.16982).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_NEWTON_SCHULZ_STEPS = 5
_RMS = 0.2


class MuonAdamW(torch.optim.Optimizer):
    """Two kinds of parameter groups: ``muon=True`` (matrices, stacked by shape) and ``muon=False`` (AdamW).

    Args:
        groups: parameter groups, each with ``params``, ``muon`` and ``weight_decay``.
        lr: learning rate of both.
        momentum: of Muon (Nesterov). betas, eps: of AdamW.
    """

    def __init__(
        self,
        groups: Iterable[dict[str, Any]],
        lr: float,
        momentum: float = 0.95,
        betas: tuple[float, float] = (0.9, 0.98),
        eps: float = 1e-8,
    ) -> None:
        super().__init__(list(groups), {"lr": lr, "momentum": momentum, "betas": betas, "eps": eps, "muon": False})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step on all groups."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if params:
                (self._muon if group["muon"] else self._adamw)(group, params)
        return loss

    def _muon(self, group: dict[str, Any], params: list[Tensor]) -> None:
        momenta = [self._state(p, "momentum") for p in params]
        grads = [p.grad for p in params]
        torch._foreach_lerp_(momenta, grads, 1.0 - group["momentum"])
        updates = torch._foreach_lerp(grads, momenta, group["momentum"])
        torch._foreach_mul_(params, 1.0 - group["lr"] * group["weight_decay"])
        by_shape: dict[torch.Size, list[int]] = defaultdict(list)
        for i, p in enumerate(params):
            by_shape[p.shape].append(i)
        for shape, members in by_shape.items():
            moved = orthogonal(torch.stack([updates[i] for i in members]))
            size = group["lr"] * _RMS * max(shape) ** 0.5
            torch._foreach_add_([params[i] for i in members], [m.to(params[0].dtype) for m in moved], alpha=-size)

    def _adamw(self, group: dict[str, Any], params: list[Tensor]) -> None:
        first = [self._state(p, "first") for p in params]
        second = [self._state(p, "second") for p in params]
        grads = [p.grad for p in params]
        beta1, beta2 = group["betas"]
        group["steps"] = group.get("steps", 0) + 1
        torch._foreach_lerp_(first, grads, 1.0 - beta1)
        torch._foreach_mul_(second, beta2)
        torch._foreach_addcmul_(second, grads, grads, 1.0 - beta2)
        root = torch._foreach_sqrt(second)
        torch._foreach_div_(root, (1.0 - beta2 ** group["steps"]) ** 0.5)
        torch._foreach_add_(root, group["eps"])
        torch._foreach_mul_(params, 1.0 - group["lr"] * group["weight_decay"])
        torch._foreach_addcdiv_(params, first, root, -group["lr"] / (1.0 - beta1 ** group["steps"]))

    def _state(self, p: Tensor, name: str) -> Tensor:
        state = self.state[p]
        if name not in state:
            state[name] = torch.zeros_like(p)
        return state[name]


def orthogonal(matrices: Tensor) -> Tensor:
    """Nearly the orthogonal factor of every matrix of a stack ``[k, a, b]`` (singular values 0.7 to 1.2)."""
    a, b, c = _COEFFICIENTS
    x = matrices.bfloat16() if matrices.is_cuda else matrices
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(_NEWTON_SCHULZ_STEPS):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return x.mT if tall else x


def parameter_groups(network: nn.Module, weight_decay: float, muon: bool = True) -> list[dict[str, Any]]:
    """Matrices of the blocks for Muon, other matrices for AdamW with decay, vectors for AdamW without."""
    blocks, matrices, vectors = [], [], []
    for name, p in network.named_parameters():
        if p.ndim < 2:
            vectors.append(p)
        else:
            (blocks if muon and name.startswith("blocks.") else matrices).append(p)
    groups = [
        {"params": blocks, "muon": True, "weight_decay": weight_decay},
        {"params": matrices, "muon": False, "weight_decay": weight_decay},
        {"params": vectors, "muon": False, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]
