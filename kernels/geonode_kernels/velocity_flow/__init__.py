"""The flow that sees the velocity: path points from the arc-length table, and the loss with all its gradients."""

from functools import lru_cache, partial

import torch
from torch import Tensor

from .. import _blocks
from .._dispatch import dispatch, flow_refusal
from .._gauss import gauss_legendre
from .._runtime import launch, padded, plain
from ..flow_quadrature import scale_models
from . import reference

__all__ = ["path_points", "velocity_loss"]


def path_points(
    ends: Tensor,
    half: Tensor,
    series: Tensor,
    slope: Tensor,
    ascending: Tensor,
    grid: Tensor,
    low: Tensor,
    high: Tensor,
    nodes: int = 16,
    *,
    backend: str = "auto",
) -> tuple[Tensor, Tensor]:
    """u and ρ(u) [M, Q, B, W] at the Q Gauss nodes of paths; see `reference.path_points`.

    ``ascending`` helps the inversion alone and gets no gradient; ``ends``, ``half``, ``series`` and ``slope`` do.

    Args:
        ends: ŝ [M, 2, B, W]. half: S(1)/2 [M, W]. series, slope: coefficients [M, T + 1, W] of S and [M, T, W] of ρ.
        ascending: S at the table's nodes [M, T, W]. grid: the table's nodes [M, T]. low, high: its range [M].
        nodes: Q. backend: ``auto``, ``triton`` or ``torch``.

    Raises:
        KernelError: an unknown backend, or ``backend="triton"`` where the kernel cannot run.
    """
    grid, low, high = (t.to(ends.dtype) for t in (grid, low, high))
    if not dispatch("path_points", [ends, half, series, slope, ascending], backend=backend):
        return reference.path_points(ends, half, series, slope, ascending, grid, low, high, nodes)
    u, density = _points(ends, half, series, slope, ascending.detach(), grid, low, high, nodes)
    return u.permute(0, 2, 3, 1), density.permute(0, 2, 3, 1)


def velocity_loss(
    ends: Tensor,
    density: Tensor,
    half: Tensor,
    omega: Tensor,
    nu: Tensor,
    beta: Tensor,
    a: Tensor,
    a0: Tensor,
    target: Tensor,
    weight: Tensor,
    *,
    backend: str = "auto",
) -> Tensor:
    """Σ weight (∫ h dŝ − target)² [M] of a flow that sees u̇; see `reference.velocity_loss`.

    ``target`` and ``weight`` get no gradient from the kernel, which takes up to 256 hidden units.

    Args:
        ends: ŝ [M, 2, B, W]. density: ρ [M, Q, B, W] at the Gauss nodes. half: S(1)/2 [M, W].
        omega, nu: [M, H]. beta, a: [M, W, H]. a0: [M, W].
        target: [M, B, W]. weight: [M, B]. backend: ``auto``, ``triton`` or ``torch``.

    Raises:
        KernelError: an unknown backend, or ``backend="triton"`` where the kernel cannot run.
    """
    tensors = [ends, density, half, omega, nu, beta, a, a0, target, weight]
    if not dispatch("velocity_loss", tensors, backend=backend, refusal=flow_refusal(omega.shape[-1])):
        return reference.velocity_loss(*tensors)
    tensors[1] = density.permute(0, 3, 1, 2).contiguous()  # as `path_points` made it
    return _loss(*tensors)[0]


@lru_cache(maxsize=32)
def _node_table(nodes: int, device: torch.device) -> Tensor:
    """(x, weight) of every node [Q, 2]."""
    return torch.tensor(list(zip(*gauss_legendre(nodes), strict=True)), dtype=torch.float32, device=device)


def _new(device: torch.device, *shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.float32, device=device)


@torch.library.custom_op("geonode::path_points", mutates_args=())
def _points(
    ends: Tensor, half: Tensor, series: Tensor, slope: Tensor, ascending: Tensor, grid: Tensor, low: Tensor,
    high: Tensor, nodes: int,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """u and ρ [M, W, Q, B]."""
    from . import _triton

    models, _, pairs, width = ends.shape
    size = slope.shape[1]
    u, density = (_new(ends.device, models, width, nodes, pairs) for _ in range(2))
    o = _blocks.options("path_points")
    launch(
        _triton.points_kernel, (width, -(-pairs // o["BLOCK"]), models),
        *map(plain, (ends, half, series, slope, ascending, grid, low, high)), _node_table(nodes, ends.device), u,
        density, pairs, width, nodes, size, (size - 1).bit_length(), KQ=_tile(nodes), NEWTON=reference.NEWTON, **o,
    )  # fmt: skip
    return u, density


@_points.register_fake
def _(ends, half, series, slope, ascending, grid, low, high, nodes):
    models, _, pairs, width = ends.shape
    return _new(ends.device, models, width, nodes, pairs), _new(ends.device, models, width, nodes, pairs)


def _tile(nodes: int) -> int:
    return 1 << (nodes - 1).bit_length()


@torch.library.custom_op("geonode::path_points_backward", mutates_args=())
def _points_backward(
    grad_u: Tensor, grad_density: Tensor, u: Tensor, ends: Tensor, half: Tensor, slope: Tensor, low: Tensor,
    high: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    from . import _triton

    models, width, nodes, pairs = u.shape
    size = slope.shape[1]
    o = _blocks.options("path_points_backward")
    blocks = -(-pairs // o["BLOCK"])
    to_ends = _new(u.device, models, 2, pairs, width)
    to_half = _new(u.device, blocks, models, width)
    to_series = _new(u.device, blocks, models, size + 1, width)
    to_slope = _new(u.device, blocks, models, size, width)
    launch(
        _triton.points_backward_kernel, (width, blocks, models),
        *map(plain, (ends, half, slope, low, high)), _node_table(nodes, u.device), u, plain(grad_u),
        plain(grad_density), to_ends, to_half, to_series, to_slope, pairs, width, nodes, size, KQ=_tile(nodes), **o,
    )  # fmt: skip
    return to_ends, to_half.sum(0), to_series.sum(0), to_slope.sum(0)


@_points_backward.register_fake
def _(grad_u, grad_density, u, ends, half, slope, low, high):
    models, size, width = slope.shape
    series = _new(u.device, models, size + 1, width)
    return _new(u.device, *ends.shape), _new(u.device, models, width), series, _new(u.device, *slope.shape)


def _keep_points(ctx, inputs, output):
    ends, half, _, slope, _, _, low, high, _ = inputs
    ctx.save_for_backward(output[0], ends, half, slope, low, high)


def _points_vjp(ctx, grad_u, grad_density):
    return *_points_backward(grad_u, grad_density, *ctx.saved_tensors), *[None] * 5


_points.register_autograd(_points_vjp, setup_context=_keep_points)


@torch.library.custom_op("geonode::velocity_loss", mutates_args=())
def _loss(
    ends: Tensor, density: Tensor, half: Tensor, omega: Tensor, nu: Tensor, beta: Tensor, a: Tensor, a0: Tensor,
    target: Tensor, weight: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """As `velocity_loss`, but for ρ [M, W, Q, B]; then the gradients."""
    from . import _triton

    models, width, nodes, pairs = density.shape
    hidden = omega.shape[1]
    o = _blocks.options("velocity_loss")
    chunk = -(-o.pop("per_program") // o["BLOCK"]) * o["BLOCK"]
    splits = -(-pairs // chunk)
    new = partial(_new, ends.device)
    to_ends, to_density = new(models, 2, pairs, width), new(models, width, nodes, pairs)
    to_omega, to_nu, to_beta, to_a = (new(splits, models, width, hidden) for _ in range(4))
    to_half, to_a0, loss = (new(splits, models, width) for _ in range(3))
    launch(
        _triton.loss_kernel, (width, splits, models),
        *map(plain, (ends, density, half, omega, nu, beta, a, a0)), _node_table(nodes, ends.device),
        plain(target), plain(weight), to_ends, to_density, to_half, to_omega, to_nu, to_beta, to_a, to_a0, loss,
        pairs, width, hidden, nodes, chunk, K=padded(hidden), KQ=_tile(nodes), **o,
    )  # fmt: skip
    return (
        loss.sum((0, 2)), to_ends, to_density, to_half.sum(0), to_omega.sum((0, 2)), to_nu.sum((0, 2)),
        to_beta.sum(0), to_a.sum(0), to_a0.sum(0),
    )  # fmt: skip


@_loss.register_fake
def _(ends, density, half, omega, nu, beta, a, a0, target, weight):
    gradients = (_new(t.device, *t.shape) for t in (ends, density, half, omega, nu, beta, a, a0))
    return _new(ends.device, ends.shape[0]), *gradients


def _keep_gradients(ctx, inputs, output):
    ctx.save_for_backward(*output[1:])
    ctx.set_materialize_grads(False)


def _loss_vjp(ctx, grad, *unused):
    return *scale_models(list(ctx.saved_tensors), grad), None, None


_loss.register_autograd(_loss_vjp, setup_context=_keep_gradients)
