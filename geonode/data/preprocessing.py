"""Preprocessing of spectra by chemotools and scikit-learn transformers, fitted on standards and kept with the model.

A `Preprocessing` is a chain of named steps. It is fitted on the standards alone (inside a fold: on the fold's), gives
back a data set, and transforms unknowns with what it learned. Its state is plain, so that a bundle holds it without
pickle: the description of the steps and the spectra they were fitted on, from which the same chain is fitted again.

    chain = Preprocessing.parse("range:400-700, savgol:11,2, snv")
    train = chain.fit_transform(standards)
    unknown = chain.transform_spectra(spectra, wavelengths)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geonode.data import checks
from geonode.data.checks import Floats
from geonode.data.dataset import SpectralDataset
from geonode.data.steps import (
    BASELINES,
    LEARNING,
    RANGE,
    STEPS,
    apply_step,
    fit_step,
    make_step,
    parameters_of,
)
from geonode.errors import InputError
from geonode_runtime.given_numbers import short

__all__ = ["LEARNING", "RANGE", "STEPS", "Preprocessing"]

# A comma ends a step where the name of another follows; any other comma divides values of one step.
_NEXT_STEP = re.compile(r",(?=\s*(?!(?:true|false)\b)[A-Za-z]\w*\s*(?::|,|$))", re.IGNORECASE)


class Preprocessing:
    """A chain of preprocessing steps.

    Args:
        steps: (name, parameters) pairs; names are those of `STEPS`, and ``range`` with ``low`` and ``high``.

    Raises:
        InputError: a step or a parameter that does not exist.
    """

    def __init__(self, steps: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        self._steps = [make_step(name, parameters) for name, parameters in steps]
        self._wavelengths: Floats | None = None
        self._spectra: Floats | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """From text: steps divided by commas, each ``name``, ``name:value,value`` or ``name: key=value key=value``.

        Values without a key are taken in the order of the step's parameters: ``savgol:15,2,1`` is window, order of
        the polynomial, derivative; ``range:400-700``; ``baseline:asls,1e6`` is ``asls:1e6``.

        Raises:
            InputError: a step or a parameter that does not exist, a value that is none.
        """
        parts = (part.strip() for part in _NEXT_STEP.split(text))
        return cls([_parse_step(part) for part in parts if part])

    @classmethod
    def of(cls, given: Preprocessing | str | Sequence[str] | None) -> Preprocessing | None:
        """An unfitted chain from what `geonode.fit` and `geonode.evaluate` take; None where nothing is to be done.

        ``given``: text as for `parse`, or several, one a step; a chain, whose steps are taken unfitted; or None.

        Raises:
            InputError: as `parse`; an empty step, or what is no text.
        """
        if given is None:
            return None
        if isinstance(given, Preprocessing):
            return given.fresh() if len(given) else None
        if not isinstance(given, Iterable):
            raise InputError(f"preprocessing {short(given)} is none; write for example snv or range:400-700.")
        texts = [given] if isinstance(given, str) else list(given)
        for text in texts:
            if not isinstance(text, str) or not text.strip(" ,"):
                raise InputError(f"preprocessing step {text!r} is none; write for example snv or range:400-700.")
        steps = [step for text in texts for step in cls.parse(text)._steps]
        return cls([(step.name, step.spelled()) for step in steps]) if steps else None

    def fresh(self) -> Preprocessing:
        """The same steps, not fitted."""
        return Preprocessing([(step.name, step.spelled()) for step in self._steps])

    def __str__(self) -> str:
        return ", ".join(step.describe() for step in self._steps)

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def fitted(self) -> bool:
        """Whether it has seen the standards."""
        return self._wavelengths is not None

    @property
    def learns(self) -> bool:
        """Whether any step depends on the spectra it is fitted on, so that each fold needs a chain of its own."""
        return any(step.name in LEARNING for step in self._steps)

    # --- standards ----------------------------------------------------------------------------------------------------

    def fit(self, standards: SpectralDataset) -> Self:
        """Learn what the steps need from the standards.

        Raises:
            InputError: masked values, a range without wavelengths, a window longer than the spectrum.
        """
        self.fit_transform(standards)
        return self

    def fit_transform(self, standards: SpectralDataset) -> SpectralDataset:
        """Learn from the standards and give them back transformed, on their remaining wavelengths, with a note.

        Raises:
            InputError: masked values, or as `fit_arrays`.
        """
        where = standards.source or "spectra"
        if standards.mask.any():
            raise InputError(f"{where}: preprocessing needs complete spectra; drop masked wavelengths first.")
        y, x = self.fit_arrays(standards.spectra, standards.wavelengths, where)
        return self._rebuild(standards, y, x)

    def fit_arrays(self, spectra: ArrayLike, wavelengths: ArrayLike, where: str = "spectra") -> tuple[Floats, Floats]:
        """Learn from spectra ``[N, W]``, all finite, on ascending wavelengths ``[W]``; both as the chain leaves them.

        ``where`` names the spectra in messages.

        Raises:
            InputError: a range without wavelengths, a window longer than the spectrum, parameters that a step refuses.
        """
        y, x = np.array(spectra, dtype=np.float64), np.array(wavelengths, dtype=np.float64)
        self._spectra, self._wavelengths = y, x
        try:
            for step in self._steps:
                y, x = fit_step(step, y, x, where)
        except InputError:
            self._spectra = self._wavelengths = None
            raise
        return y, x

    @property
    def wavelengths(self) -> Floats:
        """``[W]`` of the standards it was fitted on."""
        return self._learned()[0]

    def fitted_without(self, rows: NDArray[np.bool_]) -> Floats:
        """All standards ``[N, W']``, transformed by the same steps fitted without those at ``rows [N]``: what a fold
        that leaves them out may know."""
        x, y = self._learned()
        if not self.learns:
            return self.transform_spectra(y, x)[0]
        chain = self.fresh()
        chain.fit_arrays(y[~rows], x)
        return chain.transform_spectra(y, x)[0]

    # --- unknowns -----------------------------------------------------------------------------------------------------

    def transform(self, dataset: SpectralDataset) -> SpectralDataset:
        """Another data set ``dataset`` on the same wavelengths, transformed by what was learned.

        Raises:
            InputError: not fitted, other wavelengths, or masked values.
        """
        y, x = self.transform_spectra(dataset.spectra, dataset.wavelengths)
        return self._rebuild(dataset, y, x)

    def transform_spectra(self, spectra: ArrayLike, wavelengths: ArrayLike) -> tuple[Floats, Floats]:
        """``spectra`` ``[N, W]`` (or ``[W]``) on the wavelengths of the standards → (``[N, W']``, the wavelengths
        left).

        Raises:
            InputError: not fitted, other wavelengths, values that are not finite.
        """
        known, _ = self._learned()
        y = checks.as_floats(spectra, "spectra", (1, 2), "preprocessing")
        x = checks.as_floats(wavelengths, "wavelengths", 1, "preprocessing")
        single, y = y.ndim == 1, np.atleast_2d(y)
        checks.check_same_grid(known, x, "the standards", "the spectra", "preprocessing")
        if y.shape[1] != len(x) or not np.isfinite(y).all():
            raise InputError(f"preprocessing: spectra of shape {y.shape} must be finite, with {len(x)} values each.")
        for step in self._steps:
            y, x = apply_step(step, y, x)
        return (y[0] if single else y), x

    @property
    def measured(self) -> tuple[Floats, Floats]:
        """(spectra ``[N, V]``, wavelengths ``[V]``) of the standards as measured, where unknowns must be brought to:
        what the ranges before any other step cut off is gone, so that no unknown needs to have it."""
        x, y = self._learned()
        for step in self._steps[: self._leading]:
            y, x = apply_step(step, y, x)
        return y, x

    def transform_measured(self, spectra: Floats, usable: NDArray[np.bool_], name: str) -> tuple[Floats, np.ndarray]:
        """``spectra`` ``[k, V]`` on the wavelengths of `measured`, ``usable [V]`` → ``[k, W']``, ``usable [W']``.

        A value that cannot be used may be cut off by a range or stay masked behind ranges, but any other step would
        spread it over its neighbours. ``name`` is that of the unknown, for messages.

        Raises:
            InputError: not fitted, or a masked value before a step other than a range.
        """
        y, (_, x) = spectra, self.measured
        for step in self._steps[self._leading :]:
            if step.name != RANGE and not usable.all():
                bad = x[~usable]
                raise InputError(
                    f"{name}: {len(bad)} of {len(x)} wavelengths are masked or saturated ({bad[0]:g} to {bad[-1]:g}), "
                    f"and preprocessing step '{step.describe()}' needs them all; measure it again (diluted, if "
                    "saturated), or fit with a range that leaves them out."
                )
            usable = usable[step.inside(x)]
            y, x = apply_step(step, y, x)
        return y, usable

    @property
    def _leading(self) -> int:
        others = (i for i, step in enumerate(self._steps) if step.name != RANGE)
        return next(others, len(self._steps))

    def _learned(self) -> tuple[Floats, Floats]:
        if self._wavelengths is None or self._spectra is None:
            raise InputError("preprocessing is not fitted; fit it on the standards first.")
        return self._wavelengths, self._spectra

    def _rebuild(self, source: SpectralDataset, y: Floats, x: Floats) -> SpectralDataset:
        if not self._steps:
            return source
        unit = source.signal_unit
        for step in self._steps:
            unit = step.unit(unit)
        only_ranges = all(step.name == RANGE for step in self._steps)
        return SpectralDataset(
            y,
            source.concentrations,
            x,
            groups=source.groups,
            concentration_unit=source.concentration_unit,
            analytes=source.analytes,
            notes=(*source.notes, f"preprocessed: {self}"),
            source=source.files,
            names=source.names,
            signal=source.signal if only_ranges else f"preprocessed {source.signal}",
            signal_unit=unit,
            wavelength_unit=source.wavelength_unit,
            _copies_allowed=True,
        )

    # --- state --------------------------------------------------------------------------------------------------------

    def describe(self) -> list[dict[str, Any]]:
        """The steps as JSON: name and parameters of each, in order."""
        return [{"name": step.name, "parameters": step.spelled()} for step in self._steps]

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """(JSON-able description, named arrays), from which `from_state` makes the same chain again.

        Raises:
            InputError: not fitted.
        """
        if self._wavelengths is None or self._spectra is None:
            raise InputError("preprocessing is not fitted; there is nothing to keep yet.")
        return {"steps": self.describe()}, {"wavelengths": self._wavelengths, "spectra": self._spectra}

    @classmethod
    def from_state(cls, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The inverse of `state`, from its ``description`` and ``arrays``: the chain is fitted again on the spectra it
        was fitted on.

        Raises:
            InputError: no description of this kind.
        """
        try:
            chain = cls([(step["name"], step["parameters"]) for step in description["steps"]])
            spectra, wavelengths = (np.array(arrays[key], dtype=np.float64) for key in ("spectra", "wavelengths"))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InputError(f"this is no preprocessing that was kept ({error}); fit it again.") from None
        chain.fit_arrays(spectra, wavelengths, "kept preprocessing")
        return chain


def _parse_step(part: str) -> tuple[str, dict[str, Any]]:
    name, _, given = part.partition(":")
    name = name.strip().lower()
    if name == RANGE:
        return name, _parse_range(given, part)
    values = [value for value in re.split(r"[\s,]+", given.strip()) if value]
    if name == "baseline":
        if not values or values[0].lower() not in BASELINES:
            raise InputError(f"preprocessing step '{part}': write baseline:METHOD, one of {', '.join(BASELINES)}.")
        name, values = values[0].lower(), values[1:]
    return name, _named(name, values, part)


def _named(name: str, values: list[str], part: str) -> dict[str, Any]:
    """Values with and without a key as parameters of the step."""
    # The third number of savgol is the derivative, as everybody writes it; see `make_step`.
    order = ["window_length", "polyorder", "deriv"] if name == "savgol" else parameters_of(name)
    parameters: dict[str, Any] = {}
    for position, value in enumerate(values):
        key, sign, text = value.partition("=")
        if not sign:
            if position >= len(order):
                takes = f"takes {', '.join(order)}" if order else "takes no value"
                raise InputError(f"preprocessing step '{part}': '{value}' is one too many; {name} {takes}.")
            key, text = order[position], value
        if key in parameters:
            raise InputError(f"preprocessing step '{part}' gives {key} twice; give it once.")
        parameters[key] = _parse_value(text)
    return parameters


def _parse_range(given: str, part: str) -> dict[str, Any]:
    low, _, high = given.strip().partition("-")
    values = [_parse_value(low.strip()), _parse_value(high.strip())]
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        raise InputError(f"preprocessing step '{part}': write range:400-700.")
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
