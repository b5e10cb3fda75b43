"""What a workbook says of its cells beside their values: which are shown as percent, and which head several columns.

`python-calamine` gives neither, so the XML is read here. This text is run in the process of its own that reads the
workbook (:mod:`geonode.data.readers.foreign`): it imports nothing of geonode. Binary workbooks (.xlsb) say nothing.
"""

import io
import re
import zipfile
from collections.abc import Iterator
from decimal import Decimal
from posixpath import join, normpath
from xml.etree import ElementTree

_MERGED = re.compile(rb'mergeCell\b[^>]*?\bref="([A-Z]{1,3})(\d+):([A-Z]{1,3})(\d+)"')
_TEXTS = ("s", "str", "inlineStr", "b", "e", "d")
_NUMBER = re.compile(r"[+-]?[\d.]+(e[+-]?\d+)?")
_BUILT_IN = (9, 10)
"""Numbers of the formats ``0%`` and ``0.00%``, which every workbook has."""


def marks_of(path: str) -> dict[str, tuple[list[tuple[int, int, int, int]], list[tuple[int, int, int]]]]:
    """By sheet: blocks of cells shown as percent (row, column, rows, columns), and merged cells (row, column,
    columns)."""
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        if "xl/workbook.xml" in names:
            return _of_excel(archive, names)
        if "content.xml" in names:
            return _of_opendocument(archive.read("content.xml"))
    return {}


def write_as_shown(
    rows: list[list[str]], percent: list[tuple[int, int, int, int]], merged: list[tuple[int, int, int]]
) -> bool:
    """Write cells of a sheet as they are shown: ``5%`` for 0.05, and in each merged column what heads them; whether
    that was done above values. Over values, whose first column holds a number, and in a row of one title nothing is
    merged."""
    for top, left, height, width in percent:
        for row in rows[top : top + height]:
            for k in range(left, min(left + width, len(row))):
                row[k] = _shown(row[k])
    used = [k for row in rows for k, cell in enumerate(row[:64]) if cell]
    first, done = min(used, default=0), False
    for top, left, width in merged:
        row = rows[top] if top < len(rows) else []
        stop = min(left + width, len(row))
        headed = left < len(row) and row[left] and left > first and not _NUMBER.fullmatch(row[first])
        if headed and sum(map(bool, row)) > 1 and not any(row[left + 1 : stop]):
            row[left + 1 : stop] = [row[left]] * (stop - left - 1)
            done = done or (top + 1 < len(rows) and bool(_NUMBER.fullmatch(rows[top + 1][first])))
    return done


def _shown(cell: str) -> str:
    if not _NUMBER.fullmatch(cell):
        return cell
    value = Decimal(cell) * 100
    return f"{value.normalize() if value else Decimal(0):f}%"


# --- Excel -----------------------------------------------------------------------------------------------------------


def _of_excel(archive: zipfile.ZipFile, names: set[str]):
    links = _relations(archive, "xl/_rels/workbook.xml.rels") if "xl/_rels/workbook.xml.rels" in names else {}
    styles = next((target for kind, target in links.values() if kind.endswith("/styles")), "")
    percent = _percent_styles(archive.read(styles)) if styles in names else set()
    found = {}
    for element in ElementTree.fromstring(archive.read("xl/workbook.xml")).iter():
        if _local(element.tag) != "sheet":
            continue
        link = next((value for key, value in element.attrib.items() if _local(key) == "id"), "")
        part = links.get(link, ("", ""))[1]
        if part in names:
            content = archive.read(part)
            shown = list(_percent_cells(content, percent)) if percent else []
            merged = [
                (int(top) - 1, _column(left), _column(right) - _column(left) + 1)
                for left, top, right, _ in _MERGED.findall(content)
                if right != left
            ]
            found[element.attrib.get("name", "")] = shown, merged
    return found


def _relations(archive: zipfile.ZipFile, part: str) -> dict[str, tuple[str, str]]:
    """(kind, part) of what a workbook refers to, by its key."""
    found = {}
    for one in ElementTree.fromstring(archive.read(part)):
        target = one.attrib.get("Target", "")
        found[one.attrib.get("Id", "")] = one.attrib.get("Type", ""), normpath(join("/xl", target)).lstrip("/")
    return found


def _percent_styles(content: bytes) -> set[str]:
    """Numbers of the styles of cells whose format shows a percentage; a percent sign in quotes is text."""
    root = ElementTree.fromstring(content)
    formats = set(map(str, _BUILT_IN))
    for one in root.iter():
        if _local(one.tag) == "numFmt" and "%" in re.sub(r'"[^"]*"|\\.', "", one.attrib.get("formatCode", "")):
            formats.add(one.attrib.get("numFmtId", ""))
    styles = next((one for one in root if _local(one.tag) == "cellXfs"), ())
    return {str(k) for k, one in enumerate(styles) if one.attrib.get("numFmtId", "") in formats}


def _percent_cells(content: bytes, percent: set[str]) -> Iterator[tuple[int, int, int, int]]:
    """Cells of these styles that are numbers; rows and cells that say no place follow the one before."""
    row = column = -1
    for event, element in ElementTree.iterparse(io.BytesIO(content), ("start", "end")):
        kind = _local(element.tag)
        if event == "start" and kind == "row":
            row, column = int(element.attrib.get("r", row + 2)) - 1, -1
        elif event == "start" and kind == "c":
            place = re.match(r"[A-Z]+", element.attrib.get("r", ""))
            column = _column(place.group().encode()) if place else column + 1
            if element.attrib.get("s") in percent and element.attrib.get("t", "n") not in _TEXTS:
                yield row, column, 1, 1
        elif event == "end" and kind == "row":
            element.clear()


def _column(letters: bytes) -> int:
    """``A`` → 0, ``AA`` → 26."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number - 1


# --- OpenDocument ----------------------------------------------------------------------------------------------------


def _of_opendocument(content: bytes):
    found = {}
    if b"percentage" not in content and b"columns-spanned" not in content:
        return found
    row, percent, merged = 0, [], []
    for event, element in ElementTree.iterparse(io.BytesIO(content), ("start", "end")):
        kind = _local(element.tag)
        if event == "start" and kind == "table":
            row, percent, merged = 0, [], []
            found[_attribute(element, "name")] = percent, merged
        elif event == "end" and kind == "table-row":
            column, rows = 0, int(_attribute(element, "number-rows-repeated") or 1)
            for cell in element:
                width = int(_attribute(cell, "number-columns-repeated") or 1)
                if _attribute(cell, "value-type") == "percentage":
                    percent.append((row, column, rows, width))
                spanned = int(_attribute(cell, "number-columns-spanned") or 1)
                if spanned > 1:
                    merged.append((row, column, spanned))
                column += width
            row += rows
            element.clear()
    return found


def _attribute(element: ElementTree.Element, name: str) -> str:
    return next((value for key, value in element.attrib.items() if _local(key) == name), "")


def _local(name: str) -> str:
    """A name without its namespace."""
    return name.rpartition("}")[2]
