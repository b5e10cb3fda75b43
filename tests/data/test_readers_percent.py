"""Cells that a workbook shows as percent are the percentage, wherever they stand; merged headers head their columns."""

from __future__ import annotations

import io

import numpy as np
import pytest

import geonode
from geonode.data.readers import read_file
from geonode.data.readers.percent_cells import spectra_as_shown
from geonode.data.readers.sheet_marks import write_as_shown
from geonode.errors import ReaderError
from tests.data import samples

pytest.importorskip("python_calamine")
xlsxwriter = pytest.importorskip("xlsxwriter")
LEVELS = [0.0, 5.0, 12.5, 40.0]
SPECTRA = np.array([samples.spectrum(c) for c in LEVELS])


class Percent(float):
    """A number that its workbook shows as percent."""


def excel(rows, form: str = "0%", merged=()) -> bytes:
    buffer = io.BytesIO()
    book = xlsxwriter.Workbook(buffer, {"in_memory": True})
    sheet, percent = book.add_worksheet("Cal"), book.add_format({"num_format": form})
    for i, row in enumerate(rows):
        for k, value in enumerate(row):
            if value != "":
                sheet.write(i, k, value, *([percent] if isinstance(value, Percent) else []))
    for row, first, last in merged:
        value = rows[row][first]
        sheet.merge_range(row, first, row, last, value, percent if isinstance(value, Percent) else None)
    book.close()
    return buffer.getvalue()


def open_document(rows, merged=()) -> bytes:
    """`samples.ods` with cells of the type percentage, and merged ones."""
    spans = {(row, first): last - first + 1 for row, first, last in merged}

    def cell(i: int, k: int, value) -> str:
        span = f' table:number-columns-spanned="{spans[i, k]}"' if (i, k) in spans else ""
        if isinstance(value, str):
            return f'<table:table-cell{span} office:value-type="string"><text:p>{value}</text:p></table:table-cell>'
        kind = "percentage" if isinstance(value, Percent) else "float"
        return f'<table:table-cell{span} office:value-type="{kind}" office:value="{float(value)!r}"/>'

    def line(i: int, row) -> str:
        hidden = {k for (r, first), n in spans.items() if r == i for k in range(first + 1, first + n)}
        return "".join("<table:covered-table-cell/>" if k in hidden else cell(i, k, v) for k, v in enumerate(row))

    body = "".join(f"<table:table-row>{line(i, row)}</table:table-row>" for i, row in enumerate(rows))
    urn = "urn:oasis:names:tc:opendocument:xmlns"
    spaces = " ".join(f'xmlns:{k}="{urn}:{k}:1.0"' for k in ("office", "table", "text"))
    return samples._zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "META-INF/manifest.xml": f'<manifest:manifest xmlns:manifest="{urn}:manifest:1.0"/>',
            "content.xml": f"<office:document-content {spaces}><office:body><office:spreadsheet>"
            f'<table:table table:name="Cal">{body}</table:table></office:spreadsheet></office:body>'
            "</office:document-content>",
        }
    )


KINDS = {"xlsx": excel, "ods": open_document}


def columns(header, spectra=SPECTRA, kind=float):
    rows = zip(samples.WAVELENGTHS, np.asarray(spectra).T, strict=True)
    return [list(header), *([float(x), *map(kind, row)] for x, row in rows)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", ["wavelength", "nm", ""])
def test_headers_shown_as_percent_are_the_percentages(tmp_path, kind, first):
    path = tmp_path / "a"
    path.write_bytes(KINDS[kind](columns([first, *(Percent(c / 100) for c in LEVELS)])))
    data = geonode.load_standards(path, concentration_unit="%")
    assert data.levels.tolist() == LEVELS and data.concentration_unit == "%"
    np.testing.assert_array_equal(data.spectra, SPECTRA)
    assert "4 cells written as percent read as the percentage shown, such as 5 %" in data.notes


@pytest.mark.parametrize("form", ["0%", "0.00%", '0.0" p "%', "[Red]0%;-0%"])
def test_every_format_that_shows_a_percentage_counts(tmp_path, form):
    (tmp_path / "a").write_bytes(excel(columns(["nm", *(Percent(c / 100) for c in LEVELS)]), form))
    assert geonode.load_standards(tmp_path / "a").levels.tolist() == LEVELS


@pytest.mark.parametrize("form", ['0.0"%"', "0.00", r"0.0\%", "0.0E+00"])
def test_no_other_format_does(tmp_path, form):
    """In quotes and behind a backslash the sign is text: such a number is shown as it is."""
    (tmp_path / "a").write_bytes(excel(columns(["nm", *map(Percent, LEVELS)]), form))
    data = geonode.load_standards(tmp_path / "a")
    assert data.levels.tolist() == LEVELS and data.concentration_unit == ""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", ["columns", "rows with their concentration"])
def test_spectra_and_columns_of_concentrations_are_the_percentages(tmp_path, kind, what):
    if what == "columns":
        rows = columns(["nm", "0 mM", "5 mM", "10 mM", "20 mM"], SPECTRA / 100, Percent)
    else:
        rows = [["sample", "conc", *map(float, samples.WAVELENGTHS)]]
        rows += [["S", Percent(c / 100), *map(float, SPECTRA[k])] for k, c in enumerate(LEVELS)]
    (tmp_path / "a").write_bytes(KINDS[kind](rows))
    data = geonode.load_standards(tmp_path / "a")
    np.testing.assert_allclose(data.spectra, SPECTRA, rtol=1e-12)
    assert data.levels.tolist() == ([0.0, 5.0, 10.0, 20.0] if what == "columns" else LEVELS)
    assert any("written as percent read as the percentage shown" in note for note in data.notes)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("which", ["a cell", "a column", "all but one cell"])
def test_spectra_of_which_some_are_percent_are_refused(tmp_path, kind, which):
    rows = columns(["nm", "0 mM", "5 mM", "10 mM", "20 mM"])
    for i in range(1, len(rows)):
        for k in range(1, 5):
            odd = (i, k) == (4, 2)
            if odd if which == "a cell" else k == 2 if which == "a column" else not odd:
                rows[i][k] = Percent(rows[i][k])
    (tmp_path / "a").write_bytes(KINDS[kind](rows))
    with pytest.raises(ReaderError, match=r"%', which is no number; write all values|no table of spectra|no rows of"):
        geonode.load_standards(tmp_path / "a")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "levels", [[0.0, 5.0, 20.0], ["0 mM", "5 mM", "20 mM"], [Percent(0), Percent(0.05), Percent(0.2)]]
)
def test_columns_under_a_merged_header_are_replicates(tmp_path, kind, levels):
    header = ["nm", *(cell for level in levels for cell in (level, ""))]
    spectra = np.repeat(SPECTRA[[0, 1, 3]], 2, axis=0) + 0.001 * np.arange(6)[:, None]
    path, merged = tmp_path / "a", [(0, k, k + 1) for k in (1, 3, 5)]
    path.write_bytes(KINDS[kind](columns(header, spectra), merged=merged))
    data = geonode.load_standards(path)
    assert data.concentrations.ravel().tolist() == [0.0, 0.0, 5.0, 5.0, 20.0, 20.0]
    np.testing.assert_allclose(data.spectra, spectra, rtol=1e-12)
    assert "each column under a merged header is headed by it" in data.notes
    path.write_bytes(KINDS[kind](columns(header, spectra)))
    with pytest.raises(ReaderError, match="the file says no concentration for 'column 3', 'column 5', 'column 7'"):
        geonode.load_standards(path)


def test_a_title_over_the_table_and_merged_values_head_nothing():
    rows = [["", "Dye, 5 mM", "", ""], ["nm", "0", "", "5"], ["400", "0.1", "", "0.3"]]
    assert write_as_shown(rows, [], [(0, 1, 3), (1, 1, 2), (2, 1, 2)])
    assert rows == [["", "Dye, 5 mM", "", ""], ["nm", "0", "0", "5"], ["400", "0.1", "", "0.3"]]


def test_percentages_are_exact_and_said_once():
    rows = [["nm", "0.07", "1e-05", "-0.125", "x"], ["400", "1", "2", "3", "4"]]
    write_as_shown(rows, [(0, 0, 1, 9)], [])
    assert rows[0] == ["nm", "7%", "0.001%", "-12.5%", "x"]
    assert spectra_as_shown(rows) == (rows, ["3 cells written as percent read as the percentage shown, such as 7 %"])
    assert spectra_as_shown(rows[1:]) == (rows[1:], [])


def test_repeated_rows_of_an_open_document_are_counted(tmp_path, monkeypatch):
    """A block of equal rows is written once: the cells behind it keep their place."""
    rows = [["made by hand", "", ""]] * 3 + columns(["nm", Percent(0), Percent(0.05), Percent(0.2)], SPECTRA[[0, 1, 3]])
    monkeypatch.setattr(
        samples,
        "_zipped",
        lambda parts, zipped=samples._zipped: zipped(
            {
                name: text.replace("<table:table-row>", '<table:table-row table:number-rows-repeated="3">', 1)
                for name, text in parts.items()
            }
        ),
    )
    (path := tmp_path / "a").write_bytes(open_document(rows[2:]))
    assert [trace.concentration for trace in read_file(path).traces] == [(0.0,), (5.0,), (20.0,)]
