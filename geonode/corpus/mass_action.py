"""Mass action, solved in batches: closed forms where there are any, else a bracketed root with a fixed number of steps.

Totals and dissociation constants share one unit (in the corpus the highest standard). Sources: Connors, *Binding
Constants* (Wiley 1987); Wang, FEBS Lett. 360 (1995) 111; Goldstein and Barrett, J. Theor. Biol. 125 (1987) 139.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def bound_1_1(host: Tensor, guest: Tensor, dissociation: Tensor) -> Tensor:
    """Complex HG of a host and a guest from their totals: Kd [HG] = ([H]ₜ − [HG]) ([G]ₜ − [HG]).

    The smaller root, written so that nothing cancels: 2HG/(a + √(a² − 4HG)), a = H + G + Kd.
    """
    total = host + guest + dissociation
    product = host * guest
    return 2.0 * product / (total + torch.sqrt((total * total - 4.0 * product).clamp_min(0.0)))


def monomer(total: Tensor, association: Tensor) -> Tensor:
    """Free monomer where 2 M ⇌ D, K = [D]/[M]²: the root of 2K m² + m = total, written without cancellation."""
    return 2.0 * total / (1.0 + torch.sqrt(1.0 + 8.0 * association * total))


def isodesmic_monomer(total: Tensor, association: Tensor) -> Tensor:
    """Free monomer where every step Mₙ + M ⇌ Mₙ₊₁ has the same K: total = m/(1 − K m)² (Martin 1996)."""
    return 4.0 * total / (1.0 + torch.sqrt(1.0 + 4.0 * association * total)) ** 2


def increasing_root(function: Callable[[Tensor], Tensor], high: Tensor, *, rounds: int = 4, points: int = 33) -> Tensor:
    """The root of an increasing function on [0, high], by rounds of a grid in the bracket and a secant at the end.

    Each round evaluates the function at ``points`` places at once, so that few launches narrow the bracket by
    (points − 1)^rounds; the first grid is geometric over twelve decades, so that small roots are found as exactly as
    large ones. The secant of the last bracket gives the root to about 1e-12 of itself.

    Args:
        function: values at [..., points], increasing along the last axis; its parameters broadcast over that axis.
        high: upper end [...], where the function is ≥ 0; at 0 it is ≤ 0.
        rounds: of narrowing.
        points: of a grid.
    """
    step = torch.arange(points, dtype=high.dtype, device=high.device) / (points - 1)
    geometric = torch.where(step > 0, 10.0 ** (12.0 * (step - 1.0)), 0.0)
    low, high = torch.zeros_like(high), high
    for turn in range(rounds):
        grid = low[..., None] + (high - low)[..., None] * (geometric if turn == 0 else step)
        value = function(grid)
        below = (value[..., 1:-1] < 0).sum(-1, keepdim=True)
        low, high = grid.gather(-1, below).squeeze(-1), grid.gather(-1, below + 1).squeeze(-1)
        left, right = value.gather(-1, below).squeeze(-1), value.gather(-1, below + 1).squeeze(-1)
    rise = right - left
    return torch.where(rise > 0, low - left * (high - low) / torch.where(rise > 0, rise, 1.0), low).clamp_min(0.0)


def free_guest_1_2(host: Tensor, guest: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Free guest where a host takes two, with dissociation constants of the first and the second step."""
    h, g, k1, k2 = (value[..., None] for value in torch.broadcast_tensors(host, guest, first, second))

    def excess(free: Tensor) -> Tensor:
        one, two = free / k1, free * free / (k1 * k2)
        return free + h * (one + 2.0 * two) / (1.0 + one + two) - g

    return increasing_root(excess, g.squeeze(-1).clone())


def free_host_competing(host: Tensor, first: Tensor, second: Tensor, kd_first: Tensor, kd_second: Tensor) -> Tensor:
    """Free host where two guests compete for its one site, from the three totals and two dissociation constants."""
    h, a, b, ka, kb = (v[..., None] for v in torch.broadcast_tensors(host, first, second, kd_first, kd_second))
    return increasing_root(lambda f: f + a * f / (ka + f) + b * f / (kb + f) - h, h.squeeze(-1).clone())
