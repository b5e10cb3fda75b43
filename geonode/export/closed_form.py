"""The numbers of a fitted model as small modules of closed forms: what is written into the exported graph.

No solver, no table search, no derivative by automatic differentiation, and no branch on values: everything is a
formula of the inputs, so nothing can be frozen at trace time. Where sums cancel (kriging weights, the warp coordinate,
distances) the graph computes in float64; spectra come out in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from geonode.calibration import GeodesicGP
from geonode.calibration.inverse.model import InverseModel
from geonode.metric.warp import LOGARITHM_KAPPAS, SATURATION_KAPPAS

_SQRT_DELTA2, _SQUARE_DELTA, _HELD_SLOPE = 0.01**2, 1e-3, 1e-3
"""As in :mod:`geonode.metric.warp`; a test compares both."""


def float64(value: object) -> Tensor:
    """A float64 copy of an array or a tensor."""
    return torch.as_tensor(np.array(value), dtype=torch.float64)


class Warps(nn.Module):
    """All 13 warps, scaled to [−1, 1] on the calibrated range: concentrations [C] float64 → [13, C].

    The same formulas as :func:`geonode.metric.warp.scaled_warps`, with asinh written out: not every runtime has it in
    float64.
    """

    __getattr__: Callable[[str], Any]  # buffers are tensors, of which the type checker knows nothing

    def __init__(self, origin: float, span: float, c_min: float, c_max: float) -> None:
        super().__init__()
        # Numbers are buffers: the exporter rounds Python's to float32.
        saturation, logarithm = float64(SATURATION_KAPPAS)[:, None], float64(LOGARITHM_KAPPAS)[:, None]
        for name, value in {
            "origin": float64(origin),
            "unit": float64(span),
            "saturation": saturation,
            "logarithm": logarithm,
            "saturation_held": -0.5 * saturation,
            "logarithm_held": -0.5 * logarithm,
            "saturation_slope": _HELD_SLOPE / (1.0 + saturation),
            "logarithm_slope": _HELD_SLOPE * torch.log1p(1.0 / logarithm),
        }.items():
            self.register_buffer(name, value)
        ends = self._values(float64([c_min, c_max]))
        self.register_buffer("low", ends[:, :1].clone())
        self.register_buffer("span", ends[:, 1:] - ends[:, :1])

    def _values(self, c: Tensor) -> Tensor:
        """The warps up to a factor each, [13, C]."""
        x = ((c - self.origin) / self.unit)[None]
        y, z = x / _SQRT_DELTA2, x / _SQUARE_DELTA
        root, r = torch.sqrt(torch.sqrt(y * y + 1.0)), torch.sqrt(z * z + 1.0)
        asinh = torch.sign(z) * torch.log(torch.abs(z) + r)
        at = torch.maximum(x, self.saturation_held), torch.maximum(x, self.logarithm_held)
        inside = at[0] / (at[0] + self.saturation) + self.saturation_slope * (x - at[0])
        logs = torch.log(1.0 + at[1] / self.logarithm) + self.logarithm_slope * (x - at[1])
        return torch.cat([x, y / root, z * r + asinh, inside, logs])

    def forward(self, c: Tensor) -> Tensor:
        return 2.0 * (self._values(c) - self.low) / self.span - 1.0


class GPSpectra(nn.Module):
    """Mean and standard deviation of the geodesic GP: concentrations [C] float32 → two of [C, W] float32.

    The formulas of :meth:`geonode.calibration.GeodesicGP.predict`, summed over its G candidates: B_g = k_g K_g⁻¹ and
    v_g in float64; what they multiply is computed once, here, in the constructor.
    """

    __getattr__: Callable[[str], Any]  # buffers are tensors, of which the type checker knows nothing

    def __init__(self, gp: GeodesicGP) -> None:
        super().__init__()
        one = gp.candidates
        self.warps = Warps(one.origin, one.span, float(gp.levels[0]), float(gp.levels[-1]))
        residual = float64(gp.residual)
        weights = one.weights
        n, width = residual.shape
        at_levels = self.warps(float64(gp.levels))[one.warp]
        self.register_buffer("candidate", torch.from_numpy(np.array(one.warp, dtype=np.int64)))
        for name, value in {
            "levels": at_levels[:, None],
            "alpha": one.alphas,
            "length": one.lengths / math.sqrt(5.0),
            "inverse": one.inverse,
            "weight": weights[:, None, None],
        }.items():
            self.register_buffer(name, value.double().clone())
        own = weights[:, None] * torch.einsum("iw,gij,jw->gw", residual, one.inverse, residual)
        shared = own.sum(1, keepdim=True) / (width * max(n - 1, 1))
        self.register_buffer("variance_weight", ((own + gp.prior_dof * shared) / gp.dof).float())
        self.register_buffer("residual", residual.float())
        self.register_buffer("products", (residual[:, None] * residual[None]).reshape(n * n, width).float())
        self.register_buffer("expected_weight", own.mean(1, keepdim=True) / gp.dof)
        self.register_buffer("expected_product", (residual @ residual.T).reshape(n * n, 1) / width)
        self.register_buffer("column_mean", float64(gp.column_mean).float())
        self.register_buffer("noise", float64(gp.predict([gp.levels[0]]).noise_variance).float())
        self.factor = gp.dof / (gp.dof - 2.0)

    def _parts(self, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rows of the mean [C, n], variance of each candidate [C, G], covariance between them [C, n²]; float64."""
        at = self.warps(c.double())[self.candidate]  # [G, C]
        r = torch.abs(at[:, :, None] - self.levels) / self.length
        matern = (1.0 + r + r * r / 3.0) * torch.exp(-r)
        cross = 1.0 + self.alpha * at[:, :, None] * self.levels + (1.0 - self.alpha) * matern
        rows = torch.matmul(cross, self.inverse)  # [G, C, n]
        prior = 2.0 - self.alpha[..., 0] + self.alpha[..., 0] * at * at
        variance = torch.clamp(prior - (rows * cross).sum(-1), min=0.0)  # [G, C]
        mean = (self.weight * rows).sum(0)
        apart = rows - mean
        weighted = (self.weight * apart).permute(1, 2, 0)  # [C, n, G]
        return mean, variance.permute(1, 0), torch.matmul(weighted, apart.permute(1, 0, 2)).flatten(1)

    def mean_and_square(self, c: Tensor) -> tuple[Tensor, Tensor]:
        """The mean spectra [C, W] float32, and q [C, 1] float64: see
        :func:`geonode.calibration.gp.node_process.expected_square`."""
        mean, variance, between = self._parts(c)
        found = torch.matmul(variance, self.expected_weight) + torch.matmul(between, self.expected_product)
        return self._mean(mean), torch.clamp(found, min=0.0)

    def moments(self, c: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of one further spectrum, [C, W] float32."""
        mean, variance, between = self._parts(c)
        spread = torch.matmul(variance.float(), self.variance_weight) + torch.matmul(between.float(), self.products)
        scale2 = torch.clamp(spread + self.noise, min=0.0)
        return self._mean(mean), self.factor * scale2

    def _mean(self, rows: Tensor) -> Tensor:
        return self.column_mean + torch.matmul(rows.float(), self.residual)

    def forward(self, c: Tensor) -> tuple[Tensor, Tensor]:
        mean, variance = self.moments(c)
        return mean, torch.sqrt(variance)


def eliminate(matrix: Tensor, pivots: int) -> Tensor:
    """Schur complement of the leading ``pivots`` rows of symmetric [..., s, s], positive definite there: the rest of
    Gaussian elimination. For [[C, X], [Xᵀ, 0]] it is −XᵀC⁻¹X; plain products, no solver.

    The pivot's own row and column are worked out too, and cut away after: that is fewer nodes of the graph."""
    for _ in range(pivots):
        row = matrix[..., :1, :]
        matrix = (matrix - row.transpose(-1, -2) * (row / row[..., :1]))[..., 1:, 1:]
    return matrix


class Quantifier(nn.Module):
    """Unknown spectra against the predicted curve, all float64 (see :mod:`geonode.calibration.inverse.model`).

    Inputs: ``spectra [U, W]`` (preprocessed as the standards were; each the mean of so many replicates),
    ``usable [U, W]`` 1 or 0 (0: the value is ignored), ``replicates [U]``. Outputs: coordinates ``[U, r]``, residual
    and Q ``[U]``, T² ``[U]``, squared distance ``[U, K]`` to the K points of the curve, squared ``steps [U, K − 1]``
    between them, and the profile log-likelihood ``[U, K]`` (:mod:`geonode_runtime.sets`).
    """

    __getattr__: Callable[[str], Any]  # buffers are tensors, of which the type checker knows nothing

    def __init__(self, inverse: InverseModel) -> None:
        super().__init__()
        space = inverse.projection
        r = inverse.rank
        self.rank, self.dof = r, float(inverse.dof)
        step = np.diff(inverse.mean, axis=0)
        none = np.zeros((1, r))
        basis = space.basis
        for name, value in {
            "centre": space.centre,
            "scale": space.scale,
            "basis": basis,
            "products": (basis[:, :, None] * basis[:, None, :]).reshape(len(basis), r * r),
            "points": inverse.mean,
            "leaving": np.concatenate([step, none]),
            "arriving": np.concatenate([none, step]),
            "covariance": inverse.covariance,
            "scatter": space.replicates,
            "doubt": inverse.doubt,
            "eye": np.eye(r),
        }.items():
            self.register_buffer(name, float64(value))

    def forward(self, spectra: Tensor, usable: Tensor, replicates: Tensor) -> tuple[Tensor, ...]:
        coordinates, residual, widening = self._project(spectra, usable)
        q = residual * replicates
        phi = torch.clamp(q, min=1.0) * torch.clamp(widening, min=1.0)
        each = replicates[:, None, None]
        noise = self.scatter / each + self.eye * (phi[:, None, None] / each)  # [U, r, r]
        covariance = self.covariance + noise[:, None]  # [U, K, r, r]
        apart = coordinates[:, None] - self.points
        leaving, arriving = (torch.zeros_like(apart) + part for part in (self.leaving, self.arriving))
        sides = torch.stack([apart, leaving, arriving], dim=-1)  # [U, K, r, 3]
        corner = torch.zeros_like(sides[..., :3, :]) if self.rank >= 3 else _square_zeros(sides)
        upper = torch.cat([covariance, sides], dim=-1)
        lower = torch.cat([sides.transpose(-1, -2), corner], dim=-1)
        rest = -eliminate(torch.cat([upper, lower], dim=-2), self.rank)
        squared = rest[..., 0, 0]
        steps = 0.5 * (rest[:, :-1, 1, 1] + rest[:, 1:, 2, 2])
        t2 = self._smallest(squared, steps)
        total = squared + self.doubt
        smallest = self._smallest(total, steps)
        inflation = torch.clamp(smallest / max(self.rank - 1, 1), min=1.0)
        excess = torch.clamp(total - smallest[:, None], min=0.0)
        log_likelihood = -0.5 * (self.dof + 1.0) * torch.log(1.0 + excess / (self.dof * inflation[:, None]))
        return coordinates, residual, q, t2, squared, steps, log_likelihood

    def _project(self, spectra: Tensor, usable: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Least squares on the usable wavelengths: coordinates, residual per degree of freedom, tr (BᵀB)⁻¹ / r."""
        r = self.rank
        white = usable * (spectra - self.centre) / self.scale
        normal = torch.matmul(usable, self.products).reshape(-1, r, r)
        right = torch.matmul(white, self.basis)[:, :, None]
        sides = torch.cat([right, torch.zeros_like(normal) + self.eye], dim=-1)  # [U, r, r + 1]
        upper = torch.cat([normal, sides], dim=-1)
        corner = torch.zeros_like(torch.cat([sides, sides[:, :1]], dim=1))
        lower = torch.cat([sides.transpose(-1, -2), corner], dim=-1)
        rest = -eliminate(torch.cat([upper, lower], dim=-2), r)
        coordinates = rest[:, 1:, 0]
        left = white - usable * torch.matmul(coordinates, self.basis.transpose(0, 1))
        spare = torch.clamp(usable.sum(1) - r, min=1.0)
        widening = (rest[:, 1:, 1:] * self.eye).sum((1, 2)) / r
        return coordinates, (left * left).sum(1) / spare, widening

    @staticmethod
    def _smallest(squared: Tensor, steps: Tensor) -> Tensor:
        before, after = squared[:, :-1], squared[:, 1:]
        safe = torch.where(steps > 0.0, steps, torch.ones_like(steps))
        t = torch.where(steps > 0.0, 0.5 + (before - after) / (2.0 * safe), 0.5 * torch.ones_like(steps))
        t = torch.clamp(t, 0.0, 1.0)
        between = torch.clamp((1.0 - t) * before + t * after - t * (1.0 - t) * steps, min=0.0)
        return between.amin(1)


def _square_zeros(sides: Tensor) -> Tensor:
    """Zeros [..., 3, 3] for sides [..., r, 3] with r < 3."""
    row = torch.zeros_like(sides[..., :1, :])
    return torch.cat([row, row, row], dim=-2)


class Exported(nn.Module):
    """Both halves in one graph: they share nothing, and either takes a batch of none where only the other is asked."""

    def __init__(self, spectra: nn.Module, quantifier: Quantifier) -> None:
        super().__init__()
        self.spectra_half, self.quantifier = spectra, quantifier

    def forward(
        self, concentrations: Tensor, spectra: Tensor, usable: Tensor, replicates: Tensor
    ) -> tuple[Tensor, ...]:
        return (*self.spectra_half(concentrations), *self.quantifier(spectra, usable, replicates))


INPUTS = ("concentrations", "spectra", "usable", "replicates")
OUTPUTS = ("mean", "std", "coordinates", "residual", "q", "t2", "squared", "steps", "log_likelihood")
