"""diffrax (JAX): Tsit5 with constant steps at nearly the same number of evaluations, and adaptive for work–precision.

Every trajectory of the batch is one state, as in torchdiffeq. Matrix products in full float32, never TF32.
"""

from __future__ import annotations

import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or JAX takes three quarters of the card

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from geonode.bench import problem
from geonode.bench.peers import measuring as common

FIXED_STEPS = 13  # six new evaluations each: 78 beside RK4's 80


def gamma(c, wavelength, weights):
    """Γ by the same formula as `problem.christoffel`."""
    w1, b1, w2, b2, w3, b3 = weights
    h = jnp.tanh(jnp.outer(c, w1[:, 0]) + (jnp.outer(wavelength, w1[:, 1]) + b1))
    d = (1 - h * h) * w1[:, 0]
    h2 = jnp.tanh(h @ w2.T + b2)
    d2 = (1 - h2 * h2) * (d @ w2.T)
    y, dy = h2 @ w3[0] + b3, d2 @ w3[0]
    return 0.5 * jax.nn.sigmoid(y) * dy / (jax.nn.softplus(y) + problem.FLOOR)


def measure(spec: common.Spec) -> tuple[list, list]:
    """Rows and curve at one count."""
    jax.config.update("jax_default_matmul_precision", "highest")
    device = jax.devices("gpu" if spec.device == "cuda" else "cpu")[0]
    arrays = [jax.device_put(a, device) for a in (*problem.points(spec.n), *problem.weights())]
    c, v, wavelength, weights = arrays[0], arrays[1], arrays[2], arrays[3:]

    def field(_t, y, _arguments):
        return y[1], -gamma(y[0], wavelength, weights) * y[1] * y[1]

    def measured(controller, dt0, most: int):
        @jax.jit
        def solve(y0):
            solution = diffrax.diffeqsolve(
                diffrax.ODETerm(field), diffrax.Tsit5(), 0.0, 1.0, dt0, y0, stepsize_controller=controller,
                saveat=diffrax.SaveAt(t1=True), max_steps=most, adjoint=diffrax.ForwardMode(),
            )  # fmt: skip
            return solution.ys, solution.stats["num_steps"]

        (ends, steps) = jax.block_until_ready(solve((c, v)))
        state = np.stack([np.asarray(x)[0, : problem.CHECKED] for x in ends])
        samples = common.milliseconds(lambda: jax.block_until_ready(solve((c, v))), spec.budget)
        return problem.error(state, spec.exact), samples, 6 * int(steps) + 1

    error, samples, used = measured(diffrax.ConstantStepSize(), 1.0 / FIXED_STEPS, FIXED_STEPS + 2)
    note = f"no RK4 there: Tsit5 with {FIXED_STEPS} constant steps, jit"
    rows = [common.row("forward", spec.n, samples, error, used, note)]
    curve = []
    for rtol in (1e-3, 1e-5) if spec.curve else ():
        error, samples, used = measured(diffrax.PIDController(rtol=rtol, atol=1e-2 * rtol), None, 256)
        curve.append(common.point("diffrax Tsit5", f"rtol {rtol:g}", error, samples, used))
    return rows, curve


if __name__ == "__main__":
    common.main("diffrax", f"{diffrax.__version__} (jax {jax.__version__})", measure)
