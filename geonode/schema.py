"""Versions of what geonode writes for other programs: one number per JSON output, tabled in docs/formats.md.

A number goes up where a reader of the earlier form would misread the new one: a key removed, renamed, or given another
meaning or unit. Keys that are only added leave it as it is, so readers must ignore keys they do not know.
"""

from __future__ import annotations

from typing import Any

from geonode.errors import InputError

SCHEMAS = {"evaluate": 1, "quantify": 1, "suggest": 1, "predict": 1, "inspect": 1, "report": 1, "sweep": 1, "bench": 1}
"""Version by output."""


def versioned(output: str, data: dict[str, Any]) -> dict[str, Any]:
    """``data`` with ``schema_version`` as its first key; ``output`` is one of SCHEMAS."""
    return {"schema_version": SCHEMAS[output], **data}


def require_readable(output: str, version: Any, name: str) -> None:
    """Refuse what a later release wrote.

    Raises:
        InputError: naming the file, both versions and the remedy.
    """
    known = SCHEMAS[output]
    if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= known:
        raise InputError(
            f"{name} has schema_version {version} of {output}, and this geonode reads up to {known}; upgrade geonode, "
            "or write the file again with this one."
        )
