"""Where a training runs, and in which types of numbers: the one way from a name to a device, and from a precision to
dtypes."""

from __future__ import annotations

import torch

from geonode.config import GeodesicConfig
from geonode.errors import DeviceError

DEVICES = ("auto", "cpu", "cuda", "mps")


def resolve_device(device: str = "auto") -> torch.device:
    """The torch device for ``auto``, ``cpu``, ``cuda`` or ``mps``; auto takes CUDA where there is one, else the CPU.

    Raises:
        DeviceError: an unknown name, or a device that is not there.
    """
    if device not in DEVICES:
        raise DeviceError(f"device={device!r} is not known; choose one of {', '.join(DEVICES)}.")
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cuda" and not torch.cuda.is_available():
        raise DeviceError("device='cuda' was asked for, but no CUDA device is usable here; use --device cpu.")
    if device == "mps" and not torch.backends.mps.is_available():
        raise DeviceError("device='mps' was asked for, but there is no Apple GPU here; use --device cpu.")
    return torch.device(device)


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
