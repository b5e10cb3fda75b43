"""What coupled ODEs take of a configuration, and the objects that it names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor

from geonode.construction import build
from geonode.errors import InputError
from geonode.flow.base import FLOWS, Flow
from geonode.flow.config import FlowConfig
from geonode.geodesic.config import PathConfig
from geonode.metric.base import METRICS, Metric
from geonode.metric.config import MetricConfig
from geonode.metric.log import LogMetric
from geonode_runtime.wording import argument


class OdeConfig(Protocol):
    """What a coupled ODE takes of a configuration: `geonode.GeodesicConfig` is one."""

    @property
    def metric(self) -> MetricConfig: ...
    @property
    def path(self) -> PathConfig: ...
    @property
    def flow(self) -> FlowConfig: ...


@dataclass(frozen=True)
class OdeDefaults:
    """The default settings of the three."""

    metric: MetricConfig = field(default_factory=MetricConfig)
    path: PathConfig = field(default_factory=PathConfig)
    flow: FlowConfig = field(default_factory=FlowConfig)


def seed_of(config: OdeConfig) -> int:
    """The seed of a configuration that has one, else 0."""
    return getattr(getattr(config, "training", None), "seed", 0)


def build_metric(config: MetricConfig, models: int | None, seed: int, dim: int = 1) -> Metric | LogMetric:
    """The metric that ``config`` names, from its registry.

    Args:
        config: settings of the metric.
        models: M; None for one model with inputs of any batch shape.
        seed: of initial weights.
        dim: D.

    Raises:
        InputError: an option that the class does not take, or an argument that it needs and nobody gives.
    """
    context = {"models": models, "seed": seed, "dim": dim}
    return build(METRICS, str(config.name), context, {"hidden": config.hidden}, config.options)


def build_flow(config: FlowConfig, grid: Tensor, models: int, seed: int, dim: int = 1) -> Flow:
    """The flow that ``config`` names, from its registry.

    Args:
        config: settings of the flow.
        grid: [W] wavelengths scaled to [−1, 1].
        models: M.
        seed: of initial weights.
        dim: D.

    Raises:
        InputError: a flow for another number of analytes, or settings that the class does not take.
    """
    kind = FLOWS.find(config.name)
    if kind.several_analytes != (dim > 1):
        fitting = [name for name, other in FLOWS.items() if other.several_analytes == (dim > 1)]
        raise InputError(
            f"{argument('flow', config.name)} is for "
            f"{'several analytes' if kind.several_analytes else 'one analyte'}, and here "
            f"{'are ' + str(dim) if dim > 1 else 'is one'}; choose one of {', '.join(fitting)}."
        )
    context: dict[str, Any] = {"wavelengths": len(grid), "grid": grid, "models": models, "seed": seed, "dim": dim}
    return kind.from_config(config, context)
