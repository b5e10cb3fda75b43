"""What is given to be quantified where it is files: which unknowns they hold, and whether one answer is wanted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from geonode.calibration.unknown_files import UnknownSpectra, load_unknowns
from geonode.data import SpectralDataset
from geonode.data.readers.concentrations import listing
from geonode.errors import InputError
from geonode_runtime.given_numbers import short
from geonode_runtime.refused import Refused, answered, require_one_taken
from geonode_runtime.wording import argument


@dataclass(frozen=True)
class AskedFiles:
    """What files hold of unknowns; ``one``: a single answer is wanted."""

    unknowns: list[UnknownSpectra | Refused]
    one: bool

    def answered(self, answer: Callable[[UnknownSpectra], Any]) -> Any:
        """What ``answer`` says of the only one, or of each in a list, with a `Refused` in the place of what it refuses.

        Raises:
            InputError: it refuses the only one, or all.
        """
        alone = len(self.unknowns) == 1
        found = [answered(unknown, answer, alone=alone) for unknown in self.unknowns]
        require_one_taken(found)
        return found[0] if self.one else found


def asked_of_files(
    spectra: Any, standards: SpectralDataset, *, select: str | None, replicates: Any
) -> AskedFiles | None:
    """The unknowns in files, or of `load_unknowns`; None where ``spectra`` are numbers.

    Raises:
        InputError: a file of several spectra that is given as one unknown, ``select`` without files, labels of
            replicates for files, and as `load_unknowns`.
    """
    said = replicates_said(replicates)
    replicates = said is True
    if isinstance(spectra, UnknownSpectra):
        return AskedFiles([spectra], one=True)
    several = isinstance(spectra, list | tuple) and bool(spectra)
    if several and all(isinstance(one, UnknownSpectra | Refused) for one in spectra):
        return AskedFiles(list(spectra), one=False)
    files = isinstance(spectra, str | os.PathLike) or (
        several and all(isinstance(one, str | os.PathLike) for one in spectra)
    )
    if files and not isinstance(said, bool):
        raise InputError(
            "labels of replicates are for numbers; give the files of one sample alone, with "
            f"{argument('replicates', True)}."
        )
    if isinstance(spectra, str | os.PathLike):
        found = load_unknowns(spectra, standards, select=select, replicates=replicates)
        if len(found) > 1:
            raise InputError(
                f"{spectra}: {len(found)} spectra ({listing(one.name for one in found)}); give the file in a list for "
                f"an answer to each, say {argument('replicates', True)} where they are of one sample, or choose by "
                f"name with {argument('select')}."
            )
        return AskedFiles(found, one=True)
    if files:
        return AskedFiles(load_unknowns(spectra, standards, select=select, replicates=replicates), one=replicates)
    if select is not None:
        raise InputError("select chooses spectra of files by their names; numbers have none, so leave it out.")
    return None


def replicates_said(replicates: Any) -> bool | list[str]:
    """Whether all spectra are of one sample, or the label of each.

    Raises:
        InputError: neither of the two.
    """
    if isinstance(replicates, bool | np.bool_):
        return bool(replicates)
    if isinstance(replicates, str | bytes) or not isinstance(replicates, Iterable) or np.ndim(replicates) == 0:  # pyright: ignore[reportArgumentType]
        raise InputError(
            f"replicates must be True, False or one label for each spectrum, but {short(replicates)} was given."
        )
    return [str(one) for one in replicates]
