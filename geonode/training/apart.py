"""Products of a stack model by model, so that a model's float64 arithmetic does not depend on its neighbours.

A GPU's batched matrix product picks its algorithm by the number of models, and AdamW divides by the gradient's size:
what rounds to 1e-16 in one step is 1e-10 in the weights after ten. float64 is the precision for comparing, not for
speed, so there every product is its own.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


def products_apart(like: Tensor) -> AbstractContextManager[Any]:
    """A context in which batched products are made one by one, where ``like`` is float64 on a GPU; else nothing."""
    return _Apart() if like.is_cuda and like.dtype == torch.float64 else nullcontext()


class _Apart(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.bmm.default:
            return torch.stack([torch.mm(a, b) for a, b in zip(*args, strict=True)])
        if func is torch.ops.aten.baddbmm.default and not kwargs:
            start, left, right = args
            start = start.expand(len(left), left.shape[1], right.shape[2])
            return torch.stack([torch.addmm(*each) for each in zip(start, left, right, strict=True)])
        return func(*args, **(kwargs or {}))
