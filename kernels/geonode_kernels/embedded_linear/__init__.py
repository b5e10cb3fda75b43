"""Coefficients of the flow at every wavelength from a narrow embedding, forward and backward."""

import torch
from torch import Tensor

from .._dispatch import dispatch
from .._runtime import launch, plain
from . import reference

__all__ = ["embedded_linear"]


def embedded_linear(embedding: Tensor, weight: Tensor, bias: Tensor, *, backend: str = "auto") -> Tensor:
    """embedding [M, W, E] · weight [M, E, K] + bias [M, K] → [M, W, K], for E of a dozen at most.

    Raises:
        KernelError: ``backend="triton"`` where the kernel cannot run.
    """
    if not dispatch("embedded_linear", [embedding, weight, bias], backend=backend):
        return reference.embedded_linear(embedding, weight, bias)
    return _linear(embedding, weight, bias)


@torch.library.custom_op("geonode::embedded_linear", mutates_args=())
def _linear(embedding: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    from . import _triton

    m, w, e = embedding.shape
    k = weight.shape[2]
    out = torch.empty(m, w, k, dtype=torch.float32, device=embedding.device)
    launch(
        _triton.forward_kernel,
        (-(-w // 32), -(-k // 32), m),
        plain(embedding),
        plain(weight),
        plain(bias),
        out,
        w,
        e,
        k,
        ROWS=32,
        COLUMNS=32,
        num_warps=4,
    )
    return out


@_linear.register_fake
def _(embedding, weight, bias):
    shape = (*embedding.shape[:2], weight.shape[2])
    return torch.empty(shape, dtype=torch.float32, device=embedding.device)


@torch.library.custom_op("geonode::embedded_linear_backward", mutates_args=())
def _backward(grad: Tensor, embedding: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    from . import _triton

    m, w, e = embedding.shape
    k = weight.shape[2]
    grad, embedding, weight = plain(grad), plain(embedding), plain(weight)
    to_embedding, to_weight = torch.empty_like(embedding), torch.empty_like(weight)
    to_bias = torch.empty(m, k, dtype=torch.float32, device=grad.device)
    launch(
        _triton.weight_kernel,
        (e + 1, -(-k // 16), m),
        embedding,
        grad,
        to_weight,
        to_bias,
        w,
        e,
        k,
        ROWS=256,
        COLUMNS=16,
        num_warps=8,
    )
    launch(
        _triton.embedding_kernel,
        (e, -(-w // 32), m),
        grad,
        weight,
        to_embedding,
        w,
        e,
        k,
        ROWS=32,
        COLUMNS=128,
        num_warps=4,
    )
    return to_embedding, to_weight, to_bias


@_backward.register_fake
def _(grad, embedding, weight):
    new = lambda *shape: torch.empty(shape, dtype=torch.float32, device=grad.device)  # noqa: E731
    return new(*embedding.shape), new(*weight.shape), new(weight.shape[0], weight.shape[2])


def _keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:2])


def _vjp(ctx, grad):
    return _backward(grad, *ctx.saved_tensors)


_linear.register_autograd(_vjp, setup_context=_keep)
