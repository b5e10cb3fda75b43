"""The metric a spectral map induces on concentration space: how fast the spectrum moves there."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from geonode.errors import InputError
from geonode.metric.base import Metric


class PullbackMetric(Metric):
    """g = Jᵀ P J + floor·I with J = ∂A/∂c, the pull-back of the metric P of spectrum space by the map A(c).

    With P the inverse noise covariance, g is the Fisher information of the assay and 1/√g one standard deviation of
    concentration. Lengths are changes of the spectrum, so c moves fast where the assay is blind; ``floor`` keeps the
    metric positive definite where the map is stationary.

    Args:
        spectral_map: ``A(c)`` with c [...] (D = 1) or [..., D] → [..., K], made of differentiable torch operations; a
            module's parameters become parameters of the metric. Called as ``A(c, wavelength)`` if ``uses_wavelength``.
        dim: number of analytes D.
        precision: weights on the K channels, [K] (a diagonal P) or [K, K]; None for ones.
        floor: added to the diagonal, ≥ 0.
        uses_wavelength: hand the wavelength on to the map.

    Raises:
        InputError: a negative floor, or a precision that is not [K] or [K, K].
    """

    def __init__(
        self,
        spectral_map: Callable[..., Tensor],
        dim: int = 1,
        precision: Tensor | None = None,
        floor: float = 0.0,
        uses_wavelength: bool = False,
    ) -> None:
        super().__init__(dim)
        if floor < 0:
            raise InputError(f"floor must not be negative, got {floor}.")
        if precision is not None and (precision.ndim not in (1, 2) or precision.shape[0] != precision.shape[-1]):
            raise InputError(f"precision must be [K] or [K, K], got {tuple(precision.shape)}.")
        self.spectral_map = spectral_map
        self.floor, self.uses_wavelength = float(floor), uses_wavelength
        self.register_buffer("precision", precision)

    def forward(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """g [...] or [..., D, D]; derivatives of the map by one forward-mode tangent per analyte."""
        self.check(c)
        extra = (wavelength,) if self.uses_wavelength else ()
        eye = torch.eye(self.dim, dtype=c.dtype, device=c.device)
        tangents = [torch.ones_like(c)] if self.dim == 1 else [axis.expand_as(c) for axis in eye]
        columns = [torch.func.jvp(lambda x: self.spectral_map(x, *extra), (c,), (tangent,))[1] for tangent in tangents]
        if self.precision is None:
            weighted = columns
        elif self.precision.ndim == 1:
            weighted = [column * self.precision.to(column) for column in columns]
        else:
            weighted = [(column.unsqueeze(-2) * self.precision.to(column)).sum(-1) for column in columns]
        # Sums instead of matrix products: under autocast those would round the metric.
        g = torch.stack([torch.stack([(p * q).sum(-1) for q in weighted], -1) for p in columns], -2)
        if self.floor:
            g = g + self.floor * eye.to(g.dtype)
        if wavelength is not None and not self.uses_wavelength:
            batch = c.shape if self.dim == 1 else c.shape[:-1]
            g = g.expand(*torch.broadcast_shapes(batch, wavelength.shape), self.dim, self.dim)
        return g[..., 0, 0] if self.dim == 1 else g
