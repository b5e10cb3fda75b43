"""Workbooks of Excel and LibreOffice: the same numbers as in text, sheets to select, other archives refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

import geonode
from geonode.data import inspect_file
from geonode.data.readers import read_file
from geonode.errors import ReaderError
from tests.data import samples

pytest.importorskip("python_calamine")
KINDS = {"Excel workbook": samples.xlsx, "OpenDocument workbook": samples.ods}


def sheet(levels, names=None, first="wavelength") -> list[list[float | str]]:
    rows = samples._sheet_rows(levels)
    return [[first, *(names or rows[0][1:])], *rows[1:]]


@pytest.mark.parametrize("mark", [",", "."])
@pytest.mark.parametrize("which", ["every number", "what has a mark", "a header"])
def test_numbers_that_a_sheet_holds_as_text_have_the_doubts_of_text(tmp_path, mark, which):
    """``1,050`` as text beside 950, as pasted from another program: never 1.05 without a word."""
    counts = [[900 + 50 * k + 10 * i for k in range(3)] for i in range(9)]
    if which == "a header":
        rows = [
            ["nm", "0", "500", f"1{mark}000"],
            *([float(400 + i), *map(float, row)] for i, row in enumerate(counts)),
        ]
    else:
        text = [[f"{v:,}".replace(",", mark) for v in row] for row in counts]
        cells = [
            [t if which == "every number" or mark in t else float(v) for t, v in zip(*both, strict=True)]
            for both in zip(text, counts, strict=True)
        ]
        rows = [["nm", "0 mM", "1 mM", "2 mM"], *([float(400 + i), *row] for i, row in enumerate(cells))]
    path = tmp_path / "a.xlsx"
    path.write_bytes(samples.xlsx({"S": rows}))
    with pytest.raises(ReaderError, match=r"which is 10[0-9]0 or 1|no concentration is known"):
        geonode.load_standards(path)
    if which != "a header":
        data = geonode.load_standards(path, decimal="." if mark == "," else ",")
        np.testing.assert_array_equal(data.spectra, np.array(counts).T)


@pytest.mark.parametrize("kind", KINDS)
def test_a_workbook_gives_the_numbers_of_the_csv(tmp_path, kind):
    (tmp_path / "a").write_bytes(KINDS[kind]())
    (tmp_path / "a.csv").write_bytes(samples.tidy())
    found, text = geonode.load_standards(tmp_path / "a"), geonode.load_standards(tmp_path / "a.csv")
    np.testing.assert_array_equal(found.spectra, text.spectra)
    np.testing.assert_array_equal(found.concentrations, text.concentrations)
    assert read_file(tmp_path / "a").format == kind


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("first", "names", "unit"),
    [
        ("Wavelength (nm)", ["dye 0 mM", "dye 5 mM", "dye 10 mM", "dye 20 mM"], "mM"),
        ("nm", ["0", "5", "10", "20"], ""),
        ("λ", ["0 ppb", "5 ppb", "10 ppb", "20 ppb"], "ppb"),
    ],
)
def test_headers_of_a_sheet(tmp_path, kind, first, names, unit):
    (tmp_path / "a").write_bytes(KINDS[kind]({"one": sheet(samples.LEVELS, names, first)}))
    data = geonode.load_standards(tmp_path / "a")
    assert data.levels.tolist() == list(samples.LEVELS) and data.concentration_unit == unit


@pytest.mark.parametrize("kind", KINDS)
def test_several_sheets_are_series_to_select(tmp_path, kind):
    names = [f"{c:g} mM" for c in samples.LEVELS]
    second = [
        [row[0], *[v if isinstance(v, str) else v + 0.5 for v in row[1:]]] for row in sheet(samples.LEVELS, names)
    ]
    pages = {"first": sheet(samples.LEVELS, names), "second": second, "remarks": [["made on Monday"]]}
    (tmp_path / "a").write_bytes(KINDS[kind](pages))
    with pytest.raises(ReaderError, match=r"2 series \('first', 'second'\); choose one by a part of its name"):
        geonode.load_standards(tmp_path / "a")
    data = geonode.load_standards(tmp_path / "a", select="second")
    np.testing.assert_allclose(data.spectra[1], samples.spectrum(5.0) + 0.5)
    assert "sheets without spectra not read: 'remarks'" in inspect_file(tmp_path / "a").notes


@pytest.mark.parametrize(
    ("sheets", "remedy"),
    [
        (("Cal 1", "Cal 2"), {"select": "Cal 2"}),
        (("run_5", "run_10"), {"select": "run_10"}),
        (("blue", "red dye"), {"select": "dye"}),
        (("5", "10"), {"sheet": "10"}),
    ],
)
def test_the_remedy_for_several_sheets_is_one_that_works(tmp_path, sheets, remedy):
    """Names of the sheets are parts of the headers, which are concentrations."""
    pages = {name: sheet(samples.LEVELS, [f"{c:g} mM" for c in samples.LEVELS]) for name in sheets}
    (tmp_path / "a.xlsx").write_bytes(samples.xlsx(pages))
    ((name, value),) = remedy.items()
    with pytest.raises(ReaderError, match=re.escape(f"{name}={value!r}")):
        geonode.load_standards(tmp_path / "a.xlsx")
    assert geonode.load_standards(tmp_path / "a.xlsx", **remedy).levels.tolist() == list(samples.LEVELS)


@pytest.mark.parametrize("several", [True, False], ids=["two sheets", "one sheet"])
def test_where_concentrations_were_found_is_said_of_each_sheet(tmp_path, several):
    columns = sheet(samples.LEVELS, [f"{c:g}" for c in samples.LEVELS], "nm")
    levels = [["concentration", *(row[0] for row in columns[1:])]]
    levels += [[c, *(row[k + 1] for row in columns[1:])] for k, c in enumerate(samples.LEVELS)]
    (tmp_path / "a").write_bytes(samples.xlsx({"up": columns, "flat": levels} if several else {"up": columns}))
    said = [note for note in inspect_file(tmp_path / "a").notes if "taken as the concentration" in note]
    if several:
        flat = "sheet 'flat': column 1 'concentration' taken as the concentration"
        assert said == ["sheet 'up': column headers taken as the concentrations", flat]
    else:
        assert said == ["column headers taken as the concentrations"]


def test_numbers_of_a_workbook_are_in_no_doubt(tmp_path):
    rows: list[list[float | str]] = [["nm", "a", "b"], *([400.0 + i, 950.0 + i, 1.05 + i / 8] for i in range(9))]
    (tmp_path / "a").write_bytes(samples.xlsx({"one": rows}))
    first, second = read_file(tmp_path / "a").traces
    assert first.values[0] == 950 and second.values[0] == 1.05


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (samples._zipped({"arr_0.npy": "x"}), r"a ZIP archive that holds 'arr_0\.npy', and no workbook of spectra"),
        (samples._zipped({"word/document.xml": "<a/>"}), "a ZIP archive that holds 'word/document.xml'"),
        (samples._zipped({}), "a ZIP archive that holds nothing"),
        (samples.xlsx()[:300], "damaged or cut off; copy it anew, or save the sheet as CSV"),
        (samples._zipped({"xl/worksheets/sheet1.xml": "<a/>"}), "Excel workbook: python-calamine cannot read it"),
        (samples.xlsx({"one": [["Dear diary"], ["nothing"]]}), r"no table of spectra in its sheets \('one'\)"),
        (samples.xlsx({"a b": [["nm", "x"], *([400.0 + i, "lost" if i == 3 else 0.1] for i in range(9))]}),
         r"sheet 'a b': row 5, column 2 \('x'\) is 'lost', which is no number"),
    ],
)  # fmt: skip
def test_archives_that_cannot_be_read_end_in_one_sentence(tmp_path, content, sentence):
    path = tmp_path / "a.xlsx"
    path.write_bytes(content)
    with pytest.raises(ReaderError, match=sentence) as caught:
        read_file(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wanted", ["second", "SECOND", "2", " second "])
def test_a_sheet_is_chosen_by_name_or_number(tmp_path, kind, wanted):
    second = [[row[0], *[v if isinstance(v, str) else v + 0.5 for v in row[1:]]] for row in sheet(samples.LEVELS)]
    pages = {"first": sheet(samples.LEVELS), "second": second, "remarks": [["made on Monday"]]}
    (tmp_path / "a").write_bytes(KINDS[kind](pages))
    data = geonode.load_standards(tmp_path / "a", sheet=wanted)
    np.testing.assert_allclose(data.spectra[1], samples.spectrum(5.0) + 0.5)


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ("third", r"no sheet is named 'third'; there are 'first', 'remarks'"),
        ("0", r"no sheet is named '0'"),
        ("3", r"no sheet is named '3'"),
        ("remarks", r"no table of spectra in its sheets \('remarks'\)"),
    ],
)
def test_a_sheet_that_is_not_there_is_refused(tmp_path, wanted, sentence):
    (tmp_path / "a").write_bytes(samples.xlsx({"first": sheet(samples.LEVELS), "remarks": [["made on Monday"]]}))
    with pytest.raises(ReaderError, match=sentence):
        geonode.load_standards(tmp_path / "a", sheet=wanted)
    (tmp_path / "a.csv").write_bytes(samples.tidy())
    with pytest.raises(ReaderError, match="this is no workbook; leave sheet out"):
        geonode.load_standards(tmp_path / "a.csv", sheet="first")


@pytest.mark.parametrize("kind", KINDS)
def test_sheets_that_differ_name_the_option_that_chooses_one(tmp_path, kind):
    pages = {
        "Standards": sheet(samples.LEVELS, [f"{c:g} µM" for c in samples.LEVELS]),
        "Unknowns": sheet(samples.LEVELS, [f"u{k}" for k in range(len(samples.LEVELS))]),
    }
    (tmp_path / "a").write_bytes(KINDS[kind](pages))
    with pytest.raises(ReaderError, match="'Standards' says concentrations and 'Unknowns' none") as refused:
        geonode.load_standards(tmp_path / "a")
    assert str(refused.value).count("sheet='Standards'") == 1
    pages["Unknowns"] = sheet(samples.LEVELS, [f"{c:g} mg/L" for c in samples.LEVELS])
    (tmp_path / "b").write_bytes(KINDS[kind](pages))
    with pytest.raises(ReaderError, match=r"differ in concentration unit \(µM and mg/L\); say which.*Standards'\.$"):
        geonode.load_standards(tmp_path / "b")
    assert geonode.load_standards(tmp_path / "a", sheet="Standards").levels.tolist() == list(samples.LEVELS)


@pytest.mark.parametrize("beside", ["plate", "counter", "notes"])
def test_a_sheet_that_is_no_spectra_names_the_option_that_leaves_it_out(tmp_path, beside):
    plate = [["", 1.0, 2.0, 3.0], *([row, 0.0, 5.0, 10.0] for row in "ABCD")]
    counter = [["time", "value"], *([float(k), 2.5 * k] for k in range(12))]
    other = {"plate": plate, "counter": counter, "notes": [["dear colleague"]]}[beside]
    (tmp_path / "a.xlsx").write_bytes(samples.xlsx({"Scan 1": sheet(samples.LEVELS), "Layout": other}))
    if beside == "notes":  # no table at all: left out with a note
        assert "sheets without spectra not read: 'Layout'" in geonode.load_standards(tmp_path / "a.xlsx").notes
    else:
        with pytest.raises(
            ReaderError, match="where sheet 'Layout' is not meant, name the one that is, such as sheet="
        ):
            geonode.load_standards(tmp_path / "a.xlsx")
    found = geonode.load_standards(tmp_path / "a.xlsx", sheet="Scan 1")
    assert found.levels.tolist() == list(samples.LEVELS)
    with pytest.raises(ReaderError, match="a workbook, and tables of concentrations are read as text; save it as CSV"):
        geonode.load_standards(tmp_path / "a.xlsx", sheet="Scan 1", concentrations=tmp_path / "a.xlsx")
