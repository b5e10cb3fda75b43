"""Refusals whose remedy is the next step in the reader's own names, and leads on: no remedy undoes the one before."""

from __future__ import annotations

import re

import pytest

from geonode.data import load_standards
from geonode.errors import ReaderError
from tests.data.small_tables import table, write


def test_each_selection_keeps_what_was_selected_before(tmp_path):
    """Series and conditions in one table: whichever is selected first, following the examples ends with standards."""
    rows = [(c, ph, name) for name in ("H148G", "buffer") for ph in (6.3, 7.4) for c in (0, 120, 250, 500)]
    rows = [row for row in rows if row[2] != "buffer" or row[0] <= 120]
    names = [f"W{k}" for k in range(len(rows))]
    spectra = write(tmp_path / "s.csv", table(names, [row[0] for row in rows]))
    lines = [f"{n},{c},{ph},{name}" for n, (c, ph, name) in zip(names, rows, strict=True)]
    note = write(tmp_path / "n.csv", "\n".join(["sample,Cl,pH,Name", *lines]))
    for first in (None, "pH=7.4", "H148G"):
        select = first
        for _ in range(2):
            try:
                data = load_standards(spectra, concentrations=note, column="Cl", select=select)
            except ReaderError as error:
                found = re.search(r"select='([^']*)'", str(error))
                assert found is not None and (first is None or first in found[1])
                select = found[1]
        data = load_standards(spectra, concentrations=note, column="Cl", select=select)
        assert data.concentrations.tolist() == [0, 120, 250, 500]
    with pytest.raises(ReaderError, match=r"select='H148G & pH=7.4, buffer & pH=7.4'"):
        load_standards(spectra, concentrations=note, column="Cl", select="H148G, buffer")


LEVELS = (0, 120, 250)


@pytest.mark.parametrize("mark", ["{0}{1:c}", "{0}_{2}", "{0} {1:c}", "{0}-{2}"])
def test_replicates_are_headed_as_the_sentence_says(tmp_path, mark):
    each = [(level, k) for level in LEVELS for k in (1, 2)]
    names, levels = [mark.format(level, 64 + k, k) for level, k in each], [level for level, _ in each]
    path = write(tmp_path / "a.csv", table(names, levels, first="wavelength"))
    said = rf"'{names[0]}' and '{names[1]}' are replicates of 0, head them '0\.0\.1' and '0\.0\.2'"
    with pytest.raises(ReaderError, match=said):
        load_standards(path)
    headed, measured = [f"{level}.0.{k}" for level, k in each], [level + 0.1 * k for level, k in each]
    data = load_standards(write(tmp_path / "b.csv", table(headed, measured, first="wavelength")))
    assert data.concentrations.tolist() == levels


def test_samples_that_are_only_numbered_are_no_replicates(tmp_path):
    with pytest.raises(ReaderError, match="no concentration is known for '1A', '2A', '3A'; give a table"):
        load_standards(write(tmp_path / "a.csv", table(("1A", "2A", "3A"), LEVELS, first="wavelength")))


def test_a_table_by_level_names_its_replicates(tmp_path):
    names = [f"Std{k}{letter}" for k in (1, 2, 3) for letter in "AB"]
    spectra = write(tmp_path / "a.csv", table(names, [c for c in LEVELS for _ in "AB"]))
    note = write(tmp_path / "n.csv", "sample,conc\nStd1,0\nStd2,120\nStd3,250\n")
    with pytest.raises(ReaderError, match="'sample' has 'Std1', and the spectra are 'Std1A', 'Std1B'; give a row for"):
        load_standards(spectra, concentrations=note)


@pytest.mark.parametrize("called", ["Blank", "blank 1", "Blindwert", "Leerprobe"])
def test_a_blank_among_units_is_called_zero_by_whoever_knows(tmp_path, called):
    names = [called, "120 µM", "250 µM", "500 µM"]
    path = write(tmp_path / "a.csv", table(names, (0, 120, 250, 500)))
    with pytest.raises(ReaderError, match=rf"if '{called}' is a standard without the analyte, call it '0 µM'; else"):
        load_standards(path)
