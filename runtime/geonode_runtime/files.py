"""Files that are written whole or not at all: the one place that knows how."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from geonode_runtime.errors import OutputError


def write_atomically(path: str | os.PathLike[str], write: Callable[[str], object]) -> Path:
    """Call ``write(temporary_path)`` in the folder of ``path``, flush to disk, then rename over ``path``.

    Whatever stands under that name stays untouched until the new file is complete; a failure leaves no trace. A
    symbolic link stays one: the file it points to is replaced.

    Raises:
        OutputError: no regular file stands there, or the folder cannot be written; and whatever ``write`` raises.
    """
    named, path = path, Path(os.path.realpath(path))
    require_replaceable(named)
    try:
        return _replaced(path, write)
    except OSError as error:
        raise OutputError(
            f"{named} could not be written ({error.strerror or error}); give another place, or make room there."
        ) from error


def require_replaceable(path: str | os.PathLike[str]) -> None:
    """Refuse a device, a pipe or a folder: to rename a file over one would remove it.

    Raises:
        OutputError: naming the path.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        raise OutputError(f"{path} is no regular file; give the name of a file to write.")


def _replaced(path: Path, write: Callable[[str], object]) -> Path:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    try:
        write(temporary)
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # mkstemp is private; a finished file has the user's usual permissions
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return path


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """`write_atomically` for text, in UTF-8 with the line ends as they are.

    Names of files that are no UTF-8 stand in a text as lone surrogates; they are written as ``\\udce4``, which in JSON
    gives the name back.
    """
    data = text.encode("utf-8", errors="backslashreplace")
    return write_atomically(path, lambda temporary: Path(temporary).write_bytes(data))
