"""What is asked of a calibration: which of the spectra given belong to one unknown, and where along the wavelengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from geonode.calibration.asked_files import replicates_said
from geonode.calibration.unknown_files import UnknownSpectra
from geonode.data.given import given_spectra
from geonode.data.readers.dilutions import number_in, unused_dilutions
from geonode.errors import InputError
from geonode_runtime.wording import argument


@dataclass(frozen=True)
class Question:
    """The replicate spectra of one unknown.

    Attributes:
        spectra: ``[k, V]``. wavelengths: ``[V]``, None for those of the standards. mask: ``[k, V]`` or None.
        name: of the unknown. notes: what was done to its wavelengths. labels: ``k`` names of the spectra; none where
            they have none.
    """

    spectra: np.ndarray
    wavelengths: np.ndarray | None
    mask: np.ndarray | None
    name: str
    notes: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


def questions(
    spectra: Any,
    wavelengths: Any,
    *,
    replicates: bool | Sequence[Any],
    mask: Any,
    name: str,
    unit: str,
    standards: np.ndarray,
) -> tuple[list[Question], bool]:
    """One question for each unknown, and whether there is one alone, to which one answer is wanted.

    Args:
        spectra: see `geonode.data.given.given_spectra`, or an `UnknownSpectra` (one unknown, its spectra replicates).
        wavelengths: ``[V]``, or None.
        replicates: True where all spectra are of one unknown; or ``k`` labels, equal ones for replicates.
        mask: ``[V]`` or ``[k, V]``, True where a value is unusable.
        name: of the unknown, for messages.
        unit, standards: of the standards' wavelengths, and where they lie ``[W]``.

    Raises:
        InputError: see `geonode.data.given`; labels that do not fit, replicates that are said to be several samples.
    """
    if isinstance(spectra, UnknownSpectra):
        one = Question(
            spectra.spectra, spectra.wavelengths, spectra.mask, spectra.name, spectra.notes, spectra.spectra_names
        )
        return [one], True
    given = given_spectra(spectra, wavelengths, name)
    axis, note = given.in_unit(unit, standards, name)
    notes = (*given.notes, *([note] if note else []))
    bad = _mask(mask, given.values.shape, name)
    if given.mask is not None:
        bad = given.mask if bad is None else bad | given.mask
    replicates = replicates_said(replicates)
    labels = _labels(given.groups, replicates, len(given.values), name)
    if labels is None:
        names = [name] if given.one else list(given.names) or [f"{name} {k + 1}" for k in range(len(given.values))]
        groups = {k: [k] for k in range(len(given.values))}
    else:
        names = [name] if len(set(labels)) == 1 else list(dict.fromkeys(labels))
        groups = {k: [i for i, own in enumerate(labels) if own == one] for k, one in enumerate(dict.fromkeys(labels))}
    found = []
    for k, rows in groups.items():
        told = unused_dilutions([given.beside[i] for i in rows], number_in) if given.beside else []
        found.append(Question(given.values[rows], axis, None if bad is None else bad[rows], names[k], (*notes, *told)))
    return found, given.one or replicates is True


def _labels(
    groups: tuple[str, ...] | None, replicates: bool | Sequence[str], count: int, name: str
) -> Sequence[str] | None:
    if replicates is True:
        if groups is not None and len(set(groups)) > 1:
            raise InputError(
                f"{name} is said to be replicates of one sample, and its groups are {len(set(groups))} "
                f"({', '.join(list(dict.fromkeys(groups))[:6])}); leave out {argument('replicates', True)}, or "
                "the groups."
            )
        return [name] * count
    if replicates is False:
        return groups
    if len(replicates) != count:
        raise InputError(
            f"replicates must have one label for each of the {count} spectra of {name}, not {len(replicates)}."
        )
    return replicates


def _mask(mask: Any, shape: tuple[int, ...], name: str) -> np.ndarray | None:
    if mask is None:
        return None
    found = np.asarray(mask, dtype=bool)
    if found.shape not in (shape, shape[1:]):
        raise InputError(f"the mask of {name} has shape {found.shape}, and its spectra {shape}.")
    return np.broadcast_to(found, shape)
