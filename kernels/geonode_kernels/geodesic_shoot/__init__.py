"""Two-point geodesics of one concentration: all Newton iterations of shooting in one launch."""

import torch
from torch import Tensor

from .. import _blocks
from .._dispatch import dispatch, width_refusal
from .._runtime import launch, output_code, padded, plain, precision_code, wants_gradient
from ..geodesic_rk4 import geodesic_rk4
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

    Method and meaning of the results as in `reference.geodesic_shoot`. The velocity has its first derivative: it is
    v − F/J, one Newton step attached at the root, with F = c(1) − end and J the Jacobi field. Problems that did not
    converge carry no gradient and spoil none.

    Args:
        start, end, wavelength: [M, N].
        w1, b1, w2, b2, w3, b3, output, precision, backend: as in `metric_christoffel`.
        steps: RK4 steps over t ∈ [0, 1].
        newton, stages: Newton iterations on the full target, and targets along the chord before and with it.
        tolerance: of the residual relative to |end − start|; some rounding errors are always allowed.
        drift_tolerance: largest relative change of g v² that still counts as converged.

    Raises:
        ValueError: a count below one.
        KernelError: an unknown name, or ``backend="triton"`` where the kernel cannot run.
    """
    for name, count in (("steps", steps), ("newton", newton), ("stages", stages)):
        if count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}.")
    weights = (w1, b1, w2, b2, w3, b3)
    codes = precision_code(precision), output_code(output)
    tensors = [start, end, wavelength, *weights]
    start, end, wavelength = torch.broadcast_tensors(start, end, wavelength)
    if dispatch("geodesic_shoot", tensors, backend=backend, refusal=width_refusal(*w2.shape[1:])):
        inputs = [t.detach() for t in (start, end, wavelength, *weights)]
        shot = Shot(*_shoot(*inputs, steps, newton, stages, tolerance, drift_tolerance, *codes))
    else:
        shot = reference.geodesic_shoot(
            *(t.detach() for t in (start, end, wavelength, *weights)),
            steps=steps,
            newton=newton,
            stages=stages,
            tolerance=tolerance,
            drift_tolerance=drift_tolerance,
            output=output,
        )
    if not wants_gradient(tensors):
        return shot
    good = shot.status == reference.CONVERGED
    # harmless problems in place of those that failed: masking their result would leave NaN in every weight's gradient
    a, b, lam, v = (torch.where(good, t, 0.0) for t in (start, end, wavelength, shot.velocity))
    reached, _ = geodesic_rk4(a, v, lam, *weights, steps=steps, output=output, precision=precision, backend=backend)
    miss = reached - b
    attached = v - (miss - miss.detach()) / shot.jacobian
    return shot._replace(velocity=torch.where(good, attached, shot.velocity))


@torch.library.custom_op("geonode::geodesic_shoot", mutates_args=())
def _shoot(
    start: Tensor, end: Tensor, wavelength: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, w3: Tensor,
    b3: Tensor, steps: int, newton: int, stages: int, tolerance: float, drift_tolerance: float, precision: int,
    output: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    from . import _triton

    weights = [plain(w) for w in (w1, b1, w2, b2, w3, b3)]
    models, n = start.shape
    h2, h1 = w2.shape[1:]
    new = lambda dtype=torch.float32: torch.empty((models, n), dtype=dtype, device=start.device)  # noqa: E731
    velocity, residual, drift, jacobian = new(), new(), new(), new()
    status, iterations = new(torch.int32), new(torch.int32)
    total = reference.STAGE_STEPS * (stages - 1) + newton
    o = _blocks.options("shoot")
    if n:
        launch(
            _triton.shoot_kernel, (-(-n // o["BLOCK"]), models),
            plain(start), plain(end), plain(wavelength), *weights, velocity, residual, drift, jacobian, status,
            iterations, n, h1, h2, steps, 1.0 / steps, total, stages, tolerance, drift_tolerance,
            K1=padded(h1), K2=padded(h2), PRECISION=precision, OUTPUT=output, **o,
        )  # fmt: skip
    return velocity, status, residual, iterations, drift, jacobian


@_shoot.register_fake
def _(start, end, wavelength, w1, b1, w2, b2, w3, b3, steps, newton, stages, tolerance, drift_tol, precision, output):
    new = lambda dtype=torch.float32: torch.empty(start.shape, dtype=dtype, device=start.device)  # noqa: E731
    return new(), new(torch.int32), new(), new(torch.int32), new(), new()
