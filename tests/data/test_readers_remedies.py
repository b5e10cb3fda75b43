"""Refusals that name what stands in a file and what settles it: a unit that is missing, a number in another way of
writing, a column too many."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from geonode.data import SpectralDataset, given_standards, load_standards
from geonode.data.readers import read_file
from geonode.data.readers.base import ReadingOptions
from geonode.errors import InputError, ReaderError
from geonode_runtime.unknowns import prepare_unknown
from tests.data.small_tables import X, levels_by_name, spectrum, table, write

LEVELS = (0, 120, 250, 500)


def tidy(tmp_path, names=LEVELS, *, first="wavelength", x=X, levels=LEVELS):
    return write(tmp_path / "a.csv", table(map(str, names), levels, first=first, x=x))


# --- the unit of the axis ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "span"), [("wavelength", "400 to 429"), ("Wellenlänge", "400 to 429"), ("λ", "")])
def test_bare_wavelengths_that_lie_where_micrometres_do_are_asked_for(tmp_path, first, span):
    with pytest.raises(ReaderError, match=rf"runs from 0\.4 to 0\.429 and says no unit, which is {span}.*µm"):
        read_file(tidy(tmp_path, first=first, x=X / 1000))
    for said, unit in (("wavelength (µm)", "µm"), ("wavelength (nm)", "nm")):  # what the sentence asks for
        assert read_file(tidy(tmp_path, first=said, x=X / 1000)).wavelength_unit == unit


@pytest.mark.parametrize("x", [10 * X, 1e7 / X, X * 100], ids=["Å", "cm-1", "far"])
def test_bare_wavelengths_that_are_no_nanometres_are_not_taken_for_them(tmp_path, x):
    found = read_file(tidy(tmp_path, x=x))
    assert found.wavelength_unit == "" and "does not say the unit of its wavelengths" in " ".join(found.notes)


def test_python_asks_for_the_unit_as_files_do():
    y, axis = np.array([spectrum(c) for c in LEVELS]), pd.Index(X / 1000, name="wavelength")
    frame = pd.DataFrame(y.T, columns=pd.Index([f"{c} mM" for c in LEVELS]), index=axis)
    for make in (lambda: SpectralDataset(y, LEVELS, axis), lambda: given_standards(frame)):
        with pytest.raises(InputError, match=r"400 to 429 nm if these are µm"):
            make()


@pytest.mark.parametrize(
    ("own", "standards", "said"),
    [
        (X / 1000, X, "a factor of 1000 lies between the two, as if one were in µm and the other in nm"),
        (X, X / 1000, "a factor of 1000 lies between the two, as if one were in nm and the other in µm"),
        (10 * X, X, "a factor of 10 lies between the two, as if one were in Å and the other in nm"),
        (X, 10 * X, "a factor of 10 lies between the two, as if one were in nm and the other in Å"),
        (1e7 / X, X, "10 000 000 divided by the number lies between the two, as if one were in cm⁻¹"),
        (np.linspace(400, 4000, 30), np.linspace(2500, 25000, 30), "as if one were in cm⁻¹ and the other in nm"),
        (1239.84 / X, X, "as if one were in eV and the other in nm"),
        (X + 200, X, "400 to 429; measure that range too."),
        (X[20:], X, "400 to 429; measure that range too."),
        (X[10:], X, "measure that range too, or leave it out (fit again with the preprocessing range:410-429)."),
    ],
    ids=[
        "µm to nm",
        "nm to µm",
        "Å to nm",
        "nm to Å",
        "cm-1 to nm",
        "infrared",
        "eV to nm",
        "elsewhere",
        "hardly",
        "too short",
    ],
)
def test_wavelengths_that_miss_the_standards_name_the_unit_that_explains_it(own, standards, said):
    y = np.array([spectrum(c) for c in LEVELS])[:, : len(standards)]
    with pytest.raises(InputError, match=re.escape(said)) as refused:
        prepare_unknown(spectrum(60)[: len(own)], np.sort(standards), y, wavelengths=own, name="b.csv: sample")
    assert str(refused.value).startswith("b.csv: sample covers wavelengths ")


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (X / 1000, "a factor of 1000 lies between the two, as if one were in µm and the other in nm"),
        (10 * X, "a factor of 10 lies between the two, as if one were in Å and the other in nm"),
        (1e7 / X, "as if one were in cm⁻¹ and the other in nm"),
        (X + 0.5, "measure or interpolate them onto one grid first"),
    ],
    ids=["µm", "Å", "cm-1", "shifted"],
)
def test_standards_on_different_wavelengths_name_the_unit_that_explains_it(tmp_path, x, said):
    for c in LEVELS:
        rows = (f"{a:.8g}\t{v}" for a, v in zip(x if c == 120 else X, spectrum(c), strict=True))
        write(tmp_path / f"{c} ppm.txt", "\n".join(rows))
    with pytest.raises(ReaderError, match=rf"'120 ppm.txt: 120 ppm' have different wavelengths .*{said}"):
        load_standards(tmp_path)


@pytest.mark.parametrize("head", ["T [°C]", "T (°C)", "T/°C", "T °C", "Temperature [°C]"])
def test_a_column_of_temperatures_is_no_spectrum(tmp_path, head):
    path = tidy(tmp_path, (head, *(f"{c} mM" for c in LEVELS)), levels=(0, *LEVELS), first="nm")
    data = load_standards(path)
    assert data.levels.tolist() == list(LEVELS)
    assert f"column 2 '{head}' left out: a temperature, and no spectrum" in data.notes


# --- the unit of a concentration --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "bare", "like"),
    [
        (("0 mM", "120", "5000 µM", "10 mM"), "120", "0 mM"),
        (("0 µM", "120 µM", "250 µM", "500"), "500", "0 µM"),
        (("2,5", "120 nM", "250 nM", "500 nM"), None, ""),  # no number in a text with points: a name as any other
        (("1e2", "0 ppm", "250 ppm", "500 ppm"), "1e2", "0 ppm"),
    ],
)
def test_a_number_without_a_unit_among_others_that_have_one_is_named(tmp_path, names, bare, like):
    delimiter = ";" if bare is None else ","
    path = write(tmp_path / "a.csv", table(names, LEVELS, delimiter, first="wavelength"))
    with pytest.raises(ReaderError) as refused:
        load_standards(path)
    said = f"is called '{bare}', without a unit, and others have one (such as '{like}')"
    assert (said in str(refused.value)) == (bare is not None), refused.value
    column = 2 + names.index(bare) if bare else None
    assert bare is None or f"column {column} {said}; write it in one way" in str(refused.value)


@pytest.mark.parametrize("zero", ["0", "0.0", "0.00"])
def test_nothing_needs_no_unit(tmp_path, zero):
    data = load_standards(tidy(tmp_path, (zero, "120 µM", "250 µM", "500 µM")))
    assert levels_by_name(data)[zero] == 0.0 and data.concentration_unit == "µM"
    assert f"'{zero}' taken as 0 µM, though it says no unit" in data.notes


# --- numbers and columns ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "first"),  # where the points of other numbers settle what a comma is, delimited text is read
    [('"1,500"', "wavelength"), ('"12,345,678"', "wavelength"), ('"0,25"', "wavelength"), ('"0,25"', "nm")],
)
def test_a_quoted_comma_among_points_is_asked_for(tmp_path, cell, first):
    path = tidy(tmp_path, first=first)
    lines = path.read_text(encoding="utf-8").split("\n")
    row = lines[3].split(",")
    write(path, "\n".join([*lines[:3], ",".join([row[0], cell, *row[2:]]), *lines[4:]]))
    with pytest.raises(
        ReaderError, match=r"row 4, column 2 .*say which mark is decimal \(decimal='\.' or decimal=','\)"
    ):
        read_file(path)


@pytest.mark.parametrize(("decimal", "value"), [(".", 1500.0), (",", 1.5)])
@pytest.mark.parametrize("first", ["wavelength", "nm"])
def test_the_decimal_mark_settles_it(tmp_path, decimal, value, first):
    rows = [f"{a:g},{7 + i},{9 + i},{12 + i}" for i, a in enumerate(X)]
    rows[2] = rows[2].replace(",11,", ',"1,500",')
    path = write(tmp_path / "a.csv", "\n".join([f"{first},0,5,10", *rows]))
    found = read_file(path, ReadingOptions(decimal))
    assert found.traces[1].values[2] == value and found.traces[0].values[2] == 9.0


@pytest.mark.parametrize("odd", ["slope", "25 °C", "average", "R²", "notes"])
def test_a_column_too_many_is_named_with_the_remedy(tmp_path, odd):
    with pytest.raises(ReaderError, match=rf"column 6 is headed '{odd}'.*remove that column if it is no standard"):
        read_file(tidy(tmp_path, (*LEVELS, odd), levels=(*LEVELS, 7)))
    with pytest.raises(ReaderError, match=rf"no concentration for '{odd}'; take out what is no standard"):
        load_standards(tidy(tmp_path, (*(f"{c} mM" for c in LEVELS), odd), levels=(*LEVELS, 7)))
