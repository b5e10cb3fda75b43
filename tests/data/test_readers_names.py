"""Numbers and units in names of samples, as people write them: read, or in doubt and said so."""

from __future__ import annotations

import pytest

import geonode
from geonode.data import inspect_file
from geonode.data.readers.names import concentration_in, named_concentration, quantity_in
from geonode.errors import ReaderError
from tests.data.small_tables import table, write


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
        *(
            "dye_0-5 mM",
            "run_3-5mM",
            "a 1 000 000 ppm",
            "1E 3 ppm",
            "1'000 ppm",
            "1’000 ppm",
            "1 1/2 mM",
            "1:2 mM",
            "-5 mM",
            "dye –5 mM",
        ),
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


@pytest.mark.parametrize("header", ["absorbance", "Abs"])
def test_concentrations_from_the_names_of_files_are_called_so(tmp_path, header):
    paths = [write(tmp_path / f"dye_{c}mM.csv", table([header], (c,))) for c in (0, 5, 10)]
    said = inspect_file([str(path) for path in paths]).lines()
    assert "concentrations: 3 levels, 0 5 10 mM, from the names of the files" in said


@pytest.mark.parametrize("headers", [["0 mM", "5 mM", "10 mM"], ["0", "5", "10"]])
def test_those_of_headers_are_called_headers(tmp_path, headers):
    said = inspect_file(write(tmp_path / "dye.csv", table(headers, (0, 5, 10)))).lines()
    assert any(line.endswith("from the column headers") for line in said)
