"""Tables of results as files: CSV, or a workbook of Excel, with numbers as numbers."""

from __future__ import annotations

import importlib.util
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geonode.errors import InputError
from geonode.report.tables import csv_rows
from geonode_runtime.files import write_atomically, write_text
from geonode_runtime.refused import Refused

if TYPE_CHECKING:
    from geonode.calibration.calibration import Calibration
    from geonode.report.answer import Answer

SUFFIXES = (".csv", ".xlsx")


def can_write_workbooks() -> bool:
    """Whether the package XlsxWriter is there."""
    return importlib.util.find_spec("xlsxwriter") is not None


def require_table_name(path: Path) -> None:
    """Refuse a name that `write_table` could not write.

    Raises:
        InputError: another suffix, or a workbook without the package that writes it.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: a table of results is written as {' or '.join(SUFFIXES)}; give such a name.")
    if path.suffix.lower() == ".xlsx" and not can_write_workbooks():
        raise InputError(
            f"{path}: workbooks need the package XlsxWriter; pip install 'geodesic-node[readers]', or .csv."
        )


def write_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write ``rows``, each a value by heading (the headings of the first), as CSV or workbook, whole or not at all.

    Raises:
        InputError: see `require_table_name`.
    """
    require_table_name(path)
    if path.suffix.lower() == ".csv":
        return write_text(path, csv_rows(rows))
    return write_atomically(path, lambda temporary: Path(temporary).write_bytes(workbook(rows)))


def workbook(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """A workbook with one sheet, ``rows`` under their headings; None is an empty cell."""
    import xlsxwriter

    buffer = io.BytesIO()
    # text stays text: a sample called "=1+1" is no formula
    options = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "nan_inf_to_errors": True}
    book = xlsxwriter.Workbook(buffer, options)
    book.set_properties({"author": "geonode"})
    sheet, bold = book.add_worksheet("results"), book.add_format({"bold": True})
    heads = list(rows[0]) if rows else []
    for column, head in enumerate(heads):
        sheet.write(0, column, head, bold)
        for row, values in enumerate(rows):
            if values[head] is not None:
                sheet.write(row + 1, column, values[head])
    sheet.freeze_panes(1, 0)
    sheet.autofit()
    book.close()
    return buffer.getvalue()


def answer_rows(answers: Sequence[Answer | Refused], unit: str) -> list[dict[str, Any]]:
    """A row for each answer: verdict, estimate, set, cause; what was refused has its reason and no numbers.

    Args:
        answers: of unknowns. unit: of concentrations.
    """
    behind = f" / {unit}" if unit else ""
    return [_refused_row(one, behind) if isinstance(one, Refused) else _answer_row(one, behind) for one in answers]


def _answer_row(answer: Answer, unit: str) -> dict[str, Any]:
    low, high = answer.interval if answer.rests_on(answer.level) == "standards" else answer.model_interval
    found = answer.explanation
    return {
        "name": answer.name,
        "verdict": answer.verdict,
        f"estimate{unit}": answer.estimate,
        f"low{unit}": low,
        f"high{unit}": high,
        "level": answer.level,
        "interval rests on": answer.rests_on(answer.level) if answer.matches else None,
        "replicates": answer.replicates,
        "dilution": answer.dilution,
        "cause": None if found is None else found.cause,
        "why": "; ".join(answer.why),
        "notes": "; ".join(answer.notes),
    }


def _refused_row(refused: Refused, unit: str) -> dict[str, Any]:
    numbers = (f"estimate{unit}", f"low{unit}", f"high{unit}", "level", "interval rests on", "replicates", "dilution")
    head = {"name": refused.name, "verdict": refused.verdict, **dict.fromkeys(numbers)}
    return {**head, "cause": None, "why": refused.reason, "notes": ""}


def standard_rows(calibration: Calibration, names: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each spectrum of the standards: found with all in place, and with its own level left out."""
    unit, held = f" / {calibration.unit}" if calibration.unit else "", calibration.held_out
    left = {int(row): k for k, row in enumerate(held.rows)}
    rows = []
    for i, result in enumerate(calibration.quantify_many(calibration.measured.spectra, genuine=True)):
        k = left.get(i)
        low, high = (None, None) if k is None else (_finite(held.interval[k, 0]), _finite(held.interval[k, 1]))
        rows.append(
            {
                "standard": names[i] if i < len(names) else f"spectrum {i + 1}",
                f"prepared{unit}": float(calibration.concentrations[i]),
                "verdict": result.verdict,
                f"found{unit}": result.estimate,
                f"found, its level left out{unit}": None if k is None else float(held.estimate[k]),
                f"80 % set, low{unit}": low,
                f"80 % set, high{unit}": high,
            }
        )
    return rows


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
