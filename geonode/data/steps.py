"""The single steps of preprocessing: which there are, what each may be told, and how it is fitted and applied."""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from geonode.data.checks import Floats
from geonode.errors import InputError

RANGE = "range"

# name → (module, class, defaults that differ from the class's). Every one is a scikit-learn transformer of rows.
STEPS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "airpls": ("chemotools.baseline", "AirPls", {}),
    "arpls": ("chemotools.baseline", "ArPls", {}),
    "asls": ("chemotools.baseline", "AsLs", {}),
    "linear": ("chemotools.baseline", "LinearCorrection", {}),
    "polynomial": ("chemotools.baseline", "PolynomialCorrection", {}),
    "rubberband": ("chemotools.baseline", "RubberbandCorrection", {}),
    "snv": ("chemotools.scatter", "StandardNormalVariate", {}),
    "rnv": ("chemotools.scatter", "RobustNormalVariate", {}),
    "msc": ("chemotools.scatter", "MultiplicativeScatterCorrection", {}),
    "emsc": ("chemotools.scatter", "ExtendedMultiplicativeScatterCorrection", {}),
    "savgol": ("chemotools.smooth", "SavitzkyGolayFilter", {"window_length": 11, "polyorder": 2}),
    "whittaker": ("chemotools.smooth", "WhittakerSmooth", {"lam": 10.0}),
    "median": ("chemotools.smooth", "MedianFilter", {}),
    "derivative": ("chemotools.derivative", "SavitzkyGolay", {"window_length": 11, "polyorder": 2}),
    "norm": ("chemotools.scale", "NormScaler", {}),
    "minmax": ("chemotools.scale", "MinMaxScaler", {}),
    "center": ("sklearn.preprocessing", "StandardScaler", {"with_std": False}),
}
BASELINES = tuple(name for name, (module, *_) in STEPS.items() if module == "chemotools.baseline")

LEARNING = frozenset({"airpls", "arpls", "msc", "emsc", "center"})
"""Steps whose result depends on the spectra they were fitted on: a mean, a reference spectrum, or (airpls, arpls) the
weights they start from. All others treat each spectrum by itself."""

WINDOWED = frozenset({"savgol", "derivative", "median", "whittaker"})
"""Steps that take neighbours together by counting points."""
WIDEST_GAP = 5.0
"""Wavelengths further apart than this many median steps are a gap; one or two dead pixels are none."""

_DIMENSIONLESS = frozenset({"snv", "rnv", "norm", "minmax"})
# Not for users: these would filter across samples, start processes, or are old names.
_HIDDEN = frozenset({"axis", "copy", "n_jobs"})


@dataclass
class Step:
    """One step: its name, parameters and, once fitted, what it learned."""

    name: str
    parameters: dict[str, Any]
    transformer: Any = None
    low: float = 0.0
    high: float = 0.0

    def describe(self) -> str:
        """As `Preprocessing.parse` reads it."""
        if self.name == RANGE:
            return f"range: {self.low:.10g}-{self.high:.10g}"
        given = " ".join(f"{key}={value}" for key, value in self.parameters.items())
        return f"{self.name}: {given}" if given else self.name

    def spelled(self) -> dict[str, Any]:
        """The parameters from which `make_step` makes the same step again."""
        return {"low": self.low, "high": self.high} if self.name == RANGE else dict(self.parameters)

    def inside(self, wavelengths: Floats) -> np.ndarray:
        """``[W]``: which wavelengths the step leaves (all, unless it is a range)."""
        if self.name != RANGE:
            return np.ones(len(wavelengths), dtype=bool)
        return (wavelengths >= self.low) & (wavelengths <= self.high)

    def unit(self, before: str) -> str:
        """The unit of the signal behind this step; "1" where it has none."""
        if self.name in _DIMENSIONLESS or (self.name == "center" and self.parameters["with_std"]):
            return "1"
        order = self.parameters.get("deriv", 1) if self.name == "derivative" else 0
        if order == 0:
            return before
        return f"{before} per point".strip() + (f"^{order}" if order > 1 else "")


def make_step(name: str, parameters: Mapping[str, Any]) -> Step:
    """A step of ``STEPS``, or ``range`` with ``low`` and ``high``; ``savgol`` with ``deriv`` is ``derivative``.

    Raises:
        InputError: a step or a parameter that does not exist.
    """
    parameters = dict(parameters)
    if name == RANGE:
        low, high = parameters.get("low"), parameters.get("high")
        if not isinstance(low, int | float) or not isinstance(high, int | float) or not low < high:
            raise InputError(f"preprocessing step 'range' from {low} to {high}: give two wavelengths, low before high.")
        return Step(name, {}, low=float(low), high=float(high))
    if name == "savgol" and "deriv" in parameters:
        if parameters["deriv"] == 0:
            del parameters["deriv"]
        else:
            name = "derivative"
    known = parameters_of(name)
    for key, value in parameters.items():
        if key not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise InputError(f"preprocessing step '{name}' has no parameter '{key}'; {has}.")
        if not isinstance(value, int | float | str):
            raise InputError(f"preprocessing step '{name}': {key} must be a number or a word, not {value!r}.")
    return Step(name, {**STEPS[name][2], **parameters})


def parameters_of(name: str) -> list[str]:
    """The parameters a step has, in the order in which values without a name are taken.

    Raises:
        InputError: a step that does not exist.
    """
    if name not in STEPS:
        raise InputError(f"there is no preprocessing step '{name}'; there are {', '.join(sorted([RANGE, *STEPS]))}.")
    found = inspect.signature(_class_of(name)).parameters.values()
    return [p.name for p in found if p.name not in _HIDDEN and p.default not in ("deprecated", None)]


def _class_of(name: str) -> type:
    module, kind, _ = STEPS[name]
    return getattr(importlib.import_module(module), kind)


def fit_step(step: Step, y: Floats, x: Floats, where: str) -> tuple[Floats, Floats]:
    """Learn from spectra ``y [N, W]`` on ``x [W]``; returns both as the step leaves them.

    Raises:
        InputError: a range without wavelengths, a window longer than the spectrum, parameters that the step refuses.
    """
    if step.name == RANGE:
        if not step.inside(x).any():
            raise InputError(
                f"{where}: no wavelength between {step.low:g} and {step.high:g}; they run from {x[0]:g} to {x[-1]:g}."
            )
        return apply_step(step, y, x)
    window = step.parameters.get("window_length")
    if isinstance(window, int) and window > len(x):
        raise InputError(
            f"{where}: preprocessing step '{step.describe()}' has a window of {window} points, longer than the "
            f"spectrum, which has {len(x)} wavelengths there; choose a shorter one."
        )
    if isinstance(window, int) and window > 0 and window % 2 == 0:
        raise InputError(
            f"{where}: preprocessing step '{step.describe()}' has a window of {window} points, an even number, which "
            f"has no middle, so that spectra would move by half a step; give {window - 1} or {window + 1}."
        )
    if step.name in WINDOWED:
        _require_no_gap(step, x, where)
    step.transformer = _class_of(step.name)(**step.parameters)
    try:
        step.transformer.fit(y)
    except (ValueError, TypeError) as error:  # scikit-learn's own checks
        reason = " ".join(str(error).split())
        raise InputError(f"{where}: preprocessing step '{step.describe()}' cannot be fitted: {reason}") from None
    return apply_step(step, y, x)


def _require_no_gap(step: Step, x: Floats, where: str) -> None:
    """Windows count points, so across a gap they would join wavelengths that have nothing to do with each other."""
    steps = np.diff(x)
    if len(steps) and steps.max() > WIDEST_GAP * np.median(steps):
        at = int(steps.argmax())
        raise InputError(
            f"{where}: preprocessing step '{step.describe()}' counts points, and its window would reach across the gap "
            f"between wavelengths {x[at]:g} and {x[at + 1]:g}; put a range before it that keeps one side."
        )


def apply_step(step: Step, y: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Transform spectra ``y [N, W]`` on ``x [W]`` by a fitted step.

    Raises:
        InputError: the step cannot, or gives values that are not finite.
    """
    if step.name == RANGE:
        inside = step.inside(x)
        return y[:, inside], x[inside]
    try:
        # what comes of a flat spectrum is checked below
        with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*deviation is zero")
            result = np.asarray(step.transformer.transform(y), dtype=np.float64)
    except (ValueError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"preprocessing step '{step.describe()}' failed: {reason}") from None
    if not np.isfinite(result).all():
        raise InputError(
            f"preprocessing step '{step.describe()}' gives values that are not finite, as for a constant spectrum; "
            "leave that spectrum or that step out."
        )
    return result, x
