"""Flow quadrature: the change of absorbance along a geodesic for a flow that sees arc length and wavelength."""

from functools import lru_cache, partial

import torch
from torch import Tensor

from .. import _blocks
from .._dispatch import dispatch, flow_refusal
from .._gauss import gauss_legendre
from .._runtime import launch, padded, plain
from . import reference

__all__ = ["flow_loss", "flow_loss_of_ends", "flow_quadrature"]


def flow_quadrature(
    s_start: Tensor,
    s_end: Tensor,
    omega: Tensor,
    beta: Tensor,
    a: Tensor,
    a0: Tensor,
    nodes: int = 16,
    *,
    backend: str = "auto",
) -> Tensor:
    """∫ h dŝ from ``s_start`` to ``s_end``; see `reference.flow_quadrature` for the formula.

    ``s_start``, ``s_end`` [M, B, W]; ``omega`` [M, H]; ``beta``, ``a`` [M, W, H]; ``a0`` [M, W] → [M, B, W], by
    ``nodes`` Gauss–Legendre nodes. The kernel takes up to 256 hidden units, is bitwise reproducible, and refuses a
    second derivative. ``backend`` is ``auto``, ``triton`` or ``torch``.

    Raises:
        KernelError: an unknown backend, or ``backend="triton"`` where the kernel cannot run.
    """
    tensors = [s_start, s_end, omega, beta, a, a0]
    if not dispatch("flow_quadrature", tensors, backend=backend, refusal=flow_refusal(omega.shape[-1])):
        return reference.flow_quadrature(*tensors, nodes=nodes)
    return _integral(*(t.to(torch.float32) for t in tensors), nodes)


def flow_loss(
    s_start: Tensor,
    s_end: Tensor,
    omega: Tensor,
    beta: Tensor,
    a: Tensor,
    a0: Tensor,
    target: Tensor,
    weight: Tensor,
    nodes: int = 16,
    *,
    backend: str = "auto",
) -> Tensor:
    """Σ over pairs and wavelengths of weight · (∫ h dŝ − target)², [M]; value and all gradients in one pass.

    ``target`` [M, B, W] is the measured change of absorbance, ``weight`` [M, B]; neither gets a gradient. The other
    arguments are those of `flow_quadrature`. Where only the loss is needed this does half the work of `flow_quadrature`
    and its backward.

    Raises:
        KernelError: an unknown backend, or ``backend="triton"`` where the kernel cannot run.
    """
    return flow_loss_of_ends(
        torch.stack([s_start, s_end], 1), omega, beta, a, a0, target, weight, nodes, backend=backend
    )


def flow_loss_of_ends(
    ends: Tensor,
    omega: Tensor,
    beta: Tensor,
    a: Tensor,
    a0: Tensor,
    target: Tensor,
    weight: Tensor,
    nodes: int = 16,
    *,
    backend: str = "auto",
) -> Tensor:
    """`flow_loss` with both ends in one tensor ``ends`` [M, 2, B, W], as one matrix product gives them: one gradient
    for two.

    ``target`` [M, B, W], ``weight`` [M, B]; the other arguments are those of `flow_quadrature`.

    Raises:
        KernelError: an unknown backend, or ``backend="triton"`` where the kernel cannot run.
    """
    tensors = [ends, omega, beta, a, a0, target, weight]
    if not dispatch("flow_loss", tensors, backend=backend, refusal=flow_refusal(omega.shape[-1])):
        return reference.flow_loss(ends[:, 0], ends[:, 1], *tensors[1:], nodes=nodes)
    return _loss(*(t.to(torch.float32) for t in tensors), nodes)[0]


@lru_cache(maxsize=32)
def _node_table(nodes: int, device: torch.device) -> Tensor:
    """(x ≥ 0, weight) of each symmetric pair of nodes, [pairs, 2]; the middle node of an odd rule as half a pair."""
    x, w = gauss_legendre(nodes)
    pairs = [(x[-1 - i], w[-1 - i]) for i in range(nodes // 2)]
    if nodes % 2:
        pairs.append((0.0, 0.5 * w[nodes // 2]))
    return torch.tensor(pairs, dtype=torch.float32, device=device)


def _rows(tensor: Tensor) -> Tensor:
    """[M, B, W] whose pairs and wavelengths are contiguous; the model stride may be anything."""
    return tensor if tensor.stride(2) == 1 and tensor.stride(1) == tensor.shape[2] else tensor.contiguous()


def _same_stride(s_start: Tensor, s_end: Tensor) -> tuple[Tensor, Tensor]:
    s_start, s_end = _rows(s_start), _rows(s_end)
    if s_start.stride(0) != s_end.stride(0):
        s_start, s_end = s_start.contiguous(), s_end.contiguous()
    return s_start, s_end


@torch.library.custom_op("geonode::flow_quadrature", mutates_args=())
def _integral(s_start: Tensor, s_end: Tensor, omega: Tensor, beta: Tensor, a: Tensor, a0: Tensor, nodes: int) -> Tensor:
    from . import _triton

    models, pairs, wavelengths = s_start.shape
    hidden = omega.shape[1]
    s_start, s_end = _same_stride(s_start, s_end)
    table = _node_table(nodes, s_start.device)
    out = torch.empty(s_start.shape, dtype=torch.float32, device=s_start.device)
    o = _blocks.options("flow_forward")
    grid = (wavelengths, -(-pairs // o["BLOCK"]), models)
    launch(
        _triton.forward_kernel, grid,
        s_start, s_end, plain(omega), plain(beta), plain(a), plain(a0), table, out,
        pairs, wavelengths, hidden, s_start.stride(0), K=padded(hidden), PAIRS=table.shape[0], **o,
    )  # fmt: skip
    return out


@_integral.register_fake
def _(s_start, s_end, omega, beta, a, a0, nodes):
    return torch.empty(s_start.shape, dtype=torch.float32, device=s_start.device)


def _launch_backward(s_start, s_end, omega, beta, a, a0, grad, target, weight, nodes, ends=None):
    """Gradients (s_start, s_end, ω, β, a, a₀) and the loss [M], which means something where a target is given.

    ``ends`` [M, 2, B, W]: where to write the first two.
    """
    from . import _triton

    models, pairs, wavelengths = s_start.shape
    hidden = omega.shape[1]
    s_start, s_end = _same_stride(s_start, s_end)
    table = _node_table(nodes, s_start.device)
    o = _blocks.options("flow_backward")
    chunk = -(-o.pop("per_program") // o["BLOCK"]) * o["BLOCK"]
    splits = -(-pairs // chunk)
    new = partial(torch.empty, dtype=torch.float32, device=s_start.device)
    if ends is None:
        to_start, to_end, stride = new(models, pairs, wavelengths), new(models, pairs, wavelengths), pairs * wavelengths
    else:
        to_start, to_end, stride = ends[:, 0], ends[:, 1], 2 * pairs * wavelengths
    to_omega, to_beta, to_a = (new(splits, models, wavelengths, hidden) for _ in range(3))
    to_a0, loss = new(splits, models, wavelengths), new(splits, models, wavelengths)
    fused = target is not None
    up = to_start if fused else plain(grad)
    launch(
        _triton.backward_kernel, (wavelengths, splits, models),
        s_start, s_end, plain(omega), plain(beta), plain(a), plain(a0), table, up,
        plain(target) if fused else up, plain(weight) if fused else up,
        to_start, to_end, to_omega, to_beta, to_a, to_a0, loss,
        pairs, wavelengths, hidden, s_start.stride(0), stride, chunk,
        K=padded(hidden), PAIRS=table.shape[0], FUSED=fused, **o,
    )  # fmt: skip
    # partial sums are added in a fixed order: a torch sum of one shape is deterministic
    over = (lambda t: t[0]) if splits == 1 else (lambda t: t.sum(0))
    omega_sum, loss_sum = new(models, hidden), new(models)
    launch(
        _triton.reduce_kernel,
        (-(-hidden // 8), models),
        to_omega,
        loss,
        omega_sum,
        loss_sum,
        splits,
        wavelengths,
        hidden,
        COLUMNS=8,
        ROWS=256,
        num_warps=8,
    )
    return to_start, to_end, omega_sum, over(to_beta), over(to_a), over(to_a0), loss_sum


@torch.library.custom_op("geonode::flow_quadrature_backward", mutates_args=())
def _integral_backward(
    grad: Tensor, s_start: Tensor, s_end: Tensor, omega: Tensor, beta: Tensor, a: Tensor, a0: Tensor, nodes: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    return _launch_backward(s_start, s_end, omega, beta, a, a0, grad, None, None, nodes)[:6]


@_integral_backward.register_fake
def _(grad, s_start, s_end, omega, beta, a, a0, nodes):
    return tuple(
        torch.empty(t.shape, dtype=torch.float32, device=t.device) for t in (s_start, s_end, omega, beta, a, a0)
    )


def _keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:6])
    ctx.nodes = inputs[6]


def _integral_vjp(ctx, grad):
    return *_integral_backward(grad, *ctx.saved_tensors, ctx.nodes), None


_integral.register_autograd(_integral_vjp, setup_context=_keep)


@torch.library.custom_op("geonode::flow_loss", mutates_args=())
def _loss(
    ends: Tensor, omega: Tensor, beta: Tensor, a: Tensor, a0: Tensor, target: Tensor, weight: Tensor, nodes: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    to_ends = torch.empty(ends.shape, dtype=torch.float32, device=ends.device)
    _, _, to_omega, to_beta, to_a, to_a0, loss = _launch_backward(
        ends[:, 0], ends[:, 1], omega, beta, a, a0, None, target, weight, nodes, to_ends
    )
    return loss, to_ends, to_omega, to_beta, to_a, to_a0


@_loss.register_fake
def _(ends, omega, beta, a, a0, target, weight, nodes):
    new = lambda t: torch.empty(t.shape, dtype=torch.float32, device=t.device)  # noqa: E731
    return new(a0[:, 0]), new(ends), new(omega), new(beta), new(a), new(a0)


def _keep_gradients(ctx, inputs, output):
    ctx.save_for_backward(*output[1:])
    ctx.set_materialize_grads(False)


@torch.library.custom_op("geonode::scale_models", mutates_args=())
def scale_models(gradients: list[Tensor], scale: Tensor) -> list[Tensor]:
    """Each tensor [M, …] times scale [M]; an op of its own without a derivative, so that double backward raises."""
    if scale.numel() == 1:
        return list(torch._foreach_mul(gradients, scale.reshape(())))  # pyright: ignore[reportPrivateImportUsage]
    return [g * scale.reshape(-1, *[1] * (g.ndim - 1)) for g in gradients]


@scale_models.register_fake
def _(gradients, scale):
    return [torch.empty_like(g) for g in gradients]


def _loss_vjp(ctx, grad, *unused):
    return *scale_models(list(ctx.saved_tensors), grad), None, None, None


_loss.register_autograd(_loss_vjp, setup_context=_keep_gradients)
