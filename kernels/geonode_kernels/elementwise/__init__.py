"""Elementwise ops of the original blueprint, forward and backward in one launch each way.

`bias_softplus` (softplus of a sum with a bias), `christoffel_fd` (Γ from the metric at c − ε, c, c + ε) and
`christoffel_grid` (Γ from a table, bilinear).
"""

import torch
from torch import Tensor

from .. import _blocks
from .._dispatch import dispatch
from .._runtime import launch, plain
from . import reference

__all__ = ["bias_softplus", "christoffel_fd", "christoffel_grid"]

_CHUNK = 256  # rows of a bias gradient summed by one program
_TILE = (16, 64)


def _new(*like: Tensor) -> tuple[Tensor, ...]:
    return tuple(torch.empty(t.shape, dtype=torch.float32, device=t.device) for t in like)


def _flat(size: int) -> tuple[tuple[int], dict]:
    o = _blocks.options("elementwise")
    return (-(-size // o["BLOCK"]),), o


# ---------------------------------------------------------------- bias_softplus


def bias_softplus(x: Tensor, bias: Tensor, floor: float = 0.0, *, backend: str = "auto") -> Tensor:
    """softplus(x + bias) + floor; ``x`` [M, N, F] or [N, F], ``bias`` [M, F] or [F]. Accurate for any finite sum.

    Raises:
        ValueError: shapes that do not fit together.
        KernelError: ``backend="triton"`` where the kernel cannot run.
    """
    single = x.ndim == 2 and bias.ndim == 1
    if single:
        x, bias = x[None], bias[None]
    if x.ndim != 3 or bias.shape != (x.shape[0], x.shape[2]):
        raise ValueError(
            f"x {tuple(x.shape)} must be [M, N, F] and bias {tuple(bias.shape)} [M, F] (or both without M)."
        )
    op = _softplus if dispatch("bias_softplus", [x, bias], backend=backend) else reference.bias_softplus
    result = op(x, bias, floor)
    return result[0] if single else result


@torch.library.custom_op("geonode::bias_softplus", mutates_args=())
def _softplus(x: Tensor, bias: Tensor, floor: float) -> Tensor:
    from . import _triton

    (out,) = _new(x)
    grid, o = _flat(x.numel())
    if x.numel():
        launch(
            _triton.softplus_forward, grid, plain(x), plain(bias), out, x.numel(), x.shape[1], x.shape[2], floor, **o
        )
    return out


@_softplus.register_fake
def _(x, bias, floor):
    return _new(x)[0]


@torch.library.custom_op("geonode::bias_softplus_backward", mutates_args=())
def _softplus_backward(grad: Tensor, x: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    from . import _triton

    models, n, features = x.shape
    (to_x,) = _new(x)
    chunks = max(1, -(-n // _CHUNK))
    partial = torch.zeros(chunks, models, features, dtype=torch.float32, device=x.device)
    if x.numel():
        launch(
            _triton.softplus_backward, (-(-features // _TILE[1]), chunks, models),
            plain(x), plain(bias), plain(grad), to_x, partial, n, features, _CHUNK,
            BLOCK_N=_TILE[0], BLOCK_F=_TILE[1], num_warps=4,
        )  # fmt: skip
    return to_x, partial.sum(0)


@_softplus_backward.register_fake
def _(grad, x, bias):
    return _new(x, bias)


def _keep_softplus(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:2])


def _softplus_vjp(ctx, grad):
    x, bias = ctx.saved_tensors
    to_x, to_bias = _softplus_backward(grad, x, bias)
    return to_x.to(x.dtype), to_bias.to(bias.dtype), None


_softplus.register_autograd(_softplus_vjp, setup_context=_keep_softplus)


# ---------------------------------------------------------------- christoffel_fd


def christoffel_fd(below: Tensor, centre: Tensor, above: Tensor, epsilon: float, *, backend: str = "auto") -> Tensor:
    """Γ = ½ g′/g by central differences; the error of g′ is O(ε²).

    Args:
        below, centre, above: g(c − ε), g(c) and g(c + ε), all of one shape, which Γ has too.
        epsilon: ε, in the unit of c.
        backend: ``auto``, ``triton`` or ``torch``.

    Raises:
        ValueError: shapes that differ, or ε ≤ 0.
        KernelError: an unknown backend, or ``backend="triton"`` where the kernel cannot run.
    """
    if not below.shape == centre.shape == above.shape:
        shapes = ", ".join(str(tuple(t.shape)) for t in (below, centre, above))
        raise ValueError(f"The metric below, at and above c must have one shape, got {shapes}.")
    if not epsilon > 0:
        raise ValueError(f"epsilon must be positive, got {epsilon:g}.")
    if dispatch("christoffel_fd", [below, centre, above], backend=backend):
        return _difference(below, centre, above, epsilon)
    return reference.christoffel_fd(below, centre, above, epsilon)


@torch.library.custom_op("geonode::christoffel_fd", mutates_args=())
def _difference(below: Tensor, centre: Tensor, above: Tensor, epsilon: float) -> Tensor:
    from . import _triton

    (out,) = _new(centre)
    grid, o = _flat(out.numel())
    if out.numel():
        factor = 0.25 / epsilon
        launch(
            _triton.difference_forward, grid, plain(below), plain(centre), plain(above), out, out.numel(), factor, **o
        )
    return out


@_difference.register_fake
def _(below, centre, above, epsilon):
    return _new(centre)[0]


@torch.library.custom_op("geonode::christoffel_fd_backward", mutates_args=())
def _difference_backward(grad: Tensor, centre: Tensor, gamma: Tensor, epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    from . import _triton

    to_below, to_centre, to_above = _new(centre, centre, centre)
    grid, o = _flat(centre.numel())
    if centre.numel():
        launch(
            _triton.difference_backward,
            grid,
            plain(grad),
            plain(centre),
            gamma,
            to_below,
            to_centre,
            to_above,
            centre.numel(),
            0.25 / epsilon,
            **o,
        )
    return to_below, to_centre, to_above


@_difference_backward.register_fake
def _(grad, centre, gamma, epsilon):
    return _new(centre, centre, centre)


def _keep_difference(ctx, inputs, output):
    ctx.save_for_backward(inputs[1], output)
    ctx.dtypes, ctx.epsilon = [t.dtype for t in inputs[:3]], inputs[3]


def _difference_vjp(ctx, grad):
    gradients = _difference_backward(grad, *ctx.saved_tensors, ctx.epsilon)
    return *(g.to(d) for g, d in zip(gradients, ctx.dtypes, strict=True)), None


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


@torch.library.custom_op("geonode::christoffel_grid", mutates_args=())
def _grid(
    table: Tensor, c: Tensor, wavelength: Tensor, c_low: float, c_high: float, l_low: float, l_high: float
) -> Tensor:
    from . import _triton

    (out,) = _new(c)
    (blocks,), o = _flat(c.shape[1])
    if out.numel():
        launch(
            _triton.grid_forward,
            (blocks, len(c)),
            plain(table),
            plain(c),
            plain(wavelength),
            out,
            c.shape[1],
            *_axes(table, (c_low, c_high, l_low, l_high)),
            **o,
        )
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
        launch(
            _triton.grid_backward, (blocks, len(c)),
            plain(table), plain(c), plain(wavelength), plain(grad), to_c, to_wavelength, c.shape[1],
            *_axes(table, (c_low, c_high, l_low, l_high)), **o,
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
    to_c, to_wavelength = _grid_backward(grad, table, c, wavelength, *ctx.ends)
    return None, to_c.to(c.dtype), to_wavelength.to(wavelength.dtype), *[None] * 4


_grid.register_autograd(_grid_vjp, setup_context=_keep_grid)
