"""Arc length of the full metric, scaled to [−1, 1] on the calibrated range, as a matrix product in plain torch."""

from torch import Tensor


def arc_length(phi: Tensor, density: Tensor) -> Tensor:
    """ŝ = 2 S/S(1) − 1 with S = Φ·ρ.  ``phi`` [M, P + 1, T], whose last row is that of u = 1; ``density`` ρ [M, T, W] →
    [M, P, W]."""
    s = phi @ density
    return 2.0 * s[:, :-1] / s[:, -1:] - 1.0
