"""What a command may write over: never what it reads, never a file of somebody else's, its own only if told so."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from geonode_runtime.errors import InputError
from geonode_runtime.files import require_replaceable
from geonode_runtime.wording import argument

LARGEST = 64 * 2**20
"""A larger file is none of the small ones that are recognised by their content as a whole."""

_WORD = re.compile(r"\.[A-Za-z]\w*")


@dataclass(frozen=True)
class Output:
    """A kind of file that is written.

    Attributes:
        what: it is, in words.
        suffixes: of its names, small letters; an empty one where none is needed.
        is_ours: whether a file that is there, and not empty, is one that geonode wrote.
    """

    what: str
    suffixes: tuple[str, ...]
    is_ours: Callable[[Path], bool]

    def require_suffix(self, path: Path) -> None:
        """Refuse a name that says that the file is something else. What is no word, as in ``v1.2``, is no suffix.

        Raises:
            InputError: naming the suffixes there are.
        """
        suffix = path.suffix.lower() if _WORD.fullmatch(path.suffix) else ""
        if suffix not in self.suffixes:
            named = [one for one in self.suffixes if one]
            ways = ", ".join(named[:-1]) + (f" or {named[-1]}" if named[:-1] else named[-1])
            without = " or without a suffix" if "" in self.suffixes else ""
            own = f"not as {suffix}" if suffix else "and this name has no suffix"
            raise InputError(f"{path}: {self.what} is written as {ways}{without}, {own}; give such a name.")


def check_writable(path: Path) -> None:
    """Refuse a folder, a device, or a place where nothing can be written.

    Raises:
        InputError: naming the path; `OutputError` for a device or a pipe.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder; give a file name.")
    require_replaceable(path)
    if not path.absolute().parent.is_dir():
        raise InputError(f"The folder {path.parent} does not exist; create it first.")
    if not os.access(path.absolute().parent, os.W_OK):
        raise InputError(f"The folder {path.parent} cannot be written; choose another.")


def check_output(path: Path, kind: Output, inputs: Iterable[Path | None] = (), *, force: bool = False) -> None:
    """Refuse an output before any work is done.

    Args:
        path: to be written. kind: what will be written.
        inputs: files that the command reads, None for one that was not given.
        force: a file of this kind that is there may be replaced.

    Raises:
        InputError: a place where nothing can be written, another suffix, one of the inputs, a file that is no such
            output, or one that is and ``force`` is not given.
    """
    check_writable(path)
    refuse_inputs(path, inputs)
    kind.require_suffix(path)
    if not path.exists() or path.stat().st_size == 0:
        return
    if not kind.is_ours(path):
        raise InputError(
            f"{path} is there already, and {kind.what} that geonode wrote it is not; give another name, or remove it "
            "first."
        )
    if not force:
        raise InputError(f"{path} is there already; give another name, or {argument('force', True)} to replace it.")


def refuse_inputs(path: Path, inputs: Iterable[Path | None]) -> None:
    """Refuse to write over what the command reads, under whatever name.

    Raises:
        InputError: naming it.
    """
    for one in inputs:
        if one is not None and (_same(path, one)):
            raise InputError(f"{path} is read by this command and would be overwritten; give another name to write.")


def _same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:  # one of them is not there
        return path.resolve() == other.resolve()


def content(path: Path) -> bytes:
    """All of a file that is not too large to be one of those that are recognised so; else nothing."""
    try:
        return path.read_bytes() if path.stat().st_size <= LARGEST else b""
    except OSError:
        return b""


def _is_answer(path: Path) -> bool:
    try:
        found = json.loads(content(path))
    except ValueError:
        return False
    return isinstance(found, dict) and "schema_version" in found


def _is_prediction(path: Path) -> bool:
    return content(path).startswith((b"wavelength,mean_", b"wavelength,preprocessed_mean_"))


ANSWER = Output("a result as JSON", (".json",), _is_answer)
PREDICTION = Output("a table of predicted spectra", (".csv",), _is_prediction)
