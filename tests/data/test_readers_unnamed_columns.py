"""A header names the column under it: a cell that is empty leaves its own column without a name, and moves no other."""

from __future__ import annotations

import numpy as np
import pytest

import geonode
from geonode.calibration.unknown_files import read_unknowns
from geonode.data.readers import read_file
from geonode.errors import ReaderError
from tests.calibration.assays import LEVELS, WAVE, monotone
from tests.data import samples

STANDARDS = monotone(LEVELS)


def text_of(header: list[str], spectra: np.ndarray, mark: str = ",") -> str:
    rows = ([f"{x:g}", *(f"{v:.5f}" for v in column)] for x, column in zip(WAVE, spectra.T, strict=True))
    return "\n".join(mark.join(row) for row in [header, *rows]) + "\n"


def sheet_of(header: list[str], spectra: np.ndarray) -> list[list[float | str]]:
    return [list(header), *([float(x), *map(float, column)] for x, column in zip(WAVE, spectra.T, strict=True))]


def written(folder, form: str, header: list[str], spectra: np.ndarray):
    """The file of a form, header and spectra."""
    if form in ("xlsx", "ods"):
        pytest.importorskip("python_calamine")
        content = getattr(samples, form)({"Cal": sheet_of(header, spectra)})
    else:
        content = text_of(header, spectra, {"commas": ",", "semicolons": ";", "tabs": "\t"}[form]).encode()
    path = folder / f"a.{form if form in ('xlsx', 'ods') else 'csv'}"
    path.write_bytes(content)
    return path


FORMS = ("commas", "semicolons", "tabs", "xlsx", "ods")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("first", ["wavelength", "nm", "Wavelength (nm)", ""])
def test_a_last_column_without_a_name_moves_no_other(tmp_path, form, first):
    path = written(tmp_path, form, [first, "S1", "S2", "S3", ""], STANDARDS[:4])
    found = read_file(path).traces
    assert [trace.name for trace in found] == ["S1", "S2", "S3", "column 5"]
    for trace, spectrum in zip(found, STANDARDS, strict=False):
        np.testing.assert_allclose(trace.values, spectrum, atol=1e-5)


@pytest.mark.parametrize("form", ["commas", "semicolons", "xlsx"])
def test_unknowns_keep_their_names(tmp_path, form):
    data = geonode.load_standards(written(tmp_path, "commas", ["wavelength", *map(str, LEVELS)], STANDARDS))
    path = written(tmp_path, form, ["wavelength", "7", "60", ""], monotone([7.0, 60.0, 15.0]))
    found = read_unknowns([path], data, each=True)
    assert [one.name.rpartition(": ")[2] for one in found] == ["7", "60", "column 4"]
    np.testing.assert_allclose(found[2].spectra[0], monotone([15.0])[0], atol=1e-5)


@pytest.mark.parametrize("form", ["commas", "tabs", "xlsx", "ods"])
@pytest.mark.parametrize("empty", [3, 6])
def test_a_standard_without_a_level_is_asked_for_by_its_column(tmp_path, form, empty):
    header = ["wavelength", *map(str, LEVELS)]
    header[empty] = ""
    path = written(tmp_path, form, header, STANDARDS)
    with pytest.raises(ReaderError, match=rf"the file says no concentration for 'column {empty + 1}'; take out"):
        geonode.load_standards(path)


@pytest.mark.parametrize("form", ["commas", "xlsx"])
def test_a_table_of_concentrations_goes_by_the_names_over_the_columns(tmp_path, form):
    path = written(tmp_path, form, ["nm", *(f"S{k}" for k in range(1, 6)), ""], STANDARDS)
    note = tmp_path / "note.csv"
    rows = [f"{name},{c:g}" for name, c in zip(["S1", "S2", "S3", "S4", "S5", "column 7"], LEVELS, strict=True)]
    note.write_text("\n".join(["name,concentration", *rows]))
    data = geonode.load_standards(path, concentrations=note)
    np.testing.assert_array_equal(data.concentrations.ravel(), LEVELS)
    np.testing.assert_allclose(data.spectra, STANDARDS, atol=1e-5)


@pytest.mark.parametrize("mark", ["commas", "tabs"])
def test_a_header_without_its_corner_is_read_as_r_writes_it(tmp_path, mark):
    """One cell less than the rows: the names begin over the second column, also where the first counts the rows."""
    path = written(tmp_path, mark, ["S1", "S2", "S3"], STANDARDS[:3])
    assert [trace.name for trace in read_file(path).traces] == ["S1", "S2", "S3"]
    char = {"commas": ",", "tabs": "\t"}[mark]
    lines = text_of(["wavelength", "S1", "S2"], STANDARDS[:2], char).splitlines()
    counted = [lines[0], *(f"{k + 1}{char}{line}" for k, line in enumerate(lines[1:]))]
    path.write_text("\n".join(counted))
    found = read_file(path).traces
    assert [trace.name for trace in found] == ["S1", "S2"]
    np.testing.assert_array_equal(found[0].wavelengths, WAVE)


@pytest.mark.parametrize("header", [["wavelength", "S1", "S2"], ["nm", "S1", "S2"], ["", "S1", "S2"]])
def test_a_header_one_short_that_begins_with_the_axis_is_refused(tmp_path, header):
    """Any of the three spectra may be the one without a name."""
    path = written(tmp_path, "semicolons", header, STANDARDS[:3])
    with pytest.raises(ReaderError, match="row 1: it has 3 cells and the rows below it 4, so one of the columns has"):
        read_file(path)


@pytest.mark.parametrize("first", ["S0", "0", "blank"])
@pytest.mark.parametrize("form", ["commas", "xlsx"])
def test_a_header_that_ends_early_and_names_no_axis_is_refused(tmp_path, form, first):
    path = written(tmp_path, form, [first, "S1", "S2", ""], STANDARDS[:3])
    with pytest.raises(ReaderError, match=f"row 1: its last cell is empty, and its first, '{first}', does not say"):
        read_file(path)


@pytest.mark.parametrize("first", ["", "conc", "sample"])
def test_samples_in_rows_whose_last_wavelength_is_missing_are_refused(tmp_path, first):
    rows = [[first, "400", "410", "420", "430", ""], *([f"{c:g}", *["0.1234"] * 5] for c in LEVELS)]
    (tmp_path / "a.csv").write_text("\n".join(",".join(row) for row in rows))
    with pytest.raises(ReaderError, match=r"row 1 holds wavelengths, and its column 6 none|its last cell is empty"):
        read_file(tmp_path / "a.csv")
