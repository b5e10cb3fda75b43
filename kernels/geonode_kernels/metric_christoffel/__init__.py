"""The metric network with its derivative: (c, λ) → g, ∂g/∂c, Γ, or its bare value; M weight sets at once."""

from functools import partial

import torch
from torch import Tensor

from .. import _blocks
from .._dispatch import dispatch, width_refusal
from .._nodes import nodes_for
from .._runtime import OUTPUTS, launch, output_code, output_name, padded, plain, plain_vjp, precision_code, processors
from . import reference

__all__ = ["metric_christoffel", "metric_density", "metric_value"]

# what the forward kernel writes at order 0: the network's value, or √g by the code of g's transform
_VALUE = 0
_ROOT = {OUTPUTS["exp"]: 1, OUTPUTS["softplus"]: 2}


def metric_christoffel(
    c: Tensor,
    wavelength: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    w3: Tensor,
    b3: Tensor,
    *,
    output: str = "softplus",
    precision: str = "fp32",
    backend: str = "auto",
) -> tuple[Tensor, Tensor, Tensor]:
    """g, ∂g/∂c and Γ = ½ (∂g/∂c)/g of a metric network, [M, N] each; see `reference.metric_christoffel`.

    Args:
        c, wavelength: [M, N], normalised as the network wants them.
        w1, b1: weights [M, H1, 2] and biases [M, H1]. w2, b2: [M, H2, H1], [M, H2]. w3, b3: [M, 1, H2], [M, 1].
        output: ``softplus``: g = softplus(y) + 0.1; ``exp``: g = e^y.
        precision: of the products with W2: ``fp32`` (two halves of 11 bits an operand, three products), ``tf32`` (one),
            ``bf16``.
        backend: ``auto``, ``triton`` or ``torch``.

    Raises:
        KernelError: an unknown name, or ``backend="triton"`` where the kernel cannot run.
    """
    weights = (w1, b1, w2, b2, w3, b3)
    codes = precision_code(precision), output_code(output)
    if not dispatch(
        "metric_christoffel", [c, wavelength, *weights], backend=backend, refusal=width_refusal(*w2.shape[1:])
    ):
        return reference.metric_christoffel(c, wavelength, *weights, output=output)
    c, wavelength = torch.broadcast_tensors(c, wavelength)
    return _christoffel(c, wavelength, *weights, *codes)


def metric_value(
    c: Tensor,
    wavelength: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    w3: Tensor,
    b3: Tensor,
    *,
    precision: str = "fp32",
    backend: str = "auto",
) -> Tensor:
    """The network's value y [M, N] before any transform: ln g̃ of the default flow.

    Arguments as in `metric_christoffel`.

    Raises:
        KernelError: an unknown name, or ``backend="triton"`` where the kernel cannot run.
    """
    weights = (w1, b1, w2, b2, w3, b3)
    code = precision_code(precision)
    if not dispatch("metric_value", [c, wavelength, *weights], backend=backend, refusal=width_refusal(*w2.shape[1:])):
        return reference.metric_value(c, wavelength, *weights)
    c, wavelength = torch.broadcast_tensors(c, wavelength)
    return _value(c, wavelength, *weights, code)


def metric_density(
    c: Tensor,
    wavelength: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    w3: Tensor,
    b3: Tensor,
    *,
    output: str = "exp",
    precision: str = "fp32",
    backend: str = "auto",
) -> Tensor:
    """ρ = √g [M, N], the density of arc length. Arguments as in `metric_christoffel`.

    Raises:
        KernelError: an unknown name, or ``backend="triton"`` where the kernel cannot run.
    """
    weights = (w1, b1, w2, b2, w3, b3)
    codes = precision_code(precision), output_code(output)
    tensors = [c, wavelength, *weights]
    if not dispatch("metric_density", tensors, backend=backend, refusal=width_refusal(*w2.shape[1:])):
        return reference.metric_density(c, wavelength, *weights, output=output)
    c, wavelength = torch.broadcast_tensors(c, wavelength)
    return _density(c, wavelength, *weights, *codes)


def _launch_forward(c, wavelength, weights, precision, output, order):
    from . import _triton

    weights = [plain(w) for w in weights]
    c, wavelength = plain(c), plain(wavelength)
    models, points = c.shape
    h2, h1 = weights[2].shape[1:]
    o = _blocks.options("metric_forward")
    programs = min(-(-points // o["BLOCK"]), processors(c.device) * o.pop("per_sm"))
    outs = [torch.empty(c.shape, dtype=torch.float32, device=c.device) for _ in range(3 if order else 1)]
    y, g, dg, gamma = outs * 4 if order == 0 else [outs[0], *outs]
    launch(
        _triton.forward_kernel, (programs, models),
        c, wavelength, *weights, y, g, dg, gamma, points, h1, h2,
        K1=padded(h1), K2=padded(h2), PRECISION=precision, OUTPUT=output, ORDER=order, **o,
    )  # fmt: skip
    return outs


def launch_backward(c, wavelength, weights, grads, precision, output, order, points=True, rows=True, ranges=None):
    """Gradients of points ``c`` [M, S, N] (``wavelength`` [M, N]): c (empty unless
    ``points``), wavelength, all weights [M, size].

    ``grads``: (y,) or (ρ, the value of ρ) for order 0; (Γ,) or (g, ∂g, Γ) for order 1. ``ranges`` [M, N]: those of
    `geodesic_rk4`, whose list of points is short where it interpolated. The reduction over programs is one torch sum.
    """
    from . import _triton

    weights = [plain(w) for w in weights]
    c, wavelength = plain(c), plain(wavelength)
    models, stages, n = c.shape
    h2, h1 = weights[2].shape[1:]
    o = _blocks.options("metric_backward")
    programs = min(-(-n // o["BLOCK"]), processors(c.device) * o.pop("per_sm"))
    size = h1 * h2 + 3 * h1 + 2 * h2 + 1
    partial = torch.empty(models, programs, size, dtype=torch.float32, device=c.device)
    to_c = torch.empty_like(c) if points else c
    to_wavelength = torch.empty_like(wavelength)
    grads = [plain(g) for g in grads]
    if order == 0:  # (y,) or (ρ, its value)
        y, g, dg, gamma = grads[0], grads[-1], grads[0], grads[0]
    else:
        y, g, dg, gamma = [grads[0]] * 4 if len(grads) == 1 else [grads[0], *grads]
    launch(
        _triton.backward_kernel, (programs, models),
        c, wavelength, *weights, y, g, dg, gamma, to_c, to_wavelength, partial,
        wavelength if ranges is None else ranges, n, stages, h1, h2,
        K1=padded(h1), K2=padded(h2), PRECISION=precision, OUTPUT=output, ORDER=order,
        GAMMA_ONLY=len(grads) == 1, POINTS=points, ROWS=rows, NODES=0 if ranges is None else nodes_for(stages),
        num_stages=1, **o,
    )  # fmt: skip
    return (to_c if points else c.new_empty(0)), to_wavelength, partial.sum(1)


def split_weights(total: Tensor, h1: int, h2: int) -> tuple[Tensor, ...]:
    """Views (W1, b1, W2, b2, W3, b3) of the concatenated gradients [M, size]."""
    w1, b1, w2, b2, w3, b3 = total.split([2 * h1, h1, h1 * h2, h2, h2, 1], dim=1)
    return w1.unflatten(1, (h1, 2)), b1, w2.unflatten(1, (h2, h1)), b2, w3[:, None], b3


@torch.library.custom_op("geonode::metric_christoffel", mutates_args=())
def _christoffel(
    c: Tensor, wavelength: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, w3: Tensor, b3: Tensor,
    precision: int, output: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    g, dg, gamma = _launch_forward(c, wavelength, (w1, b1, w2, b2, w3, b3), precision, output, 1)
    return g, dg, gamma


@_christoffel.register_fake
def _(c, wavelength, w1, b1, w2, b2, w3, b3, precision, output):
    return tuple(torch.empty(c.shape, dtype=torch.float32, device=c.device) for _ in range(3))


@torch.library.custom_op("geonode::metric_backward", mutates_args=())
def _backward(
    grads: list[Tensor], c: Tensor, wavelength: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, w3: Tensor,
    b3: Tensor, precision: int, output: int, order: int, points: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    weights = (w1, b1, w2, b2, w3, b3)
    to_c, to_wavelength, total = launch_backward(
        c[:, None], wavelength, weights, grads, precision, output, order, points, points
    )
    return to_c[:, 0] if points else to_c, to_wavelength, total


@_backward.register_fake
def _(grads, c, wavelength, w1, b1, w2, b2, w3, b3, precision, output, order, points):
    new = lambda *shape: torch.empty(shape, dtype=torch.float32, device=c.device)  # noqa: E731
    size = w2[0].numel() + 3 * w2.shape[2] + 2 * w2.shape[1] + 1
    return new(*c.shape) if points else new(0), new(*c.shape), new(c.shape[0], size)


def _vjp(ctx, grads, tensors, *codes):
    points = any(ctx.needs_input_grad[:2])
    to_c, to_wavelength, total = _backward(grads, *tensors, *codes, points)
    inputs = (to_c, to_wavelength) if points else (None, None)
    return *inputs, *split_weights(total, *tensors[4].shape[:0:-1])


def _keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:8])
    ctx.codes = inputs[8:]


def _christoffel_vjp(ctx, to_g, to_dg, to_gamma):
    grads, tensors = [to_g, to_dg, to_gamma], ctx.saved_tensors
    if torch.is_grad_enabled():
        function = partial(reference.metric_christoffel, output=output_name(ctx.codes[1]))
        return *plain_vjp("metric_christoffel", function, tensors, grads), None, None
    return *_vjp(ctx, grads, tensors, *ctx.codes, 1), None, None


_christoffel.register_autograd(_christoffel_vjp, setup_context=_keep)


@torch.library.custom_op("geonode::metric_value", mutates_args=())
def _value(
    c: Tensor, wavelength: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, w3: Tensor, b3: Tensor,
    precision: int,
) -> Tensor:  # fmt: skip
    return _launch_forward(c, wavelength, (w1, b1, w2, b2, w3, b3), precision, _VALUE, 0)[0]


@_value.register_fake
def _(c, wavelength, w1, b1, w2, b2, w3, b3, precision):
    return torch.empty(c.shape, dtype=torch.float32, device=c.device)


def _value_vjp(ctx, to_y):
    if torch.is_grad_enabled():
        return *plain_vjp("metric_value", reference.metric_value, ctx.saved_tensors, [to_y]), None
    return *_vjp(ctx, [to_y], ctx.saved_tensors, *ctx.codes, _VALUE, 0), None


_value.register_autograd(_value_vjp, setup_context=_keep)


@torch.library.custom_op("geonode::metric_density", mutates_args=())
def _density(
    c: Tensor, wavelength: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, w3: Tensor, b3: Tensor,
    precision: int, output: int,
) -> Tensor:  # fmt: skip
    return _launch_forward(c, wavelength, (w1, b1, w2, b2, w3, b3), precision, _ROOT[output], 0)[0]


@_density.register_fake
def _(c, wavelength, w1, b1, w2, b2, w3, b3, precision, output):
    return torch.empty(c.shape, dtype=torch.float32, device=c.device)


def _keep_density(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:8], output)
    ctx.codes = inputs[8:]


def _density_vjp(ctx, to_rho):
    *inputs, rho = ctx.saved_tensors
    precision, output = ctx.codes
    if torch.is_grad_enabled():
        function = partial(reference.metric_density, output=output_name(output))
        return *plain_vjp("metric_density", function, inputs, [to_rho]), None, None
    return *_vjp(ctx, [to_rho, rho], inputs, precision, _ROOT[output], 0), None, None


_density.register_autograd(_density_vjp, setup_context=_keep_density)
