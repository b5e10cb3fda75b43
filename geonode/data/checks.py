"""The rules a set of spectra must obey, each broken rule one sentence that names the place and the remedy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geonode.errors import InputError
from geonode_runtime.axes import other_unit_between
from geonode_runtime.given_numbers import floats_in
from geonode_runtime.spikes import spike_in, spike_words

Floats = NDArray[np.float64]

# Two concentrations closer than this, relative to the larger, are one level that was written down twice.
LEVEL_ROUNDING = 1e-9
# Fewer wavelengths than this can agree by chance where an instrument rounds; more of them cannot.
IDENTICAL_AT_LEAST = 8
# Units of wavelengths that are lengths, so that 0 is none.
LENGTHS = ("nm", "µm", "Å")
# Beyond these, squares and quotients leave the range of floating point.
LARGEST, SMALLEST = 1e30, 1e-30
# So many files are named before the rest is counted.
_NAMED = 3
_FEWEST_IN_ORDER = 6  # wavelengths of which one may be said to be out of order


def as_floats(values: ArrayLike, what: str, ndim: int | tuple[int, ...], where: str) -> Floats:
    """A float64 copy of ``values``, NaN where numpy masks them, or an `InputError` that names ``what`` if it is no real
    array of ``ndim`` axes."""
    allowed = (ndim,) if isinstance(ndim, int) else ndim
    try:
        array, _ = floats_in(values, f"{where}: {what}")
    except InputError:  # a ValueError too, and it says more
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: {what} must be real numbers in a rectangular array ({error}).") from None
    if array.ndim not in allowed:
        shape = " or ".join(f"{n}-dimensional" for n in allowed)
        raise InputError(f"{where}: {what} must be {shape}, got shape {array.shape}.")
    return array


def named_files(files: Sequence[str]) -> str:
    """What an error calls the ``files`` that spectra are from: of many the first three, and how many more there are."""
    if len(files) <= _NAMED + 1:
        return ", ".join(files) or "spectra"
    return f"{', '.join(files[:_NAMED])} and {len(files) - _NAMED} more"


def format_level(level: ArrayLike) -> str:
    """``5`` or ``(7.4, 120)``: a level as a person would write it."""
    values = np.atleast_1d(np.asarray(level, dtype=np.float64))
    text = [f"{value:.10g}" for value in values]
    return text[0] if len(text) == 1 else f"({', '.join(text)})"


def check_wavelengths(wavelengths: Floats, where: str, unit: str = "nm") -> None:
    """Finite, distinct, and positive if they are lengths: a Raman shift may be 0 or negative."""
    bad = np.flatnonzero(~np.isfinite(wavelengths))
    if bad.size:
        raise InputError(
            f"{where}: wavelength number {bad[0] + 1} is {wavelengths[bad[0]]}; remove or repair that row."
        )
    bad = np.flatnonzero(wavelengths <= 0)
    if bad.size and unit in LENGTHS:
        raise InputError(
            f"{where}: wavelength number {bad[0] + 1} is {wavelengths[bad[0]]:g}, which is not positive; "
            f"wavelengths are in {unit}, so repair or remove that row."
        )
    ordered = np.sort(wavelengths)
    twice = ordered[1:][np.diff(ordered) == 0]
    if twice.size:
        raise InputError(f"{where}: wavelength {twice[0]:.10g} occurs twice; keep one of the rows or average them.")


def check_order(wavelengths: Floats, where: str) -> None:
    """Refuse an axis as it stands in a file that goes one way but for one entry: a number mistyped, its row moved by
    sorting it. Of two neighbours exchanged either may be the one: sorted, they are right."""
    ways = [w for w in (wavelengths, wavelengths[::-1]) if (np.diff(w) > 0).mean() > 0.5]
    if len(wavelengths) < _FEWEST_IN_ORDER or not ways or (np.diff(ways[0]) > 0).all():
        return
    (axis,) = ways
    turn = int(np.flatnonzero(np.diff(axis) <= 0)[0])
    alone = [k for k in (turn, turn + 1) if (np.diff(np.delete(axis, k)) > 0).all()]
    if len(alone) != 1:
        return
    (k,) = alone
    row = k if axis is wavelengths else len(axis) - 1 - k
    beside = " and ".join(f"{wavelengths[n]:.10g}" for n in (row - 1, row + 1) if 0 <= n < len(axis))
    raise InputError(
        f"{where}: wavelength number {row + 1} is {wavelengths[row]:.10g}, beside {beside}, and all others are in "
        "order; correct it, or leave that row out."
    )


def check_spectra(
    spectra: Floats, mask: NDArray[np.bool_], names: Sequence[str], wavelengths: Floats, where: str
) -> None:
    """Finite wherever no mask says that the value is unusable."""
    bad = np.argwhere(~np.isfinite(spectra) & ~mask)
    if bad.size:
        sample, column = bad[0]
        raise InputError(
            f"{where}: spectrum '{names[sample]}' is {spectra[sample, column]} at wavelength "
            f"{wavelengths[column]:.10g} ({len(bad)} such value{'s' if len(bad) > 1 else ''}); repair it, or leave "
            "that spectrum or wavelength out."
        )
    vast = np.argwhere(~mask & (np.abs(spectra) > LARGEST))
    if vast.size:
        sample, column = vast[0]
        raise InputError(
            f"{where}: spectrum '{names[sample]}' is {spectra[sample, column]:g} at wavelength "
            f"{wavelengths[column]:.10g}, which no instrument measures; give it in another unit or repair it."
        )


def check_levels(concentrations: Floats, names: Sequence[str], where: str) -> None:
    """Concentrations ``[N, D]`` are finite, and no level is recorded as two that differ only by rounding."""
    bad = np.argwhere(~np.isfinite(concentrations))
    if bad.size:
        raise InputError(
            f"{where}: the concentration of '{names[bad[0, 0]]}' is {concentrations[tuple(bad[0])]}; "
            "give its value, or leave that spectrum out of the standards."
        )
    vast = np.argwhere(
        (np.abs(concentrations) > LARGEST) | ((concentrations != 0) & (np.abs(concentrations) < SMALLEST))
    )
    if vast.size:
        raise InputError(
            f"{where}: the concentration of '{names[vast[0, 0]]}' is {concentrations[tuple(vast[0])]:g}, outside what "
            f"can be computed with ({SMALLEST:g} to {LARGEST:g}); give concentrations in another unit."
        )
    for column in concentrations.T:
        levels = np.unique(column)
        close = np.diff(levels) <= LEVEL_ROUNDING * np.maximum(np.abs(levels[1:]), np.abs(levels[:-1]))
        if close.any():
            i = int(np.flatnonzero(close)[0])
            first, second = (names[int(np.flatnonzero(column == level)[0])] for level in levels[i : i + 2])
            raise InputError(
                f"{where}: '{first}' ({levels[i]:.17g}) and '{second}' ({levels[i + 1]:.17g}) are one level up to "
                "rounding, recorded as two; write the same concentration for both, as replicates."
            )


def check_replicates(spectra: Floats, level_index: NDArray[np.intp], names: Sequence[str], where: str) -> None:
    """No spectrum is a byte-identical copy of another: neither a replicate nor another level is measured so."""
    if spectra.shape[1] < IDENTICAL_AT_LEAST:
        return
    seen: dict[tuple[int, bytes], int] = {}
    anywhere: dict[bytes, int] = {}
    for sample, (level, spectrum) in enumerate(zip(level_index, spectra, strict=True)):
        if np.isfinite(spectrum).sum() < IDENTICAL_AT_LEAST:  # masked nearly throughout
            continue
        first = seen.setdefault((int(level), spectrum.tobytes()), sample)
        other = anywhere.setdefault(spectrum.tobytes(), sample)
        flat = np.nanmin(spectrum) == np.nanmax(spectrum)  # such as the zeros of a blank: they say nothing
        if level != level_index[other] and not flat:
            raise InputError(
                f"{where}: '{names[sample]}' is identical to '{names[other]}' at every wavelength, and each is given a "
                "concentration of its own; leave the one out that is not what it is called."
            )
        if first != sample:
            raise InputError(
                f"{where}: '{names[sample]}' is identical to '{names[first]}' at every wavelength, so it is a copy "
                "and not a replicate; leave one of them out."
            )


def check_response(level_means: Floats, where: str) -> None:
    """Something in the spectra changes from level to level: else there is nothing to calibrate."""
    if level_means.size and not (level_means != level_means[0]).any():
        raise InputError(
            f"{where}: the spectra of all {len(level_means)} levels are identical, so nothing responds to the "
            "concentration; export them again, or measure where the analyte absorbs."
        )


def check_empty_levels(level_means: Floats, names: Sequence[str], where: str) -> None:
    """No level but the lowest is zero throughout, unless it is what the others are differences from.

    A blank of zeros is ordinary, and so are difference spectra, which shrink towards the level that they refer to. A
    level of zeros between others that do not is a column that was never filled in.
    """
    size = np.linalg.norm(np.nan_to_num(level_means), axis=1)
    last = len(size) - 1
    for i in np.flatnonzero(size == 0.0).tolist():
        if i == 0:
            continue
        before = level_means[i - 1]
        line = before if i == last else 0.5 * (before + level_means[i + 1])
        around = size[i - 1] if i == last else max(size[i - 1], size[i + 1])
        allowed = 0.5 * (size.max() if i == last else around)
        if np.linalg.norm(np.nan_to_num(line)) > allowed:
            raise InputError(
                f"{where}: '{names[i]}' is zero at every wavelength, and its neighbours are not: no spectrum was "
                "recorded there; fill it in, or leave that level out."
            )


def check_spikes(
    spectra: Floats,
    mask: NDArray[np.bool_],
    level_index: NDArray[np.intp],
    names: Sequence[str],
    axis: Floats,
    where: str,
) -> None:
    """No value of a standard stands alone, where no spectrum of another level has anything of the kind."""
    for i, row in enumerate(spectra):
        kept = ~mask[i] & ~mask[level_index != level_index[i]].any(axis=0)
        k = spike_in(row[kept], spectra[level_index != level_index[i]][:, kept])
        if k is not None:
            raise InputError(f"{where}: '{names[i]}' {spike_words(row[kept], axis[kept], k)}")


def negative_levels(levels: Floats, unit: str, is_amount: bool, where: str) -> str:
    """What to say of concentrations ``[n]`` below zero; empty where there is none.

    Raises:
        InputError: their unit is that of an amount.
    """
    below = levels[levels < 0.0]
    if not below.size or (not (levels > 0.0).any() and not is_amount):
        return ""
    said = f"the level {format_level(below[0])}{f' {unit}' if unit else ''} is negative"
    if is_amount:
        raise InputError(f"{where}: {said}, which no amount is; correct its concentration, or leave it out.")
    return f"{said} beside positive ones: right for a temperature or a potential, and for no amount; check it"


def check_same_grid(reference: Floats, other: Floats, reference_name: str, other_name: str, where: str) -> None:
    """Two wavelength grids (both sorted) agree; else the first difference is named."""
    if len(reference) == len(other) and np.allclose(reference, other, rtol=1e-7, atol=0):
        return
    common = min(len(reference), len(other))
    differs = np.flatnonzero(~np.isclose(reference[:common], other[:common], rtol=1e-7, atol=0))
    if differs.size:
        i = int(differs[0])
        detail = f"number {i + 1} is {reference[i]:.10g} in the first and {other[i]:.10g} in the second"
    else:
        detail = f"the first has {len(reference)} of them and the second {len(other)}"
    unit = other_unit_between(other, reference)
    remedy = f"{unit}: give both in one unit" if unit else "measure or interpolate them onto one grid first"
    raise InputError(f"{where}: '{reference_name}' and '{other_name}' have different wavelengths ({detail}); {remedy}.")
