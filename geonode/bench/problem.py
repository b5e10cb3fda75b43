"""The numbers every case and every peer shares, in numpy alone: a peer's process imports no second framework.

Geodesic initial-value problem dc/dt = v, dv/dt = −Γ(c, λ) v² with Γ = ½ g′/g, g = softplus(network) + 0.1, and a
network 2→64→64→1 of tanh: the original recipe's metric.
"""

from __future__ import annotations

import numpy as np

HIDDEN, STEPS, FLOOR = 64, 20, 0.1
CHECKED = 256  # the first so many trajectories are compared with `reference`


def weights(seed: int = 0) -> list[np.ndarray]:
    """W1 [H, 2], b1 [H], W2 [H, H], b2 [H], W3 [1, H], b3 [1], float32, uniform in ±1/√in."""
    rng = np.random.default_rng(seed)
    h = HIDDEN
    shapes = [((h, 2), 2), ((h,), 2), ((h, h), h), ((h,), h), ((1, h), h), ((1,), h)]
    return [rng.uniform(-(k**-0.5), k**-0.5, s).astype("float32") for s, k in shapes]


def points(n: int, seed: int = 1) -> list[np.ndarray]:
    """c ∈ [0, 1], v ∈ [−0.8, 0.8], λ ∈ [−1, 1], float32 [n]; the first ones do not depend on ``n``."""
    rngs = [np.random.default_rng([seed, k]) for k in range(3)]
    limits = ((0.0, 1.0), (-0.8, 0.8), (-1.0, 1.0))
    return [r.uniform(*ends, n).astype("float32") for r, ends in zip(rngs, limits, strict=True)]


def christoffel(c: np.ndarray, wavelength: np.ndarray, parameters: list[np.ndarray]) -> np.ndarray:
    """Γ [n] in the dtype of the arguments."""
    w1, b1, w2, b2, w3, b3 = parameters
    h = np.tanh(c[:, None] * w1[:, 0] + (wavelength[:, None] * w1[:, 1] + b1))
    d = (1.0 - h * h) * w1[:, 0]
    h2 = np.tanh(h @ w2.T + b2)
    d2 = (1.0 - h2 * h2) * (d @ w2.T)
    y, dy = h2 @ w3[0] + b3[0], d2 @ w3[0]
    return 0.5 * dy / (1.0 + np.exp(-y)) / (np.logaddexp(0.0, y) + FLOOR)


def reference(n: int = CHECKED, seed: int = 1, steps: int = 100) -> np.ndarray:
    """[2, n]: c and v at path time 1, float64, by ``steps`` classical Runge–Kutta steps (error below 1e-9)."""
    c, v, wavelength = (a.astype("float64") for a in points(n, seed))
    parameters = [w.astype("float64") for w in weights()]
    dt = 1.0 / steps

    def slope(c: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return v, -christoffel(c, wavelength, parameters) * v * v

    for _ in range(steps):
        k1, l1 = slope(c, v)
        k2, l2 = slope(c + 0.5 * dt * k1, v + 0.5 * dt * l1)
        k3, l3 = slope(c + 0.5 * dt * k2, v + 0.5 * dt * l2)
        k4, l4 = slope(c + dt * k3, v + dt * l3)
        c, v = c + dt / 6 * (k1 + 2 * (k2 + k3) + k4), v + dt / 6 * (l1 + 2 * (l2 + l3) + l4)
    return np.stack([c, v])


def error(state: np.ndarray, exact: np.ndarray) -> float:
    """‖state − exact‖ / ‖exact‖ in float64; NaN counts as infinite."""
    value = float(np.linalg.norm(state.astype("float64") - exact) / np.linalg.norm(exact))
    return value if value == value else float("inf")
