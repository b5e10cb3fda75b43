"""Decimal commas between commas, counts of replicates in rows, and many files: each refusal names place and remedy."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from geonode.data import load_standards
from geonode.data.readers.assemble import assemble, merged_notes
from geonode.data.readers.inspection import inspect_file
from geonode.data.readers.loading import record
from geonode.data.readers.recording import Recording
from geonode.errors import ReaderError
from tests.data.small_tables import write

WAVE = range(400, 440, 5)
LEVELS = (0.0, 5.0, 10.0, 20.0)


SPLIT = "c,400,405\n1,5,0,23,0,24\n2,5,0,25,0,26\n3,5,0,27,0,28\n"


def value(x: float, c: float) -> float:
    return 0.05 + 0.002 * c + 0.0001 * x


def number(v: float, comma: bool, digits: int = 4) -> str:
    return f"{v:.{digits}f}".replace(".", "," if comma else ".")


def in_columns(comma_in) -> str:
    rows = [f"wavelength,{','.join(f'{c:g}' for c in LEVELS)}"]
    for k, x in enumerate(WAVE):
        rows.append(",".join([str(x), *(number(value(x, c), comma_in(k, c)) for c in LEVELS)]))
    return "\n".join(rows) + "\n"


def in_rows(comma_in_level: bool, comma_in_value: bool, first: str = "concentration") -> str:
    rows = [",".join([first, *map(str, WAVE)])]
    for c in LEVELS:
        cells = [number(c + 0.5, comma_in_level, 1), *(number(value(x, c), comma_in_value) for x in WAVE)]
        rows.append(",".join(cells))
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (in_columns(lambda k, c: True), r"row 2 has 9 cells and the header 5: .*columns 2 and 3 \('0,0900'\)"),
        (in_columns(lambda k, c: (k, c) == (3, 10.0)), r"row 5 has 6 cells and the header 5: .*columns 4 and 5"),
        (in_rows(True, True), r"row 2 has 18 cells and the header 9: .*in columns 3 and 4 \('0,0900'\)"),
        (in_rows(True, False), r"row 2 has 10 cells and the header 9: .*in columns 1 and 2 \('0,5'\)"),
        (
            "c,400,405\n1,5,0,23,0,24\n2,5,0,25,0,26\n3,5,0,27,0,28\n",
            r"row 2 has 6 cells and the header 3: .* columns 5 and 6 \('0,24'\)",
        ),
        ("nm,A\n" + "\n".join(f"{x},0,0{x}" for x in WAVE), r"row 2 has 3 cells and the header 2: .*columns 2 and 3"),
    ],
    ids=["columns", "one cell", "rows", "the level alone", "nothing begins with 0", "one spectrum"],
)
def test_decimal_commas_between_commas_are_named_with_their_place(tmp_path, content, place):
    path = write(tmp_path / "a.csv", content)
    with pytest.raises(ReaderError, match=place) as error:
        inspect_file(path)
    assert str(error.value).startswith(f"{path}: row ")
    assert "with semicolons between the cells, or with decimal points" in str(error.value)


@pytest.mark.parametrize("semicolons", [True, False], ids=["semicolons", "points"])
def test_both_remedies_read_the_table(tmp_path, semicolons):
    content = in_rows(False, False)
    content = content.replace(",", ";").replace(".", ",") if semicolons else content
    assert load_standards(write(tmp_path / "a.csv", content)).levels.tolist() == [c + 0.5 for c in LEVELS]


@pytest.mark.parametrize(
    "content",
    [
        "nm,A,B,C\n1,400,0.1,0.2,0.3\n2,405,0.1,0.2,0.4\n3,410,0.1,0.3,0.3\n4,415,0.1,0.2,0.5\n",  # names of rows by R
        "\n".join(["wavelength,5,10,20", *(f"{x},{x % 7},{x % 11},{x % 13}" for x in WAVE)]),  # counts
    ],
)
def test_whole_numbers_alone_are_no_decimal_commas(tmp_path, content):
    assert inspect_file(write(tmp_path / "a.csv", content)).spectra == 3


@pytest.mark.parametrize(
    ("levels", "place"),
    [
        (("0", "5.0.1", "5.0.2", "20"), "row 3, column 1 .* is '5.0.1'.* write 5.0 in each row"),
        (("0.0", "5.0", "10.0", "20.0.3"), "row 5, column 1 .* is '20.0.3'.* write 20.0 in each row"),
        (("0.0.1", "0.0.2", "5.0.1", "20.0.1"), "row 2, column 1 .* is '0.0.1'.* write 0.0 in each row"),
    ],
    ids=["some", "the last", "all"],
)
@pytest.mark.parametrize("label", [(), ("probe",)], ids=["alone", "behind a name"])
def test_the_count_of_a_replicate_in_a_row_is_refused_with_the_remedy(tmp_path, levels, label, place):
    rows = [",".join([*(["sample"] if label else []), "concentration", *map(str, WAVE)])]
    for k, c in enumerate(levels):
        own = [f"{label[0]}{k}"] if label else []
        rows.append(",".join([*own, c, *(number(value(x, 3.0 * k), False) for x in WAVE)]))
    with pytest.raises(ReaderError, match=place.replace("column 1", f"column {1 + len(label)}")):
        inspect_file(write(tmp_path / "a.csv", "\n".join(rows)))


def write_scans(folder: Path, names: Iterable[str]) -> None:
    """A file a spectrum, that of the k-th of the concentration k."""
    folder.mkdir(exist_ok=True)
    for k, name in enumerate(names):
        rows = (f"{x},{value(x, k):.4f}" for x in WAVE)
        write(folder / name, "\n".join(["wavelength,absorbance", *rows]))


@pytest.mark.parametrize("count", [4, 5, 40])
def test_of_many_files_the_first_three_are_named_and_the_rest_counted(tmp_path, count):
    write_scans(tmp_path / "run", (f"scan{k:02}.csv" for k in range(count)))
    with pytest.raises(ReaderError, match="no concentration is known") as error:
        load_standards(tmp_path / "run")
    said = str(error.value)
    assert said.count("scan") == (2 * 3 if count > 4 else 4 + 3)
    assert (f"scan02.csv and {count - 3} more: " in said) == (count > 4)
    assert f"'scan02' and {count - 3} more" in said
    assert inspect_file(tmp_path / "run").problem == said.split(": ", 1)[1]


@pytest.mark.parametrize("count", [5, 30])
def test_the_data_set_of_many_files_keeps_all_their_names_and_tells_three(tmp_path, count):
    write_scans(tmp_path, (f"{k} mM.csv" for k in range(count)))
    data = load_standards(tmp_path)
    assert data.source.count(" mM.csv") == count
    with pytest.raises(ValueError, match=rf"2 mM.csv and {count - 3} more: no wavelength between 1 and 2"):
        data.wavelength_range(1.0, 2.0)
    assert np.array_equal(data.levels, np.arange(count))


@pytest.mark.parametrize("count", [2, 4, 5])
def test_a_comma_in_a_name_makes_no_two_files_of_it(tmp_path, count):
    write_scans(tmp_path / "run, day 2", (f"x, {k} mM.csv" for k in range(count)))
    recordings = record(tmp_path / "run, day 2")
    data = assemble(recordings)
    assert data.files == tuple(str(recording.path) for recording in recordings)
    with pytest.raises(ValueError, match="no wavelength between 1 and 2") as error:
        data.wavelength_range(1.0, 2.0)
    assert (" and 2 more: " in str(error.value)) == (count == 5) and str(error.value).count("run, day 2") == min(
        count, 3 if count == 5 else 4
    )


@pytest.mark.parametrize("last", ["20.3", "20.0.3"])
def test_a_point_in_the_last_level_among_decimal_commas_is_refused_by_name(tmp_path, last):
    """As a line below the table it would be left out with next to no word."""
    rows = [";".join(["concentration", *map(str, WAVE)])]
    for c, level in zip(LEVELS, ["0,0", "5,0", "10,0", last], strict=True):
        rows.append(";".join([level, *(number(value(x, c), True) for x in WAVE)]))
    with pytest.raises(ReaderError, match=f"row 5, column 1 .* is '{last}'"):
        inspect_file(write(tmp_path / "a.csv", "\n".join(rows)))


def test_that_a_table_lacks_spectra_is_said_once_and_with_too_few_levels(tmp_path):
    path = write(tmp_path / "a.csv", in_columns(lambda k, c: False).replace("0,5,10,20", "a,b,c,d", 1))
    (recording,) = record(path, concentrations={"a": 0.0, "b": 5.0, "c": 10.0})
    assert merged_notes([recording]) == recording.notes
    note = write(tmp_path / "n.csv", "name,concentration\na,0\nb,5\nc,10\n")
    said = "no entry in n.csv for 'd', left out of the standards"
    assert [one for one in load_standards(path, concentrations=note).notes if "no entry" in one] == [said]
    write(note, "name,concentration\na,0\nb,5\n")
    with pytest.raises(ReaderError, match=r"; no entry in n.csv for 'c', 'd', left out of the standards\.$"):
        load_standards(path, concentrations=note)


def test_a_table_of_concentrations_replaces_what_is_said_of_the_files_own(tmp_path):
    path = write(tmp_path / "a.csv", in_columns(lambda k, c: False).replace("wavelength", "nm", 1))
    said = "column headers taken as the concentrations"
    assert said in load_standards(path).notes
    note = write(tmp_path / "n.csv", "name,concentration\n0,1\n5,2\n10,3\n20,4\n")
    for given in (note, {"0": 1.0, "5": 2.0, "10": 3.0, "20": 4.0}):
        data = load_standards(path, concentrations=given)
        assert data.levels.tolist() == [1.0, 2.0, 3.0, 4.0] and said not in data.notes


@pytest.mark.parametrize("own", [False, True])
def test_a_list_of_files_says_where_their_concentrations_were_found_unless_it_has_its_own(tmp_path, own):
    rows = [",".join(["sample", "concentration (mM)", *map(str, WAVE)])]
    rows += [",".join([f"s{k}", f"{c:g}", *(number(value(x, c), False) for x in WAVE)]) for k, c in enumerate(LEVELS)]
    write(tmp_path / "plate.csv", "\n".join(rows))
    listed = [f"plate.csv,s{k}" + (f",{k + 1}" if own else "") for k in range(4)]
    path = write(tmp_path / "l.csv", "\n".join(["file,spectrum" + (",concentration" if own else ""), *listed]))
    data = load_standards(path)
    assert data.levels.tolist() == ([1.0, 2.0, 3.0, 4.0] if own else list(LEVELS))
    assert data.concentration_unit == ("" if own else "mM")
    said = [note for note in data.notes if "taken as the concentration" in note]
    assert said == ([] if own else ["column 2 'concentration (mM)' taken as the concentration"])


def test_only_what_is_said_of_all_files_is_said_of_none_of_them():
    own = [Recording(Path(f"{k}.csv"), "CSV", [], notes=["left out of the folder of blanks: one scan"]) for k in "ab"]
    own[0].on_all, own[1].on_concentrations = ["no spectrum for these entries of n.csv: 'x'"], ["column 1 taken"]
    said = ["all 2 files: left out of the folder of blanks: one scan", "b.csv: column 1 taken", *own[0].on_all]
    assert merged_notes(own) == said
    assert merged_notes(own[:1]) == [*own[0].notes, *own[0].on_all]


@pytest.mark.parametrize("others", [("SOURCE.txt",), ("README.md", "SOURCE.txt"), ("a.log", "b.log", "c.log")])
def test_what_is_left_out_of_a_folder_is_said_of_the_folder_and_of_no_file(tmp_path, others):
    for k in range(3):
        rows = (f"{x},{value(x, k):.4f}" for x in WAVE)
        write(tmp_path / f"{k} mM.csv", "\n".join(["wavelength,absorbance", *rows]))
    for name in others:
        write(tmp_path / name, "nothing of ours\n")
    (said,) = (note for note in load_standards(tmp_path).notes if "left out of" in note)
    assert said.startswith(f"left out of the folder {tmp_path}, since") and said.endswith(f"'{others[-1]}'")
