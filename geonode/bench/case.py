"""What a case is, and the registry of cases."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from geonode.errors import InputError
from geonode.registry import Registry


@dataclass(frozen=True)
class Setting:
    """Where and how thoroughly to measure: ``device`` cpu or cuda, ``suite`` quick or full, ``seed`` of the inputs."""

    device: str = "cpu"
    suite: str = "quick"
    seed: int = 0


class Size(NamedTuple):
    """A batch of concentration pairs times wavelengths; each is one trajectory."""

    pairs: int
    wavelengths: int

    @property
    def trajectories(self) -> int:
        """Scalar ODEs in the batch."""
        return self.pairs * self.wavelengths

    @property
    def label(self) -> str:
        """30×601"""
        return f"{self.pairs}×{self.wavelengths}"


class Checked(NamedTuple):
    """One comparison with the float64 reference: green while ``error`` ≤ ``limit``."""

    name: str
    error: float
    limit: float

    @property
    def ok(self) -> bool:
        """False for NaN too."""
        return self.error <= self.limit


@dataclass
class Work:
    """A case built at one size: what to run, how to check it, and what it costs at the least.

    Args:
        run: does the work on input set i < ``rotations``.
        check: compares fresh results with the float64 reference.
        counts: units of work in one call: ``samples`` (spectra), ``odes``, ``points`` (values of a
            formula), ``gradient_steps``, ``epochs``; what a sweep is drawn over is ``odes``.
        operations: least operations of one call by the ceiling that limits them (fp16, tf32, fp32, special).
        bytes: least bytes through device memory.
        rotations: independent input sets.
        capture: replay a CUDA graph of ``run`` as the headline (all on the device, no synchronisation).
        state: tensors ``run`` changes, restored after the warm-up of a capture.
        latency: time each call by the wall clock, synchronised.
        drive: for what has a loop of its own: runs it, calling back after each step until the answer is False; on CUDA
            its steps are then what is timed, in place of ``run``.
        notes: what a reader must know beside the number.
    """

    run: Callable[[int], Any]
    check: Callable[[], list[Checked]]
    counts: Mapping[str, float]
    operations: dict[str, float] = field(default_factory=dict)
    bytes: float = 0.0
    rotations: int = 2
    capture: bool = False
    state: Sequence[Any] = ()
    latency: bool = False
    drive: Callable[[Callable[[], bool]], None] | None = None
    notes: str = ""


@dataclass(frozen=True)
class Case:
    """A named measurement.

    ``sizes(setting)`` are measured in full, ``sweep(setting)`` briefly for throughput against batch size;
    ``absent(setting)`` says why the case cannot run here, or None. ``window(size)`` is the least time in seconds over
    which device activity is watched.
    """

    name: str
    title: str
    build: Callable[[Setting, Size], Work]
    sizes: Callable[[Setting], Sequence[Size]]
    sweep: Callable[[Setting], Sequence[Size]] = lambda setting: ()
    absent: Callable[[Setting], str | None] = lambda setting: None
    window: Callable[[Size], float] = lambda size: 2.2


CASES: Registry[Case] = Registry("case", package="geonode.bench.cases")
"""In the order in which they are measured."""


def register(case: Case) -> Case:
    """Add a case, or replace the one of that name."""
    return CASES.register(case.name)(case)


def load(modules: Sequence[str] = ()) -> Mapping[str, Case]:
    """The built-in cases and those that ``modules`` register.

    Raises:
        InputError: a module that cannot be imported, or raises while it is.
    """
    CASES.names()  # the built-in ones come first
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise InputError(f"--import {name}: {error}; name a module on the Python path.") from None
        except Exception as error:
            raise InputError(f"--import {name}: it raises {type(error).__name__}: {error}; mend the module.") from None
    return CASES


def select(cases: Mapping[str, Case], only: Sequence[str]) -> list[Case]:
    """The cases whose name is, or starts with, one of ``only`` (all where it is empty).

    Raises:
        InputError: a name that fits no case.
    """
    for name in only:
        if not any(case.startswith(name) for case in cases):
            raise InputError(f"--only {name}: no such case; choose from {', '.join(cases)}.")
    return [case for name, case in cases.items() if not only or any(name.startswith(o) for o in only)]
