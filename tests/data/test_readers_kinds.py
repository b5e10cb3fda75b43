"""What instruments, tables and names bring that once came back wrong or was refused; each kind in several forms.

Inputs are made here, so that the right value is known: nothing may be read as something else without a word.
"""

from __future__ import annotations

import numpy as np
import pytest

import geonode
from geonode.data import inspect_file
from geonode.data.readers import read_file
from geonode.data.readers.names import concentration_in, named_concentration, quantity_in
from geonode.errors import ReaderError

X = np.arange(400.0, 430.0)


def spectrum(c: float) -> np.ndarray:
    return np.round(0.1 + 0.01 * c + 0.002 * np.arange(len(X)) * (1 + 0.3 * c), 4)


def table(names, levels, delimiter=",", first="nm", x=X) -> str:
    rows = [delimiter.join([first, *names])]
    rows += [delimiter.join([f"{a:g}", *(f"{spectrum(c)[i]:.4f}" for c in levels)]) for i, a in enumerate(x)]
    return "\n".join(rows)


def write(path, content: str):
    path.write_text(content, encoding="utf-8")
    return path


def levels_by_name(data) -> dict[str, float]:
    return dict(zip(data.names, data.concentrations.tolist(), strict=True))


# --- concentrations that belong to another sample: tables -------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        ["sample_3", "sample_1", "sample_2", "sample_4"],
        ["S03", "S01", "S02", "S04"],
        ["dye 3 a", "dye 1 a", "dye 2 a", "dye 4 a"],
        ["3", "1", "2", "4"],
        ["Probe-3", "Probe-1", "Probe-2", "Probe-4"],
    ],
)
@pytest.mark.parametrize("key", ["sample", "no", "id"])
def test_a_table_is_joined_by_number_and_not_by_position(tmp_path, names, key):
    plate = write(tmp_path / "plate.csv", table(names, (30, 10, 20, 40), ";"))
    note = write(tmp_path / "note.csv", f"{key},concentration\n1,10\n2,20\n3,30\n4,40\n")
    data = geonode.load_standards(plate, concentrations=note)
    assert levels_by_name(data) == {name: c for name, c in zip(names, (30, 10, 20, 40), strict=True)}
    for row, c in zip(data.spectra, data.concentrations, strict=True):
        np.testing.assert_allclose(row, spectrum(c))


@pytest.mark.parametrize(
    "names", [["sample_1_1", "sample_1_2", "sample_2_1", "sample_2_2"], ["a_1_2", "a_2_1", "a_1_1"]]
)
def test_a_name_with_two_numbers_of_the_table_is_refused(tmp_path, names):
    plate = write(tmp_path / "plate.csv", table(names, range(len(names))))
    note = write(tmp_path / "note.csv", "sample,concentration\n1,10\n2,20\n")
    with pytest.raises(ReaderError, match=r"may be any of '1', '2' in the column 'sample'"):
        geonode.load_standards(plate, concentrations=note)


@pytest.mark.parametrize(
    ("note", "said"),
    [
        ("sample,concentration\nsample_1,10\nsample_2,20\nsample_3,30\nsample_9,90\n", "no spectrum for these entries"),
        ("sample,concentration\nsample_1,10\nsample_2,20\nsample_3,30\n", "no entry in note.csv for 'sample_4'"),
        ("sample,concentration\n1,10\n2,20\n3,30\n7,70\n", "no entry in note.csv for 'sample_4'"),
    ],
)
def test_what_has_no_row_or_no_spectrum_is_named(tmp_path, note, said):
    plate = write(tmp_path / "p.csv", table(["sample_1", "sample_2", "sample_3", "sample_4"], (10, 20, 30, 40)))
    data = geonode.load_standards(plate, concentrations=write(tmp_path / "note.csv", note))
    assert any(said in one for one in data.notes) and data.levels.tolist() == [10, 20, 30]


def test_columns_without_names_are_joined_by_their_number_and_that_is_said(tmp_path):
    plate = write(tmp_path / "p.csv", "\n".join(table("abc", (10, 20, 30)).split("\n")[1:]))
    note = write(tmp_path / "note.csv", "no,concentration\n3,30\n1,10\n2,20\n")
    data = geonode.load_standards(plate, concentrations=note)
    assert data.levels.tolist() == [10, 20, 30] and any("the spectra have no names" in one for one in data.notes)


LIST = "file,concentration,temperature\ns0.csv,{0},21.5\ns10.csv,{1},22.5\ns20.csv,{2},23.0\ns40.csv,{3},25.5\n"


def files(tmp_path):
    for c in (0, 10, 20, 40):
        write(tmp_path / f"s{c}.csv", table(["absorbance"], (c,)))


@pytest.mark.parametrize(
    "cells",
    [
        ("0 mM", "10 mM", "20 mM", "40 mM"),
        ("0", "10", "20 mM", "40"),
        ("0 mM", "10 mM", "20000 µM", "40 mM"),
        ("0 mmol/L", "10 mM", "2e-2 M", "40mM"),
    ],
)
def test_a_cell_with_its_unit_is_read(tmp_path, cells):
    files(tmp_path)
    data = geonode.load_standards(write(tmp_path / "list.csv", LIST.format(*cells)))
    assert data.levels.tolist() == [0, 10, 20, 40] and data.concentration_unit == "mM"


@pytest.mark.parametrize("odd", ["about 20", "20±1 mM", "high", "<20", "20 mM?"])
def test_an_odd_cell_is_named_and_no_other_column_is_taken(tmp_path, odd):
    files(tmp_path)
    path = write(tmp_path / "list.csv", LIST.format("0", "10", odd, "40"))
    with pytest.raises(ReaderError, match=r"list\.csv: row 4, column 'concentration' is '.*', which is no number"):
        geonode.load_standards(path)


@pytest.mark.parametrize("odd", ["about 20", "20±1 mM", "high"])
def test_an_odd_cell_of_a_note_is_named_and_no_other_column_is_taken(tmp_path, odd):
    plate = write(tmp_path / "p.csv", table(["a", "b", "c", "d"], (0, 10, 20, 40)))
    note = write(tmp_path / "note.csv", f"name,conc,T\na,0,20.5\nb,10,21.5\nc,{odd},22.5\nd,40,23.5\n")
    with pytest.raises(ReaderError, match=r"note\.csv: row 4, column 'conc' is '.*', which is no number"):
        geonode.load_standards(plate, concentrations=note)


@pytest.mark.parametrize(
    ("cells", "unit", "levels"),
    [
        (("0,mM", "5,mM", "500,µM", "1,mM"), "mM", [0, 0.5, 1, 5]),
        (("0,g/L", "5,mg/mL", "2,g/L", "1,g/L"), "g/L", [0, 1, 2, 5]),
        (("0,ppm", "5,ppm", "500,ppb", "1,ppm"), "ppm", [0, 0.5, 1, 5]),
    ],
)
def test_a_column_of_units_counts(tmp_path, cells, unit, levels):
    plate = write(tmp_path / "p.csv", table(["a", "b", "c", "d"], (0, 10, 20, 40)))
    rows = "".join(f"{name},{cell}\n" for name, cell in zip("abcd", cells, strict=True))
    data = geonode.load_standards(plate, concentrations=write(tmp_path / "n.csv", "name,conc,unit\n" + rows))
    assert data.levels.tolist() == levels and data.concentration_unit == unit


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [
        (("1.000", "500", "250"), r"'1\.000', which is 1000 or 1: |'1\.000', which is 1000 or 1;"),
        (('"1,000"', "500", "250"), "'1,000', which is 1000 or 1;"),
        (("0 mM", "5 mg/L", "10 mM"), "is in mg/L and others are in mM, which do not convert"),
    ],
)
def test_cells_of_a_table_that_may_say_two_things(tmp_path, cells, sentence):
    plate = write(tmp_path / "p.csv", table(["a", "b", "c"], (0, 10, 20)))
    rows = "".join(f"{name},{cell}\n" for name, cell in zip("abc", cells, strict=True))
    note = write(tmp_path / "note.csv", "name,conc\n" + rows)
    with pytest.raises(ReaderError, match=sentence):
        geonode.load_standards(plate, concentrations=note)


@pytest.mark.parametrize("listed", ["s10.csv,10\ns10.csv,20", "s10.csv,10\ncopy.csv,20", "s10.csv,20\n./s10.csv,10"])
def test_one_spectrum_as_two_levels_is_refused(tmp_path, listed):
    files(tmp_path)
    (tmp_path / "copy.csv").write_bytes((tmp_path / "s10.csv").read_bytes())
    path = write(tmp_path / "list.csv", f"file,concentration\ns0.csv,0\n{listed}\ns40.csv,40\n")
    with pytest.raises(ReaderError, match=r"is identical to .* and each is given a concentration of its own"):
        geonode.load_standards(path)


def test_one_column_under_two_headers_is_refused_and_two_blanks_of_zeros_are_not(tmp_path):
    twice = write(tmp_path / "a.csv", table(["0.0", "5.0", "10.0"], (0, 5, 5), first="wavelength"))
    with pytest.raises(ReaderError, match=r"'10\.0' is identical to '5\.0' at every wavelength"):
        geonode.load_standards(twice)
    rows = "".join(f"{x:g},0,0,{v}\n" for x, v in zip(X, spectrum(5), strict=True))
    zeros = write(tmp_path / "b.csv", "wavelength,0.0,1.0,5.0\n" + rows)
    assert len(geonode.load_standards(zeros)) == 3


NAMES = ("c", "a", "b", "d")
LEVELS = (30.0, 10.0, 20.0, 40.0)


def joined(tmp_path, note, names=NAMES, **how):
    plate = write(tmp_path / "plate.csv", table(names, LEVELS))
    return geonode.load_standards(plate, concentrations=write(tmp_path / "note.csv", note), **how)


@pytest.mark.parametrize("note", ["a,10\nb,20\nc,30\nd,40\n", "10;a\n20;b\n30;c\n40;d\n", "a\t10\nb\t20\nc\t30\n"])
def test_a_table_without_a_header_is_refused_and_its_first_line_not_lost(tmp_path, note):
    with pytest.raises(ReaderError, match=r"the first line .* reads like a sample.*write a header above it"):
        joined(tmp_path, note)


@pytest.mark.parametrize(
    ("first", "names"), [(0, "s3,s1,s2,s4"), (0, "dye 03,dye 01,dye 02,dye 04"), (2, "s3,s1,s2,s4")]
)
def test_numbers_that_begin_elsewhere_are_no_names(tmp_path, first, names):
    """Counted from 0 in the table and from 1 in the names, every spectrum would get its neighbour's concentration."""
    note = "no,conc\n" + "\n".join(f"{k},{10 * (k - first + 1)}" for k in range(first, first + 4))
    with pytest.raises(ReaderError, match=r"may be any of '[0-9]+', '[0-9]+' in the column 'no'"):
        joined(tmp_path, note, names.split(","))


@pytest.mark.parametrize("again", ["a,10", "a,11", "A,10"])
def test_a_sample_that_stands_twice_in_a_table_is_named(tmp_path, again):
    with pytest.raises(ReaderError, match=r"stands twice in the column 'sample' \(rows 2 and 6\)"):
        joined(tmp_path, f"sample,conc\na,10\nb,20\nc,30\nd,40\n{again}\n")


@pytest.mark.parametrize("header", ["absorbance", "Temperature", "OD600", "date", "time", "index", "volume"])
def test_a_lone_column_that_is_called_something_else_is_not_taken_unless_named(tmp_path, header):
    note = f"sample,{header}\na,10\nb,20\nc,30\nd,40\n"
    with pytest.raises(ReaderError, match=f"'{header}', which is called something else than a concentration"):
        joined(tmp_path, note)
    assert levels_by_name(joined(tmp_path, note, column=header)) == dict(zip(NAMES, LEVELS, strict=True))


@pytest.mark.parametrize(
    ("note", "unit"),
    [
        ("sample,conc,conc sd\na,10,1\nb,20,2\nc,30,1\nd,40,3\n", ""),
        ("sample,conc,error\na,10,1\nb,20,2\nc,30,1\nd,40,3\n", ""),
        ("sample,conc\n,mM\na,10\nb,20\nc,30\nd,40\n", "mM"),
        ("sample,date,conc\na,1/2/24,10\nb,2/2/24,20\nc,3/2/24,30\nd,4/2/24,40\n", ""),
        ("group,sample,conc\nX,a,10\n,b,20\n,c,30\n,d,40\n", ""),
        ("sample,conc\na,10 mM\nb,0.02 M\nc,30000 uM\nd,4e-2 M\n", "mM"),
    ],
    ids=["spread", "error", "line of units", "dates", "group once", "units mixed"],
)
def test_what_else_stands_in_a_table_does_not_matter(tmp_path, note, unit):
    data = joined(tmp_path, note)
    written = {"mM": 1.0, "µM": 1000.0, "": 1.0}[data.units["concentration"]]
    assert unit == "" or data.units["concentration"] in ("mM", "µM")
    for name, c in zip(data.names, data.concentrations, strict=True):
        assert c == pytest.approx(written * LEVELS[NAMES.index(name)])


@pytest.mark.parametrize(
    "first", ["", "Unnamed: 0", "id", "sample", "No.", "Probe Nr.", "index", "Sample ID", "temp", "time", "Échantillon"]
)
@pytest.mark.parametrize("start", [0, 1])
def test_numbers_before_spectra_in_rows_that_say_which_are_no_concentrations(tmp_path, first, start):
    """As pandas writes a frame, with its index first."""
    rows = [",".join([first, *(f"{x:g}" for x in X)])]
    rows += [",".join([str(start + k), *(f"{v:.4f}" for v in spectrum(c))]) for k, c in enumerate(LEVELS)]
    path = write(tmp_path / "frame.csv", "\n".join(rows))
    with pytest.raises(ReaderError, match="no concentration is known for"):
        geonode.load_standards(path)
    note = write(tmp_path / "note.csv", "no,conc\n" + "\n".join(f"{start + k},{c}" for k, c in enumerate(LEVELS)))
    data = geonode.load_standards(path, concentrations=note)
    for row, c in zip(data.spectra, data.concentrations, strict=True):
        np.testing.assert_allclose(row, spectrum(c))


@pytest.mark.parametrize("first", ["", "conc", "ppm", "dye", "Konzentration", "c (mM)"])
def test_a_lone_column_of_numbers_before_spectra_in_rows_is_the_concentration(tmp_path, first):
    rows = [",".join([first, *(f"{x:g}" for x in X)])]
    rows += [",".join([f"{c:g}", *(f"{v:.4f}" for v in spectrum(c))]) for c in LEVELS]
    data = geonode.load_standards(write(tmp_path / "frame.csv", "\n".join(rows)))
    for row, c in zip(data.spectra, data.concentrations, strict=True):
        np.testing.assert_allclose(row, spectrum(c))


# --- concentrations that belong to another sample: names --------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "unit"),
    [
        ("dye 1e-3 M", 1e-3, "M"),
        ("dye_1E-03M", 1e-3, "M"),
        ("10^-4 M", 1e-4, "M"),
        ("10⁻⁴ M", 1e-4, "M"),
        ("10**-4 M", 1e-4, "M"),
        ("2 x 10^-4 M", 2e-4, "M"),
        ("2×10⁻⁴ M", 2e-4, "M"),
        ("1/2 mM", 0.5, "mM"),
        ("0,5 mM", 0.5, "mM"),
        (".5 mM", 0.5, "mM"),
        ("1,234.5 ppm", 1234.5, "ppm"),
        ("1.234,5 ppm", 1234.5, "ppm"),
        ("1,234,567 ppb", 1234567, "ppb"),
        ("5 mmol/L", 5, "mM"),
        ("5 mmol L⁻¹", 5, "mM"),
        ("5 mg/l", 5, "mg/L"),
        ("dye-5mM-a", 5, "mM"),
        ("dye  5  mM", 5, "mM"),
        ("5\u2009mM", 5, "mM"),
        ("plate 2: 5 mM", 5, "mM"),
        ("sample E 5 mM", 5, "mM"),
        ("dye_0.5_M", 0.5, "M"),
        ("FZ010_AuNP_DMSA_250mM_NaCl", 250, "mM"),
    ],
)
def test_numbers_in_names_as_people_write_them(name, value, unit):
    found = concentration_in(name)
    assert found is not None and found[1] == unit and float(found[0]) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    "name",
    [
        "9_M4kR",
        "subject_10_M",
        "7_M",
        "A9M",
        "x5mMol",
        "Rhodamine 6G",
        "100%T",
        "Tris 10 mM dye 5 µM",
        "v1.2.3 M",
        "3M2",
    ],
)
def test_identifiers_and_two_numbers_are_no_concentration(name):
    assert concentration_in(name) is None


@pytest.mark.parametrize(
    "name",
    [
        *("1,000 ppm", "3-5 mM", "10-4 M", "<5 mM", "~5 mM", "5±1 mM", "1 500 ppm", "3 to 5 mM"),
        *("5x10-4 M", "5 10-4 M", "5.10^-4 M", "2^-3 M", "1.5^-3 mM", "1e-3.5 M", "10^-3.5 M", "1 e-3 M", "1.e-3 M"),
        *("1E 3 ppm", "1'000 ppm", "1’000 ppm", "1 1/2 mM", "1:2 mM", "-5 mM", "dye –5 mM"),
    ],
)
def test_what_may_be_two_numbers_is_in_doubt(tmp_path, name):
    assert concentration_in(name) is None
    names = [name, "20 ppm" if "ppm" in name else "20 mM", "40 ppm" if "ppm" in name else "40 mM"]
    path = write(tmp_path / "a.csv", table(names, (1, 20, 40), ";"))
    assert named_concentration(name) is not None
    with pytest.raises(
        ReaderError, match=r"the file says no concentration for .* (is no one number|is [0-9.]+ or [0-9.]+); write it"
    ):
        geonode.load_standards(path)
    assert any("no concentration taken from the name" in note for note in inspect_file(path).notes)


@pytest.mark.parametrize(
    ("names", "levels"),
    [
        (["0.5 ppm", "1,000 ppm", "20 ppm"], [0.5, 20, 1000]),  # a point is decimal, so the comma parts thousands
        (["0,5 ppm", "1,000 ppm", "20 ppm"], [0.5, 1, 20]),
        (["0.500 mM", "1.000 mM", "2.000 mM"], [0.5, 1, 2]),
        (["std 1 100 ppm", "std 2 200 ppm", "std 3 400 ppm"], [100, 200, 400]),
    ],
)
def test_the_names_beside_it_settle_a_number(tmp_path, names, levels):
    data = geonode.load_standards(write(tmp_path / "a.csv", table(names, (1, 20, 40), ";")))
    assert data.levels.tolist() == levels


@pytest.mark.parametrize(
    ("cell", "value"), [("10 mM", 10), ("1e-2 M", 0.01), ("5uM", 5), ("10", None), ("10 mM NaCl", None)]
)
def test_quantities_in_cells(cell, value):
    found = quantity_in(cell)
    assert (None if found is None else float(found[0])) == value


# --- numbers misread --------------------------------------------------------------------------------------------------


def counts(mark: str, delimiter: str, x=None) -> str:
    x = [f"{a:g}" for a in X] if x is None else x
    values = [[f"{v:,.0f}".replace(",", mark) for v in 800 + 40 * k + 500 * spectrum(k)] for k in range(1, 4)]
    rows = [delimiter.join([a, *(v[i] for v in values)]) for i, a in enumerate(x)]
    return "\n".join([delimiter.join(["nm", "a", "b", "c"]), *rows])


@pytest.mark.parametrize(("mark", "delimiter"), [(",", "\t"), (".", ";"), (",", ";"), (".", "\t"), (".", ",")])
def test_thousands_beside_whole_numbers_are_refused_with_both_readings(tmp_path, mark, delimiter):
    path = write(tmp_path / "a.txt", counts(mark, delimiter))
    with pytest.raises(ReaderError, match=r"row \d+, column \d is '1.\d{3}', which is 1\d{3} or 1(\.\d+)?: three"):
        read_file(path)


@pytest.mark.parametrize(
    ("mark", "delimiter", "x"),
    [
        (",", "\t", [f"{a + 0.5:.1f}" for a in X]),  # a point is decimal in the first column
        (".", ";", [f"{a + 0.5:.1f}".replace(".", ",") for a in X]),
        (" ", "\t", None),
        ("'", ";", None),
        ("\u00a0", "\t", None),
    ],
)
def test_thousands_that_nothing_else_can_be_are_read(tmp_path, mark, delimiter, x):
    found = read_file(write(tmp_path / "a.txt", counts(mark, delimiter, x)))
    for k, trace in enumerate(found.traces, start=1):
        np.testing.assert_array_equal(trace.values, np.round(800 + 40 * k + 500 * spectrum(k)))
    assert any("between thousands" in note for note in found.notes)


@pytest.mark.parametrize(
    "values",
    [["1.052", "0.950", "1.100"], ["1.052", "1.95", "2"], ["1.052", "1.950", "1.100"], ["1.052", "1.0E1", "2"]],
)
def test_decimals_that_look_like_thousands_are_decimals(tmp_path, values):
    cells = (values * 10)[:30]
    found = read_file(
        write(tmp_path / "a.txt", "nm\ta\n" + "\n".join(f"{a:g}\t{v}" for a, v in zip(X, cells, strict=True)))
    )
    np.testing.assert_array_equal(found.traces[0].values, [float(v) for v in cells])


@pytest.mark.parametrize(
    ("delimiter", "decimal", "headers"),
    [(",", ".", ["0", "500", "1.000"]), (";", ",", ["0", "500", "1.000"]), ("\t", ",", ["250", "1.000", "2.500"])],
)
@pytest.mark.parametrize("first", ["wavelength", "nm"])
def test_thousands_in_headers_are_refused_with_both_readings(tmp_path, delimiter, decimal, headers, first):
    body = table(headers, (0, 5, 10), delimiter, first).split("\n")
    content = "\n".join([body[0], *(line.replace(".", decimal) for line in body[1:])])
    with pytest.raises(ReaderError, match=r"is headed '1\.000', which is 1000 or 1; write the level without"):
        geonode.load_standards(write(tmp_path / "a.csv", content))


# --- axes misread -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "unit"),
    [
        ("cm^-1", "cm-1"), ("WAVENUMBERS", "cm-1"), ("1/CM", "cm-1"), ("Wavenumber (cm-1)", "cm-1"), ("CM**-1", "cm-1"),
        ("um", "µm"), ("MICRONS", "µm"), ("MICROMETERS", "µm"), ("NANOMETERS", "nm"), ("nm", "nm"),
        ("RAMAN SHIFT", "cm-1"), ("UM", "µm"), ("NM", "nm"),
        ("SECONDS", "seconds"), ("M/Z", "m/z"), ("ARBITRARY UNITS", "arbitrary units"), ("", ""),
    ],
)  # fmt: skip
def test_units_of_jcamp_as_the_file_says_them(tmp_path, said, unit):
    labels = ["##TITLE=a", "##JCAMP-DX=4.24", f"##XUNITS={said}", "##YUNITS=ABSORBANCE", "##FIRSTX=400", "##LASTX=404"]
    path = write(
        tmp_path / "a.jdx", "\n".join([*labels, "##NPOINTS=5", "##XYDATA=(X++(Y..Y))", "400 1 2 3 4 5", "##END="])
    )
    found = read_file(path)
    assert found.wavelength_unit == unit
    assert unit in ("nm", "µm", "cm-1") or any("abscissa" in note for note in found.notes)


@pytest.mark.parametrize("first", ["Pixel", "#", "Index", "No.", "row", "", "Unnamed: 0"])
@pytest.mark.parametrize("numbers", [range(30), range(1, 31), range(1, 241, 8)])
def test_a_column_that_counts_is_not_the_axis(tmp_path, first, numbers):
    rows = [f"{k},{a + 0.5},{v}" for k, a, v in zip(numbers, X, spectrum(5), strict=True)]
    found = read_file(write(tmp_path / "a.csv", "\n".join([f"{first},Wavelength (nm),Absorbance", *rows])))
    (trace,) = found.traces
    np.testing.assert_array_equal(trace.wavelengths, X + 0.5)
    np.testing.assert_array_equal(trace.values, spectrum(5))
    assert any("left out: it counts" in note for note in found.notes)


@pytest.mark.parametrize("header", ["Abs,nm", "Absorbance,Wavelength", "A,wavelength (nm)"])
def test_the_axis_may_stand_behind_the_values(tmp_path, header):
    rows = [f"{v},{a:g}" for a, v in zip(X, spectrum(5), strict=True)]
    (trace,) = read_file(write(tmp_path / "a.csv", "\n".join([header, *rows]))).traces
    np.testing.assert_array_equal(trace.wavelengths, X)
    np.testing.assert_array_equal(trace.values, spectrum(5))


@pytest.mark.parametrize("first", ["Zeile", "Kanal", "Ligne", "N°", "Datenpunkt"])
@pytest.mark.parametrize("start", [0, 1, 1000])
def test_a_column_that_counts_in_another_language(tmp_path, first, start):
    rows = [
        f"{first}\tnm\tExt",
        *(f"{start + k}\t{a:g}\t{v}" for k, (a, v) in enumerate(zip(X, spectrum(5), strict=True))),
    ]
    found = read_file(write(tmp_path / "a.txt", "\n".join(rows)))
    (trace,) = found.traces
    np.testing.assert_allclose(trace.values, spectrum(5))
    assert f"column 1 '{first}' left out: it counts, and is no spectrum" in found.notes


@pytest.mark.parametrize("header", ["T° Abs", "Temperature(°C)", "Temp.", "Temperatur [°C]", "Température (°C)"])
def test_the_temperatures_of_a_plate_reader_are_no_spectrum(tmp_path, header):
    rows = [f"Wavelength\t{header}\tA1", *(f"{a:g}\t25.1\t{v}" for a, v in zip(X, spectrum(5), strict=True))]
    found = read_file(write(tmp_path / "a.txt", "\n".join(rows)))
    (trace,) = found.traces
    np.testing.assert_allclose(trace.values, spectrum(5))
    assert not found.mask_reasons and any("a temperature, and no spectrum" in note for note in found.notes)


@pytest.mark.parametrize("second", ["Dark", "Reference", "Raw"])
def test_raw_columns_named_above_a_row_of_units_are_no_spectra(tmp_path, second):
    rows = [f"Wave;Sample;{second};Absorbance", "[nm];[counts];[counts];[A.U.]"]
    rows += [f"{a:.2f};1000.1;500.2;{v}" for a, v in zip(X, spectrum(5), strict=True)]
    (trace,) = read_file(write(tmp_path / "a.txt", "\n".join(rows))).traces
    np.testing.assert_allclose(trace.values, spectrum(5))


@pytest.mark.parametrize("header", ["nm,A", "Wavelength,Abs", "nm,A1,A2"])
def test_commas_between_and_within_numbers_are_refused(tmp_path, header):
    count = header.count(",")
    rows = [header, *(f"{a:.1f}," + ",".join([f"{v:.4f}"] * count) for a, v in zip(X, spectrum(5), strict=True))]
    with pytest.raises(ReaderError, match="commas stand between the numbers and within them"):
        read_file(write(tmp_path / "a.csv", "\n".join(rows).replace(".", ",")))


@pytest.mark.parametrize("header", ['"nm","A"', '"Wavelength (nm)","blank","5 mM"', "nm,A"])
def test_quotes_tell_decimal_commas_from_commas(tmp_path, header):
    count = header.count(",")
    rows = [header, *(",".join([f'"{a:.1f}"', *[f'"{v:.4f}"'] * count]) for a, v in zip(X, spectrum(5), strict=True))]
    found = read_file(write(tmp_path / "a.csv", "\n".join([rows[0], *(row.replace(".", ",") for row in rows[1:])])))
    assert len(found.traces) == count
    np.testing.assert_allclose(found.traces[-1].wavelengths, X)
    np.testing.assert_allclose(found.traces[-1].values, spectrum(5))


@pytest.mark.parametrize("second", ["Wavenumber (cm-1)", "eV", "Raman shift"])
def test_a_second_axis_is_no_spectrum(tmp_path, second):
    rows = [f"{a:g},{1e7 / a:.3f},{v}" for a, v in zip(X, spectrum(5), strict=True)]
    found = read_file(write(tmp_path / "a.csv", "\n".join([f"Wavelength (nm),{second},A", *rows])))
    assert len(found.traces) == 1 and any("a second axis, and no spectrum" in note for note in found.notes)


@pytest.mark.parametrize(("header", "numbers"), [("index,signal", 0), ("pixel,counts", 1), ("#,A", 1), ("n,signal", 0)])
def test_a_column_that_counts_alone_is_refused_for_what_it_is(tmp_path, header, numbers):
    rows = [f"{k + numbers},{v}" for k, v in enumerate(spectrum(5))]
    with pytest.raises(ReaderError, match=r"only counts|counts \(\d, \d, \d, and so on\)"):
        read_file(write(tmp_path / "a.csv", "\n".join([header, *rows])))


@pytest.mark.parametrize(("rows", "columns"), [(8, 12), (16, 24), (4, 6)])
@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
def test_a_plate_of_readings_is_no_set_of_spectra(tmp_path, rows, columns, delimiter):
    lines = [delimiter.join(["", *(str(k + 1) for k in range(columns))])]
    lines += [
        delimiter.join([chr(65 + r), *(f"{0.1 * r + 0.01 * k:.3f}" for k in range(columns))]) for r in range(rows)
    ]
    with pytest.raises(ReaderError, match=rf"a plate of {rows} × {columns} wells with one reading each"):
        read_file(write(tmp_path / "a.csv", "\n".join(lines)))


@pytest.mark.parametrize(
    ("header", "axis", "unit"),
    [
        ("Energy (eV)", np.linspace(1.6, 3.2, 30), "nm"),
        ("eV", np.linspace(3.2, 1.6, 30), "nm"),
        ("Photon energy (meV)", np.linspace(1600, 3200, 30), "nm"),
        ("Wavelength (µm)", np.linspace(0.9, 2.5, 30), "µm"),
        ("Wavenumber / cm-1", np.linspace(4000, 400, 30), "cm-1"),
        ("Time (s)", np.linspace(0.5, 300, 30), "s"),
        ("Frequency (PHz)", np.linspace(400, 700, 30), "PHz"),
        ("f / Hz", np.linspace(400, 700, 30), "Hz"),
        ("Energy (keV)", np.linspace(400, 700, 30), "keV"),
        ("Wavenumber (1/m)", np.linspace(400, 700, 30), "1/m"),
        ("Wellenzahl [m-1]", np.linspace(400, 700, 30), "m-1"),
        ("Wavelength (pm)", np.linspace(400, 700, 30), "pm"),
        ("Wavelength / m", np.linspace(4e-7, 7e-7, 30), "m"),
        ("wavelength", np.linspace(0.4, 0.8, 30), ""),
        ("", np.linspace(4000, 400, 30), ""),
    ],
)
def test_an_axis_is_never_nanometres_by_default(tmp_path, header, axis, unit):
    rows = [f"{a:.6g},{v}" for a, v in zip(axis, spectrum(5), strict=True)]
    found = read_file(write(tmp_path / "a.csv", "\n".join([f"{header},A", *rows])))
    assert found.wavelength_unit == unit
    written = np.array([float(f"{a:.6g}") for a in axis])
    factor = {"Energy (eV)": 1, "eV": 1, "Photon energy (meV)": 1000}.get(header)
    np.testing.assert_allclose(
        found.traces[0].wavelengths, written if factor is None else 1239.841984 * factor / written
    )
    if unit not in ("µm", "cm-1", "1/m", "m-1", "pm", "m"):
        assert any(word in note for note in found.notes for word in ("converted", "does not say", "no wavelength"))


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


@pytest.mark.parametrize("word", ["OVRFLW", ">3.5", "####", "Overflow", "SAT"])
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
