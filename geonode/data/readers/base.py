"""What a reader is, and where all of them are listed.

A reader is one class in one file: it says what it reads, recognises such a file by its first bytes, and reads it.

    @READERS.register("mylab")
    class MyLabReader(Reader):
        format = "My laboratory's export"
        summary = "text of my laboratory (a line MYLAB, then pairs)"
        particularity = Particularity.MARK

        def sniff(self, head: bytes) -> bool:
            return head.startswith(b"MYLAB")

        def read(self, path: Path) -> Recording:
            recording = self.recording(path, signal="absorbance")
            ...
            return recording

A file in `geonode.data.readers.formats` is found without being listed anywhere; a class elsewhere counts from the
moment its module is imported. `geonode.testing.ReaderContract` tests either.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, ClassVar

from geonode.data.readers.recording import Recording
from geonode.errors import InputError
from geonode.registry import Registry
from geonode_runtime.wording import argument


class Particularity(IntEnum):
    """How sure a reader can be that a file is its own. The surer are asked first, so that order needs no list."""

    SIGNATURE = 0
    """Bytes at the beginning that no other format has."""
    STRUCTURE = 1
    """A binary header whose fields agree with each other."""
    MARK = 2
    """A line or a word that only this program writes."""
    HEADER = 3
    """The form of a header row."""
    SHAPE = 4
    """Nothing but rows of numbers: what is left to the last."""


@dataclass(frozen=True)
class ReadingOptions:
    """What whoever reads a file says of it.

    Attributes:
        decimal: ``.`` or ``,`` where numbers such as 1,050 may be read in two ways; the other mark then parts
            thousands. Empty: as the file shows, and what it leaves in doubt is refused.
        sheet: the one of a workbook's sheets that is meant; empty: all that hold spectra.

    Raises:
        InputError: another decimal mark.
    """

    decimal: str = ""
    sheet: str = ""

    def __post_init__(self) -> None:
        if self.decimal not in ("", ".", ","):
            raise InputError(
                f"the decimal mark is a point or a comma, not '{self.decimal}'; give {argument('decimal', '.')} or "
                f"{argument('decimal', ',')}."
            )


class Reader(ABC):
    """One format of files. Readers have no state; one object may read many files.

    Attributes:
        format: what it reads, in a few words, as messages call it.
        summary: the same with what tells it from others, for lists.
        particularity: how sure `sniff` can be; of two readers that recognise a file the surer one reads it.
        sidecars: endings of files of the same name that hold the concentrations, if the format has such.
        refuses: True for a format that is recognised only to be refused by its name.
        lists_files: True for what holds no spectra but the names of files of spectra.
        has_sheets: True for workbooks and for lists, which may name some.
        options: what whoever reads says of the file, for what it does not say itself.
    """

    format: ClassVar[str]
    summary: ClassVar[str]
    particularity: ClassVar[Particularity]
    sidecars: ClassVar[tuple[str, ...]] = ()
    refuses: ClassVar[bool] = False
    lists_files: ClassVar[bool] = False
    has_sheets: ClassVar[bool] = False
    options: ReadingOptions = ReadingOptions()

    @property
    def name(self) -> str:
        """The name under which the reader is registered."""
        return READERS.name_of(self)

    @abstractmethod
    def sniff(self, head: bytes) -> bool:
        """Whether a file that begins with these bytes (64 KiB at most) is of this format; never raises."""

    @abstractmethod
    def read(self, path: Path) -> Recording:
        """Everything that the file holds; what is dropped, masked, averaged or assumed goes into the notes.

        Raises:
            ReaderError: one sentence that names the file, the place and the remedy.
        """

    def recording(self, path: Path, **known: Any) -> Recording:
        """An empty recording of this format, to be filled; ``known`` are attributes of `Recording`."""
        known.setdefault("decimal", self.options.decimal)
        return Recording(path, self.format, [], sidecars=self.sidecars, **known)


HEAD = 2**16
"""So many bytes of a file are what `Reader.sniff` sees."""

READERS: Registry[type[Reader]] = Registry("reader", package=f"{__package__}.formats")


def all_readers() -> list[Reader]:
    """Every reader, the surest first; among equals those from outside geonode come first, then the order of names."""

    def rank(name: str) -> tuple[int, bool, str]:
        kind = READERS[name]
        return kind.particularity, kind.__module__.startswith("geonode."), name

    return [READERS[name]() for name in sorted(READERS, key=rank)]
