"""The same geodesic integration in other libraries, each in a process of its own; prints a line of JSON a problem.

    python benchmarks/kernels_peers.py torchdiffeq forward 18030
    python benchmarks/kernels_peers.py jax forward 18030 both 1230848

Formula of `geonode_kernels.geodesic_rk4`: metric 2→64→64→1 tanh, softplus + 0.1, exact ∂g/∂c, 20 RK4 steps, float32.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time

STEPS, HIDDEN = 20, 64


def problem(n: int):
    """Arrays (c, v, λ) [n] and the six weights, the same numbers in every library."""
    import numpy as np

    rng = np.random.default_rng(0)
    h = HIDDEN
    shapes = [((h, 2), 2), ((h,), 2), ((h, h), h), ((h,), h), ((1, h), h), ((1,), h)]
    weights = [rng.uniform(-(k**-0.5), k**-0.5, s).astype("float32") for s, k in shapes]
    return [
        rng.uniform(0, 1, n).astype("float32"),
        rng.uniform(-0.8, 0.8, n).astype("float32"),
        rng.uniform(-1, 1, n).astype("float32"),
        *weights,
    ]


def torchdiffeq(mode: str, n: int) -> dict:
    """Its rk4 (the 3/8 rule) at the same step; gradients direct for small n, by the adjoint method for large n."""
    import torch
    import torchdiffeq
    from torch import nn

    torch.backends.cuda.matmul.allow_tf32 = False
    c, v, wavelength, *weights = (torch.from_numpy(a).cuda() for a in problem(n))

    class Geodesic(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = nn.ParameterList([nn.Parameter(w) for w in weights])

        def forward(self, t, state):
            w1, b1, w2, b2, w3, b3 = self.weights
            c, v = state[0], state[1]
            h = torch.tanh(torch.outer(c, w1[:, 0]) + (torch.outer(wavelength, w1[:, 1]) + b1))
            d = (1 - h * h) * w1[:, 0]
            h2 = torch.tanh(torch.addmm(b2, h, w2.T))
            d2 = (1 - h2 * h2) * (d @ w2.T)
            y, dy = h2 @ w3[0] + b3, d2 @ w3[0]
            gamma = 0.5 * torch.sigmoid(y) * dy / (nn.functional.softplus(y) + 0.1)
            return torch.stack([v, -gamma * v * v])

    model = Geodesic()
    state, times = torch.stack([c, v]), torch.tensor([0.0, 1.0], device="cuda")
    direct = n < 100_000
    solve = torchdiffeq.odeint if mode == "forward" or direct else torchdiffeq.odeint_adjoint

    def run():
        out = solve(model, state, times, method="rk4", options={"step_size": 1.0 / STEPS})[-1]
        if mode == "both":
            out.square().sum().backward()
        return out

    def timed():
        if mode == "forward":
            with torch.no_grad():
                return run()
        return run()

    timed()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times_ms = []
    for _ in range(7):
        begin = time.perf_counter()
        timed()
        torch.cuda.synchronize()
        times_ms.append(1e3 * (time.perf_counter() - begin))
    method = "adjoint" if solve is torchdiffeq.odeint_adjoint else "direct"
    peak = torch.cuda.max_memory_allocated() / 1e9
    return {"ms": statistics.median(times_ms), "method": method, "peak_gb": peak, "version": torchdiffeq.__version__}


def jax(mode: str, n: int) -> dict:
    """A hand-written RK4 under jit: lax.scan over steps, each step checkpointed for the gradient."""
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_default_matmul_precision", "highest")  # float32, not TF32
    c, v, wavelength, *weights = (jnp.asarray(a) for a in problem(n))
    dt = 1.0 / STEPS

    def gamma(c, weights):
        w1, b1, w2, b2, w3, b3 = weights
        h = jnp.tanh(jnp.outer(c, w1[:, 0]) + (jnp.outer(wavelength, w1[:, 1]) + b1))
        d = (1 - h * h) * w1[:, 0]
        h2 = jnp.tanh(h @ w2.T + b2)
        d2 = (1 - h2 * h2) * (d @ w2.T)
        y, dy = h2 @ w3[0] + b3, d2 @ w3[0]
        return 0.5 * jax.nn.sigmoid(y) * dy / (jax.nn.softplus(y) + 0.1)

    def integrate(c, v, weights):
        def slope(c, v):
            return v, -gamma(c, weights) * v * v

        @jax.checkpoint
        def step(state, _):
            c, v = state
            k1, l1 = slope(c, v)
            k2, l2 = slope(c + 0.5 * dt * k1, v + 0.5 * dt * l1)
            k3, l3 = slope(c + 0.5 * dt * k2, v + 0.5 * dt * l2)
            k4, l4 = slope(c + dt * k3, v + dt * l3)
            return (c + dt / 6 * (k1 + 2 * (k2 + k3) + k4), v + dt / 6 * (l1 + 2 * (l2 + l3) + l4)), None

        return jax.lax.scan(step, (c, v), None, length=STEPS)[0]

    if mode == "forward":
        run = jax.jit(integrate)
    else:

        def loss(c, v, weights):
            c1, v1 = integrate(c, v, weights)
            return (c1 * c1).sum() + (v1 * v1).sum()

        run = jax.jit(jax.grad(loss, argnums=(0, 1, 2)))
    jax.block_until_ready(run(c, v, weights))
    times_ms = []
    for _ in range(9):
        begin = time.perf_counter()
        jax.block_until_ready(run(c, v, weights))
        times_ms.append(1e3 * (time.perf_counter() - begin))
    return {"ms": statistics.median(times_ms), "method": "scan", "version": jax.__version__}


if __name__ == "__main__":
    library, *asked = sys.argv[1:]
    for mode, size in zip(asked[::2], map(int, asked[1::2]), strict=True):
        measured = globals()[library](mode, size)
        print(json.dumps({"library": library, "mode": mode, "n": size, **measured}), flush=True)
