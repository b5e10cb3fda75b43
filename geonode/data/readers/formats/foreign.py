"""Files that are no spectra, refused for what they are: their first bytes say it."""

from __future__ import annotations

from pathlib import Path

from geonode.data.readers.base import READERS, Particularity, Reader
from geonode.data.readers.recording import Recording
from geonode.errors import ReaderError

_EXPORT = "export the spectra as text from the program that made it"
_KINDS = (
    (b"\x1f\x8b", "compressed by gzip", "unpack it and give the file inside"),
    (b"BZh", "compressed by bzip2", "unpack it and give the file inside"),
    (b"\xfd7zXZ\x00", "compressed by xz", "unpack it and give the file inside"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "unpack it and give a file in it"),
    (b"%PDF-", "a PDF document", _EXPORT),
    (b"\x89PNG\r\n\x1a\n", "a PNG picture", _EXPORT),
    (b"\xff\xd8\xff", "a JPEG picture", _EXPORT),
)
_BUNDLE = "a bundle or weights of geonode and no spectra", "name the bundle first and the spectra after it"


@READERS.register("foreign")
class ForeignReader(Reader):
    """Archives, documents, pictures and bundles, recognised to be refused by name."""

    format = "foreign file"
    summary = "archives, PDF, pictures, geonode's own bundles (named for what they are, not read)"
    particularity = Particularity.SIGNATURE
    refuses = True

    def sniff(self, head: bytes) -> bool:
        """A known signature, or the header of a safetensors file: its length in eight bytes, then JSON."""
        return _kind_of(head) is not None

    def read(self, path: Path) -> Recording:
        """Refuse the file by name.

        Raises:
            ReaderError: always.
        """
        with path.open("rb") as file:
            what, remedy = _kind_of(file.read(64)) or ("no spectra", _EXPORT)
        raise ReaderError(f"{path}: {what}; {remedy}.")


def _kind_of(head: bytes) -> tuple[str, str] | None:
    for signature, what, remedy in _KINDS:
        if head.startswith(signature):
            return what, remedy
    return _BUNDLE if head[5:10] == b'\x00\x00\x00{"' else None
