"""`FlowConfig`: which flow carries spectra along a path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from geonode.flow.base import FLOWS
from geonode.settings import Settings, options_field, setting


@dataclass(frozen=True)
class FlowConfig(Settings):
    """Settings of the flow.

    Args:
        name: a registered flow (`geonode.flow.FLOWS`).
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
