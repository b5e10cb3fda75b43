"""One table writer: the same rows as HTML, Markdown, a rich table for the terminal, or CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from geonode.report import shell
from geonode_runtime.figures import figure

if TYPE_CHECKING:
    import rich.table


class Strong(str):
    """Text that stands out."""


Cell: TypeAlias = str | Sequence[str]
"""Plain text, or several pieces of it, some of them :class:`Strong`. Writers escape it."""


@dataclass(frozen=True)
class Table:
    """Rows of plain text under their headings.

    Attributes:
        title: what the table is called.
        head: a heading for each column.
        rows: a cell for each column.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def html(self) -> str:
        """An HTML table in a box that scrolls; the title is what a screen reader calls it."""
        return shell.table(self.head, [[_html(cell) for cell in row] for row in self.rows], self.title)

    def markdown(self) -> list[str]:
        """Lines of Markdown."""
        lines = [self.head, ["---"] * len(self.head), *([_markdown(cell) for cell in row] for row in self.rows)]
        return ["| " + " | ".join(line) + " |" for line in lines]

    def rich(self, emphasised: Sequence[int] = ()) -> rich.table.Table:
        """A rich table: the first column left, numbers right; the ``emphasised`` rows in bold."""
        from rich.markup import escape as plain
        from rich.table import Table as RichTable

        table = RichTable(title=self.title)
        for number, heading in enumerate(self.head):
            table.add_column(heading, justify="right" if number else "left")
        for number, row in enumerate(self.rows):
            cells = [plain(" ".join(_pieces(cell))) for cell in row]
            table.add_row(*cells, style="bold" if number in emphasised else None)
        return table


def _pieces(cell: Cell) -> Sequence[str]:
    return [cell] if isinstance(cell, str) else cell


def _html(cell: Cell) -> str:
    parts = []
    for piece in _pieces(cell):
        text = escape(piece)
        parts.append(f"<strong>{text}</strong>" if isinstance(piece, Strong) else text)
    return "<br>".join(parts)


def _markdown(cell: Cell) -> str:
    texts = [piece.replace("|", "\\|") for piece in _pieces(cell)]
    strong = [isinstance(piece, Strong) for piece in _pieces(cell)]
    return " ".join(f"**{text}**" if bold else text for text, bold in zip(texts, strong, strict=True))


def number(value: float | None, unit: str = "", beside: float = 0.0) -> str:
    """Three significant digits and the unit, 0 where it is nothing ``beside`` another (`geonode_runtime.figures`); a
    dash where there is no number."""
    if value is None or not math.isfinite(value):
        return "–"
    return figure(value, unit, beside=beside, digits=3)


def percent(value: float | None) -> str:
    """A share in whole percent; a dash where there is none."""
    return "–" if value is None or not math.isfinite(value) else f"{100 * value:.0f} %"


def csv_text(columns: dict[str, Any]) -> str:
    """Columns of equal length under their headings, numbers with ten significant digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True):
        writer.writerow([value if isinstance(value, str) else f"{value:.10g}" for value in row])
    return text.getvalue()


def csv_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of values by heading as CSV; None is an empty cell, numbers have ten significant digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    heads = list(rows[0]) if rows else []
    writer.writerow(heads)
    for row in rows:
        writer.writerow([f"{row[h]:.10g}" if isinstance(row[h], float) else row[h] for h in heads])
    return text.getvalue()
