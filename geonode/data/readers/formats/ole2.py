"""OLE2 compound files, refused for what they are: UVProbe gives its own the ending .spc of another format."""

from __future__ import annotations

from pathlib import Path

from geonode.data.readers.base import READERS, Particularity, Reader
from geonode.data.readers.recording import Recording
from geonode.errors import ReaderError

_SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


@READERS.register("ole2")
class Ole2Reader(Reader):
    """Compound files, recognised to be refused by name."""

    format = "OLE2 compound file"
    summary = "OLE2 compound files (named for what they are, not read)"
    particularity = Particularity.SIGNATURE
    refuses = True

    def sniff(self, head: bytes) -> bool:
        """The signature of the compound file format, also of one that is cut off."""
        return head.startswith(_SIGNATURE)

    def read(self, path: Path) -> Recording:
        """Refuse the file by name.

        Raises:
            ReaderError: always.
        """
        raise ReaderError(
            f"{path}: an OLE2 compound file, as Shimadzu UVProbe saves its .spc and Excel its .xls, and no "
            "Thermo/Galactic SPC; export the spectra as text from the program that wrote it."
        )
