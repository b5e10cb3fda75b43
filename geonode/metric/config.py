"""`MetricConfig`: which metric a model learns, and on which coordinate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from geonode.construction import describe
from geonode.metric.base import METRICS
from geonode.settings import Settings, options_field, setting


@dataclass(frozen=True)
class MetricConfig(Settings):
    """Settings of the metric.

    Args:
        name: a registered metric; None for ``log_network`` with a warp and ``network`` without (``flat`` leaves the
            network out: the warp alone).
        hidden: widths of the network's hidden layers.
        warp: the coordinate is the closed-form warp chosen by the evidence; False: concentration, scaled linearly.
        table_nodes: nodes of the arc-length table.
        options: further arguments of the metric's class, by name.

    Raises:
        InputError: an unknown metric, or a value of another kind or out of range.
    """

    component: ClassVar[str] = "metric"

    name: str | None = None  # type: ignore[assignment] - a name after __post_init__
    hidden: tuple[int, ...] = (64, 64)
    warp: bool = True
    table_nodes: int = setting(64, minimum=8)
    options: Mapping[str, Any] = options_field()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.name is None:
            object.__setattr__(self, "name", self.default_name(self.warp))
        METRICS.check(self.name, "metric")

    @staticmethod
    def default_name(warp: bool) -> str:
        """The metric taken where none is named, with a ``warp`` or without."""
        return "log_network" if warp else "network"


def metric_settings(metric: Any) -> dict[str, Any]:
    """Settings that would make a metric like ``metric`` (an object or its class) again, but for models and seed.

    Raises:
        InputError: its class is not registered, or an argument cannot be written down as JSON.
    """
    return describe(METRICS, metric, {"hidden": "hidden"}, ("models", "seed", "dim"))
