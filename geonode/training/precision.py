"""The one way from a precision to the types of numbers that a training works in, and to how torch is set up for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

import torch

from geonode.config import GeodesicConfig
from geonode.device import current_setup, device_setup
from geonode.errors import DeviceError
from geonode_runtime.wording import argument


def dtype_of(config: GeodesicConfig) -> torch.dtype:
    """The type of parameters, optimiser and loss: float64 for ``64-true``, else float32."""
    return torch.float64 if config.training.precision == "64-true" else torch.float32


def half_of(config: GeodesicConfig) -> torch.dtype | None:
    """The type that matrix products run in where ``config.training.precision`` is a mixed one; None where it is not."""
    return {"16-mixed": torch.float16, "bf16-mixed": torch.bfloat16}.get(config.training.precision)


def require_precision(config: GeodesicConfig, device: torch.device | str) -> None:
    """Nothing, where ``device`` has ``config.training.precision``.

    Raises:
        DeviceError: ``16-mixed`` or ``tf32`` on a device that is not CUDA.
    """
    kind, precision = torch.device(device).type, config.training.precision
    if precision == "16-mixed" and kind != "cuda":
        raise DeviceError(
            f"{argument('precision', '16-mixed')} needs a CUDA device, and this is {kind}; use "
            f"{argument('precision', '32-true')} or 'bf16-mixed'."
        )
    if precision == "tf32" and kind != "cuda":
        raise DeviceError(
            f"{argument('precision', 'tf32')} needs a CUDA device, and this is {kind}, which has no TF32; use "
            f"{argument('precision', '32-true')}."
        )


@contextmanager
def set_up_for(config: GeodesicConfig, device: torch.device | str) -> Iterator[None]:
    """Torch as `geonode.setup_device` left it, but with TF32 as ``config.training.precision`` says, for a block.

    Args:
        config: whose precision counts.
        device: that trains.

    Raises:
        DeviceError: a precision that the device does not have.
    """
    require_precision(config, device)
    if torch.device(device).type != "cuda":
        yield
        return
    with device_setup("cuda", **{**asdict(current_setup()), "tf32": config.training.precision == "tf32"}):
        yield
