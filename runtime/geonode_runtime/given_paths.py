"""Names of files as they are given to a function or a command: what is none is one sentence that names the argument."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from geonode_runtime.errors import InputError
from geonode_runtime.given_numbers import short


def as_path(value: Any, what: str) -> Path:
    """``value``, text or a path, as a path.

    Args:
        what: the argument, as a sentence begins with it.

    Raises:
        InputError: neither of the two, or an empty name, which would be that of the folder one is in.
    """
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"{what} must be the name of a file, but {short(value)} was given.")
    if not os.fspath(value):
        raise InputError(f"{what} is empty; give the name of a file, or '.' for the folder you are in.")
    return Path(value)
