"""A factor of dilution beside a concentration: asked for, unless the numbers themselves tell which it is."""

from __future__ import annotations

import re

import pytest

from geonode.data import load_standards
from geonode.errors import ReaderError
from tests.data.small_tables import X, spectrum, table, write

NAMES, PIPETTED = ("S0", "S1", "S2", "S3"), (5, 10, 20, 40)


def note(tmp_path, head: str, *columns):
    """Spectra, and a table of these columns beside the names."""
    rows = [",".join(map(str, row)) for row in zip(NAMES, *columns, strict=True)]
    spectra = write(tmp_path / "s.csv", table(NAMES, PIPETTED))
    return spectra, write(tmp_path / "n.csv", "\n".join([f"sample,{head}", *rows]))


@pytest.mark.parametrize(
    "called",
    ["dilution", "dilution factor", "Verdünnung", "Verdünnungsfaktor", "DF", "dil.", "x-fold", "dilution_factor"],
)
@pytest.mark.parametrize("factors", [(5, 5, 4, 8), (5, 5, 5, 5), ("1:5", "1:5", "1+3", "1/8")])
def test_a_dilution_beside_a_concentration_is_asked_for(tmp_path, called, factors):
    spectra, table_ = note(tmp_path, f"conc (µM),{called}", PIPETTED, factors)
    both = rf"'{called}' .*before it or after; if it is that in the cuvette.*column='conc'.*stock.*'conc' ÷ '{called}'"
    with pytest.raises(ReaderError, match=both):
        load_standards(spectra, concentrations=table_)
    data = load_standards(spectra, concentrations=table_, column="conc")  # what the sentence offers
    assert data.concentrations.tolist() == list(PIPETTED)


@pytest.mark.parametrize(
    ("called", "told"),
    [
        ("dilution factor", (1, 1, 1, 1)),  # nothing was diluted
        ("dilution factor", (8, 4, 2, 1)),  # one stock of 40, and what each left of it
        ("dilution", ("none", "once", "twice", "thrice")),
        ("manifold", (1, 2, 3, 5)),
    ],
)
def test_what_tells_no_second_reading_is_taken_as_it_stands(tmp_path, called, told):
    spectra, table_ = note(tmp_path, f"conc (µM),{called}", PIPETTED, told)
    assert load_standards(spectra, concentrations=table_).concentrations.tolist() == list(PIPETTED)


@pytest.mark.parametrize("named", [None, "stock"])
def test_one_stock_and_its_dilutions_ask_for_the_quotient(tmp_path, named):
    spectra, table_ = note(tmp_path, "stock (µM),dilution factor", (40,) * 4, (8, 4, 2, 1))
    with pytest.raises(ReaderError, match=r"'stock' is the same in every row.*'stock' ÷ 'dilution factor' in place"):
        load_standards(spectra, concentrations=table_, column=named)


def test_dilutions_alone_are_no_concentrations(tmp_path):
    spectra, table_ = note(tmp_path, "dilution", (1, 2, 4, 8))
    with pytest.raises(ReaderError, match=r"a dilution is no concentration.*stock ÷ 'dilution', or 1 ÷ 'dilution'"):
        load_standards(spectra, concentrations=table_)


def test_columns_within_the_file_count_as_those_of_a_table(tmp_path):
    rows = [
        ",".join([name, str(c), str(f), *(f"{v:.4f}" for v in spectrum(c))])
        for name, c, f in zip(NAMES, PIPETTED, (5, 5, 4, 8), strict=True)
    ]
    head = ",".join(["sample", "conc (µM)", "dilution factor", *(f"{x:g}" for x in X)])
    path = write(tmp_path / "rows.csv", "\n".join([head, *rows]))
    with pytest.raises(ReaderError, match=re.escape("'conc (µM)' ÷ 'dilution factor'")):
        load_standards(path)
    assert load_standards(path, column="conc").concentrations.tolist() == list(PIPETTED)


def test_a_list_of_files_is_asked_too(tmp_path):
    for name, c in zip(NAMES, PIPETTED, strict=True):
        write(tmp_path / f"{name}.csv", table(["absorbance"], (c,)))
    rows = [f"{name}.csv,{c},{f}" for name, c, f in zip(NAMES, PIPETTED, (5, 5, 4, 8), strict=True)]
    path = write(tmp_path / "list.csv", "\n".join(["file,concentration,Verdünnung", *rows]))
    with pytest.raises(ReaderError, match=r"'Verdünnung' .*before it or after"):
        load_standards(path)
