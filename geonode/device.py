"""Devices: which one is meant, and how torch is set up on it, in one call that `fit` and the bench make too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from geonode.errors import DeviceError, InputError
from geonode_runtime.wording import argument

DEVICES = ("auto", "cpu", "cuda", "mps")
_WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
_FIRST_TF32 = 8  # compute capability of the first cards with TF32 units (Ampere)


def resolve_device(device: str = "auto") -> torch.device:
    """The torch device for ``auto``, ``cpu``, ``cuda`` or ``mps``; auto takes CUDA where there is one, else the CPU.

    Raises:
        DeviceError: an unknown name, or a device that is not there.
    """
    if device not in DEVICES:
        raise DeviceError(f"{argument('device', device)} is not known; choose one of {', '.join(DEVICES)}.")
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cuda" and not torch.cuda.is_available():
        raise DeviceError(
            f"{argument('device', 'cuda')} was asked for, but no CUDA device is usable here; use "
            f"{argument('device', 'cpu')}."
        )
    if device == "mps" and not torch.backends.mps.is_available():
        raise DeviceError(
            f"{argument('device', 'mps')} was asked for, but there is no Apple GPU here; use "
            f"{argument('device', 'cpu')}."
        )
    return torch.device(device)


@dataclass(frozen=True)
class DeviceSetup:
    """How torch is set up: what `setup_device` sets, and what `current_setup` reads.

    Attributes:
        tf32: float32 matrix products and convolutions in TF32 (10 bits of mantissa, relative error about 3e-4).
        cudnn_benchmark: cuDNN tries its algorithms for each new shape and keeps the fastest.
        deterministic: operations without a deterministic algorithm raise, and cuBLAS keeps one workspace a stream.
        memory_fraction: share of the card's memory that this process may take; None: all of it.
    """

    tf32: bool = False
    cudnn_benchmark: bool = False
    deterministic: bool = False
    memory_fraction: float | None = None

    def __str__(self) -> str:
        said = [
            f"TF32 {_on(self.tf32)}",
            f"cuDNN benchmark {_on(self.cudnn_benchmark)}",
            f"deterministic {_on(self.deterministic)}",
        ]
        if self.memory_fraction is not None:
            said.append(f"memory up to {self.memory_fraction:.0%}")
        return ", ".join(said)


def _on(flag: bool) -> str:
    return "on" if flag else "off"


def setup_device(
    device: str = "auto",
    *,
    tf32: bool = False,
    cudnn_benchmark: bool = False,
    deterministic: bool = False,
    memory_fraction: float | None = None,
) -> torch.device:
    """Set torch up for a device, for the whole process, and say which device that is.

    What is not asked for is switched off, so that two calls with the same arguments leave the same state whatever came
    before. The settings are those of torch (``torch.backends.cuda.matmul``, ``torch.backends.cudnn``,
    ``torch.use_deterministic_algorithms``, ``torch.cuda.set_per_process_memory_fraction``).

    Args:
        device: ``auto``, ``cpu``, ``cuda`` or ``mps``.
        tf32: see `DeviceSetup`; solver state, Christoffel symbols, arc length and loss stay float32.
        cudnn_benchmark: see `DeviceSetup`; it makes results depend on timing, so it does not go with ``deterministic``.
        deterministic: see `DeviceSetup`.
        memory_fraction: see `DeviceSetup`; in (0, 1].

    Raises:
        DeviceError: a device that is not there; TF32 or a memory fraction where the device has none of it.
        InputError: a fraction outside (0, 1], or ``cudnn_benchmark`` with ``deterministic``.
    """
    where = resolve_device(device)
    setup = DeviceSetup(tf32, cudnn_benchmark, deterministic, memory_fraction)
    _check(setup, where)
    _apply(setup, where)
    return where


@contextmanager
def device_setup(device: str = "auto", **settings: Any) -> Iterator[torch.device]:
    """`setup_device` for the length of a block; afterwards everything is as it was. Arguments and errors as there."""
    before = current_setup()
    where = setup_device(device, **settings)
    try:
        yield where
    finally:
        _apply(before, where)


def current_setup() -> DeviceSetup:
    """What is set now; a memory fraction cannot be read back from torch, so it is what `setup_device` set last."""
    return DeviceSetup(
        tf32=bool(torch.backends.cuda.matmul.allow_tf32),
        cudnn_benchmark=torch.backends.cudnn.benchmark,
        deterministic=torch.are_deterministic_algorithms_enabled(),
        memory_fraction=_fraction[0],
    )


_fraction: list[float | None] = [None]


def _check(setup: DeviceSetup, where: torch.device) -> None:
    if setup.cudnn_benchmark and setup.deterministic:
        raise InputError("cudnn_benchmark picks algorithms by their time; leave it out, or leave deterministic out.")
    fraction = setup.memory_fraction
    if fraction is not None and not 0.0 < fraction <= 1.0:
        raise InputError(f"memory_fraction={fraction!r} must be above 0 and at most 1.")
    if where.type != "cuda" and (setup.tf32 or fraction is not None):
        asked = "tf32" if setup.tf32 else "memory_fraction"
        raise DeviceError(f"{asked} is a setting of CUDA devices, and this is {where.type}; leave it out here.")
    if setup.tf32 and torch.cuda.get_device_capability(where)[0] < _FIRST_TF32:
        raise DeviceError(
            f"{torch.cuda.get_device_name(where)} has no TF32 units (they came with Ampere); leave tf32 out."
        )


def _apply(setup: DeviceSetup, where: torch.device) -> None:
    torch.backends.cuda.matmul.allow_tf32 = setup.tf32
    torch.backends.cudnn.allow_tf32 = setup.tf32
    torch.backends.cudnn.benchmark = setup.cudnn_benchmark
    if setup.deterministic:
        os.environ.setdefault(_WORKSPACE, ":4096:8")  # without it cuBLAS refuses to be deterministic
    torch.use_deterministic_algorithms(setup.deterministic)
    if where.type == "cuda" and setup.memory_fraction != _fraction[0]:
        torch.cuda.set_per_process_memory_fraction(setup.memory_fraction or 1.0)
    _fraction[0] = setup.memory_fraction
