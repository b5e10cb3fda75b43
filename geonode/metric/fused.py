"""ln g̃ of a metric's network at many points: one kernel where there is one, on a GPU."""

from __future__ import annotations

from torch import Tensor

from geonode.metric.base import Metric
from geonode.metric.log import LogMetric
from geonode_kernels import metric_value, verify
from geonode_kernels._dispatch import autocast_precision, width_refusal


def metric_weights(metric: Metric | LogMetric) -> tuple[Tensor, ...] | None:
    """W1, b1, W2, b2, W3, b3 of ln g̃ as a network that the kernels know, or None."""
    known = metric.kernel_weights()
    if isinstance(known, str) or known.output != "exp" or width_refusal(*known.hidden):
        return None
    return known.tensors


def metric_fits(metric: Metric | LogMetric, u: Tensor) -> bool:
    """Whether `log_metric` of ``u`` has a kernel here."""
    if verify([u]) is not None:  # before the weights are gathered, which takes as long as to evaluate few points
        return False
    weights = metric_weights(metric)
    return weights is not None and verify([u, *weights]) is None


def log_metric(metric: Metric | LogMetric, u: Tensor, wavelength: Tensor) -> Tensor:
    """ln g̃ [M, P, W] at u and scaled wavelengths [M, P, W] of a metric for which `metric_fits`."""
    weights = metric_weights(metric)
    assert weights is not None
    flat = u.reshape(len(u), -1), wavelength.reshape(len(u), -1)
    return metric_value(*flat, *weights, precision=autocast_precision()).view(u.shape)
