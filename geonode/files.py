"""Files that are written whole or not at all: the one place that knows how."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def write_atomically(path: str | os.PathLike[str], write: Callable[[str], object]) -> Path:
    """Call ``write(temporary_path)`` in the folder of ``path``, flush to disk, then rename over ``path``.

    Whatever stands under that name stays untouched until the new file is complete; a failure leaves no trace.

    Raises:
        OSError: the folder cannot be written; and whatever ``write`` raises.
    """
    path = Path(path)
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
    """`write_atomically` for text, in UTF-8 with the line ends as they are."""
    return write_atomically(path, lambda temporary: Path(temporary).write_text(text, encoding="utf-8", newline=""))
