"""Consoles that cannot show every letter: what they lack is written in letters that they have, and nothing fails."""

from __future__ import annotations

import codecs
import functools
import io
import sys
import unicodedata
from collections.abc import Iterator

_PLAIN = {
    **{"μ": ("µ", "u"), "µ": ("μ", "u"), "×": ("x",), "·": (".",), "…": ("...",), "÷": ("/",)},
    **{"–": ("-",), "—": ("-",), "−": ("-",), "’": ("'",), "‘": ("'",), "←": ("<-",), "→": ("->",)},
    **{"≤": ("<=",), "≥": (">=",), "±": ("+/-",), "≈": ("~",), "≠": ("!=",), "∞": ("inf",)},
    **{"λ": ("lambda",), "φ": ("phi",), "σ": ("sigma",), "ν": ("nu",), "η": ("eta",), "θ": ("theta",)},
    **{"━": ("=",), "─": ("-",), "│": ("|",), "┃": ("|",), "█": ("#",), "╸": ("=",), "╺": ("=",)},
}
"""A letter → texts that may stand for it, the best first."""


def say_everything() -> None:
    """Make standard output and error write what their encoding lacks in plain letters, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            name = f"geonode-plain-{stream.encoding}"
            codecs.register_error(name, functools.partial(_plain, encoding=stream.encoding))
            stream.reconfigure(errors=name)


def _plain(error: UnicodeError, encoding: str) -> tuple[str | bytes, int]:
    """Handler of `codecs.register_error`, which is not told the encoding's name by the error of every codec. Bytes of a
    file name that are no text go out as they came in."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letter = error.object[error.start]
    if "\udc80" <= letter <= "\udcff":
        return bytes([ord(letter) - 0xDC00]), error.start + 1
    return next(text for text in _ways(letter) if _can(text, encoding)), error.start + 1


def _ways(letter: str) -> Iterator[str]:
    """Texts for one letter, the nearest first; the last can be written anywhere."""
    yield from _PLAIN.get(letter, ())
    bare = "".join(c for c in unicodedata.normalize("NFKD", letter) if not unicodedata.combining(c))
    if bare and bare != letter:
        yield bare
    yield "?"


def _can(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
