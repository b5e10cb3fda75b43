"""The registry of flows."""

from __future__ import annotations

from torch import nn

from geonode.registry import Registry

FLOWS: Registry[type[nn.Module]] = Registry("flow", package=__package__)
