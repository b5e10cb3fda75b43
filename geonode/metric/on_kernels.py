"""A metric of one analyte as the fused kernels take it: points of any batch shape as [M, N], and back."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from geonode.metric.base import Metric
from geonode_kernels import MetricWeights, dispatch
from geonode_kernels._dispatch import autocast_precision, width_refusal


@dataclass(frozen=True)
class KernelMetric:
    """What a kernel is called with, for problems of one batch shape.

    Attributes:
        weights: of the network, and the transform of its output.
        batch: shape [...] of the problems; [M, ...] for a stack of models.
        models: M.
    """

    weights: MetricWeights
    batch: torch.Size
    models: int

    @property
    def settings(self) -> dict[str, str]:
        """Keyword arguments that every kernel of a metric takes: the transform, the precision now, no second choice."""
        return {"output": self.weights.output, "precision": autocast_precision(), "backend": "triton"}

    def flat(self, *points: Tensor) -> list[Tensor]:
        """Points that broadcast to [*batch], as [M, N]."""
        return [x.expand(self.batch).reshape(self.models, -1) for x in points]

    def back(self, x: Tensor) -> Tensor:
        """[M, ..., N] as [..., *batch]: what lies between comes first."""
        return x.movedim(0, -2).reshape(*x.shape[1:-1], *self.batch)


def on_kernels(
    op: str, metric: Metric, wavelength: Tensor | None, *points: Tensor, refusal: str | None = None
) -> KernelMetric | None:
    """How to hand these problems to the kernel ``op``; None where plain torch has to do them.

    The decision is `geonode_kernels.dispatch`'s, and `geonode_kernels.paths_taken` shows it.

    Args:
        op: name of the operation.
        metric: asked for its `Metric.kernel_weights`.
        wavelength: [...], or None.
        points: [...] each, float32 for a kernel; they and the wavelength broadcast together.
        refusal: a reason against the kernel that the caller knows.
    """
    known = metric.kernel_weights()
    shapes = [p.shape for p in points] + ([] if wavelength is None else [wavelength.shape])
    if isinstance(known, str):
        refusal = refusal or known
    elif wavelength is None:
        refusal = refusal or "no wavelength was given, and the kernels' network takes one"
    else:
        refusal = refusal or width_refusal(*known.hidden) or _misfit(metric, points, shapes)
    tensors = [*points, *([] if wavelength is None else [wavelength])]
    tensors += [] if isinstance(known, str) else known.tensors
    if not dispatch(op, tensors, refusal=refusal) or isinstance(known, str):
        return None
    return KernelMetric(known, torch.broadcast_shapes(*shapes), metric.models or 1)


def _misfit(metric: Metric, points: tuple[Tensor, ...], shapes: list[torch.Size]) -> str | None:
    """Why points of these shapes and kinds have no kernel."""
    if any(p.dtype is not torch.float32 for p in points):
        return f"the points are {points[0].dtype}, and kernels work in float32".replace("torch.", "")
    batch = torch.broadcast_shapes(*shapes)
    if metric.models is not None and (not batch or batch[0] != metric.models):
        return f"the points {tuple(batch)} do not lead with the {metric.models} models of the metric"
    return "there is no point" if 0 in batch else None
