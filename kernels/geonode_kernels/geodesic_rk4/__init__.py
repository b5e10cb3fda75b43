"""Geodesics of one concentration, the whole fixed-step integration in one launch; and their Jacobi field."""

import torch
from torch import Tensor

from .. import _blocks
from .._dispatch import KernelError, dispatch, width_refusal
from .._runtime import launch, output_code, padded, plain, precision_code, undispatched, wants_gradient
from ..metric_christoffel import launch_backward, split_weights
from . import reference

__all__ = ["geodesic_rk4", "geodesic_rk4_jacobi"]


def geodesic_rk4(
    c: Tensor,
    v: Tensor,
    wavelength: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    w3: Tensor,
    b3: Tensor,
    *,
    steps: int = 20,
    output: str = "softplus",
    precision: str = "fp32",
    backend: str = "auto",
) -> tuple[Tensor, Tensor]:
    """(c, v) at path time 1 from (c, v) at 0, [M, N] each, by the classical Runge–Kutta method.

    dc/dt = v, dv/dt = −Γ(c, λ) v²; see `reference.geodesic_rk4`. State and Γ are float32 in every precision. For the
    gradient, Γ and ∂Γ/∂c of each stage are kept: 640 bytes a problem for 20 steps. That storage is reused on the way
    back, so a graph through the kernel can be walked once.

    Args:
        c, v, wavelength: [M, N] start, velocity dc/dt and wavelength.
        w1, b1, w2, b2, w3, b3, output, precision, backend: as in `metric_christoffel`.
        steps: of equal length over t ∈ [0, 1].

    Raises:
        KernelError: an unknown name, or ``backend="triton"`` where the kernel cannot run; a second backward pass.
    """
    weights = (w1, b1, w2, b2, w3, b3)
    codes = precision_code(precision), output_code(output)
    tensors = [c, v, wavelength, *weights]
    if not dispatch("geodesic_rk4", tensors, backend=backend, refusal=width_refusal(*w2.shape[1:])):
        return reference.geodesic_rk4(c, v, wavelength, *weights, steps=steps, output=output)
    if not c.shape == v.shape == wavelength.shape:
        c, v, wavelength = torch.broadcast_tensors(c, v, wavelength)
    if undispatched(tensors):
        return _launch(c, v, wavelength, weights, steps, *codes)[:2]
    return _rk4(c, v, wavelength, *weights, steps, *codes, wants_gradient(tensors))[:2]


def geodesic_rk4_jacobi(
    c: Tensor,
    v: Tensor,
    wavelength: Tensor,
    *weights: Tensor,
    steps: int = 20,
    output: str = "softplus",
    precision: str = "fp32",
    backend: str = "auto",
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(c, v) at path time 1 and the Jacobi field ∂(c, v)/∂v(0), [M, N] each. The kernel's results carry no gradient.

    Args:
        c, v, wavelength, steps: as in `geodesic_rk4`.
        weights: w1, b1, w2, b2, w3, b3; these, ``output``, ``precision`` and ``backend`` as in `metric_christoffel`.

    Raises:
        KernelError: an unknown name, or ``backend="triton"`` where the kernel cannot run or a gradient is wanted.
    """
    codes = precision_code(precision), output_code(output)
    tensors = [c, v, wavelength, *weights]
    refusal = width_refusal(*weights[2].shape[1:])
    if wants_gradient(tensors):
        refusal = refusal or "a gradient is wanted, and the Jacobi kernel has none; use torch.no_grad()"
    if not dispatch("geodesic_rk4_jacobi", tensors, backend=backend, refusal=refusal):
        return reference.geodesic_rk4_jacobi(c, v, wavelength, *weights, steps=steps, output=output)
    c, v, wavelength = torch.broadcast_tensors(c, v, wavelength)
    return _launch(c, v, wavelength, weights, steps, *codes, jacobi=True)[:4]


def _launch(c, v, wavelength, weights, steps, precision, output, jacobi=False, save=False):
    """(c, v, jc, jv, Γ, ∂Γ/∂c, checkpoints); what was not asked for is c again, which the kernel leaves alone."""
    from . import _triton

    weights = [plain(w) for w in weights]
    c, v, wavelength = plain(c), plain(v), plain(wavelength)
    models, n = c.shape
    h2, h1 = weights[2].shape[1:]
    new = lambda *shape: torch.empty(shape, dtype=torch.float32, device=c.device)  # noqa: E731
    c1, v1 = new(models, n), new(models, n)
    jc, jv = (new(models, n), new(models, n)) if jacobi else (c1, c1)
    gamma, slope = (new(models, 4 * steps, n), new(models, 4 * steps, n)) if save else (c1, c1)
    checkpoints = new(models, (steps + 1) // 2, 2, n) if save else c1
    o = _blocks.options("rk4_forward")
    launch(
        _triton.forward_kernel, (-(-n // o["BLOCK"]), models),
        c, v, wavelength, *weights, c1, v1, jc, jv, gamma, slope, checkpoints, n, h1, h2, steps, 1.0 / steps,
        K1=padded(h1), K2=padded(h2), PRECISION=precision, OUTPUT=output, JACOBI=jacobi, SAVE=save, **o,
    )  # fmt: skip
    return c1, v1, jc, jv, gamma, slope, checkpoints


@torch.library.custom_op("geonode::geodesic_rk4", mutates_args=())
def _rk4(
    c: Tensor, v: Tensor, wavelength: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, w3: Tensor, b3: Tensor,
    steps: int, precision: int, output: int, save: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    weights = (w1, b1, w2, b2, w3, b3)
    c1, v1, _, _, *saved = _launch(c, v, wavelength, weights, steps, precision, output, save=save)
    gamma, slope, checkpoints = saved if save else (c1.new_empty(0) for _ in range(3))
    return c1, v1, gamma, slope, checkpoints


@_rk4.register_fake
def _(c, v, wavelength, w1, b1, w2, b2, w3, b3, steps, precision, output, save):
    new = lambda *shape: torch.empty(shape, dtype=torch.float32, device=c.device)  # noqa: E731
    m, n = c.shape
    saved = (new(m, 4 * steps, n), new(m, 4 * steps, n), new(m, (steps + 1) // 2, 2, n)) if save else (new(0),) * 3
    return new(m, n), new(m, n), *(t.clone() for t in saved)


@torch.library.custom_op("geonode::geodesic_rk4_backward", mutates_args=("gamma", "slope"))
def _rk4_backward(
    grad_c: Tensor, grad_v: Tensor, wavelength: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, w3: Tensor,
    b3: Tensor, gamma: Tensor, slope: Tensor, checkpoints: Tensor, steps: int, precision: int, output: int,
    rows: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    from . import _triton

    models, n = wavelength.shape
    c0, v0 = (torch.empty(models, n, dtype=torch.float32, device=gamma.device) for _ in range(2))
    o = _blocks.options("rk4_reverse")
    launch(
        _triton.reverse_kernel,
        (-(-n // o["BLOCK"]), models),
        plain(grad_c),
        plain(grad_v),
        gamma,
        slope,
        checkpoints,
        c0,
        v0,
        n,
        steps,
        1.0 / steps,
        **o,
    )
    # `gamma` now holds c of every stage and `slope` the gradient of its Γ: a list of points
    weights = (w1, b1, w2, b2, w3, b3)
    _, to_wavelength, total = launch_backward(
        gamma, wavelength, weights, (slope,), precision, output, 1, points=False, rows=rows
    )
    return c0, v0, to_wavelength, total


@_rk4_backward.register_fake
def _(grad_c, grad_v, wavelength, w1, b1, w2, b2, w3, b3, gamma, slope, checkpoints, steps, precision, output, rows):
    size = w2[0].numel() + 3 * w2.shape[2] + 2 * w2.shape[1] + 1
    shapes = (*[wavelength.shape] * 3, (w2.shape[0], size))
    return tuple(torch.empty(shape, dtype=torch.float32, device=w2.device) for shape in shapes)


def _keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs[2:9], *output[2:])
    ctx.codes, ctx.saved, ctx.walked = inputs[9:12], inputs[12], False
    ctx.mark_non_differentiable(*output[2:])
    ctx.set_materialize_grads(False)  # or zeros as large as the saved stages would be made for them


def _vjp(ctx, grad_c, grad_v, *unused):
    if ctx.walked or not ctx.saved:
        raise KernelError("geodesic_rk4 keeps its stages for one backward pass; call it again for another.")
    ctx.walked = True
    saved = ctx.saved_tensors
    grad_c, grad_v = (torch.zeros_like(saved[0]) if g is None else g for g in (grad_c, grad_v))
    *inputs, total = _rk4_backward(grad_c, grad_v, *saved, *ctx.codes, ctx.needs_input_grad[2])
    for stages in saved[-3:]:
        if type(stages) is Tensor:  # not a tracer's; used up: its memory must not wait for whoever holds the graph
            stages.untyped_storage().resize_(0)
    return *inputs, *split_weights(total, *saved[3].shape[:0:-1]), *[None] * 4


_rk4.register_autograd(_vjp, setup_context=_keep)
