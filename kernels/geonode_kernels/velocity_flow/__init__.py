"""The flow that sees the velocity: path points from the arc-length table, and the loss with all its gradients."""

from collections.abc import Sequence
from functools import lru_cache, partial

import torch
from torch import Tensor

from .. import _blocks
from .._dispatch import dispatch, flow_refusal
from .._gauss import gauss_legendre
from .._runtime import launch, padded, plain
from ..arc_length import arc_length
from ..embedded_linear import embedded_linear
from ..flow_quadrature import scale_models
from ..metric_christoffel import metric_density
from . import reference
from .reference import TableMatrices

__all__ = ["TableMatrices", "path_points", "velocity_flow_loss", "velocity_loss"]


def path_points(
    ends: Tensor,
    half: Tensor,
    series: Tensor,
    slope: Tensor,
    ascending: Tensor,
    matrices: TableMatrices,
    nodes: int = 16,
    *,
    backend: str = "auto",
) -> Tensor:
    """u [M, Q, B, W] at the Q Gauss nodes of paths; see `reference.path_points`.

    ``slope`` and ``ascending`` help the inversion alone and get no gradient; ``ends``, ``half`` and ``series`` do.

    Args:
        ends: ŝ [M, 2, B, W]. half: S(1)/2 [M, W]. series, slope: coefficients [M, T + 1, W] of S and [M, T, W] of ρ.
        ascending: S at the table's nodes [M, T, W]. matrices: of the table, whose nodes and range are used.
        nodes: Q. backend: ``auto``, ``triton`` or ``torch``.

    Raises:
        KernelError: an unknown backend, or ``backend="triton"`` where the kernel cannot run.
    """
    grid, low, high = (t.to(ends.dtype) for t in (matrices.nodes, matrices.low, matrices.high))
    if not dispatch("path_points", [ends, half, series, slope, ascending], backend=backend):
        matrices = matrices._replace(nodes=grid, low=low, high=high)
        return reference.path_points(ends, half, series, slope, ascending, matrices, nodes)
    return _points(ends, half, series, slope.detach(), ascending.detach(), grid, low, high, nodes)


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
    return _loss(*tensors)[0]


def velocity_flow_loss(
    metric: Sequence[Tensor],
    flow: Sequence[Tensor],
    u: Tensor,
    wavelength: Tensor,
    phi: Tensor,
    matrices: TableMatrices,
    target: Tensor,
    weight: Tensor,
    *,
    nodes: int = 16,
    precision: str = "fp32",
    backend: str = "auto",
) -> Tensor:
    """Σ weight (A(b) − A(a) − target)² [M] of ``flow="velocity"``: the metric network at every node of every path.

    Arguments as in `geonode_kernels.default_flow_loss`, with ``flow`` = ω, ν [M, H], embedding [M, W, E], weights
    [M, E, 2H + 1] and bias [M, 2H + 1] of (β | a | a₀), and the table's ``matrices``.

    Raises:
        KernelError: an unknown name, or ``backend="triton"`` where a kernel cannot run.
    """
    omega, nu, embedding, coefficient, bias = flow
    models, _, size = phi.shape
    width, hidden = embedding.shape[1], omega.shape[1]
    networks = {"precision": precision, "backend": backend}
    density = metric_density(u, wavelength, *metric, **networks).view(models, size, width)
    ends = arc_length(phi, density, backend=backend).view(models, 2, -1, width)
    half = 0.5 * (phi[:, -1:] @ density)[:, 0]
    fixed = density.detach()
    points = path_points(
        ends, half, matrices.series.to(fixed) @ density, matrices.slope.to(fixed) @ fixed,
        matrices.at_nodes.to(fixed) @ fixed, matrices, nodes, backend=backend,
    )  # fmt: skip
    line = wavelength.view(models, size, width)[:, :1].expand(models, points[0].numel() // width, width)
    along = metric_density(points.reshape(models, -1), line.reshape(models, -1), *metric, **networks)
    per_wavelength = embedded_linear(embedding, coefficient, bias, backend=backend)
    beta, a, a0 = per_wavelength.split([hidden, hidden, 1], -1)
    return velocity_loss(
        ends, along.view(points.shape), half, omega, nu, beta, a, a0[..., 0], target, weight, backend=backend
    )


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
) -> Tensor:  # fmt: skip
    from . import _triton

    models, _, pairs, width = ends.shape
    size = slope.shape[1]
    u = _new(ends.device, models, nodes, pairs, width)
    o = _blocks.options("path_points")
    launch(
        _triton.points_kernel, (width, -(-pairs // o["BLOCK"]), models),
        *map(plain, (ends, half, series, slope, ascending, grid, low, high)), _node_table(nodes, ends.device), u,
        pairs, width, nodes, size, (size - 1).bit_length(), KQ=_tile(nodes), NEWTON=reference.NEWTON, **o,
    )  # fmt: skip
    return u


@_points.register_fake
def _(ends, half, series, slope, ascending, grid, low, high, nodes):
    return _new(ends.device, ends.shape[0], nodes, *ends.shape[2:])


def _tile(nodes: int) -> int:
    return 1 << (nodes - 1).bit_length()


@torch.library.custom_op("geonode::path_points_backward", mutates_args=())
def _points_backward(
    grad: Tensor, u: Tensor, ends: Tensor, half: Tensor, series: Tensor, slope: Tensor, low: Tensor, high: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    from . import _triton

    models, nodes, pairs, width = u.shape
    size = slope.shape[1]
    o = _blocks.options("path_points")
    blocks = -(-pairs // o["BLOCK"])
    to_ends = _new(u.device, models, 2, pairs, width)
    to_half = _new(u.device, blocks, models, width)
    to_series = _new(u.device, blocks, models, size + 1, width)
    launch(
        _triton.points_backward_kernel, (width, blocks, models),
        *map(plain, (ends, half, series, slope, low, high)), _node_table(nodes, u.device), u, plain(grad), to_ends,
        to_half, to_series, pairs, width, nodes, size, KQ=_tile(nodes), **o,
    )  # fmt: skip
    return to_ends, to_half.sum(0), to_series.sum(0)


@_points_backward.register_fake
def _(grad, u, ends, half, series, slope, low, high):
    return tuple(_new(t.device, *t.shape) for t in (ends, half, series))


def _keep_points(ctx, inputs, output):
    ends, half, series, slope, _, _, low, high, _ = inputs
    ctx.save_for_backward(output, ends, half, series, slope, low, high)


def _points_vjp(ctx, grad):
    return *_points_backward(grad, *ctx.saved_tensors), *[None] * 6


_points.register_autograd(_points_vjp, setup_context=_keep_points)


@torch.library.custom_op("geonode::velocity_loss", mutates_args=())
def _loss(
    ends: Tensor, density: Tensor, half: Tensor, omega: Tensor, nu: Tensor, beta: Tensor, a: Tensor, a0: Tensor,
    target: Tensor, weight: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    from . import _triton

    models, nodes, pairs, width = density.shape
    hidden = omega.shape[1]
    o = _blocks.options("flow_backward")
    chunk = -(-o.pop("per_program") // o["BLOCK"]) * o["BLOCK"]
    splits = -(-pairs // chunk)
    new = partial(_new, ends.device)
    to_ends, to_density = new(models, 2, pairs, width), new(models, nodes, pairs, width)
    to_omega, to_nu, to_beta, to_a = (new(splits, models, width, hidden) for _ in range(4))
    to_half, to_a0, loss = (new(splits, models, width) for _ in range(3))
    launch(
        _triton.loss_kernel, (width, splits, models),
        *map(plain, (ends, density, half, omega, nu, beta, a, a0)), _node_table(nodes, ends.device),
        plain(target), plain(weight), to_ends, to_density, to_half, to_omega, to_nu, to_beta, to_a, to_a0, loss,
        pairs, width, hidden, nodes, chunk, K=padded(hidden), **o,
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
