"""Two-point geodesics of one concentration: all Newton iterations of shooting in one launch."""

from functools import lru_cache, partial

import torch
from torch import Tensor

from .. import _blocks
from .._dispatch import dispatch, width_refusal
from .._nodes import NEEDED, PADDED, nodes_for
from .._runtime import launch, output_code, output_name, padded, plain, plain_vjp, precision_code, require_counts
from ..geodesic_rk4 import SECOND, reverse
from ..geodesic_rk4 import _launch as integrate
from ..metric_christoffel import launch_backward, split_weights
from ..paths import CONVERGED, ROUNDINGS, coarser
from . import reference
from .reference import Shot

__all__ = ["Shot", "geodesic_shoot"]


def geodesic_shoot(
    start: Tensor,
    end: Tensor,
    wavelength: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    w3: Tensor,
    b3: Tensor,
    *,
    steps: int = 20,
    newton: int = 10,
    stages: int = 4,
    tolerance: float = 1e-4,
    drift_tolerance: float = 0.05,
    output: str = "softplus",
    precision: str = "fp32",
    backend: str = "auto",
) -> Shot:
    """Initial velocities [M, N] of the geodesics from ``start`` to ``end``, and what became of each problem.

    Method, checks and meaning of the results are those of `reference.shoot`, the torch path of every metric; only, a
    problem rests here once it is as close as rounding allows, or within tolerance and either no longer improving or on
    its way to a further target. The velocity
    is differentiable by the implicit function theorem, with the exact derivative of the discrete path. Problems that
    did not converge carry no gradient and spoil none.

    Args:
        start, end, wavelength: [M, N].
        w1, b1, w2, b2, w3, b3, output, precision, backend: as in `metric_christoffel`.
        steps: RK4 steps over t ∈ [0, 1].
        newton, stages: Newton iterations on the full target, and targets along the chord before and with it.
        tolerance: of the residual relative to |end − start|; some rounding errors are always allowed.
        drift_tolerance: largest relative change of g v², and of the end when the steps are halved, that still counts
            as converged.

    Raises:
        ValueError: a count below one.
        KernelError: an unknown name, or ``backend="triton"`` where the kernel cannot run.
    """
    require_counts(steps=steps, newton=newton, stages=stages)
    weights = (w1, b1, w2, b2, w3, b3)
    codes = precision_code(precision), output_code(output)
    tensors = [start, end, wavelength, *weights]
    start, end, wavelength = torch.broadcast_tensors(start, end, wavelength)
    numbers = {"newton": newton, "stages": stages, "tolerance": tolerance, "drift_tolerance": drift_tolerance}
    if dispatch("geodesic_shoot", tensors, backend=backend, refusal=width_refusal(*w2.shape[1:])):
        return Shot(*_shoot(start, end, wavelength, *weights, steps, *numbers.values(), *codes))
    return reference.geodesic_shoot(start, end, wavelength, *weights, steps=steps, **numbers, output=output)  # type: ignore[arg-type]


@lru_cache(maxsize=8)
def _places(device: torch.device) -> Tensor:
    return reference.chord_places(torch.empty(0, dtype=torch.float32, device=device))


def launch_search(
    start, end, wavelength, weights, steps, newton, stages, tolerance, drift_tolerance, precision, output
):
    """(velocity, status, residual, iterations, drift) [M, N], without a gradient."""
    from . import _triton

    weights = [plain(w) for w in weights]
    models, n = start.shape
    h2, h1 = weights[2].shape[1:]
    new = lambda dtype=torch.float32: torch.empty((models, n), dtype=dtype, device=start.device)  # noqa: E731
    velocity, residual, drift = new(), new(), new()
    status, iterations = new(torch.int64), new(torch.int64)
    o = _blocks.options("shoot")
    if n:
        launch(
            _triton.shoot_kernel, (-(-n // o["BLOCK"]), models),
            plain(start), plain(end), plain(wavelength), *weights, _places(start.device), velocity, residual, drift,
            status, iterations, n, h1, h2, steps, coarser(steps), newton, stages, tolerance, drift_tolerance,
            NEEDED, K1=padded(h1), K2=padded(h2), PRECISION=precision, OUTPUT=output,
            STAGE_STEPS=reference.STAGE_STEPS, PLACES=reference.CHORD_NODES,
            PADDED_PLACES=padded(reference.CHORD_NODES), ROUNDINGS=ROUNDINGS,
            NODES=nodes_for(4 * steps), PADDED=PADDED, **o,
        )  # fmt: skip
    return velocity, status, residual, iterations, drift


@torch.library.custom_op("geonode::geodesic_shoot", mutates_args=())
def _shoot(
    start: Tensor, end: Tensor, wavelength: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, w3: Tensor,
    b3: Tensor, steps: int, newton: int, stages: int, tolerance: float, drift_tolerance: float, precision: int,
    output: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    weights, numbers = (w1, b1, w2, b2, w3, b3), (steps, newton, stages, tolerance, drift_tolerance, precision, output)
    return launch_search(start, end, wavelength, weights, *numbers)


@_shoot.register_fake
def _(start, end, wavelength, w1, b1, w2, b2, w3, b3, steps, newton, stages, tolerance, drift_tol, precision, output):
    new = lambda dtype=torch.float32: torch.empty(start.shape, dtype=dtype, device=start.device)  # noqa: E731
    return new(), new(torch.int64), new(), new(torch.int64), new()


@torch.library.custom_op("geonode::geodesic_shoot_backward", mutates_args=())
def _backward(
    grad: Tensor, velocity: Tensor, status: Tensor, start: Tensor, wavelength: Tensor, w1: Tensor, b1: Tensor,
    w2: Tensor, b2: Tensor, w3: Tensor, b3: Tensor, steps: int, precision: int, output: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """The adjoint of F(v, a, b, θ) = c(1) − b = 0: with λ = −v̄/∂F/∂v, the gradient to whatever is x is λ ∂F/∂x.

    One walk back from ∂c(1) = 1 gives every problem's own ∂F/∂v and ∂F/∂a, and what it leaves of the stages is linear
    in where it began: scaled by λ, it is the list of points whose weight gradients are wanted.
    """
    good = status == CONVERGED
    a, v, lam = (torch.where(good, plain(t), 0.0) for t in (start, velocity, wavelength))
    weights = (w1, b1, w2, b2, w3, b3)
    *_, ranges, gamma, slope, states = integrate(a, v, lam, weights, steps, precision, output, save=True)
    by_a, by_v = reverse(torch.ones_like(a), torch.zeros_like(a), gamma, slope, ranges, states, steps, SECOND)
    scale = torch.where(good, -plain(grad) / by_v, 0.0)
    slope *= scale[:, None]
    _, to_wavelength, total = launch_backward(
        gamma, lam, weights, (slope,), precision, output, 1, points=False, ranges=ranges
    )
    return scale * by_a, -scale, to_wavelength, total


@_backward.register_fake
def _(grad, velocity, status, start, wavelength, w1, b1, w2, b2, w3, b3, steps, precision, output):
    size = w2[0].numel() + 3 * w2.shape[2] + 2 * w2.shape[1] + 1
    new = lambda *shape: torch.empty(shape, dtype=torch.float32, device=grad.device)  # noqa: E731
    return new(*start.shape), new(*start.shape), new(*start.shape), new(w2.shape[0], size)


def _keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:9], output[0], output[1])
    ctx.steps, ctx.codes = inputs[9], inputs[14:]
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


def _vjp(ctx, grad, *unused):
    start, end, wavelength, *weights, velocity, status = ctx.saved_tensors
    if torch.is_grad_enabled():
        function = partial(_attached, velocity.detach(), status, ctx.steps, output_name(ctx.codes[1]))
        return *plain_vjp("geodesic_shoot", function, [start, end, wavelength, *weights], [grad]), *[None] * 7
    to_start, to_end, to_wavelength, total = _backward(
        grad, velocity, status, start, wavelength, *weights, ctx.steps, *ctx.codes
    )
    return to_start, to_end, to_wavelength, *split_weights(total, *weights[2].shape[:0:-1]), *[None] * 7


def _attached(velocity, status, steps, output, start, end, wavelength, *weights):
    """The velocity as plain torch attaches it to the graph at the root the kernel found."""
    paths = reference.NetworkPaths(weights, output, steps)
    return reference.attach(paths, start, end, wavelength, velocity, status)


_shoot.register_autograd(_vjp, setup_context=_keep)
