"""Text as instruments write it: encodings, line ends, numbers. Shared by the text readers."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from geonode.errors import ReaderError

# More than any spectrometer writes as text; beyond it a file is a mistake, and memory stays bounded.
MAX_BYTES = 32 * 2**20

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?")
_CONTROL = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1a\x1b")) + b"\x7f"


def decode(data: bytes, path: Path) -> str:
    """Text of a file: UTF-8 or UTF-16 by its byte-order mark, else UTF-8, else Latin-1; NUL padding removed.

    Line ends, also mixed ones, become ``\\n``.

    Raises:
        ReaderError: binary content.
    """
    wide = _utf16(data)
    if wide:
        text = data.decode(wide, errors="replace")
    else:
        nuls = data.count(0)
        control = len(data) - len(data.translate(None, _CONTROL)) - nuls
        if nuls > 0.3 * len(data) or control > 0.01 * len(data):
            raise ReaderError(f"{path}: binary, and of no format known here; export the spectra as text (CSV).")
        data = data.replace(b"\0", b"")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = data.decode("latin-1")
    for old, new in (("\r\n", "\n"), ("\r", "\n"), ("\0", ""), ("\u2212", "-")):  # the last: a minus sign
        if old in text:
            text = text.replace(old, new)
    return text.lstrip("\ufeff")


def decode_head(head: bytes) -> str:
    """The beginning of a file as text, for recognition: never fails."""
    wide = _utf16(head)
    if wide:
        text = head[: len(head) // 2 * 2].decode(wide, errors="replace").lstrip("\ufeff")
    else:
        text = head.replace(b"\0", b"").decode("utf-8-sig", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2212", "-")


def _utf16(data: bytes) -> str:
    """The name of the encoding where text is in UTF-16: by its mark, or because every second byte is zero."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    head = data[:4096]
    if len(head) >= 16:
        for first, name in ((1, "utf-16-le"), (0, "utf-16-be")):
            zeros, letters = head[first::2].count(0), head[1 - first :: 2].count(0)
            if zeros > 0.9 * (len(head) // 2) and not letters:
                return name
    return ""


def read_text(path: Path) -> str:
    """`decode` of a whole file."""
    return decode(read_bytes(path), path)


def read_bytes(path: Path) -> bytes:
    """The whole file, if it is of a size that spectra have.

    Raises:
        ReaderError: larger than `MAX_BYTES`, or unreadable.
    """
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise ReaderError(f"{path}: {size / 2**20:.0f} MB of text is more than spectra take; split it.")
        return path.read_bytes()
    except OSError as error:
        raise ReaderError(f"{path}: cannot be read ({error.strerror}).") from None


def rows_of(text: str, delimiter: str, path: Path) -> list[list[str]]:
    """Cells of delimited text, stripped; quotes are honoured, and a stray quote is no error."""
    try:
        rows = list(csv.reader(text.split("\n"), delimiter=delimiter))
    except csv.Error as error:
        raise ReaderError(f"{path}: not delimited text ({error}).") from None
    return [[cell.strip() for cell in row] for row in rows]


def number(cell: str) -> float | None:
    """A plain decimal number, or None: ``nan``, ``inf``, ``1_000`` and words are none."""
    return float(cell) if _NUMBER.fullmatch(cell) else None


def shorten(cell: str, limit: int = 40) -> str:
    """A cell as an error message may quote it."""
    clean = "".join(c if c.isprintable() else "?" for c in cell)
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"
