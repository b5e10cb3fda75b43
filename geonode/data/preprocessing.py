"""Preprocessing of spectra by chemotools and scikit-learn transformers, fitted on standards and kept with the model.

A `Preprocessing` is a chain of named steps. It is fitted on the standards alone (inside a fold: on the fold's), gives
back a data set, and transforms unknowns with what it learned. Its state is plain, so that a bundle holds it without
pickle: the description of the steps and the spectra they were fitted on, from which the same chain is fitted again.

    chain = Preprocessing.parse("range: 400-700, savgol: window_length=11 polyorder=2, snv")
    train = chain.fit_transform(standards)
    unknown = chain.transform_spectra(spectra, wavelengths)
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geonode.data import checks
from geonode.data.checks import Floats
from geonode.data.dataset import SpectralDataset
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


@dataclass
class _Step:
    """One step: its name, parameters and, once fitted, what it learned."""

    name: str
    parameters: dict[str, Any]
    transformer: Any = None
    low: float = 0.0
    high: float = 0.0

    def describe(self) -> str:
        if self.name == RANGE:
            return f"range: {self.low:g}-{self.high:g}"
        given = " ".join(f"{key}={value}" for key, value in self.parameters.items())
        return f"{self.name}: {given}" if given else self.name


class Preprocessing:
    """A chain of preprocessing steps.

    Args:
        steps: (name, parameters) pairs; names are those of `STEPS`, and ``range`` with ``low`` and ``high``.

    Raises:
        InputError: a step or a parameter that does not exist.
    """

    def __init__(self, steps: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        self._steps = [_make_step(name, dict(parameters)) for name, parameters in steps]
        self._wavelengths: Floats | None = None
        self._spectra: Floats | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """From text: steps divided by commas, ``name`` or ``name: key=value key=value``; ``range: 400-700``.

        Raises:
            InputError: a step or a parameter that does not exist, a value that is none.
        """
        steps: list[tuple[str, dict[str, Any]]] = []
        for part in (part.strip() for part in text.split(",")):
            if not part:
                continue
            name, _, given = part.partition(":")
            name = name.strip().lower()
            if name == RANGE:
                steps.append((name, _parse_range(given, part)))
                continue
            pairs = [pair.partition("=") for pair in given.split()]
            wrong = next((key for key, sign, _ in pairs if not sign), None)
            if wrong is not None:
                raise InputError(f"preprocessing step '{part}': '{wrong}' is no parameter; write name=value.")
            steps.append((name, {key: _parse_value(value) for key, _, value in pairs}))
        return cls(steps)

    def __str__(self) -> str:
        return ", ".join(step.describe() for step in self._steps)

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def fitted(self) -> bool:
        return self._wavelengths is not None

    def fit(self, standards: SpectralDataset) -> Self:
        """Learn what the steps need from the standards.

        Raises:
            InputError: masked values, a range without wavelengths, a window longer than the spectrum.
        """
        self.fit_transform(standards)
        return self

    def fit_transform(self, standards: SpectralDataset) -> SpectralDataset:
        """Learn from the standards and give them back transformed, on their remaining wavelengths, with a note."""
        where = standards.source or "spectra"
        if standards.mask.any():
            raise InputError(f"{where}: preprocessing needs complete spectra; drop masked wavelengths first.")
        y, x = self._fit_arrays(np.array(standards.spectra), np.array(standards.wavelengths), where)
        return _rebuild(standards, y, x, str(self))

    def _fit_arrays(self, spectra: Floats, wavelengths: Floats, where: str) -> tuple[Floats, Floats]:
        y, x = spectra, wavelengths
        for step in self._steps:
            y, x = _fit_step(step, y, x, where)
        self._spectra, self._wavelengths = spectra, wavelengths
        return y, x

    def transform(self, dataset: SpectralDataset) -> SpectralDataset:
        """Another data set on the same wavelengths, transformed by what was learned.

        Raises:
            InputError: not fitted, or other wavelengths.
        """
        y, x = self.transform_spectra(dataset.spectra, dataset.wavelengths)
        return _rebuild(dataset, y, x, str(self))

    def transform_spectra(self, spectra: ArrayLike, wavelengths: ArrayLike) -> tuple[Floats, Floats]:
        """Spectra ``[N, W]`` (or ``[W]``) on the wavelengths of the standards → (``[N, W']``, the wavelengths left).

        Raises:
            InputError: not fitted, other wavelengths, values that are not finite.
        """
        if self._wavelengths is None:
            raise InputError("preprocessing is not fitted; fit it on the standards first.")
        y = checks.as_floats(spectra, "spectra", (1, 2), "preprocessing")
        x = checks.as_floats(wavelengths, "wavelengths", 1, "preprocessing")
        single, y = y.ndim == 1, np.atleast_2d(y)
        checks.check_same_grid(self._wavelengths, x, "the standards", "the spectra", "preprocessing")
        if y.shape[1] != len(x) or not np.isfinite(y).all():
            raise InputError(f"preprocessing: spectra of shape {y.shape} must be finite, with {len(x)} values each.")
        for step in self._steps:
            y, x = _apply_step(step, y, x)
        return (y[0] if single else y), x

    # --- state ------------------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """(JSON-able description, named arrays), from which `from_state` makes the same chain again.

        Raises:
            InputError: not fitted.
        """
        if self._wavelengths is None or self._spectra is None:
            raise InputError("preprocessing is not fitted; there is nothing to keep yet.")
        steps = [{"name": step.name, "parameters": _spell(step)} for step in self._steps]
        return {"steps": steps}, {"wavelengths": self._wavelengths, "spectra": self._spectra}

    @classmethod
    def from_state(cls, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The inverse of `state`: the chain is fitted again on the spectra it was fitted on.

        Raises:
            InputError: no description of this kind.
        """
        try:
            chain = cls([(step["name"], step["parameters"]) for step in description["steps"]])
            spectra, wavelengths = (np.array(arrays[key], dtype=np.float64) for key in ("spectra", "wavelengths"))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InputError(f"this is no preprocessing that was kept ({error}); fit it again.") from None
        chain._fit_arrays(spectra, wavelengths, "kept preprocessing")
        return chain


def _make_step(name: str, parameters: dict[str, Any]) -> _Step:
    if name == RANGE:
        low, high = parameters.get("low"), parameters.get("high")
        if not isinstance(low, int | float) or not isinstance(high, int | float) or not low < high:
            raise InputError(f"preprocessing step 'range' from {low} to {high}: give two wavelengths, low before high.")
        return _Step(name, {}, low=float(low), high=float(high))
    if name not in STEPS:
        raise InputError(f"there is no preprocessing step '{name}'; there are {', '.join(sorted([RANGE, *STEPS]))}.")
    step = _Step(name, {**STEPS[name][2], **parameters})
    known = inspect.signature(_class_of(step)).parameters
    wrong = [key for key in parameters if key not in known]
    if wrong:
        raise InputError(f"preprocessing step '{name}' has no parameter '{wrong[0]}'; it has {', '.join(known)}.")
    return step


def _class_of(step: _Step) -> type:
    module, name, _ = STEPS[step.name]
    return getattr(importlib.import_module(module), name)


def _fit_step(step: _Step, y: Floats, x: Floats, where: str) -> tuple[Floats, Floats]:
    if step.name == RANGE:
        if not ((x >= step.low) & (x <= step.high)).any():
            raise InputError(
                f"{where}: no wavelength between {step.low:g} and {step.high:g}; they run from {x[0]:g} to {x[-1]:g}."
            )
        return _apply_step(step, y, x)
    step.transformer = _class_of(step)(**step.parameters)
    try:
        step.transformer.fit(y)
    except ValueError as error:  # scikit-learn's own checks
        reason = " ".join(str(error).split())
        raise InputError(f"{where}: preprocessing step '{step.describe()}' cannot be fitted: {reason}") from None
    return _apply_step(step, y, x)


def _apply_step(step: _Step, y: Floats, x: Floats) -> tuple[Floats, Floats]:
    if step.name == RANGE:
        inside = (x >= step.low) & (x <= step.high)
        return y[:, inside], x[inside]
    try:
        with np.errstate(divide="ignore", invalid="ignore"):  # what comes of it is checked below
            result = np.asarray(step.transformer.transform(y), dtype=np.float64)
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise InputError(f"preprocessing step '{step.describe()}' failed: {reason}") from None
    if not np.isfinite(result).all():
        raise InputError(
            f"preprocessing step '{step.describe()}' gives values that are not finite, as for a constant spectrum; "
            "leave that spectrum or that step out."
        )
    return result, x


def _spell(step: _Step) -> dict[str, Any]:
    return {"low": step.low, "high": step.high} if step.name == RANGE else dict(step.parameters)


def _rebuild(source: SpectralDataset, y: Floats, x: Floats, description: str) -> SpectralDataset:
    if not description:
        return source
    return SpectralDataset(
        y,
        source.concentrations,
        x,
        groups=source.groups,
        concentration_unit=source.concentration_unit,
        analytes=source.analytes,
        notes=(*source.notes, f"preprocessed: {description}"),
        source=source.source,
        names=source.names,
        signal=source.signal,
        signal_unit=source.signal_unit,
        wavelength_unit=source.wavelength_unit,
        _copies_allowed=True,
    )


def _parse_range(given: str, part: str) -> dict[str, Any]:
    low, _, high = given.strip().partition("-")
    values = [_parse_value(low.strip()), _parse_value(high.strip())]
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        raise InputError(f"preprocessing step '{part}': write range: 400-700.")
    return {"low": values[0], "high": values[1]}


def _parse_value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
