"""Unknown spectra made fit for a calibration: same wavelengths, same unit, saturated values masked; all of it said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from geonode_runtime.axes import other_unit_between
from geonode_runtime.errors import InputError
from geonode_runtime.figures import figure
from geonode_runtime.given_numbers import as_number, as_numbers, mask_of
from geonode_runtime.saturation import saturated
from geonode_runtime.spikes import spike_in, spike_words
from geonode_runtime.wording import either

# Values this many times larger than any standard's, or smaller than the smallest standard's, are another unit.
_UNIT_FACTOR = 20.0
# Steps of the unknown's wavelengths, in steps of the standards': from here on nothing between them is made up, and from
# there on they are refused.
_COARSE, _COARSEST = 2.0, 10.0


@dataclass(frozen=True)
class Unknown:
    """Replicate spectra of one unknown on the calibration's wavelengths.

    Attributes:
        spectra: ``[k, W]``, finite (masked values hold 0).
        usable: ``[W]`` where every replicate has a value.
        notes: what was done to them.
    """

    spectra: np.ndarray
    usable: np.ndarray
    notes: tuple[str, ...]


def prepare_unknown(
    spectra: Any,
    calibration_wavelengths: np.ndarray,
    standards: np.ndarray,
    *,
    wavelengths: Any = None,
    mask: Any = None,
    saturation: float | None = None,
    check_units: bool = True,
    genuine: bool = False,
    name: str = "the unknown",
) -> Unknown:
    """Check and align the replicate spectra of one unknown.

    Args:
        spectra: ``[V]`` or ``[k, V]``.
        calibration_wavelengths: ``[W]``; standards: ``[n, W]`` their level means.
        wavelengths: ``[V]`` of the unknown, None where V = W and the grids are the same.
        mask: ``[k, V]`` or ``[V]``, True where a value is unusable; where numpy masks ``spectra`` it is so too.
        saturation: values at or above it are masked; None looks for a plateau above the standards.
        check_units: refuse values that must be in another unit.
        genuine: the spectra are known to be of this assay (its own standards): neither their unit nor that they are
            spectra at all is in question.
        name: of the unknown, for messages.

    Raises:
        InputError: NaN or infinite values that are not masked, another grid that does not cover the calibration's,
            much coarser than it, one value that stands alone, a constant spectrum (of zeros only where no standard is
            empty), another unit,
            everything masked, a saturation that is no positive number or leaves hardly anything to compare.
    """
    if saturation is not None:
        saturation = as_number(saturation, f"the value from which {name} is saturated")
    if saturation is not None and not (np.isfinite(saturation) and saturation > 0.0):
        raise InputError(f"the value from which {name} is saturated must be a positive number, not {saturation:g}.")
    values = np.atleast_2d(as_numbers(spectra, name)).copy()
    if values.ndim != 2 or values.shape[0] == 0 or values.shape[1] == 0:
        raise InputError(f"{name} must be one spectrum or a list of replicate spectra, but has shape {values.shape}.")
    bad = mask_of(spectra, values.shape, mask)
    grid = _grid_of(values, wavelengths, calibration_wavelengths, name)
    _check_finite(values, bad, grid, name)
    _check_masked(values, bad, name)
    if not genuine:
        _check_spectrum(values, bad, name, zero_is_ordinary=_has_empty_standard(standards))
    notes: list[str] = []
    values[bad] = 0.0
    _require_covered(grid, calibration_wavelengths, name)
    if not genuine:
        _check_spikes(values, bad, grid, calibration_wavelengths, standards, name)
    values, bad = _interpolate(values, bad, grid, calibration_wavelengths, notes, name)
    left = np.asarray(~bad.any(axis=0))
    bad |= saturated(values, standards, saturation, calibration_wavelengths, left, notes, name)
    usable = np.asarray(~bad.any(axis=0))
    if not usable.any():
        raise InputError(f"every wavelength of {name} is masked or saturated; measure it again, diluted.")
    if check_units and not genuine:
        _check_units(values[:, usable], standards[:, usable], name)
    values[bad] = 0.0
    return Unknown(values, usable, tuple(notes))


def _grid_of(values: np.ndarray, wavelengths: Any, target: np.ndarray, name: str) -> np.ndarray:
    if wavelengths is None:
        if values.shape[1] != len(target):
            raise InputError(
                f"{name} has {values.shape[1]} wavelengths and the standards have {len(target)}; give its wavelengths, "
                "so that it can be brought to their grid."
            )
        return target
    grid = as_numbers(wavelengths, f"the wavelengths of {name}")
    if grid.shape != (values.shape[1],) or not np.isfinite(grid).all() or (np.diff(np.sort(grid)) <= 0.0).any():
        raise InputError(f"the wavelengths of {name} must be {values.shape[1]} distinct finite numbers.")
    return grid


def _check_finite(values: np.ndarray, bad: np.ndarray, grid: np.ndarray, name: str) -> None:
    wrong = np.argwhere(~np.isfinite(values) & ~bad)
    if len(wrong):
        row, column = wrong[0]
        which = f"replicate {row + 1} of {name}" if len(values) > 1 else name
        raise InputError(
            f"{which} is {values[row, column]} at wavelength {grid[column]:g} ({len(wrong)} such values); repair it, "
            "or mask those wavelengths."
        )


def _check_masked(values: np.ndarray, bad: np.ndarray, name: str) -> None:
    if bad.all():
        raise InputError(f"every wavelength of {name} is masked, so nothing is left to compare.")


def _has_empty_standard(standards: np.ndarray) -> bool:
    """Whether a standard, as a blank of an instrument that was zeroed on it, has next to no signal: an unknown of zeros
    is then as ordinary as that."""
    tops = np.abs(standards).max(axis=1)
    return bool(tops.min() * _UNIT_FACTOR <= tops.max())


def _check_spectrum(values: np.ndarray, bad: np.ndarray, name: str, zero_is_ordinary: bool) -> None:
    for row, skip in zip(values, bad, strict=True):
        rest = row[~skip]
        if not rest.size:
            continue
        if not rest.any():
            if zero_is_ordinary:
                continue
            raise InputError(
                f"{name} is zero at every wavelength: that is no spectrum; check the file and the instrument."
            )
        if rest.size > 2 and np.ptp(rest) == 0.0:
            raise InputError(
                f"{name} is {rest[0]:g} at every wavelength: a constant is no spectrum; check the file and the "
                "instrument (a blocked beam, a detector at its limit)."
            )


def _check_spikes(
    values: np.ndarray, bad: np.ndarray, grid: np.ndarray, target: np.ndarray, standards: np.ndarray, name: str
) -> None:
    """Refuse a spectrum of which one value stands alone: interpolated, it would spoil its neighbours as well."""
    order = np.argsort(grid)
    order = order[(grid[order] >= target[0]) & (grid[order] <= target[-1])]
    others = np.stack([np.interp(grid[order], target, one) for one in standards])
    for row, (one, skip) in enumerate(zip(values, bad, strict=True)):
        own = ~skip[order]
        left = order[own]
        k = spike_in(one[left], others[:, own])
        if k is not None:
            which = f"replicate {row + 1} of {name}" if len(values) > 1 else name
            raise InputError(f"{which} {spike_words(one[left], grid[left], k)}")


_SHARED = 0.5
"""Of the standards' range; where an unknown has less of it, to fit without the rest is no advice."""


def _require_covered(grid: np.ndarray, target: np.ndarray, name: str) -> None:
    """Up to a step beyond the unknown's ends nothing is made up: those wavelengths are left out. Further is refused."""
    low, high = grid.min(), grid.max()
    step = float(np.median(np.diff(target))) if len(target) > 1 else 1.0
    missing = []
    if low > target[0] + step * (1.0 + 1e-9):
        missing.append(f"{target[0]:g} to {min(low, target[-1]):g}")
    if high < target[-1] - step * (1.0 + 1e-9):
        missing.append(f"{max(high, target[0]):g} to {target[-1]:g}")
    if not missing:
        return
    unit = other_unit_between(grid, target)
    first, last = max(low, target[0]), min(high, target[-1])
    if unit:
        how = either("", " (in Python the attribute units of an xarray coordinate, or the name of a pandas index)")
        remedy = f"{unit}: say the unit of each where it is not said{how}"
    elif last - first < _SHARED * (target[-1] - target[0]):
        remedy = "measure that range too"
    else:
        step_of_fit = f"range:{first:g}-{last:g}"
        again = either(f"geonode fit --preprocess {step_of_fit}", f"fit again with the preprocessing {step_of_fit}")
        remedy = f"measure that range too, or leave it out ({again})"
    raise InputError(
        f"{name} covers wavelengths {low:g} to {high:g} and misses {' and '.join(missing)} of the standards' range "
        f"{target[0]:g} to {target[-1]:g}; {remedy}."
    )


def _interpolate(
    values: np.ndarray, bad: np.ndarray, grid: np.ndarray, target: np.ndarray, notes: list[str], name: str
) -> tuple[np.ndarray, np.ndarray]:
    """To the calibration's wavelengths, only where the unknown covers all of them: by straight lines, or, where its own
    are much further apart, at those next to its own alone."""
    spacing = float(np.diff(target).mean()) if len(target) > 1 else 1.0
    if len(grid) == len(target) and np.abs(np.sort(grid) - target).max() <= 1e-6 * spacing:
        order = np.argsort(grid)
        return values[:, order], bad[:, order]
    order = np.argsort(grid)
    grid, values, bad = grid[order], values[:, order], bad[:, order]
    step = float(np.median(np.diff(target))) if len(target) > 1 else 1.0
    beyond = (target < grid[0] - 1e-6 * spacing) | (target > grid[-1] + 1e-6 * spacing)
    if beyond.any():
        apart = max(grid[0] - target[0], target[-1] - grid[-1])
        notes.append(
            f"{int(beyond.sum())} of the standards' {len(target)} wavelengths lie up to {apart:.3g} beyond its ends "
            f"({grid[0]:g} to {grid[-1]:g}) and were left out"
        )
    at = np.searchsorted(grid, target - 0.5 * spacing * 1e-3).clip(0, len(grid) - 1)
    if np.abs(grid[at] - target)[~beyond].max(initial=0.0) <= 1e-6 * spacing:
        notes.append(f"the {len(target)} wavelengths of the standards were taken from its own {len(grid)}")
        return values[:, at], bad[:, at] | beyond
    gaps, theirs = _gaps(grid, target, step, name)
    result = np.stack([np.interp(target, grid, row) for row in values])
    # A point between a good and a bad neighbour is bad: its value is made of both.
    reach = np.stack([np.interp(target, grid, row.astype(float)) for row in bad])
    coarse = (gaps > _COARSE * step) & ~theirs
    if theirs.any():
        beyond = beyond | theirs
        notes.append(
            f"the standards have a gap of {figure(gaps[theirs].max())} between their wavelengths, as it has (masked in "
            f"some of them, perhaps): {int(theirs.sum())} of their {len(target)} wavelengths beside it were left out"
        )
    if not coarse.any():
        notes.append(
            f"interpolated linearly from its own {len(grid)} wavelengths to the {len(target)} of the standards"
        )
        return result, (reach > 0.0) | beyond
    near = _nearest(grid, target, step)
    result[:, coarse] = np.stack([_cubic(target[coarse], grid, row) for row in values])
    beyond = beyond | (coarse & ~near)
    notes.append(
        f"its wavelengths are up to {figure(gaps[coarse].max())} apart and the standards' {figure(step)}: compared at "
        f"the {int((~beyond).sum())} of their {len(target)} wavelengths that lie next to its own {len(grid)}, since "
        "nothing between those was measured"
    )
    return result, (reach > 0.0) | beyond


def _gaps(grid: np.ndarray, target: np.ndarray, step: float, name: str) -> tuple[np.ndarray, np.ndarray]:
    """``[W]`` how far apart the unknown's wavelengths on both sides of each of the standards' lie, and where such a gap
    is one of the standards too.

    Raises:
        InputError: many steps of the standards, where these have none.
    """
    if len(grid) > 1:
        after = np.searchsorted(grid, target).clip(1, len(grid) - 1)
        gaps = grid[after] - grid[after - 1]
    else:
        after, gaps = np.zeros(len(target), dtype=int), np.full(len(target), np.inf)
    own = np.diff(target, prepend=target[0], append=target[-1])
    own = np.maximum(own[:-1], own[1:])
    theirs = (gaps > _COARSE * step) & (own > _COARSE * step) & (gaps <= own + _COARSE * step)
    worst = int(np.where(theirs, 0.0, gaps).argmax())
    if theirs[worst] or gaps[worst] <= _COARSEST * step:
        return gaps, theirs
    if len(grid) > 1 and float(np.median(np.diff(grid))) <= _COARSE * step:
        low, high = grid[after[worst] - 1], grid[after[worst]]
        missed = int(((target > low) & (target < high)).sum())
        raise InputError(
            f"{name} has no wavelengths between {low:g} and {high:g}, where the standards have {missed}: measure it "
            "there too, or fit the standards without that range."
        )
    raise InputError(
        f"{name} has {len(grid)} wavelengths, up to {figure(gaps[worst])} apart, and the standards one every "
        f"{figure(step)}: too coarse to be compared; measure it with a finer step, or fit the standards on its "
        "wavelengths."
    )


def _nearest(grid: np.ndarray, target: np.ndarray, step: float) -> np.ndarray:
    """``[W]`` where a wavelength of the standards is the nearest to one of the unknown's, at most half a step away."""
    after = np.searchsorted(target, grid).clip(1, len(target) - 1)
    closest = after - (grid - target[after - 1] <= target[after] - grid)
    found = np.zeros(len(target), dtype=bool)
    found[closest[np.abs(target[closest] - grid) <= 0.5 * step * (1.0 + 1e-6)]] = True
    return found


def _cubic(at: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The polynomial through the (up to) four points of (x, y) around each ``at``, by Lagrange's formula."""
    count = min(4, len(x))
    first = (np.searchsorted(x, at) - count // 2).clip(0, len(x) - count)
    members = first[:, None] + np.arange(count)
    result = np.zeros(len(at))
    for i in range(count):
        weight = np.ones(len(at))
        for j in range(count):
            if i != j:
                weight *= (at - x[members[:, j]]) / (x[members[:, i]] - x[members[:, j]])
        result += weight * y[members[:, i]]
    return result


def _check_units(values: np.ndarray, standards: np.ndarray, name: str) -> None:
    """Another unit moves every wavelength by a factor: so the median must be off as well as the largest value."""
    size, middle = np.abs(values).max(), np.median(np.abs(values))
    tops, middles = np.abs(standards).max(axis=1), np.median(np.abs(standards), axis=1)
    large = size > _UNIT_FACTOR * tops.max() and middle > _UNIT_FACTOR * middles.max()
    small = 0.0 < size * _UNIT_FACTOR < tops.min() and middle * _UNIT_FACTOR < middles.min()
    if small:
        raise InputError(
            f"{name} reaches {figure(size)} where the standards reach {figure(tops.min())} to {figure(tops.max())}: it "
            "is in another unit (then convert it to the unit of the standards), or nothing was measured (an empty "
            "beam, water or a closed shutter)."
        )
    if large:
        raise InputError(
            f"{name} reaches {figure(size)} where the standards reach {figure(tops.min())} to {figure(tops.max())}: it "
            "must be in another unit (percent transmission, mAU, raw counts); convert it to the unit of the standards."
        )
