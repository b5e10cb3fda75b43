"""Where the coupled ODE meets the fused kernels on a GPU: the metric at many points, and the misfit of explicit pairs.

Plain torch in `CoupledSpectralODE` defines both (`log_metric`; `transport` and a weighted mean square). Here they take
a few launches, and neither the pairs' spectra nor the hidden units at every node of every path are kept in memory.
``backend="torch"`` takes the kernels' references on any device and in any precision: tests hold the two against it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from geonode.flow.network import SpectralFlow
from geonode_kernels import (
    MetricWeights,
    arc_length,
    flow_loss_of_ends,
    metric_density,
    metric_value,
    velocity_loss,
    verify,
)
from geonode_kernels._dispatch import autocast_precision, flow_refusal, width_refusal

if TYPE_CHECKING:
    from geonode.flow.ode import CoupledSpectralODE, MetricOnTable


def metric_weights(network: nn.Module | None) -> tuple[Tensor, ...] | None:
    """W1, b1, W2, b2, W3, b3 of ln g̃ as a network that the kernels know, or None."""
    if network is None:
        return None
    known: MetricWeights | str = network.kernel_weights()  # type: ignore[operator]  (an nn.Module in name only)
    if isinstance(known, str) or known.output != "exp" or width_refusal(*known.hidden):
        return None
    return known.tensors


def metric_fits(network: nn.Module | None, u: Tensor) -> bool:
    """Whether `log_metric` of ``u`` has a kernel here."""
    weights = metric_weights(network)
    return weights is not None and verify([u, *weights]) is None


def log_metric(network: nn.Module | None, u: Tensor, wavelength: Tensor) -> Tensor:
    """ln g̃ [M, P, W] at u and scaled wavelengths [M, P, W] of a network for which `metric_fits`."""
    weights = metric_weights(network)
    assert weights is not None
    flat = u.reshape(len(u), -1), wavelength.reshape(len(u), -1)
    return metric_value(*flat, *weights, precision=autocast_precision()).view(u.shape)


def misfit_fits(ode: CoupledSpectralODE, source: Tensor) -> bool:
    """Whether `misfit` has kernels for this model and device."""
    config, flow = ode.config, ode.flow
    if type(flow) is not SpectralFlow or config.solver != "quadrature" or config.path == "shooting":
        return False  # a subclass may compute something else
    return (flow_refusal(flow.hidden) or verify([source, *flow.parameters()])) is None


def misfit(
    ode: CoupledSpectralODE,
    phi: Tensor,
    change: Tensor,
    weight: Tensor,
    index: Tensor | None,
    table: MetricOnTable,
    backend: str = "auto",
) -> Tensor:
    """Mean over wavelengths of Σ_b w_b (A(end) − A(start) − change)², w_b = ``weight`` scaled to a sum of one; [M].

    Args:
        ode: M models with a `SpectralFlow`.
        phi: [M, 2B, T] integration matrix (`ArcLengthTable.phi`) of B starts, then of B ends.
        change: [M, B, W] measured change of absorbance. weight: [M, B]. Neither gets a gradient.
        index: which wavelengths those of ``change`` are; None for all. table: `on_table` of the same.
        backend: ``auto`` or ``torch`` (the kernels' references).
    """
    flow = ode.flow
    assert isinstance(flow, SpectralFlow)
    share = weight / (weight.sum(1, keepdim=True) * change.shape[2])
    models, width = len(change), change.shape[2]
    rows = torch.cat([phi, ode.table.phi_one.to(phi)], 1)
    ends = arc_length(rows, table.density, backend=backend).view(models, 2, -1, width)
    c = flow.coefficients(index)
    if c.nu is None:
        data = change.contiguous(), share
        return flow_loss_of_ends(ends, c.omega, c.beta, c.a, c.a0, *data, ode.config.nodes, backend=backend)
    half = 0.5 * ode.table.length(table.density)
    points = ode.path_points(ends[:, 0], ends[:, 1], table, half, backend=backend)
    density = _density(ode, points, index, backend)
    flows = c.omega, c.nu, c.beta, c.a, c.a0
    return velocity_loss(ends, density, half[:, 0], *flows, change.contiguous(), share, backend=backend)


def _density(ode: CoupledSpectralODE, points: Tensor, index: Tensor | None, backend: str) -> Tensor:
    """ρ = √g̃ at the nodes ``points`` [M, Q, B, W]."""
    weights = metric_weights(ode.metric)
    flat = points.flatten(1, 2)
    if weights is None:
        return torch.exp(0.5 * ode.log_metric(flat, index)).view(points.shape)
    wavelength = ode.wavelength if index is None else ode.wavelength[index]
    line = wavelength.to(flat.dtype).expand(flat.shape)
    both = flat.reshape(len(flat), -1), line.reshape(len(flat), -1)
    return metric_density(*both, *weights, precision=autocast_precision(), backend=backend).view(points.shape)
