"""The coupled ODE of one concentration: geodesic motion and a flow free in velocity, from a velocity or by shooting."""

from functools import partial

import torch
from torch import Tensor

from .. import _blocks
from .._dispatch import dispatch, width_refusal
from .._runtime import launch, output_code, output_name, padded, plain, plain_vjp, precision_code, require_counts
from .._weights import FlowUnits
from ..geodesic_rk4 import _kept, _stages, shorten
from ..geodesic_rk4 import _launch as integrate
from ..geodesic_shoot import launch_search
from ..metric_christoffel import launch_backward, split_weights
from ..paths import CONVERGED
from . import reference

__all__ = ["coupled_rk4", "coupled_shot", "units_refusal"]

WIDEST_UNITS = 64  # hidden units whose sums stay in a program's registers
SECOND = 2  # which steps' states `geodesic_rk4` keeps for the way back


def units_refusal(hidden: int) -> str | None:
    """Why a flow of this width does not fit one program."""
    if hidden > WIDEST_UNITS:
        return f"{hidden} hidden units of the flow do not fit a program's registers ({WIDEST_UNITS} do)"
    return None


def coupled_rk4(
    c: Tensor,
    v: Tensor,
    wavelength: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    w3: Tensor,
    b3: Tensor,
    units: FlowUnits,
    *,
    steps: int = 20,
    output: str = "softplus",
    precision: str = "fp32",
    backend: str = "auto",
) -> Tensor:
    """The change of absorbance [M, N] along the geodesics that leave c with velocity v, over path time 0 to 1.

    State and Γ are float32 in every precision. For the gradient Γ and ∂Γ/∂c of each stage are kept: 800 bytes a row for
    20 steps.

    Args:
        c, v, wavelength: [M, N] start, velocity dc/dt and wavelength; N is a multiple of W, and row n belongs to the
            flow's wavelength n mod W.
        w1, b1, w2, b2, w3, b3, output, precision, backend: as in `metric_christoffel`.
        units: the flow; see `reference`.
        steps: of equal length, of the classical Runge–Kutta method.

    Raises:
        KernelError: an unknown name, or ``backend="triton"`` where the kernel cannot run.
    """
    weights = (w1, b1, w2, b2, w3, b3)
    codes = precision_code(precision), output_code(output)
    if not dispatch("coupled_rk4", [c, v, wavelength, *weights, *units], backend=backend, refusal=_refusal(w2, units)):
        return reference.coupled_rk4(c, v, wavelength, *weights, *units, steps=steps, output=output)
    c, v, wavelength = torch.broadcast_tensors(c, v, wavelength)
    return _carry(c, v, wavelength, *weights, *units, steps, *codes)[0]


def coupled_shot(
    start: Tensor,
    end: Tensor,
    wavelength: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    w3: Tensor,
    b3: Tensor,
    units: FlowUnits,
    *,
    steps: int = 20,
    newton: int = 10,
    stages: int = 4,
    tolerance: float = 1e-4,
    drift_tolerance: float = 0.05,
    output: str = "softplus",
    precision: str = "fp32",
    backend: str = "auto",
) -> tuple[Tensor, Tensor]:
    """The change of absorbance [M, N] along the geodesics from ``start`` to ``end``, and each problem's status.

    As `geodesic_shoot` and then `coupled_rk4` in as many steps. The path must end at ``end``, and its end's derivative
    by the velocity is known, so the gradient takes one walk back and one list of points, not one of each for the path
    and for the shot. NaN where no geodesic was found: such a problem has no gradient and spoils none.

    Args:
        start, end, wavelength: [M, N], rows as in `coupled_rk4`.
        w1, b1, w2, b2, w3, b3, output, precision, backend: as in `metric_christoffel`.
        units: the flow.
        steps, newton, stages, tolerance, drift_tolerance: as in `geodesic_shoot`.

    Raises:
        ValueError: a count below one.
        KernelError: an unknown name, or ``backend="triton"`` where the kernel cannot run.
    """
    require_counts(steps=steps, newton=newton, stages=stages)
    weights = (w1, b1, w2, b2, w3, b3)
    codes = precision_code(precision), output_code(output)
    start, end, wavelength = torch.broadcast_tensors(start, end, wavelength)
    numbers = {"newton": newton, "stages": stages, "tolerance": tolerance, "drift_tolerance": drift_tolerance}
    tensors = [start, end, wavelength, *weights, *units]
    if dispatch("coupled_shot", tensors, backend=backend, refusal=_refusal(w2, units)):
        return _shot(*tensors, steps, *numbers.values(), *codes)[:2]
    return reference.coupled_shot(*tensors, steps=steps, **numbers, output=output)  # type: ignore[arg-type]


def _refusal(w2: Tensor, units: FlowUnits) -> str | None:
    return width_refusal(*w2.shape[1:]) or units_refusal(units.gain.shape[1])


def _options(op: str, hidden: int) -> dict:
    """Launch options; a wider flow gets more warps, for its tiles must stay in registers."""
    return {**_blocks.options(op), "num_warps": 4 if padded(hidden) == 16 else 8}


def _new(like: Tensor, *shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.float32, device=like.device)


def _launch(c, v, wavelength, weights, units, steps, precision, output, shot):
    """(∫F dt, ∂A/∂b where ``shot``, ranges, Γ, ∂Γ/∂c, states)."""
    from . import _triton

    *_, ranges, gamma, slope, states = integrate(c, v, wavelength, weights, steps, precision, output, save=True)
    place, pace, shift, gain, level = map(plain, units)
    models, n = c.shape
    hidden, width = shift.shape[1:]
    o = _options("coupled_forward", hidden)
    change = _new(c, models, n)
    ratio = _new(c, models, n) if shot else change
    if n:
        launch(
            _triton.forward_kernel, (-(-n // o["BLOCK"]), models),
            plain(c), plain(v), gamma, slope, place, pace, shift, gain, level, change, ratio, n, width, hidden, steps,
            1.0 / steps, K=padded(hidden), SHOT=shot, **o,
        )  # fmt: skip
    return change, ratio, ranges, gamma, slope, states


def _launch_back(grad, ratio, wavelength, weights, units, kept, steps, precision, output, rows):
    """Gradients to c, v, the wavelength, all weights [M, size], and place, pace, shift, gain; ``ratio`` of a shot."""
    from . import _triton

    ranges, gamma, slope, states = kept
    place, pace, shift, gain, _ = map(plain, units)
    models, _, n = gamma.shape
    hidden, width = shift.shape[1:]
    pairs = n // width
    o = _options("coupled_backward", hidden)
    chunk, blocks = o.pop("per_program"), -(-width // o["BLOCK"])
    splits = -(-pairs // chunk)
    to_c, to_v = _new(gamma, models, n), _new(gamma, models, n)
    points, to_gamma = torch.empty_like(gamma), torch.empty_like(gamma)
    to_shift = _new(gamma, splits, models, hidden, width)
    sums = [_new(gamma, splits, models, blocks, hidden) for _ in range(3)]
    launch(
        _triton.backward_kernel, (blocks, splits, models),
        plain(grad), grad if ratio is None else ratio, gamma, slope, states, place, pace, shift, gain, points, to_gamma,
        to_c, to_v, to_shift, *sums, pairs, width, hidden, steps, 1.0 / steps, chunk, K=padded(hidden),
        SHOT=ratio is not None, **o,
    )  # fmt: skip
    shorten(points, to_gamma, states[:, 0, 0], ranges)
    _, to_wavelength, total = launch_backward(
        points, wavelength, weights, (to_gamma,), precision, output, 1, points=False, rows=rows, ranges=ranges
    )
    to_place, to_pace, to_gain = (part.sum((0, 2)) for part in sums)
    return to_c, to_v, to_wavelength, total, to_place, to_pace, to_shift.sum(0), to_gain


@torch.library.custom_op("geonode::coupled_rk4", mutates_args=())
def _carry(
    c: Tensor, v: Tensor, wavelength: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, w3: Tensor, b3: Tensor,
    place: Tensor, pace: Tensor, shift: Tensor, gain: Tensor, level: Tensor, steps: int, precision: int, output: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    weights, units = (w1, b1, w2, b2, w3, b3), (place, pace, shift, gain, level)
    change, _, *kept = _launch(c, v, wavelength, weights, units, steps, precision, output, shot=False)
    ranges, gamma, slope, states = kept
    return change, ranges, gamma, slope, states


@_carry.register_fake
def _(c, v, wavelength, w1, b1, w2, b2, w3, b3, place, pace, shift, gain, level, steps, precision, output):
    return _new(c, *c.shape), *_fake_kept(c, steps)


def _fake_kept(c: Tensor, steps: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    m, n = c.shape
    ranges, gamma, slope = (_new(c, *shape) for shape in _stages(m, n, steps))
    return ranges, gamma, slope, _new(c, *_kept(m, n, steps, SECOND))


@torch.library.custom_op("geonode::coupled_rk4_backward", mutates_args=())
def _carry_back(
    grad: Tensor, wavelength: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, w3: Tensor, b3: Tensor,
    place: Tensor, pace: Tensor, shift: Tensor, gain: Tensor, level: Tensor, ranges: Tensor, gamma: Tensor,
    slope: Tensor, states: Tensor, steps: int, precision: int, output: int, rows: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    weights, units = (w1, b1, w2, b2, w3, b3), (place, pace, shift, gain, level)
    kept = ranges, gamma, slope, states
    return _launch_back(grad, None, wavelength, weights, units, kept, steps, precision, output, rows)


@_carry_back.register_fake
def _(
    grad, wavelength, w1, b1, w2, b2, w3, b3, place, pace, shift, gain, level, ranges, gamma, slope, states, steps,
    precision, output, rows,
):  # fmt: skip
    return _fake_back(grad, wavelength, w2, (place, pace, shift, gain))


def _fake_back(grad: Tensor, wavelength: Tensor, w2: Tensor, units: tuple[Tensor, ...]):
    size = w2[0].numel() + 3 * w2.shape[2] + 2 * w2.shape[1] + 1
    shapes = [grad.shape, grad.shape, wavelength.shape, (w2.shape[0], size), *(t.shape for t in units)]
    return tuple(_new(grad, *shape) for shape in shapes)


def _keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:14], *output[1:])
    ctx.codes = inputs[14:]
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def _gradients(grad, found, w2):
    """Of every tensor that an op takes, from `_launch_back`'s results with those to c and v as they are."""
    first, second, to_wavelength, total, to_place, to_pace, to_shift, to_gain = found
    weights = split_weights(total, *w2.shape[:0:-1])
    return first, second, to_wavelength, *weights, to_place, to_pace, to_shift, to_gain, grad.sum(1)


def _vjp(ctx, grad, *unused):
    tensors, kept = ctx.saved_tensors[:14], ctx.saved_tensors[14:]
    if torch.is_grad_enabled():
        function = partial(reference.coupled_rk4, steps=ctx.codes[0], output=output_name(ctx.codes[2]))
        return *plain_vjp("coupled_rk4", function, tensors, [grad]), *[None] * 3
    grad = plain(grad)
    found = _carry_back(grad, *tensors[2:], *kept, *ctx.codes, ctx.needs_input_grad[2])
    return *_gradients(grad, found, tensors[5]), *[None] * 3


_carry.register_autograd(_vjp, setup_context=_keep)


@torch.library.custom_op("geonode::coupled_shot", mutates_args=())
def _shot(
    start: Tensor, end: Tensor, wavelength: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, w3: Tensor,
    b3: Tensor, place: Tensor, pace: Tensor, shift: Tensor, gain: Tensor, level: Tensor, steps: int, newton: int,
    stages: int, tolerance: float, drift_tolerance: float, precision: int, output: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """∫F dt, status, velocity, ∂A/∂b, ranges, Γ, ∂Γ/∂c, states."""
    weights, units = (w1, b1, w2, b2, w3, b3), (place, pace, shift, gain, level)
    numbers = steps, newton, stages, tolerance, drift_tolerance, precision, output
    velocity, status, *_ = launch_search(start, end, wavelength, weights, *numbers)
    good = status == CONVERGED
    a, v, lam = (torch.where(good, plain(t), 0.0) for t in (start, velocity, wavelength))
    change, ratio, *kept = _launch(a, v, lam, weights, units, steps, precision, output, shot=True)
    ranges, gamma, slope, states = kept
    change, ratio = torch.where(good, change, torch.nan), torch.where(good, ratio, 0.0)
    return change, status, velocity, ratio, ranges, gamma, slope, states


@_shot.register_fake
def _(
    start, end, wavelength, w1, b1, w2, b2, w3, b3, place, pace, shift, gain, level, steps, newton, stages, tolerance,
    drift_tolerance, precision, output,
):  # fmt: skip
    status = torch.empty(start.shape, dtype=torch.int64, device=start.device)
    return _new(start, *start.shape), status, *(_new(start, *start.shape) for _ in range(2)), *_fake_kept(start, steps)


@torch.library.custom_op("geonode::coupled_shot_backward", mutates_args=())
def _shot_back(
    grad: Tensor, status: Tensor, ratio: Tensor, wavelength: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor,
    w3: Tensor, b3: Tensor, place: Tensor, pace: Tensor, shift: Tensor, gain: Tensor, level: Tensor, ranges: Tensor,
    gamma: Tensor, slope: Tensor, states: Tensor, steps: int, precision: int, output: int, rows: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    weights, units = (w1, b1, w2, b2, w3, b3), (place, pace, shift, gain, level)
    lam, kept = torch.where(status == CONVERGED, plain(wavelength), 0.0), (ranges, gamma, slope, states)
    found = _launch_back(grad, ratio, lam, weights, units, kept, steps, precision, output, rows)
    to_start, _, to_wavelength, total, to_place, to_pace, to_shift, to_gain = found
    return to_start, grad * ratio, to_wavelength, total, to_place, to_pace, to_shift, to_gain


@_shot_back.register_fake
def _(
    grad, status, ratio, wavelength, w1, b1, w2, b2, w3, b3, place, pace, shift, gain, level, ranges, gamma, slope,
    states, steps, precision, output, rows,
):  # fmt: skip
    return _fake_back(grad, wavelength, w2, (place, pace, shift, gain))


def _keep_shot(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:14], *output[1:])
    ctx.steps, ctx.codes = inputs[14], inputs[19:]
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def _shot_vjp(ctx, grad, *unused):
    tensors, (status, velocity, ratio, *kept) = ctx.saved_tensors[:14], ctx.saved_tensors[14:]
    if torch.is_grad_enabled():
        function = partial(_attached, velocity.detach(), status, ctx.steps, output_name(ctx.codes[1]))
        return *plain_vjp("coupled_shot", function, tensors, [grad]), *[None] * 7
    grad = torch.where(status == CONVERGED, plain(grad), 0.0)
    found = _shot_back(grad, status, ratio, *tensors[2:], *kept, ctx.steps, *ctx.codes, ctx.needs_input_grad[2])
    return *_gradients(grad, found, tensors[5]), *[None] * 7


def _attached(velocity, status, steps, output, start, end, wavelength, *tensors):
    """The change as plain torch attaches it to the graph at the roots the kernel found."""
    return reference.along(velocity, status, start, end, wavelength, *tensors, steps=steps, output=output)


_shot.register_autograd(_shot_vjp, setup_context=_keep_shot)
