"""`SpectralDataset`: the spectra of standards, their concentrations, and what is known about both."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geonode.data import arguments, checks
from geonode.data.checks import Floats, format_level
from geonode.data.notebook import dataset_html, dataset_text
from geonode.errors import InputError

if TYPE_CHECKING:
    import torch
    import xarray as xr


class SpectralDataset:
    """Spectra ``[N, W]`` of samples of known concentration, in one order whatever order they came in.

    Samples are sorted by concentration (stably, so replicates keep their order) and wavelengths ascend, so that a
    result never depends on the order of columns in a file. Arrays are float64 and read-only; methods return new data
    sets. What was dropped, averaged, masked or assumed on the way is in `notes`.

    Args:
        spectra: ``[N, W]``, in the unit of the signal.
        concentrations: ``[N]`` for one analyte, ``[N, D]`` for several, in ``concentration_unit``.
        wavelengths: ``[W]``, in ``wavelength_unit``.
        groups: ``[N]`` labels of replicate groups (preparations, days, plates); by default each level is a group.
        concentration_unit: unit of the concentrations, such as ``"ppb"``; empty if unknown.
        analytes: D names; by default ``concentration``, or ``analyte 1``, ``analyte 2``, …
        notes: sentences on what was done to the data before.
        source: the file it comes from, or a list of files (`files`; as one text `source`); used in error messages.
        names: ``[N]`` names of the samples, as the source has them.
        mask: ``[N, W]``, True where the value is unusable (saturated, dead pixel), as where numpy masks it: then NaN.
        signal: what is measured. signal_unit: its unit. wavelength_unit: by default what ``wavelengths`` say themselves
            (a pandas Index or Series by its name, a DataArray by its attributes), else ``nm``.

    Raises:
        InputError: shapes that do not fit, NaN or infinite values, wavelengths that are not positive or occur twice,
            one level recorded as two, a copy posing as a replicate.
    """

    def __init__(
        self,
        spectra: ArrayLike,
        concentrations: ArrayLike,
        wavelengths: ArrayLike,
        *,
        groups: Sequence[Any] | NDArray[Any] | None = None,
        concentration_unit: str = "",
        analytes: Sequence[str] | None = None,
        notes: Iterable[str] = (),
        source: str | Sequence[str] = "",
        names: Sequence[str] | None = None,
        mask: ArrayLike | None = None,
        signal: str = "absorbance",
        signal_unit: str = "",
        wavelength_unit: str | None = None,
        _copies_allowed: bool = False,
    ) -> None:
        self.files: tuple[str, ...] = arguments.as_files(source)
        where = self._where
        y = checks.as_floats(spectra, "spectra", 2, where)
        c = checks.as_floats(concentrations, "concentrations", (1, 2), where)
        x = checks.as_floats(wavelengths, "wavelengths", 1, where)
        c = (c[:, None] if c.ndim == 1 else c) + 0.0  # no negative zero
        arguments.check_shapes(y, c, x, where)
        labels = arguments.label_samples(names, c, where)
        bad = arguments.as_mask(mask, spectra, y.shape, where)
        unit, said = arguments.unit_of_axis(wavelengths, wavelength_unit, where)
        checks.check_wavelengths(x, where, unit)
        checks.check_levels(c, labels, where)
        checks.check_spectra(y, bad, labels, x, where)

        self.notes: tuple[str, ...] = (*notes, *said)
        self.source = ", ".join(self.files)
        self.concentration_unit = concentration_unit
        self.wavelength_unit = unit
        self.signal = signal
        self.signal_unit = signal_unit
        self.analytes = arguments.name_analytes(analytes, c.shape[1], where)

        columns = np.argsort(x, kind="stable")
        if not np.array_equal(columns, np.arange(len(x))):
            reverse = np.array_equal(columns, np.arange(len(x))[::-1])
            self.notes += (f"wavelengths were {'descending' if reverse else 'unsorted'} and were put in order",)
        rows = np.lexsort(c.T[::-1])
        if not np.array_equal(rows, np.arange(len(c))):
            self.notes += ("samples were put in order of concentration",)
        y, bad = y[rows][:, columns], bad[rows][:, columns]
        y[bad] = np.nan
        self._spectra, self._mask, self._concentrations, self._wavelengths = y, bad, c[rows], x[columns]
        self.names: tuple[str, ...] = tuple(labels[i] for i in rows)
        self._levels, inverse = np.unique(self._concentrations, axis=0, return_inverse=True)
        self._level_index = inverse.reshape(-1).astype(np.intp)
        self._groups = self._level_index.copy() if groups is None else arguments.as_groups(groups, len(c), where)[rows]
        if not _copies_allowed:
            checks.check_replicates(self._spectra, self._level_index, self.names, where)
        for array in (y, bad, self._concentrations, self._wavelengths, self._levels, self._level_index, self._groups):
            array.flags.writeable = False

    @classmethod
    def from_arrays(cls, spectra: ArrayLike, concentrations: ArrayLike, wavelengths: ArrayLike, **kwargs: Any) -> Self:
        """The constructor under its descriptive name: ``spectra [N, W]``, ``concentrations [N]`` or ``[N, D]``,
        ``wavelengths [W]``, and the other arguments of the class as ``kwargs``.

        Raises:
            InputError: as the class.
        """
        return cls(spectra, concentrations, wavelengths, **kwargs)

    # --- arrays -------------------------------------------------------------------------------------------------

    @property
    def spectra(self) -> Floats:
        """``[N, W]``; NaN exactly where `mask` is True."""
        return self._spectra

    @property
    def concentrations(self) -> Floats:
        """``[N]`` for one analyte, ``[N, D]`` for several."""
        return self._concentrations[:, 0] if self.dim == 1 else self._concentrations

    @property
    def wavelengths(self) -> Floats:
        """``[W]``, ascending."""
        return self._wavelengths

    @property
    def levels(self) -> Floats:
        """The n distinct concentrations, ascending: ``[n]``, or ``[n, D]`` in lexicographic order."""
        return self._levels[:, 0] if self.dim == 1 else self._levels

    @property
    def level_index(self) -> NDArray[np.intp]:
        """``[N]``: which of `levels` each sample has."""
        return self._level_index

    @property
    def groups(self) -> NDArray[Any]:
        """``[N]``: label of each sample's replicate group."""
        return self._groups

    @property
    def mask(self) -> NDArray[np.bool_]:
        """``[N, W]``: True where a value is unusable."""
        return self._mask

    @property
    def dim(self) -> int:
        """D, the number of analytes."""
        return self._concentrations.shape[1]

    @property
    def units(self) -> dict[str, str]:
        """Units by what they measure: concentration, wavelength, signal."""
        return {
            "concentration": self.concentration_unit,
            "wavelength": self.wavelength_unit,
            "signal": self.signal_unit,
        }

    @property
    def _where(self) -> str:
        return checks.named_files(self.files)

    def __len__(self) -> int:
        return len(self._spectra)

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, W)``."""
        return self._spectra.shape[0], self._spectra.shape[1]

    # --- replicates ---------------------------------------------------------------------------------------------

    def level_means(self) -> Floats:
        """``[n, W]``: mean spectrum of each level; masked values are left out, NaN where a level has no other."""
        usable = ~self._mask
        totals = np.zeros((len(self._levels), self.shape[1]))
        counts = np.zeros_like(totals)
        np.add.at(totals, self._level_index, np.where(usable, self._spectra, 0.0))
        np.add.at(counts, self._level_index, usable)
        with np.errstate(invalid="ignore"):
            return totals / np.where(counts > 0, counts, np.nan)

    def replicate_deviations(self) -> Floats:
        """``[N, W]``: each spectrum minus the mean of its level."""
        return self._spectra - self.level_means()[self._level_index]

    @property
    def replicate_degrees_of_freedom(self) -> int:
        """N − n: 0 where no level was measured twice."""
        return len(self) - len(self._levels)

    # --- selections ---------------------------------------------------------------------------------------------

    def select_samples(self, index: ArrayLike | slice) -> SpectralDataset:
        """The samples at ``index`` (integers, booleans or a slice).

        Raises:
            InputError: an index that does not fit, or one that leaves nothing.
        """
        rows = arguments.picked(len(self), index)
        if rows.size == 0:
            raise InputError(f"{self._where}: the selection leaves no spectrum.")
        return self._derive(rows=rows)

    def select_wavelengths(self, index: ArrayLike | slice) -> SpectralDataset:
        """The wavelengths at ``index`` (integers, booleans or a slice).

        Raises:
            InputError: an index that does not fit, or one that leaves nothing.
        """
        columns = arguments.picked(self.shape[1], index)
        if columns.size == 0:
            raise InputError(f"{self._where}: the selection leaves no wavelength.")
        return self._derive(columns=columns)

    def wavelength_range(self, low: float, high: float) -> SpectralDataset:
        """The wavelengths from ``low`` to ``high``, both included, in `wavelength_unit`.

        Raises:
            InputError: no wavelength lies there, or an end that is no number.
        """
        low, high = arguments.span(low, high)
        inside = (self._wavelengths >= low) & (self._wavelengths <= high)
        if not inside.any():
            raise InputError(
                f"{self._where}: no wavelength between {low:g} and {high:g} {self.wavelength_unit}; "
                f"they run from {self._wavelengths[0]:g} to {self._wavelengths[-1]:g}."
            )
        return self.select_wavelengths(inside)

    def without_level(self, level: int) -> SpectralDataset:
        """Everything but the samples of ``levels[level]``, all its replicates together.

        Raises:
            InputError: no number of a level, from 0.
        """
        return self.select_samples(self._level_index != arguments.level_number(level, self._levels, self._where))

    def only_level(self, level: int) -> SpectralDataset:
        """The samples of ``levels[level]`` alone; errors as for `without_level`."""
        return self.select_samples(self._level_index == arguments.level_number(level, self._levels, self._where))

    def without_masked(self) -> SpectralDataset:
        """The wavelengths at which no value is masked; a note counts the rest.

        Raises:
            InputError: every wavelength has a masked value.
        """
        spoiled = np.asarray(self._mask.any(axis=0))
        if not spoiled.any():
            return self
        if spoiled.all():
            raise InputError(
                f"{self._where}: every wavelength has a masked value; leave out the spectra that are "
                "saturated throughout."
            )
        note = f"{int(spoiled.sum())} of {spoiled.size} wavelengths dropped, where a value is masked: {self._masked()}"
        return self._derive(columns=np.flatnonzero(~spoiled), notes=(*self.notes, note))

    def _masked(self) -> str:
        """Where values are masked and, if one level alone has them, the way round that."""
        at = self.wavelengths[self._mask.any(axis=0)]
        where = f"between {at.min():.6g} and {at.max():.6g} {self.wavelength_unit}".rstrip()
        of = np.unique(self.concentrations[self._mask.any(axis=1)], axis=0)
        alone = f", by the standard {format_level(of[0])} alone; without it they would be kept"
        return where + (alone if len(of) == 1 and len(self._levels) > 3 else "")

    def with_metadata(self, **changes: Any) -> SpectralDataset:
        """The same spectra with other ``concentration_unit``, ``analytes``, ``notes``, ``source``, ``signal``, …

        ``changes`` are such arguments of the class, by name.

        Raises:
            InputError: metadata of a name that does not exist.
        """
        unknown = set(changes) - set(self._metadata())
        if unknown:
            raise InputError(f"there is no such metadata as {sorted(unknown)}; there are {sorted(self._metadata())}.")
        return self._derive(**changes)

    def require_levels(self, minimum: int = 3) -> Self:
        """Itself, or an `InputError` if it has fewer than ``minimum`` levels or nothing in it changes between them."""
        n = len(self._levels)
        if n < minimum:
            found = ", ".join(format_level(level) for level in self._levels)
            raise InputError(
                f"{self._where}: {n} concentration level{'s' if n != 1 else ''} ({found}), but at least "
                f"{minimum} are needed; add standards of other concentrations."
            )
        means = self.level_means()
        checks.check_response(means, self._where)
        first = np.unique(self._level_index, return_index=True)[1]
        self._require_amounts()
        checks.check_empty_levels(means, [self.names[i] for i in first], self._where)
        checks.check_spikes(self.spectra, self.mask, self._level_index, self.names, self.wavelengths, self._where)
        return self

    def _require_amounts(self) -> None:
        from geonode.data.readers.names import is_unit

        if self.dim == 1:
            unit, where = self.concentration_unit, self._where
            said = checks.negative_levels(self.levels, unit, is_unit(unit), where)
            if said and said not in self.notes:
                self.notes += (said,)

    def _derive(self, *, rows: NDArray[np.intp] | None = None, columns: NDArray[np.intp] | None = None, **changes: Any):
        rows = np.arange(len(self)) if rows is None else rows
        columns = np.arange(self.shape[1]) if columns is None else columns
        given = {
            **self._metadata(),
            "groups": self._groups[rows],
            "names": [self.names[i] for i in rows],
            "mask": self._mask[np.ix_(rows, columns)],
            "_copies_allowed": True,  # few wavelengths, rounded, may agree by chance
            **changes,
        }
        spectra = self._spectra[np.ix_(rows, columns)]
        return SpectralDataset(spectra, self._concentrations[rows], self._wavelengths[columns], **given)

    def _metadata(self) -> dict[str, Any]:
        return {
            "concentration_unit": self.concentration_unit,
            "analytes": self.analytes,
            "notes": self.notes,
            "source": self.files,
            "signal": self.signal,
            "signal_unit": self.signal_unit,
            "wavelength_unit": self.wavelength_unit,
        }

    # --- other forms --------------------------------------------------------------------------------------------

    def tensors(
        self, device: str | torch.device | None = None, dtype: torch.dtype | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """``(concentrations [N] or [N, D], spectra [N, W], wavelengths [W])`` as tensors on ``device`` (None: the CPU)
        in ``dtype`` (None: float64).
        """
        import torch

        dtype = dtype or torch.float64
        arrays = (self.concentrations, self._spectra, self._wavelengths)
        concentrations, spectra, wavelengths = (torch.tensor(a, dtype=dtype, device=device) for a in arrays)
        return concentrations, spectra, wavelengths

    @property
    def xarray(self) -> xr.Dataset:
        """The same as an `xarray.Dataset`: dims (sample, wavelength), coords, units in attrs."""
        from geonode.data.storage import to_xarray

        return to_xarray(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write as NetCDF-4 to the file ``path``, complete or not at all; `geonode.load_standards` reads it back equal.

        Raises:
            InputError: the folder does not exist.
            OutputError: it cannot be written.
        """
        from geonode.data.storage import save

        save(self, path)

    # --- object -------------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        """Same values, units, names and groups; where they came from (`source`, `notes`) does not count."""
        if not isinstance(other, SpectralDataset):
            return NotImplemented
        mine, theirs = ({**d._metadata(), "notes": (), "source": ""} for d in (self, other))
        pairs = (
            (self._spectra, other._spectra),
            (self._concentrations, other._concentrations),
            (self._wavelengths, other._wavelengths),
        )
        return (
            mine == theirs
            and self.names == other.names
            and self._groups.tolist() == other._groups.tolist()
            and all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)
        )

    __hash__ = None  # pyright: ignore[reportAssignmentType] - compared by value, like an array

    def __repr__(self) -> str:
        return dataset_text(self)

    def _repr_html_(self) -> str:
        return dataset_html(self)
