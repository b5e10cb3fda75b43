"""`FlowConfig`: which flow carries spectra along a path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from geonode.construction import describe
from geonode.flow.base import FLOWS
from geonode.settings import Settings, options_field, setting


@dataclass(frozen=True)
class FlowConfig(Settings):
    """Settings of the flow.

    Args:
        name: a registered flow (`geonode.flow.FLOWS`). The default is the one trained on an assay's own standards;
            `geonode.GeodesicConfig` takes ``pretrained`` where nothing else is said.
        hidden: its tanh units.
        embedding: numbers that describe a wavelength.
        options: further arguments of the flow's class, by name.

    Raises:
        InputError: an unknown flow, or a value of another kind or out of range.
    """

    component: ClassVar[str] = "flow"

    name: str = "path_independent"
    hidden: int = setting(64, minimum=1)
    embedding: int = setting(8, minimum=1)
    options: Mapping[str, Any] = options_field()

    def __post_init__(self) -> None:
        super().__post_init__()
        FLOWS.check(self.name, "flow")


def flow_settings(flow: Any) -> dict[str, Any]:
    """Settings that would make a flow like ``flow`` (an object or its class) again, but for grid, models and seed.

    Raises:
        InputError: its class is not registered, or an argument cannot be written down as JSON.
    """
    general = {"hidden": "hidden", "embedding": "embedding"}
    return describe(FLOWS, flow, general, ("wavelengths", "grid", "models", "seed", "dim"))
