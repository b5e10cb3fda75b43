"""Learned metrics: networks of concentration and wavelength, positive by construction."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from geonode.errors import InputError
from geonode.metric.base import METRICS, Metric, overridden
from geonode.metric.log import LogMetric
from geonode.metric.mlp import TRANSFORMS, NetworkOfConcentration
from geonode_kernels import MetricWeights
from geonode_kernels.metric_christoffel.reference import FLOOR


@METRICS.register("network")
class MetricNetwork(Metric):
    """A learned metric: (c, λ), both normalised to order one, through an MLP to a symmetric positive definite g.

    D = 1: g = transform(net) + floor. D ≥ 2: g = L Lᵀ + floor·I with L lower triangular, its diagonal through the
    transform. The defaults are the original recipe: 2→64→64→1, tanh, softplus + 0.1.

    Args:
        dim: number of analytes D.
        hidden: widths of the hidden layers.
        floor: smallest eigenvalue of g, > 0: keeps paths finite wherever the network goes.
        transform: a key of TRANSFORMS, "softplus" or "exp".
        models: None for a single model with inputs of any batch shape; M for a stack whose inputs lead with M.
        seed: seed of the initial weights.
        activation: a key of ACTIVATIONS.
        uses_wavelength: False leaves the wavelength out of the inputs.

    Raises:
        InputError: floor ≤ 0, or an unknown transform or activation.
    """

    in_warp_coordinate = True
    layout: Tensor
    on_diagonal: Tensor

    def __init__(
        self,
        dim: int = 1,
        hidden: Sequence[int] = (64, 64),
        floor: float = 0.1,
        transform: str = "softplus",
        models: int | None = None,
        seed: int | Sequence[int] = 0,
        activation: str = "tanh",
        uses_wavelength: bool = True,
    ) -> None:
        super().__init__(dim)
        if floor <= 0:
            raise InputError(f"floor must be positive, got {floor}; it keeps the metric positive definite.")
        if transform not in TRANSFORMS:
            raise InputError(f"Unknown transform {transform!r}; choose one of {', '.join(TRANSFORMS)}.")
        self.floor, self.transform, self.models = float(floor), transform, models
        outputs = dim * (dim + 1) // 2
        self.network = NetworkOfConcentration(
            dim, outputs, hidden, models, uses_wavelength, activation=activation, seed=seed
        )
        # Where each entry of the full matrix L comes from: its own output, or the appended zero above the diagonal.
        rows, columns = torch.tril_indices(dim, dim)
        layout = torch.full((dim, dim), outputs)
        layout[rows, columns] = torch.arange(outputs)
        self.register_buffer("layout", layout.reshape(-1), persistent=False)
        self.register_buffer("on_diagonal", rows == columns, persistent=False)

    def forward(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """g [...] (D = 1) or [..., D, D] in the dtype of ``c``.

        Raises:
            InputError: the last axis of ``c`` is not the D coordinates; no wavelength where the network takes one;
                shapes that do not broadcast, or do not lead with M.
        """
        self.check(c)
        raw = self.network.evaluate(c, wavelength)
        positive = TRANSFORMS[self.transform][0]
        if self.dim == 1:
            return positive(raw[..., 0]) + self.floor
        factor = self._triangle(torch.where(self.on_diagonal, positive(raw), raw))
        return _product(factor, factor) + self.floor * torch.eye(self.dim, dtype=c.dtype, device=c.device)

    def value_and_derivative(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """g and ∂g, carried through the layers together."""
        self.check(c)
        raw, slope = self.network.evaluate_with_derivative(c, wavelength)
        positive, gain, _ = TRANSFORMS[self.transform]
        value = positive(raw)
        gain = gain(raw, value)
        if self.dim == 1:
            return value[..., 0] + self.floor, (gain * slope[0])[..., 0]
        factor = self._triangle(torch.where(self.on_diagonal, value, raw))
        change = self._triangle(torch.where(self.on_diagonal, gain * slope, slope))
        half = _product(torch.movedim(change, 0, -3), factor.unsqueeze(-3))
        floor = self.floor * torch.eye(self.dim, dtype=c.dtype, device=c.device)
        return _product(factor, factor) + floor, half + half.mT

    def two_derivatives(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """g, ∂g and ∂²g, carried through the layers together."""
        self.check(c)
        raw, first, second = self.network.evaluate_with_two_derivatives(c, wavelength)
        positive, gain, bend = TRANSFORMS[self.transform]
        value = positive(raw)
        slope, curve = gain(raw, value), bend(raw, value)
        curved = curve * first.unsqueeze(0) * first.unsqueeze(1) + slope * second
        if self.dim == 1:
            return value[..., 0] + self.floor, (slope * first)[0, ..., 0], curved[0, 0, ..., 0]
        factor = self._triangle(torch.where(self.on_diagonal, value, raw))
        change = self._triangle(torch.where(self.on_diagonal, slope * first, first)).movedim(0, -3)
        change2 = self._triangle(torch.where(self.on_diagonal, curved, second)).movedim((0, 1), (-4, -3))
        once = _product(change, factor.unsqueeze(-3))
        half = _product(change2, factor[..., None, None, :, :])
        cross = _product(change.unsqueeze(-3), change.unsqueeze(-4))
        floor = self.floor * torch.eye(self.dim, dtype=c.dtype, device=c.device)
        return _product(factor, factor) + floor, once + once.mT, half + half.mT + cross + cross.mT

    def reference(self, like: Tensor) -> Tensor:
        """The middle of the normalised range."""
        return torch.full_like(like, 0.5)

    def kernel_weights(self) -> MetricWeights | str:
        """See `Metric.kernel_weights`: the original recipe, softplus + 0.1, of one analyte."""
        reason = overridden(self, MetricNetwork, "forward", "value_and_derivative", "in_domain", "energy")
        if reason is None and (self.transform != "softplus" or self.floor != FLOOR):
            reason = f"the kernels hold softplus + {FLOOR:g}, not {self.transform} + {self.floor:g}"
        return reason or self.network.kernel_weights("softplus")

    def _triangle(self, entries: Tensor) -> Tensor:
        padded = torch.cat([entries, torch.zeros_like(entries[..., :1])], dim=-1)
        return padded[..., self.layout].reshape(*entries.shape[:-1], self.dim, self.dim)


def _product(left: Tensor, right: Tensor) -> Tensor:
    """left @ rightᵀ for small matrices, written out so that autocast does not round the metric itself."""
    return (left.unsqueeze(-2) * right.unsqueeze(-3)).sum(-1)


@METRICS.register("log_network")
class LogMetricNetwork(LogMetric):
    """m_θ(u, λ), the logarithm of a metric on the warp coordinate u; zero before training.

    ``u`` is the warp coordinate (±1 on the calibrated range) and ``wavelength`` is normalised; inputs broadcast, and
    with ``models=M`` they lead with M. Used as g̃ = exp m in the warp coordinate, see ``ConformalWarpMetric``.

    Args:
        hidden: widths of the hidden layers.
        models: None for a single model with inputs of any batch shape; M for a stack whose inputs lead with M.
        seed: of the initial weights; one number, or one per model.
        activation: a key of ACTIVATIONS.

    Raises:
        InputError: an unknown activation, a width below one, or a wrong number of seeds.
    """

    def __init__(
        self,
        hidden: Sequence[int] = (64, 64),
        models: int | None = None,
        seed: int | Sequence[int] = 0,
        activation: str = "tanh",
    ) -> None:
        super().__init__()
        self.models = models
        self.network = NetworkOfConcentration(
            1, 1, hidden, models, True, activation=activation, seed=seed, zero_last=True
        )

    def forward(self, u: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """m [...] at the warp coordinate ``u`` [...] and the normalised ``wavelength`` [...], in the dtype of ``u``.

        Raises:
            InputError: no wavelength; shapes that do not broadcast, or do not lead with M.
        """
        return self.network.evaluate(u, wavelength)[..., 0]

    def value_and_derivative(self, u: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """m and ∂m/∂u, both [...]; Γ̃ = ½ ∂m/∂u. Arguments and errors as for `forward`."""
        value, slope = self.network.evaluate_with_derivative(u, wavelength)
        return value[..., 0], slope[0, ..., 0]

    def kernel_weights(self) -> MetricWeights | str:
        """What the fused kernels need of g̃ = exp m, or in words why they cannot stand in for it."""
        reason = overridden(self, LogMetricNetwork, "forward", "value_and_derivative")
        return reason or self.network.kernel_weights("exp")
