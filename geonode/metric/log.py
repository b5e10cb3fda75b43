"""The contract of a metric's logarithm in the warp coordinate, and what follows from one."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from geonode.construction import FollowsForward, Recorded
from geonode.metric.base import METRICS, Metric, overridden, tangent_of
from geonode_kernels import MetricWeights


class LogMetric(Recorded, FollowsForward, nn.Module):
    """ln g̃(u, λ), the logarithm of a metric on the warp coordinate u; subclasses give ``forward``.

    The full metric is √g(c) = √g_warp(c)·exp(½ ln g̃(u(c), λ)). ``u`` is the warp coordinate (±1 at the ends of the
    calibrated range) and the wavelength is scaled to [−1, 1]. Derivatives have forward-mode defaults; a class on a hot
    path gives them too. `exponential` is the same geometry as a `Metric`.

    A constructor may take ``hidden`` (widths), ``models`` (M) and ``seed``; each is given by name.
    """

    derived = ("value_and_derivative", "kernel_weights")
    models: int | None = None  # M of a stack whose inputs lead with the model axis; None: any batch shape

    def forward(self, u: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """ln g̃ [...] at the warp coordinate ``u`` [...] and the scaled ``wavelength`` [...], in the dtype of ``u``."""
        raise NotImplementedError

    def value_and_derivative(self, u: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """ln g̃ and its slope in u, both [...]; Γ̃ is half the slope. Differentiable to any order.

        ``u`` and ``wavelength`` as for `forward`.
        """
        return tangent_of(lambda x: self(x, wavelength), u, torch.ones_like(u))

    def logarithm(self, u: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """ln g̃ [...] at ``u`` and ``wavelength``: what `geonode.flow` asks of every kind of metric."""
        return self(u, wavelength)

    def logarithm_and_slope(self, u: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """ln g̃ and its slope in ``u``, both [...]; ``wavelength`` as for `forward`."""
        return self.value_and_derivative(u, wavelength)

    def exponential(self) -> ExponentialMetric:
        """g̃ = exp(ln g̃) as a `Metric` in the warp coordinate, sharing the parameters."""
        return ExponentialMetric(self)

    def kernel_weights(self) -> MetricWeights | str:
        """What the fused kernels need to stand in for this, or in words why they cannot."""
        return f"{type(self).__name__} is not a network that the kernels know"


@METRICS.register("flat")
class FlatLogMetric(LogMetric):
    """ln g̃ = 0: the warp alone, without a correction."""

    def forward(self, u: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """Zeros, of the shape of ``u`` and the wavelength broadcast."""
        shape = u.shape if wavelength is None else torch.broadcast_shapes(u.shape, wavelength.shape)
        return torch.zeros(shape, dtype=u.dtype, device=u.device)

    def value_and_derivative(self, u: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Zeros and zeros, of the shape of ``u`` and the ``wavelength`` broadcast."""
        value = self(u, wavelength)
        return value, torch.zeros_like(value)

    def kernel_weights(self) -> MetricWeights | str:
        """See `LogMetric.kernel_weights`."""
        return "the metric is flat: there is no network"


class ExponentialMetric(Metric):
    """g̃(u, λ) = exp m_θ(u, λ): the full metric seen in the warp coordinate (D = 1).

    Args:
        network: ln g̃; ``c`` of the methods is the warp coordinate u.
    """

    in_warp_coordinate = True

    def __init__(self, network: LogMetric) -> None:
        super().__init__(dim=1)
        self.network, self.models = network, network.models

    def forward(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """exp m [...]: closed form; errors as for ``network``."""
        return torch.exp(self.network(c, wavelength))

    def value_and_derivative(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """exp m and m′ exp m, both [...]: closed form."""
        m, slope = self.network.value_and_derivative(c, wavelength)
        g = torch.exp(m)
        return g, slope * g

    def logarithm(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """m [...] itself."""
        return self.network(c, wavelength)

    def logarithm_and_slope(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """m and m′, both [...]."""
        return self.network.value_and_derivative(c, wavelength)

    def kernel_weights(self) -> MetricWeights | str:
        """See `Metric.kernel_weights`: those of m."""
        reason = overridden(self, ExponentialMetric, "forward", "value_and_derivative", "in_domain", "energy")
        return reason or self.network.kernel_weights()
