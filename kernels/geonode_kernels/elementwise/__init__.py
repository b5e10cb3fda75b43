"""Γ from what was computed before: by finite differences of the metric, or from a table; one launch each way."""

from functools import partial

import torch
from torch import Tensor

from .. import _blocks
from .._dispatch import dispatch
from .._runtime import launch, plain, plain_vjp
from . import reference

__all__ = ["christoffel_fd", "christoffel_grid"]


def _new(*like: Tensor) -> tuple[Tensor, ...]:
    return tuple(torch.empty(t.shape, dtype=torch.float32, device=t.device) for t in like)


def _flat(size: int) -> tuple[tuple[int], dict]:
    o = _blocks.options("elementwise")
    return (-(-size // o["BLOCK"]),), o


# ---------------------------------------------------------------- christoffel_fd


def christoffel_fd(
    below: Tensor, centre: Tensor, above: Tensor, shift: Tensor, step: float, *, backend: str = "auto"
) -> Tensor:
    """Γ = ½ g′/g from the parabola through g at three points; the error of g′ is O(step²).

    Args:
        below, centre, above: g at the stencil's points, ``step`` apart, all of one shape, which Γ has too.
        shift: of that shape, where Γ is wanted, relative to the stencil's middle.
        step: in the unit of c.
        backend: ``auto``, ``triton`` or ``torch``.

    Raises:
        ValueError: shapes that differ, or a step ≤ 0.
        KernelError: an unknown backend, or ``backend="triton"`` where the kernel cannot run.
    """
    tensors = [below, centre, above, shift]
    if any(t.shape != below.shape for t in tensors):
        shapes = ", ".join(str(tuple(t.shape)) for t in tensors)
        raise ValueError(f"The metric below, at and above the middle and the shift must have one shape, got {shapes}.")
    if not step > 0:
        raise ValueError(f"step must be positive, got {step:g}.")
    if dispatch("christoffel_fd", tensors, backend=backend):
        return _difference(below, centre, above, shift, step)
    return reference.christoffel_fd(below, centre, above, shift, step)


@torch.library.custom_op("geonode::christoffel_fd", mutates_args=())
def _difference(below: Tensor, centre: Tensor, above: Tensor, shift: Tensor, step: float) -> Tensor:
    from . import _triton

    (out,) = _new(centre)
    grid, o = _flat(out.numel())
    if out.numel():
        inputs = map(plain, (below, centre, above, shift))
        launch(_triton.difference_forward, grid, *inputs, out, out.numel(), 1.0 / step, **o)
    return out


@_difference.register_fake
def _(below, centre, above, shift, step):
    return _new(centre)[0]


@torch.library.custom_op("geonode::christoffel_fd_backward", mutates_args=())
def _difference_backward(
    grad: Tensor, below: Tensor, centre: Tensor, above: Tensor, shift: Tensor, step: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    from . import _triton

    outs = _new(centre, centre, centre, centre)
    grid, o = _flat(centre.numel())
    if centre.numel():
        inputs = map(plain, (grad, below, centre, above, shift))
        launch(_triton.difference_backward, grid, *inputs, *outs, centre.numel(), 1.0 / step, **o)
    return outs[0], outs[1], outs[2], outs[3]


@_difference_backward.register_fake
def _(grad, below, centre, above, shift, step):
    return _new(centre, centre, centre, centre)


def _keep_difference(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:4])
    ctx.step = inputs[4]


def _difference_vjp(ctx, grad):
    tensors = ctx.saved_tensors
    if torch.is_grad_enabled():
        return *plain_vjp("christoffel_fd", partial(reference.christoffel_fd, step=ctx.step), tensors, [grad]), None
    gradients = _difference_backward(grad, *tensors, ctx.step)
    return *(g.to(t.dtype) for g, t in zip(gradients, tensors, strict=True)), None


_difference.register_autograd(_difference_vjp, setup_context=_keep_difference)


# ---------------------------------------------------------------- christoffel_grid


def christoffel_grid(
    table: Tensor,
    c: Tensor,
    wavelength: Tensor,
    c_range: tuple[float, float],
    wavelength_range: tuple[float, float],
    *,
    backend: str = "auto",
) -> Tensor:
    """Γ by bilinear interpolation in ``table`` [M, C, L] over (c, λ), at ``c``, ``wavelength`` [M, N] → [M, N].

    The table's nodes are evenly spaced over ``c_range`` and ``wavelength_range``, (low, high) each; NaN outside them.
    The kernel gives gradients to c and λ (piecewise constant along each); a table that requires one takes the torch
    path. ``backend`` is ``auto``, ``triton`` or ``torch``.

    Raises:
        ValueError: shapes that do not fit, fewer than two nodes along an axis, or an empty range.
        KernelError: an unknown backend, or ``backend="triton"`` where the kernel cannot run.
    """
    if (
        table.ndim != 3
        or min(table.shape[1:]) < 2
        or c.ndim != 2
        or len(c) != len(table)
        or c.shape != wavelength.shape
    ):
        raise ValueError(
            f"table {tuple(table.shape)} must be [M, C ≥ 2, L ≥ 2] with c {tuple(c.shape)} and wavelength "
            f"{tuple(wavelength.shape)} both [M, N]."
        )
    for name, (low, high) in (("c_range", c_range), ("wavelength_range", wavelength_range)):
        if not low < high:
            raise ValueError(f"{name} must not be empty, got [{low:g}, {high:g}].")
    refusal = "the table requires a gradient" if table.requires_grad else None
    if dispatch("christoffel_grid", [table, c, wavelength], backend=backend, refusal=refusal):
        return _grid(table, c, wavelength, *map(float, c_range), *map(float, wavelength_range))
    return reference.christoffel_grid(table, c, wavelength, c_range, wavelength_range)


def _axes(table: Tensor, ends: tuple[float, ...]) -> tuple[int, int, float, float, float, float]:
    rows, columns = table.shape[1:]
    c_low, c_high, l_low, l_high = ends
    return rows, columns, c_low, (rows - 1) / (c_high - c_low), l_low, (columns - 1) / (l_high - l_low)


def _cells(table: Tensor, points: int) -> tuple[Tensor, bool]:
    """The table, or for many points its cells [M, C − 1, L − 1, 4], and which.

    A point anywhere in the table reads two or three sectors of memory for its four corners, and one of a cell.
    """
    table = plain(table)
    if points < 16 * table.numel():
        return table, False
    a, b = table[:, :-1], table[:, 1:]
    return torch.stack([a[..., :-1], a[..., 1:], b[..., :-1], b[..., 1:]], -1), True


@torch.library.custom_op("geonode::christoffel_grid", mutates_args=())
def _grid(
    table: Tensor, c: Tensor, wavelength: Tensor, c_low: float, c_high: float, l_low: float, l_high: float
) -> Tensor:
    from . import _triton

    (out,) = _new(c)
    (blocks,), o = _flat(c.shape[1])
    if out.numel():
        cells, packed = _cells(table, c.numel())
        launch(
            _triton.grid_forward, (blocks, len(c)),
            cells, plain(c), plain(wavelength), out, c.shape[1], *_axes(table, (c_low, c_high, l_low, l_high)),
            PACKED=packed, **o,
        )  # fmt: skip
    return out


@_grid.register_fake
def _(table, c, wavelength, c_low, c_high, l_low, l_high):
    return _new(c)[0]


@torch.library.custom_op("geonode::christoffel_grid_backward", mutates_args=())
def _grid_backward(
    grad: Tensor, table: Tensor, c: Tensor, wavelength: Tensor, c_low: float, c_high: float, l_low: float, l_high: float
) -> tuple[Tensor, Tensor]:
    from . import _triton

    to_c, to_wavelength = _new(c, wavelength)
    (blocks,), o = _flat(c.shape[1])
    if c.numel():
        cells, packed = _cells(table, c.numel())
        launch(
            _triton.grid_backward, (blocks, len(c)),
            cells, plain(c), plain(wavelength), plain(grad), to_c, to_wavelength, c.shape[1],
            *_axes(table, (c_low, c_high, l_low, l_high)), PACKED=packed, **o,
        )  # fmt: skip
    return to_c, to_wavelength


@_grid_backward.register_fake
def _(grad, table, c, wavelength, c_low, c_high, l_low, l_high):
    return _new(c, wavelength)


def _keep_grid(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:3])
    ctx.ends = inputs[3:]


def _grid_vjp(ctx, grad):
    table, c, wavelength = ctx.saved_tensors
    if torch.is_grad_enabled():
        ends = ctx.ends[:2], ctx.ends[2:]
        function = lambda t, x, y: reference.christoffel_grid(t, x, y, *ends)  # noqa: E731
        return *plain_vjp("christoffel_grid", function, ctx.saved_tensors, [grad]), *[None] * 4
    to_c, to_wavelength = _grid_backward(grad, table, c, wavelength, *ctx.ends)
    return None, to_c.to(c.dtype), to_wavelength.to(wavelength.dtype), *[None] * 4


_grid.register_autograd(_grid_vjp, setup_context=_keep_grid)
