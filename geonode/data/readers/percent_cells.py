"""Cells of a workbook that are shown as percent: they mean the percentage that is shown, as in the CSV of the sheet.

A header ``5%`` (stored as 0.05) is 5 %, and so is an entry in a column of concentrations. Spectra of which all values
are shown so, such as %T, are read as the percentages; where only some are, a factor of 100 lies between them, and they
are left as they are written, to be refused as no numbers.
"""

from __future__ import annotations

from geonode.data.readers import text


def spectra_as_shown(rows: list[list[str]]) -> tuple[list[list[str]], list[str]]:
    """The rows of a sheet with the percentages of its spectra as numbers, and what must be said of cells of percent."""
    percentages = [cell for row in rows for cell in row if _percentage(cell)]
    if not percentages:
        return rows, []
    example = next((cell for cell in percentages if float(cell[:-1])), percentages[0])
    many = "1 cell" if len(percentages) == 1 else f"{len(percentages)} cells"
    said = [f"{many} written as percent read as the percentage shown, such as {example[:-1]} %"]
    first = min(k for row in rows for k, cell in enumerate(row) if cell)
    data = [i for i, row in enumerate(rows) if len(row) > first and text.number(row[first]) is not None]
    values = [cell for i in data for cell in rows[i][first + 1 :] if cell]
    if not any(map(_percentage, values)) or any(text.number(cell) is not None for cell in values):
        return rows, said
    taken = set(data)
    plain = [
        [*row[: first + 1], *(cell.removesuffix("%") if _percentage(cell) else cell for cell in row[first + 1 :])]
        if i in taken
        else row
        for i, row in enumerate(rows)
    ]
    return plain, said


def _percentage(cell: str) -> bool:
    return cell.endswith("%") and text.number(cell[:-1]) is not None
