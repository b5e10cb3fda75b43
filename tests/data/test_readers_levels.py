"""Concentrations that once came from another sample, by tables or by names; each kind in several forms."""

from __future__ import annotations

import numpy as np
import pytest

import geonode
from geonode.errors import InputError, ReaderError
from tests.data.small_tables import LIST, X, files, levels_by_name, spectrum, table, write

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
        (('"1,000 ppm"', "500 ppm", "250 ppm"), "'1,000 ppm', which is 1000 or 1;"),
        (("1.000 ppm", "500 ppm", "250 ppm"), r"'1\.000 ppm', which is 1000 or 1;"),
        (('"1,000"', '"2,000"', '"5,000"'), "'1,000', which is 1000 or 1;"),
        (("1.000", "2.000", '"10.000,5"'), r"'1\.000', which is 1000 or 1;"),
    ],
)
def test_cells_of_a_table_that_may_say_two_things(tmp_path, cells, sentence):
    plate = write(tmp_path / "p.csv", table(["a", "b", "c"], (0, 10, 20)))
    rows = "".join(f"{name},{cell}\n" for name, cell in zip("abc", cells, strict=True))
    note = write(tmp_path / "note.csv", "name,conc\n" + rows)
    with pytest.raises(ReaderError, match=sentence):
        geonode.load_standards(plate, concentrations=note)


@pytest.mark.parametrize(
    ("note", "levels", "unit"),
    [
        ("name,dye,unit\na,1,mM\nb,500,µM\nc,3,mM\n", [0.5, 1, 3], "mM"),
        ("name,conc,Unidad\na,1,mM\nb,500,µM\nc,3,mM\n", [0.5, 1, 3], "mM"),
        ("name,conc,conc unit\na,1,g/L\nb,500,mg/L\nc,3,g/L\n", [0.5, 1, 3], "g/L"),
        ("name,conc,unit\na,1,mg/kg\nb,2,mg/kg\nc,3,mg/kg\n", [1, 2, 3], "mg/kg"),
        ("name,mass conc,unit,conc,unit2\na,1,g/L,5,mM\nb,2,g/L,6,mM\nc,3,g/L,7,mM\n", [5, 6, 7], "mM"),
        ('name,conc\na,"1,234.5"\nb,2\'000\nc,3 000\n', [1234.5, 2000, 3000], ""),
        (",conc\na,1\nb,2\nc,3\n", [1, 2, 3], ""),
        ("name,conc\nA,1\nB,2\nC,3\n", [1, 2, 3], ""),
    ],
    ids=["not called so", "Spanish", "conc unit", "unknown but one", "nearest", "grouped", "pandas", "capitals"],
)
def test_units_and_numbers_of_a_note_as_people_write_them(tmp_path, note, levels, unit):
    plate = write(tmp_path / "p.csv", table(["a", "b", "c"], (0, 10, 20)))
    column = "conc" if "mass" in note else None
    data = geonode.load_standards(plate, concentrations=write(tmp_path / "n.csv", note), column=column)
    assert data.levels.tolist() == levels and data.concentration_unit == unit


@pytest.mark.parametrize(
    ("units", "what"),
    [
        (("mM", "xyz", "mM"), "'xyz', which is no unit"),
        (("g/kg", "mg/kg", "g/kg"), "no unit"),
        (("mM", "", "µM"), "empty"),
    ],
)
def test_a_unit_that_is_unknown_beside_others_is_refused(tmp_path, units, what):
    plate = write(tmp_path / "p.csv", table(["a", "b", "c"], (0, 10, 20)))
    note = "name,conc,unit\n" + "".join(f"{n},{k + 1},{u}\n" for k, (n, u) in enumerate(zip("abc", units, strict=True)))
    with pytest.raises(ReaderError, match=rf"column 'unit' is .*{what}.* write one unit in every row"):
        geonode.load_standards(plate, concentrations=write(tmp_path / "n.csv", note))


@pytest.mark.parametrize("names", [["S 1", "S-2", "s_3"], ["s001", "S 02", "s-3"], ["S.1", "s#2", "s3"]])
def test_separators_between_letters_and_numbers_do_not_matter(tmp_path, names):
    plate = write(tmp_path / "p.csv", table(["s1", "s2", "s3"], (10, 20, 30)))
    note = "sample,conc\n" + "".join(f"{n},{10 * k}\n" for k, n in enumerate(names, start=1))
    data = geonode.load_standards(plate, concentrations=write(tmp_path / "n.csv", note))
    assert levels_by_name(data) == {"s1": 10, "s2": 20, "s3": 30}


@pytest.mark.parametrize("lists", ["a,1\nx,2\ny,3\n", "b,1\nc,2\nz,3\n", "a,1\nc,1\nb2,2\n"])
def test_too_few_levels_are_told_with_what_has_no_entry(tmp_path, lists):
    plate = write(tmp_path / "p.csv", table(["a", "b", "c"], (10, 20, 30)))
    with pytest.raises(ReaderError, match=r"level.* at least 3 are needed.*no entry in n\.csv for '[abc]'"):
        geonode.load_standards(plate, concentrations=write(tmp_path / "n.csv", "name,conc\n" + lists))


@pytest.mark.parametrize(
    "names",
    [
        ["1 100 ppm", "1 200 ppm", "2 000 ppm"],
        ["1 500 ppm", "2 100 ppm", "3 200 ppm"],
        ["dye 1 100 ppm", "dye 1 200 ppm", "dye 1 500 ppm"],
        ["std 1 050 ppb", "std 2 100 ppb", "std 3 200 ppb"],
    ],
)
def test_blanks_between_thousands_are_no_counts_of_samples(tmp_path, names):
    path = write(tmp_path / "a.csv", table(names, (1, 20, 40), ";"))
    with pytest.raises(ReaderError, match=r"' is \d+ or \d+; write it in one way"):
        geonode.load_standards(path)


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


@pytest.mark.parametrize("heads", ["0.0,0.0.1,0.0.2,1.0,5.0", "0 mM a,0 mM b,0 mM c,1 mM,5 mM"])
def test_blanks_of_zeros_are_one_blank_however_often_they_were_measured(tmp_path, heads):
    rows = "".join(f"{x:g},0,0,0,{v},{w}\n" for x, v, w in zip(X, spectrum(1), spectrum(5), strict=True))
    data = geonode.load_standards(write(tmp_path / "a.csv", f"wavelength,{heads}\n" + rows))
    assert data.levels.tolist() == [0, 1, 5] and len(data) == 3 and not data.spectra[0].any()
    assert any("spectra of zeros beside another of their level left out" in note for note in data.notes)


@pytest.mark.parametrize(
    ("heads", "first"),
    [("0,5,5,10", "5.0"), ("0.0,5.0,5.0,10.0", "5.0"), ("0,0.0.1,5,10", "0.0"), ("2,2.50,2.5,7", "2.50")],
)
def test_the_way_to_head_replicates_that_is_told_works(tmp_path, heads, first):
    def content(cells: list[str]) -> str:
        levels = range(1, 1 + len(cells))
        return table(cells, levels, first="wavelength")

    with pytest.raises(ReaderError, match=f"head the first of them '{first}' and its replicates '{first}.1'"):
        geonode.load_standards(write(tmp_path / "a.csv", content(heads.split(","))))
    mended = [cell if float(cell[:3]) != float(first) else first for cell in heads.split(",")]
    k = len(mended) - 1 - mended[::-1].index(first)
    mended[k] += ".1"
    assert len(geonode.load_standards(write(tmp_path / "b.csv", content(mended))).levels) == 3


NAMES = ("c", "a", "b", "d")
LEVELS = (30.0, 10.0, 20.0, 40.0)


def joined(tmp_path, note, names=NAMES, **how):
    plate = write(tmp_path / "plate.csv", table(names, LEVELS))
    return geonode.load_standards(plate, concentrations=write(tmp_path / "note.csv", note), **how)


@pytest.mark.parametrize(
    "note",
    [
        "a,10\nb,20\nc,30\nd,40\n",
        "10;a\n20;b\n30;c\n40;d\n",
        "a\t10\nb\t20\nc\t30\n",
        "a\t10 mg/L\nb\t20 mg/L\nc\t30 mg/L\nd\t40 mg/L\n",
        "a,10 mM\nb,20 mM\nc,30 mM\n",
        "10 µM;a\n20 µM;b\n30 µM;c\n",
    ],
)
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


@pytest.mark.parametrize(("header", "said"), [("µM", "uM"), ("ug/mL", "µg/mL"), ("uM", "µM"), ("mM", "mM")])
def test_a_unit_in_another_spelling_is_the_same_unit(header, said, tmp_path):
    head = ",".join(f"{c} {header}" for c in (0, 5, 10, 20))
    rows = "\n".join(f"{w},0.1,0.2,0.3,0.{w % 7 + 1}" for w in range(400, 420))
    (tmp_path / "s.csv").write_text(f"wavelength,{head}\n{rows}\n", encoding="utf-8")
    data = geonode.load_standards(tmp_path / "s.csv", concentration_unit=said)
    assert list(data.levels) == [0.0, 5.0, 10.0, 20.0]
    with pytest.raises(InputError, match=r"concentrations are in .*, not in kg/L; leave the unit out, or convert"):
        geonode.load_standards(tmp_path / "s.csv", concentration_unit="kg/L")
