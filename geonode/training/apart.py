"""Products and sums of a stack that do not depend on how many models it has: training in float64.

Libraries pick the algorithm of a product, and the order of a sum's terms, by the size of the whole stack. AdamW divides
by the gradient's size, so what rounds to 1e-16 in one step is 1e-9 in the weights after ten, most of all where a
gradient is nothing but rounding: a constant added to ln g̃ changes no scaled arc length. float64 is the precision for
comparing, not for speed (it takes two to four times as long for this), so there every model's product is its own and
every sum is a tree of additions.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_aten = torch.ops.aten


def rounded_alone(like: Tensor) -> AbstractContextManager[Any]:
    """A context in which each model's numbers are, to the bit, those it has alone, where ``like`` is float64; elsewhere
    nothing. Matrices that all models share must be expanded first: torch folds the models of a product with one.
    """
    return _Apart() if like.dtype == torch.float64 else nullcontext()


class _Apart(TorchDispatchMode):
    """Takes every operation of a stack whose rounding could depend on the number of models."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if kwargs or not args or not isinstance(args[0], Tensor) or args[0].numel() == 0:
            return func(*args, **(kwargs or {}))
        if func is _aten.bmm.default:
            return torch.stack([_product(*each) for each in zip(*args, strict=True)])
        if func is _aten.baddbmm.default:
            return args[0] + torch.stack([_product(*each) for each in zip(*args[1:], strict=True)])
        if func in (_aten.sum.dim_IntList, _aten.mean.dim) and args[0].is_floating_point():
            total = _tree(*args)
            return total if func is _aten.sum.dim_IntList else total * (total.numel() / args[0].numel())
        return func(*args)


def _product(left: Tensor, right: Tensor) -> Tensor:
    """Of two matrices, laid out and aligned alike however they came: libraries have algorithms for each."""
    return torch.mm(*(side.clone(memory_format=torch.contiguous_format) for side in (left, right)))


def _tree(value: Tensor, dims: Sequence[int] | None, keepdim: bool = False) -> Tensor:
    """Sum over ``dims`` (none: all), halving what is left at each level: elementwise, so nothing else decides."""
    if value.ndim == 0:
        return value.clone()
    dims = sorted({d % value.ndim for d in dims or range(value.ndim)})
    rest = value.movedim(dims, list(range(len(dims)))).flatten(0, len(dims) - 1)
    while len(rest) > 1:
        half = len(rest) // 2
        rest = torch.cat([rest[:half] + rest[half : 2 * half], rest[2 * half :]])
    total = rest[0]
    for d in dims if keepdim else ():
        total = total.unsqueeze(d)
    return total
