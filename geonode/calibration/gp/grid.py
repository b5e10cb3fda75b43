"""The grid of candidates on which a :class:`~geonode.calibration.gp.geodesic_gp.GeodesicGP` is fitted; its evidence."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from geonode.calibration.gp.candidates import Candidates
from geonode.calibration.gp.numerics import (
    evidence,
    inverted,
    matern52,
    scaled_concentration,
    significant,
    with_nugget,
)
from geonode.metric.warp import WARPS, scaled_warps

LENGTHS = (0.3, 0.8, 1.2, 2.4, 5.0)
ALPHAS = (0.0, 0.5, 0.9, 0.99, 1.0)
ETAS = (1e-5, 1e-4, 1e-3, 1e-2, 0.05)
# log prior [13]: no optical response is infinitely steep at the blank, so √u gets a tenth of the others' weight. Six
# standards of the simulated assay tell it from the right warps by no more than that (benchmarks/assay_noise.py).
LOG_PRIOR = torch.tensor([math.log(0.1) if warp.kind == "sqrt" else 0.0 for warp in WARPS], dtype=torch.float64)


@dataclass(frozen=True)
class Weighed:
    """The grid on one training set: log weights ``[13, ℓ, α, η]`` (not normalised), k ``[13, ℓ, α, n, n]``, and origin
    and span of the scaled concentration."""

    log_weights: torch.Tensor
    kernel: torch.Tensor
    origin: float
    span: float


@dataclass(frozen=True)
class Grid:
    """Every warp with every correlation length, linear share and nugget."""

    lengths: tuple[float, ...]
    alphas: tuple[float, ...]
    etas: tuple[float, ...]

    @property
    def size(self) -> int:
        """How many candidates there are."""
        return len(WARPS) * len(self.lengths) * len(self.alphas) * len(self.etas)

    def weigh(self, levels: torch.Tensor, gram: torch.Tensor, width: int, effective_outputs: float) -> list[Weighed]:
        """Evidence and prior of every candidate on F training sets: ``levels [F, n]``, R Rᵀ ``gram [F, n, n]`` over
        ``width`` wavelengths, tempered by ``effective_outputs``."""
        u, origin, span = scaled_concentration(levels)
        s = scaled_warps(u, u[:, :1], u[:, -1:]).movedim(0, -2)
        kernel = self.kernel(s, s)
        log_weights = evidence(kernel, self.etas, gram, width, effective_outputs) + LOG_PRIOR[:, None, None, None]
        return [Weighed(log_weights[f], kernel[f], float(origin[f]), float(span[f])) for f in range(len(levels))]

    def kernel(self, s: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        """``s [..., 13, a]``, ``t [..., 13, b]`` → ``[..., 13, ℓ, α, a, b]``."""
        lengths = torch.tensor(self.lengths, dtype=s.dtype)
        alphas = torch.tensor(self.alphas, dtype=s.dtype)[:, None, None]
        distance = (s[..., :, None] - t[..., None, :]).abs()[..., None, :, :] / lengths[:, None, None]
        matern = matern52(distance)[..., None, :, :]
        linear = (s[..., :, None] * t[..., None, :])[..., None, None, :, :]
        return 1.0 + alphas * linear + (1.0 - alphas) * matern

    def inverses(self, weighed: Weighed) -> torch.Tensor:
        """K⁻¹ of every candidate, ``[13, ℓ, α, η, n, n]``."""
        etas = torch.tensor(self.etas, dtype=torch.float64)[:, None, None]
        return inverted(with_nugget(weighed.kernel[..., None, :, :], etas))

    def candidates(self, weighed: Weighed, weights: torch.Tensor, levels: np.ndarray) -> Candidates:
        """The candidates worth keeping, of evidence ``weights [13, ℓ, α, η]``, with their shares of it."""
        shape, n = weights.shape, len(levels)
        weights = self._without_duplicates(weights).flatten()
        keep = significant(weights)
        warp, length, alpha, eta = np.unravel_index(keep.numpy(), shape)
        lengths, alphas, etas = (
            torch.tensor(grid, dtype=torch.float64)[index][:, None, None]
            for grid, index in zip((self.lengths, self.alphas, self.etas), (length, alpha, eta), strict=True)
        )
        kernel = weighed.kernel.reshape(-1, n, n)[keep // len(self.etas)]  # of those that are kept alone
        return Candidates(
            torch.from_numpy(levels),
            weighed.origin,
            weighed.span,
            weights[keep] / weights[keep].sum(),
            inverted(with_nugget(kernel, etas)),
            warp,
            lengths,
            alphas,
            etas,
        )

    def _without_duplicates(self, weights: torch.Tensor) -> torch.Tensor:
        """At α = 1 the length plays no part: candidates that differ in it alone count as one."""
        weights = weights.clone()
        for k, alpha in enumerate(self.alphas):
            if alpha == 1.0:
                weights[:, 0, k] = weights[:, :, k].sum(1)
                weights[:, 1:, k] = 0.0
        return weights
