"""Arc length of the full metric at given points: a matrix product (cuBLAS) and one elementwise launch each way."""

import torch
from torch import Tensor

from .. import _blocks
from .._dispatch import dispatch
from .._runtime import launch, plain, unrounded
from . import reference

__all__ = ["arc_length"]


def arc_length(phi: Tensor, density: Tensor, *, backend: str = "auto") -> Tensor:
    """ŝ [M, P, W] in [−1, 1] on the calibrated range; see `reference.arc_length`.

    Args:
        phi: [M, P + 1, T], constant (the integration matrix of the points, its last row that of u = 1); gets no
            gradient from the kernel.
        density: ρ [M, T, W] at the table's nodes.
        backend: ``auto``, ``triton`` or ``torch``.

    Raises:
        KernelError: an unknown backend, or ``backend="triton"`` where the kernel cannot run.
    """
    refusal = "phi requires a gradient" if phi.requires_grad else None
    if not dispatch("arc_length", [phi, density], backend=backend, refusal=refusal):
        return reference.arc_length(phi, density)
    return _arc_length(plain(phi), density)[0]


def _grid(shape) -> tuple[tuple[int, int, int], dict]:
    o = _blocks.options("arc_length")
    return (-(-shape[2] // o["BLOCK_W"]), -(-(shape[1] - 1) // o["BLOCK_P"]), shape[0]), o


@torch.library.custom_op("geonode::arc_length", mutates_args=())
def _arc_length(phi: Tensor, density: Tensor) -> tuple[Tensor, Tensor]:
    from . import _triton

    with unrounded(phi):
        s = phi @ plain(density)
    out = torch.empty(s.shape[0], s.shape[1] - 1, s.shape[2], dtype=torch.float32, device=s.device)
    grid, o = _grid(s.shape)
    launch(_triton.forward_kernel, grid, s, out, out.shape[1], out.shape[2], **o)
    return out, s


@_arc_length.register_fake
def _(phi, density):
    m, p, _ = phi.shape
    new = lambda *shape: torch.empty(shape, dtype=torch.float32, device=phi.device)  # noqa: E731
    return new(m, p - 1, density.shape[2]), new(m, p, density.shape[2])


@torch.library.custom_op("geonode::arc_length_backward", mutates_args=())
def _backward(grad: Tensor, phi: Tensor, s: Tensor) -> Tensor:
    from . import _triton

    grid, o = _grid(s.shape)
    to_s = torch.empty_like(s)
    partial = torch.empty(grid[1], s.shape[0], s.shape[2], dtype=torch.float32, device=s.device)
    launch(_triton.backward_kernel, grid, s, plain(grad), to_s, partial, s.shape[1] - 1, s.shape[2], **o)
    torch.sum(partial, 0, out=to_s[:, -1])
    with unrounded(phi):
        return phi.mT @ to_s


@_backward.register_fake
def _(grad, phi, s):
    return torch.empty(phi.shape[0], phi.shape[2], s.shape[2], dtype=torch.float32, device=s.device)


def _keep(ctx, inputs, output):
    ctx.save_for_backward(inputs[0], output[1])
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _vjp(ctx, grad, _):
    return None, _backward(grad, *ctx.saved_tensors)


_arc_length.register_autograd(_vjp, setup_context=_keep)
