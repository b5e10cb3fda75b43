"""Good files that once were refused, and which spectra are meant; each kind in several forms."""

from __future__ import annotations

import re

import numpy as np
import pytest

import geonode
from geonode.data.checks import check_order
from geonode.data.readers import read_file
from geonode.errors import InputError, ReaderError
from tests.data import samples
from tests.data.small_tables import LIST, X, files, spectrum, table, write

# --- good files refused -----------------------------------------------------------------------------------------------


def enspire(scans: dict[str, int]) -> str:
    """Wells A01 … A03 with scans of different numbers of points; blanks fill the shorter ones."""
    head = "\t".join(["Well", "Sample", *(f"{m}:{k}" for m in scans for k in ("WavelengthEms", "Result"))]) + "\t"
    lines = ["Plate information\t", "", head]
    for k in range(3):
        for i in range(max(scans.values())):
            cells = [
                c
                for j, n in enumerate(scans.values())
                for c in ([f"{400 + i}", f"{1000 * (k + 1) + 10 * j + i}"] if i < n else ["", ""])
            ]
            lines.append("\t".join([f"A{k + 1:02d}", "x", *cells]) + "\t")
    return "\r\n".join([*lines, "", "Instrument:\t"])


@pytest.mark.parametrize(
    "scans", [{"MeasA": 20, "MeasB": 12}, {"MeasA": 12, "MeasB": 20}, {"MeasA": 9, "MeasB": 20, "MeasC": 15}]
)
def test_scans_of_different_length_in_one_plate(tmp_path, scans):
    path = write(tmp_path / "p.csv", enspire(scans))
    note = write(tmp_path / "n.csv", "Well,Cl\nA01,0\nA02,10\nA03,20\n")
    for j, (scan, points) in enumerate(scans.items()):
        data = geonode.load_standards(path, concentrations=note, column="Cl", select=scan)
        assert data.shape == (3, points) and data.spectra[1, 2] == 2000 + 10 * j + 2


@pytest.mark.parametrize("short", ["A01", "A02"])
@pytest.mark.parametrize("scans", [{"MeasA": 20}, {"MeasA": 9, "MeasB": 20}])
def test_a_well_of_fewer_points_within_a_plate_is_no_truncation(tmp_path, scans, short):
    lines = enspire(scans).split("\r\n")
    mine = [k for k, line in enumerate(lines) if line.startswith(short)]
    kept = [line for k, line in enumerate(lines) if k not in mine[5:]]
    found = read_file(write(tmp_path / "a.csv", "\n".join(kept)))
    lengths = {trace.name: len(trace.values) for trace in found.traces}
    assert all(n == 5 for name, n in lengths.items() if name.startswith(short))
    assert all(n in scans.values() for name, n in lengths.items() if not name.startswith(short))


@pytest.mark.parametrize("scans", [{"MeasA": 20}, {"MeasA": 20, "MeasB": 12}, {"MeasA": 9, "MeasB": 20}])
def test_decimal_commas_in_a_plate(tmp_path, scans):
    """As on a German or French computer; a whole number may stand among them."""
    content = re.sub(r"\t(\d{4})(?=\t)", lambda m: f"\t{m.group(1)[:2]},{m.group(1)[2:]}", enspire(scans))
    found = read_file(write(tmp_path / "a.csv", content))
    first = read_file(write(tmp_path / "b.csv", enspire(scans)))
    for mine, other in zip(found.traces, first.traces, strict=True):
        np.testing.assert_allclose(mine.values, other.values / 100)
    assert "read with decimal commas" in found.notes


def test_a_plate_cut_off_is_still_refused(tmp_path):
    whole = enspire({"MeasA": 20, "MeasB": 12}).split("\r\n")
    path = write(tmp_path / "p.csv", "\r\n".join(whole[:-6]))
    with pytest.raises(ReaderError, match="the file seems to be truncated"):
        read_file(path)


def with_more_points(kind: str) -> str:
    rows = [f"{a:g}\t{v}" for a, v in zip(X, spectrum(5), strict=True)]
    if kind == "ocean":
        return "\n".join(["Data from a node", "Number of Pixels in Spectrum: 20", ">>>>>Begin<<<<<", *rows])
    if kind == "peds":
        return "\n".join(
            ["PE UV SPECTRUM ASCII PEDS 1.6", "-1", "a", "#GR", "NM", "A", "1", "0", "4", "1", "20", "#DATA", *rows]
        )
    head = [
        "##TITLE=a",
        "##JCAMP-DX=5",
        "##XUNITS=NANOMETERS",
        "##YUNITS=ABSORBANCE",
        "##NPOINTS=20",
        "##XYPOINTS=(XY..XY)",
    ]
    return "\n".join([*head, *(row.replace("\t", ", ") for row in rows), "##END="])


@pytest.mark.parametrize("kind", ["ocean", "peds", "jcamp"])
def test_more_points_than_the_header_says_are_no_truncation(tmp_path, kind):
    content = with_more_points(kind)
    found = read_file(write(tmp_path / "a.txt", content))
    np.testing.assert_array_equal(found.traces[0].values, spectrum(5))
    assert any("30 points, more than" in note for note in found.notes)
    with pytest.raises(ReaderError, match=r"30 points but .* 40; the file seems to be truncated"):
        read_file(write(tmp_path / "b.txt", content.replace("20", "40")))


@pytest.mark.parametrize(("header", "at"), [("W\tD\tR\tS\tP", 4), ("W\tP", 1), ("W\tS\tProcessed", 2)])
def test_the_processed_column_below_the_marker(tmp_path, header, at):
    width = header.count("\t") + 1
    rows = [
        "\t".join([f"{a:g}", *("1.5" if k != at else f"{v}" for k in range(1, width))])
        for a, v in zip(X, spectrum(5), strict=True)
    ]
    path = write(
        tmp_path / "a.jaz", "\n".join(["Jaz Data File", ">>>>>Begin Processed Spectral Data<<<<<", header, *rows])
    )
    found = read_file(path)
    np.testing.assert_array_equal(found.traces[0].values, spectrum(5))
    assert width == 2 or any("the processed spectrum was read; left out" in note for note in found.notes)


@pytest.mark.parametrize(
    ("header", "axis", "at"),
    [
        ("P\tW\tD\tR\tS", 1, 0),
        ("D\tWavelength (nm)\tS\tProcessed", 1, 3),
        ("Wavelength\tDark\tSample\tAbsorbance", 0, 3),
        ("S\t%T\tW", 2, 1),
    ],
)
def test_the_header_says_which_column_below_the_marker_is_the_axis(tmp_path, header, axis, at):
    rows = []
    for a, v in zip(X, spectrum(5), strict=True):
        cells = ["1.5"] * (header.count("\t") + 1)
        cells[axis], cells[at] = f"{a:g}", f"{v}"
        rows.append("\t".join(cells).replace(".", ","))
    found = read_file(write(tmp_path / "a.jaz", "\n".join([">>>>>Begin Processed<<<<<", header, *rows])))
    np.testing.assert_array_equal(found.traces[0].wavelengths, X)
    np.testing.assert_array_equal(found.traces[0].values, spectrum(5))


@pytest.mark.parametrize("width", [3, 4, 5])
def test_columns_below_the_marker_without_a_header_are_refused_for_that(tmp_path, width):
    rows = ["\t".join([f"{a:g}", *["1.5"] * (width - 1)]) for a in X]
    with pytest.raises(ReaderError, match=rf"{width} columns below the marker and no header that says what they are"):
        read_file(write(tmp_path / "a.jaz", "\n".join([">>>>>Begin Processed<<<<<", *rows])))


def test_columns_below_the_marker_of_which_none_is_processed_are_refused(tmp_path):
    rows = [f"{a:g}\t1\t2" for a in X]
    with pytest.raises(ReaderError, match=r"3 columns below the marker \(W, D, R\), and none of them is called P"):
        read_file(write(tmp_path / "a.jaz", "\n".join([">>>>>Begin<<<<<", "W\tD\tR", *rows])))


@pytest.mark.parametrize("stated", ["##NPOINTS=30\n", ""])
@pytest.mark.parametrize("form", ["(XY..XY)", "(XY..XY) blank", "(X++(Y..Y))"])
def test_decimal_commas_in_jcamp(tmp_path, form, stated):
    head = (
        "##TITLE=a\n##JCAMP-DX=5\n##XUNITS=NANOMETERS\n##YUNITS=ABSORBANCE\n##FIRSTX=400,00\n##LASTX=429,00\n" + stated
    )
    y = [f"{v:.4f}".replace(".", ",") for v in spectrum(5)]
    if form.startswith("(XY"):
        joint = ", " if form == "(XY..XY)" else " "
        body = "##XYPOINTS=(XY..XY)\n" + "\n".join(
            f"{a:.2f}".replace(".", ",") + joint + v for a, v in zip(X, y, strict=True)
        )
    else:
        body = "##XYDATA=(X++(Y..Y))\n" + "\n".join(
            f"{X[k]:.1f}".replace(".", ",") + " " + " ".join(y[k : k + 6]) for k in range(0, 30, 6)
        )
    found = read_file(write(tmp_path / "a.jdx", head + body + "\n##END="))
    np.testing.assert_allclose(found.traces[0].wavelengths, X)
    np.testing.assert_array_equal(found.traces[0].values, spectrum(5))
    assert any("read with decimal commas" in note for note in found.notes)


@pytest.mark.parametrize("header", ["", "Raman shift (cm-1)", "Shift / cm-1"])
@pytest.mark.parametrize("start", [-100.0, 0.0, -29.0])
def test_an_axis_with_zero_or_negative_values_is_read(tmp_path, header, start):
    x = start + 5 * np.arange(30)
    rows = [f"{a:g}\t{v}\t{v + 1}\t{v + 3}" for a, v in zip(x, spectrum(5), strict=True)]
    lines = [f"{header}\t0 mM\t5 mM\t10 mM"] if header else ["\t0 mM\t5 mM\t10 mM"]
    path = write(tmp_path / "a.txt", "\n".join([*lines, *rows]))
    data = geonode.load_standards(path)
    np.testing.assert_array_equal(data.wavelengths, x)
    assert data.wavelength_unit == ("cm-1" if header else "")


@pytest.mark.parametrize("word", ["OVRFLW", ">3.5", "####", "Overflow", "SAT", "out of range", "+++++"])
@pytest.mark.parametrize("first", ["wavelength", "nm"])
def test_words_for_out_of_range_are_masked_in_every_table(tmp_path, word, first):
    lines = table(["0.0", "5.0", "10.0"], (0, 5, 10), first=first).split("\n")
    lines[4] = ",".join([*lines[4].split(",")[:3], word])
    data = geonode.load_standards(write(tmp_path / "a.csv", "\n".join(lines)))
    assert data.shape == (3, 29) and "1 value masked: written as out of range" in data.notes


@pytest.mark.parametrize("cap", ["2.0000", "3.0000", "9.9990"])
def test_a_flat_top_in_a_tidy_table_is_masked(tmp_path, cap):
    lines = table(["0.0", "5.0", "10.0"], (0, 5, 10), first="wavelength").split("\n")
    for i in range(5, 9):
        lines[i] = ",".join([*lines[i].split(",")[:3], cap])
    data = geonode.load_standards(write(tmp_path / "a.csv", "\n".join(lines)))
    assert data.shape == (3, 26) and f"4 values masked: at {float(cap):g}, the cap of the detector" in data.notes


@pytest.mark.parametrize("column", ["Cl", "pH", "dose"])
def test_a_column_inside_the_file_may_be_the_concentration(tmp_path, column):
    head = ",".join(["name", "Cl (mM)", "pH", "dose", *(f"{a:g}" for a in X)])
    rows = [
        ",".join([f"s{k}", f"{10 * k}", f"{5 + k}", f"{k / 2:g}", *(f"{v:.4f}" for v in spectrum(k))]) for k in range(4)
    ]
    data = geonode.load_standards(write(tmp_path / "a.csv", "\n".join([head, *rows])), column=column)
    assert data.levels.tolist() == {"Cl": [0, 10, 20, 30], "pH": [5, 6, 7, 8], "dose": [0, 0.5, 1, 1.5]}[column]
    assert data.concentration_unit == ("mM" if column == "Cl" else "")


def test_a_column_of_a_list_may_be_the_concentration(tmp_path):
    files(tmp_path)
    path = write(tmp_path / "list.csv", LIST.format(0, 10, 20, 40))
    data = geonode.load_standards(path, column="temperature")
    assert data.levels.tolist() == [21.5, 22.5, 23, 25.5] and data.analytes == ("temperature",)
    with pytest.raises(
        ReaderError, match=r"a column 'colour' is named, but .* has the columns 'concentration', 'temperature'"
    ):
        geonode.load_standards(path, column="colour")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "cp1252"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends(tmp_path, encoding, end):
    content = table(["1 µM", "2 µM", "4 µM"], (1, 2, 4)).replace("\n", end)
    path = tmp_path / "a.csv"
    path.write_bytes(content.encode(encoding))
    data = geonode.load_standards(path)
    assert data.concentration_unit == "µM" and data.levels.tolist() == [1, 2, 4]


# --- which spectra are meant ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("select", "names"),
    [("A1", ["A1"]), ("a01", ["A1"]), ("A1, A2", ["A1", "A2"]), ("A", ["A1", "A10", "A2"]), ("A10", ["A10"])],
)
def test_an_exact_name_wins_in_a_selection(tmp_path, select, names):
    from geonode.data.readers.selection import select_traces

    found = read_file(write(tmp_path / "a.csv", table(["A1", "A10", "A2", "B1"], (1, 2, 3, 4))))
    chosen = select_traces([(found, trace) for trace in found.traces], select, "a.csv")
    assert sorted(trace.name for _, trace in chosen) == names


@pytest.mark.parametrize(
    ("called", "select", "names", "said"),
    [
        (["u1", "u01", "u10"], "u1", ["u1"], False),
        (["u1", "u01", "u10"], "u01", ["u01"], False),
        (["u1", "u01", "u10"], "U1, u10", ["u1", "u10"], False),
        (["u01", "u02"], "u1", ["u01"], True),
        (["u01", "u02"], "u", ["u01", "u02"], True),
    ],
)
def test_a_name_as_it_is_written_goes_before_one_with_a_zero(tmp_path, called, select, names, said):
    from geonode.data.readers.selection import said_of_selection, select_traces

    found = read_file(write(tmp_path / "a.csv", table(called, range(1, len(called) + 1))))
    chosen = select_traces([(found, trace) for trace in found.traces], select, "a.csv")
    assert sorted(trace.name for _, trace in chosen) == sorted(names)
    if "," not in select:
        assert bool(said_of_selection(chosen, select, len(called))) == said


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("above", ["", "my assay\n\n"])
def test_a_table_that_begins_in_the_second_column_is_read(tmp_path, delimiter, above):
    lines = table(["0 mM", "5 mM", "10 mM"], (0, 5, 10), delimiter).split("\n")
    content = above + "\n".join(delimiter + line for line in lines)
    data = geonode.load_standards(write(tmp_path / "a.csv", content))
    assert data.levels.tolist() == [0, 5, 10]
    np.testing.assert_array_equal(data.spectra[1], spectrum(5))


@pytest.mark.parametrize("odd", ["#DIV/0!", "n/a", "NaN", "-"])
@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_an_odd_cell_in_the_last_row_is_named_as_in_any_other(tmp_path, odd, delimiter):
    content = table(["0 mM", "5 mM", "10 mM"], (0, 5, 10), delimiter)
    last = content.rsplit("\n", 1)[0] + "\n" + delimiter.join(["429", "0.1", odd, "0.3"])
    with pytest.raises(ReaderError, match=f"row 31, column 3.* is '{re.escape(odd)}', which is no number"):
        geonode.load_standards(write(tmp_path / "a.csv", last + "\n\nMean,0.1,x,0.2\n"))


@pytest.mark.parametrize("header", ["Datei;Konzentration", "fichier;concentration", "Archivo;conc (mM)", "文件;conc"])
def test_a_list_of_files_in_another_language(tmp_path, header):
    files(tmp_path)
    rows = "".join(f"s{c}.csv;{c}\n" for c in (0, 10, 20, 40))
    assert geonode.load_standards(write(tmp_path / "list.csv", f"{header}\n{rows}")).levels.tolist() == [0, 10, 20, 40]


@pytest.mark.parametrize("above", ["", "nm,0 mM,5 mM,10 mM\n"])
@pytest.mark.parametrize("odd", ["#DIV/0!", "n/a", "0.1x"])
def test_an_odd_cell_in_the_first_row_makes_it_no_header(tmp_path, above, odd):
    rows = table(["0 mM", "5 mM", "10 mM"], (0, 5, 10)).split("\n")[1:]
    cells = rows[0].split(",")
    content = above + "\n".join([",".join([cells[0], odd, *cells[2:]]), *rows[1:]])
    with pytest.raises(
        ReaderError, match=f"row {2 if above else 1}, column 2.* is '{re.escape(odd)}', which is no number"
    ):
        read_file(write(tmp_path / "a.csv", content))


AMONG = "which stands among the wavelengths"
WELL = b"\nA02\tUNK1\t200\t"
DAMAGED = {
    "wavelength of a plate reader": (samples.clariostar, b",407,", b",4O7,", f"'4O7', {AMONG}"),
    "wavelength above samples": (samples.samples_in_rows, b",407,", b",??,", rf"'\?\?', {AMONG}"),
    "two lines of a Cary in one": (samples.cary, b"\n420,", b"420,", "has 21 cells and the header 11; repair that row"),
    "a well": (samples.enspire, WELL, WELL.replace(b"A02", b"??"), "no row of a well, and rows of wells stand below"),
    "a factor": (samples.jcamp, b"##YFACTOR=", b"##YFACTOR=x", "YFACTOR is 'x.*', which is no number"),
    "a second plate": (samples.enspire, WELL, b"\n\nWell\tSample\t" + WELL, "second table"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_what_is_damaged_is_named_and_nothing_beside_it_lost(tmp_path, case):
    maker, old, new, sentence = DAMAGED[case]
    content = maker().replace(b"\r\n", b"\n")
    assert old in content
    (tmp_path / "a").write_bytes(content.replace(old, new, 1))
    with pytest.raises(ReaderError, match=sentence):
        read_file(tmp_path / "a")


# --- an axis in order but for one entry ------------------------------------------------------------------------------


@pytest.mark.parametrize(("place", "typed"), [(7, 5000.0), (7, 403.0), (0, 470.0), (11, 404.0)])
@pytest.mark.parametrize("way", [1, -1], ids=["ascending", "descending"])
def test_a_mistyped_wavelength_is_named_with_its_row(place, typed, way):
    """It was put in order with the others, and its spectrum stood elsewhere on the axis."""
    axis = np.arange(400.0, 460.0, 5.0)
    axis[place] = typed
    with pytest.raises(InputError, match=f"wavelength number {(place if way > 0 else 11 - place) + 1} is {typed:g},"):
        check_order(axis[::way], "a.csv")


def test_other_orders_are_put_in_order_as_before():
    """Either way, two neighbours exchanged, two blocks, and too few to say which is wrong."""
    axis = np.arange(400.0, 460.0, 5.0)
    exchanged = axis.copy()
    exchanged[[4, 5]] = exchanged[[5, 4]]
    for one in (axis, axis[::-1], exchanged, np.concatenate([axis[6:], axis[:6]]), np.array([400.0, 900.0, 500.0])):
        check_order(one, "a.csv")


def test_standards_with_a_mistyped_wavelength_are_refused(tmp_path):
    rows = [f"{5000 if x == 440 else x},{0.1 + 0.001 * x},{0.2 + 0.002 * x},0.9" for x in range(400, 700, 5)]
    path = write(tmp_path / "s.csv", "\n".join(["wavelength,0,10,20", *rows]) + "\n")
    with pytest.raises(ReaderError, match="wavelength number 9 is 5000, beside 435 and 445"):
        geonode.load_standards(path, concentration_unit="ppb")
