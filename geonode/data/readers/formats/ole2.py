"""OLE2 compound files, refused for what they are: UVProbe gives its own the ending .spc of another format."""

from __future__ import annotations

from pathlib import Path

from geonode.data.readers.recording import Recording
from geonode.errors import ReaderError

FORMAT = "OLE2 compound file"
SUMMARY = "OLE2 compound files (named for what they are, not read)"

_SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def sniff(head: bytes) -> bool:
    """The signature of the compound file format, also of one that is cut off."""
    return head.startswith(_SIGNATURE)


def read(path: Path) -> Recording:
    """Refuse the file by name.

    Raises:
        ReaderError: always.
    """
    raise ReaderError(
        f"{path}: an OLE2 compound file, as Shimadzu UVProbe saves its .spc and Excel its .xls, and no Thermo/Galactic "
        "SPC; export the spectra as text from the program that wrote it."
    )
