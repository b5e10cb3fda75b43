"""Geodesics of one concentration: the whole fixed-step integration in one launch, to its end or with all its steps."""

from functools import partial

import torch
from torch import Tensor

from .. import _blocks
from .._dispatch import KernelError, dispatch, width_refusal
from .._nodes import NEEDED, PADDED, nodes_for
from .._runtime import (
    launch,
    output_code,
    output_name,
    padded,
    plain,
    plain_vjp,
    precision_code,
    undispatched,
    wants_gradient,
)
from ..metric_christoffel import launch_backward, split_weights
from . import reference

__all__ = ["geodesic_rk4", "geodesic_states"]

ALL, SECOND = 1, 2  # which steps' states the kernel keeps


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

    dc/dt = v, dv/dt = −Γ(c, λ) v²; see `reference.geodesic_rk4`. State and Γ are float32 in every precision. Where
    Γ(·, λ) is analytic far enough about a path, it is interpolated from its values at a few nodes, to rounding
    (`_along`). For the gradient, Γ and ∂Γ/∂c of each stage are kept: 640 bytes a problem for 20 steps. That storage is
    reused on the way back; another walk through the same graph integrates anew.

    Args:
        c, v, wavelength: [M, N] start, velocity dc/dt and wavelength.
        w1, b1, w2, b2, w3, b3, output, precision, backend: as in `metric_christoffel`.
        steps: of equal length over t ∈ [0, 1].

    Raises:
        KernelError: an unknown name, or ``backend="triton"`` where the kernel cannot run.
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


def geodesic_states(
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
) -> Tensor:
    """(c, v) at path times 0, 1/steps, …, 1, [M, steps + 1, 2, N]: `geodesic_rk4` with every step kept.

    Arguments and errors as for `geodesic_rk4`, under whose name `paths_taken` shows the decision.
    """
    weights = (w1, b1, w2, b2, w3, b3)
    codes = precision_code(precision), output_code(output)
    tensors = [c, v, wavelength, *weights]
    if not dispatch("geodesic_rk4", tensors, backend=backend, refusal=width_refusal(*w2.shape[1:])):
        return reference.geodesic_states(c, v, wavelength, *weights, steps=steps, output=output)
    c, v, wavelength = torch.broadcast_tensors(c, v, wavelength)
    return _states(c, v, wavelength, *weights, steps, *codes, wants_gradient(tensors))[0]


def _launch(c, v, wavelength, weights, steps, precision, output, save=False, every=0):
    """(c, v, ranges, Γ, ∂Γ/∂c, states); what was not asked for is c again, which the kernel leaves alone."""
    from . import _triton

    weights = [plain(w) for w in weights]
    c, v, wavelength = plain(c), plain(v), plain(wavelength)
    models, n = c.shape
    h2, h1 = weights[2].shape[1:]
    new = lambda *shape: torch.empty(shape, dtype=torch.float32, device=c.device)  # noqa: E731
    every = every or (SECOND if save else 0)
    states = new(*_kept(models, n, steps, every)) if every else c
    c1, v1 = (c, c) if every == ALL else (new(models, n), new(models, n))
    ranges, gamma, slope = (new(*shape) for shape in _stages(models, n, steps)) if save else (c, c, c)
    o = _blocks.options("rk4_forward")
    if n:
        launch(
            _triton.forward_kernel, (-(-n // o["BLOCK"]), models),
            c, v, wavelength, *weights, c1, v1, gamma, slope, states, ranges, n, h1, h2, steps, 1.0 / steps, NEEDED,
            K1=padded(h1), K2=padded(h2), PRECISION=precision, OUTPUT=output, EVERY=every, SAVE=save,
            NODES=nodes_for(4 * steps), PADDED=PADDED, **o,
        )  # fmt: skip
    return c1, v1, ranges, gamma, slope, states


def _stages(models: int, n: int, steps: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Shapes of the ranges, and of Γ and ∂Γ/∂c of every stage."""
    return (models, n), (models, 4 * steps, n), (models, 4 * steps, n)


def _kept(models: int, n: int, steps: int, every: int) -> tuple[int, int, int, int]:
    """Shape of the states that are kept."""
    return models, steps + 1 if every == ALL else (steps + 1) // 2, 2, n


@torch.library.custom_op("geonode::geodesic_rk4", mutates_args=())
def _rk4(
    c: Tensor, v: Tensor, wavelength: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, w3: Tensor, b3: Tensor,
    steps: int, precision: int, output: int, save: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    weights = (w1, b1, w2, b2, w3, b3)
    c1, v1, *saved = _launch(c, v, wavelength, weights, steps, precision, output, save=save)
    ranges, gamma, slope, states = saved if save else (c1.new_empty(0) for _ in range(4))
    return c1, v1, ranges, gamma, slope, states


@_rk4.register_fake
def _(c, v, wavelength, w1, b1, w2, b2, w3, b3, steps, precision, output, save):
    new = lambda *shape: torch.empty(shape, dtype=torch.float32, device=c.device)  # noqa: E731
    m, n = c.shape
    shapes = (*_stages(m, n, steps), _kept(m, n, steps, SECOND)) if save else ((0,),) * 4
    return new(m, n), new(m, n), *(new(*shape) for shape in shapes)


@torch.library.custom_op("geonode::geodesic_states", mutates_args=())
def _states(
    c: Tensor, v: Tensor, wavelength: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, w3: Tensor, b3: Tensor,
    steps: int, precision: int, output: int, save: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    weights = (w1, b1, w2, b2, w3, b3)
    _, _, *saved, states = _launch(c, v, wavelength, weights, steps, precision, output, save, ALL)
    ranges, gamma, slope = saved if save else (states.new_empty(0) for _ in range(3))
    return states, ranges, gamma, slope


@_states.register_fake
def _(c, v, wavelength, w1, b1, w2, b2, w3, b3, steps, precision, output, save):
    new = lambda *shape: torch.empty(shape, dtype=torch.float32, device=c.device)  # noqa: E731
    m, n = c.shape
    shapes = _stages(m, n, steps) if save else ((0,),) * 3
    return new(*_kept(m, n, steps, ALL)), *(new(*shape) for shape in shapes)


@torch.library.custom_op("geonode::geodesic_rk4_backward", mutates_args=("gamma", "slope"))
def _backward(
    grad_c: Tensor, grad_v: Tensor, wavelength: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, w3: Tensor,
    b3: Tensor, gamma: Tensor, slope: Tensor, ranges: Tensor, states: Tensor, steps: int, precision: int, output: int,
    every: int, rows: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    c0, v0 = reverse(grad_c, grad_v, gamma, slope, ranges, states, steps, every)
    # `gamma` now holds c of every stage, or of every node, and `slope` the gradient of its Γ: a list of points
    weights = (w1, b1, w2, b2, w3, b3)
    _, to_wavelength, total = launch_backward(
        gamma, wavelength, weights, (slope,), precision, output, 1, points=False, rows=rows, ranges=ranges
    )
    return c0, v0, to_wavelength, total


def reverse(grad_c, grad_v, gamma, slope, ranges, states, steps, every):
    """The adjoint recurrence: gradients [M, N] to c and v at the start; see `_triton.reverse_kernel` for the rest."""
    from . import _triton

    models, _, n = gamma.shape
    c0, v0 = (torch.empty(models, n, dtype=torch.float32, device=gamma.device) for _ in range(2))
    o = _blocks.options("rk4_reverse")
    block = _blocks.options("metric_backward")["BLOCK"]  # both ask whether all of the same problems were interpolated
    launch(
        _triton.reverse_kernel, (-(-n // block), models),
        plain(grad_c), plain(grad_v), gamma, slope, states, ranges, c0, v0, n, steps, 1.0 / steps, EVERY=every,
        BLOCK=block, NODES=nodes_for(4 * steps), PADDED=PADDED, **o,
    )  # fmt: skip
    return c0, v0


def shorten(points: Tensor, to_gamma: Tensor, start: Tensor, ranges: Tensor) -> None:
    """Turn a list of points [M, 4·steps, N] with the gradients to their Γ, in place, into what `launch_backward` takes
    with ``ranges``: nodes for the problems that were interpolated. ``start`` [M, N]: c at time 0."""
    from . import _triton

    models, stages, n = points.shape
    nodes = nodes_for(stages)
    if n and nodes:
        o = {**_blocks.options("rk4_reverse"), "BLOCK": _blocks.options("metric_backward")["BLOCK"]}
        launch(
            _triton.shorten_kernel, (-(-n // o["BLOCK"]), models),
            points, to_gamma, plain(start), ranges, n, stages, NODES=nodes, PADDED=PADDED, **o,
        )  # fmt: skip


@_backward.register_fake
def _(
    grad_c, grad_v, wavelength, w1, b1, w2, b2, w3, b3, gamma, slope, ranges, states, steps, precision, output, every,
    rows,
):  # fmt: skip
    size = w2[0].numel() + 3 * w2.shape[2] + 2 * w2.shape[1] + 1
    shapes = (*[wavelength.shape] * 3, (w2.shape[0], size))
    return tuple(torch.empty(shape, dtype=torch.float32, device=w2.device) for shape in shapes)


def _keep(ctx, inputs, stages, states):
    ctx.save_for_backward(*inputs[:9], states)
    ctx.stages = stages  # overwritten on the way back, which saved tensors must not be
    ctx.codes, ctx.saved = inputs[9:12], inputs[12]
    ctx.set_materialize_grads(False)  # or zeros as large as the saved stages would be made for them


def _keep_ends(ctx, inputs, output):
    _keep(ctx, inputs, output[2:5], output[5])
    ctx.mark_non_differentiable(*output[2:])


def _keep_states(ctx, inputs, output):
    _keep(ctx, inputs, output[1:], output[0])
    ctx.mark_non_differentiable(*output[1:])


def _gradients(ctx, grad_c, grad_v, every):
    """To c, v, the wavelength and the weights, then nothing for the four settings."""
    c, v, *inputs, states = ctx.saved_tensors
    if not ctx.saved:
        raise KernelError("geodesic_rk4 was called where no gradient could be recorded, and kept nothing for one.")
    if ctx.stages is None:  # used up by a walk before
        _, _, *stages, states = _launch(c, v, inputs[0], inputs[1:], *ctx.codes, save=True, every=every)
    else:
        stages = ctx.stages
    ranges, gamma, slope = stages
    *points, total = _backward(
        grad_c, grad_v, *inputs, gamma, slope, ranges, states, *ctx.codes, every, ctx.needs_input_grad[2]
    )
    used = (gamma, slope) if every == ALL else (gamma, slope, states)
    ctx.stages = None
    for stages in used:
        if type(stages) is Tensor:  # not a tracer's; used up: its memory must not wait for whoever holds the graph
            stages.untyped_storage().resize_(0)
    return *points, *split_weights(total, *inputs[3].shape[:0:-1]), *[None] * 4


def _vjp(ctx, grad_c, grad_v, *unused):
    tensors = ctx.saved_tensors[:9]
    if torch.is_grad_enabled():
        steps, _, output = ctx.codes
        function = partial(reference.geodesic_rk4, steps=steps, output=output_name(output))
        return *plain_vjp("geodesic_rk4", function, tensors, [grad_c, grad_v]), *[None] * 4
    grad_c, grad_v = (torch.zeros_like(tensors[0]) if g is None else g for g in (grad_c, grad_v))
    return _gradients(ctx, grad_c, grad_v, SECOND)


def _states_vjp(ctx, grad, *unused):
    if torch.is_grad_enabled():
        steps, _, output = ctx.codes
        function = partial(reference.geodesic_states, steps=steps, output=output_name(output))
        return *plain_vjp("geodesic_rk4", function, ctx.saved_tensors[:9], [grad]), *[None] * 4
    grad = plain(grad)
    return _gradients(ctx, grad, grad, ALL)


_rk4.register_autograd(_vjp, setup_context=_keep_ends)
_states.register_autograd(_states_vjp, setup_context=_keep_states)
