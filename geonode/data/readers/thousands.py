"""Headers whose commas may part thousands, in a file whose other numbers have decimal points."""

from __future__ import annotations

import re
from collections.abc import Sequence

from geonode.data.readers.dialect import two_readings
from geonode.data.readers.recording import Recording
from geonode_runtime.wording import argument

_PARTED = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+")
_PLAIN = re.compile(r"[\d.]+")


def require_no_thousands(header: Sequence[str], recording: Recording) -> None:
    """Refuse a level such as ``1,000`` beside others that are numbers: a thousand, or one with a decimal comma.

    Raises:
        ReaderError: with both readings, and what decides.
    """
    parted = [cell for cell in header if _PARTED.fullmatch(cell)]
    if not parted or recording.decimal or any(not _PLAIN.fullmatch(cell) for cell in header if cell not in parted):
        return
    cell = parted[0]
    whole = cell.replace(",", "")
    may_be = two_readings(cell, ",") if cell.count(",") == 1 else f"{whole} or no number"
    raise recording.fail(
        f"a column is headed '{cell}', which is {may_be}; say that the point is decimal ({argument('decimal', '.')}) "
        f"where {whole} is meant, or write the level without a separator."
    )
