"""The one way from a precision to the types of numbers that a training works in."""

from __future__ import annotations

import torch

from geonode.config import GeodesicConfig
from geonode.errors import DeviceError


def dtype_of(config: GeodesicConfig) -> torch.dtype:
    """The type of parameters, optimiser and loss: float64 for ``64-true``, else float32."""
    return torch.float64 if config.precision == "64-true" else torch.float32


def half_of(config: GeodesicConfig) -> torch.dtype | None:
    """The type that matrix products run in where ``config.precision`` is a mixed one; None where it is not."""
    return {"16-mixed": torch.float16, "bf16-mixed": torch.bfloat16}.get(config.precision)


def require_precision(config: GeodesicConfig, device: torch.device | str) -> None:
    """Nothing, where ``device`` has ``config.precision``.

    Raises:
        DeviceError: ``16-mixed`` on a device that is not CUDA.
    """
    kind = torch.device(device).type
    if config.precision == "16-mixed" and kind != "cuda":
        raise DeviceError(
            f"precision='16-mixed' needs a CUDA device, and this is {kind}; use precision='32-true' or 'bf16-mixed'."
        )
