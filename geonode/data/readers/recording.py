"""What a reader found in a file, before concentrations and wavelength grids are reconciled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from geonode.data.checks import Floats
from geonode.data.dataset import SpectralDataset
from geonode.errors import ReaderError


@dataclass
class Trace:
    """One spectrum as the file has it.

    Attributes:
        name: what the file calls it.
        wavelengths, values: ``[w]``, in the file's order.
        place: where it stands, such as ``column 3``.
        concentration: one value per analyte, or None where the file does not say.
        series: name of the series it belongs to, where a file may hold several.
        group: label of its replicate group, if the file has one.
        masked: ``[w]``, True where the value is unusable; None if nothing is.
        unknown: the file says that the concentration is not known: no standard.
        attributes: what else is known of the sample, by name, such as ``{"pH": "7.4"}``; selections may use it.
        conditions: those attributes that are numbers and may matter as much as the concentration.
        doubt: why no concentration could be taken from its name, though it holds one.
        keys: names under which a table of concentrations may list it, such as a well or a file name.
    """

    name: str
    wavelengths: Floats
    values: Floats
    place: str
    concentration: tuple[float, ...] | None = None
    series: str = ""
    group: str | None = None
    masked: np.ndarray | None = None
    unknown: bool = False
    attributes: dict[str, str] = field(default_factory=dict)
    conditions: dict[str, float] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    doubt: str = ""

    def __post_init__(self) -> None:
        if self.masked is not None and not self.masked.any():
            self.masked = None


@dataclass
class Recording:
    """Everything a reader found in one file.

    Attributes:
        path: the file. format: what it is, in words.
        traces: the spectra, in the file's order.
        concentrations_from: where the concentrations were found; empty if nowhere.
        notes: what was dropped, masked, averaged or assumed.
        on_concentrations: the same of where its concentrations were found, which is not said of unknowns.
        on_all: what must be said of all files that are read together, of none of them; the first of them has it.
        without_entry: the sentence that a table of concentrations lacks some of its spectra; empty if none. It is said
            of its concentrations too.
        untold: why the concentrations that the file itself says cannot be told; raised where they would be used.
        mask_reasons: how many values were masked by the reader, by reason.
        repairs: True where values at the detector's cap are to be masked; False where the file says itself what is.
        averages_duplicates: True where an instrument wrote the file, so that wavelengths recorded twice are averaged;
            False where a person did, who is told of them instead.
        numbers_are_typed: the file holds numbers as numbers, so that none can be read in two ways.
        decimal: the decimal mark that whoever reads says; the other mark then parts thousands. Empty where the file
            must tell it.
        dataset: the file as a whole, where it holds a complete data set.
        sidecars: endings of a file of the same name that would hold the concentrations.
    """

    path: Path
    format: str
    traces: list[Trace]
    concentrations_from: str = ""
    concentration_unit: str = ""
    analytes: Sequence[str] | None = None
    wavelength_unit: str = "nm"
    signal: str = "absorbance"
    signal_unit: str = ""
    notes: list[str] = field(default_factory=list)
    on_concentrations: list[str] = field(default_factory=list)
    on_all: list[str] = field(default_factory=list)
    without_entry: str = ""
    untold: ReaderError | None = None
    mask_reasons: Counter[str] = field(default_factory=Counter)
    repairs: bool = True
    averages_duplicates: bool = True
    numbers_are_typed: bool = False
    decimal: str = ""
    dataset: SpectralDataset | None = None
    sidecars: tuple[str, ...] = ()

    def said_of_standards(self) -> list[str]:
        """What is to be said of the file where its spectra are standards, each note once."""
        return list(dict.fromkeys(filter(None, [*self.notes, *self.on_concentrations, self.without_entry])))

    def require_points(self, found: int, stated: float, where: str = "") -> None:
        """Fewer points than a header announces are a truncated file; more are noted, as of a spectrum put together.

        Args:
            found: points that are there. stated: points announced. where: begins the sentence, if given.

        Raises:
            ReaderError: fewer than announced.
        """
        if found < stated:
            raise self.fail(
                f"{where}{found} points but the header says {stated:g}; the file seems to be truncated, so export it "
                "again."
            )
        if found > stated:
            self.notes.append(f"{where}{found} points, more than the {stated:g} that the header says; all were read")

    def fail(self, what: str) -> ReaderError:
        """A `ReaderError` that begins with the file; raise it."""
        return ReaderError(f"{self.path}: {what}")
