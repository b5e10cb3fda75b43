"""Tables on their side: refused beyond doubt, with both readings, and genuine plates of many standards still read."""

from __future__ import annotations

import numpy as np
import pytest

from geonode.data import load_standards
from geonode.data.readers.inspection import inspect_file
from geonode.errors import ReaderError
from tests.data.small_tables import write

SCAN = np.arange(400.0, 701.0)
LEVELS = (20.0, 40.0, 60.0, 80.0, 100.0)


def sideways(heads, across, first="wavelength", delimiter=","):
    """Text with a row for each of ``heads`` and a column for each number of ``across``."""
    rng = np.random.default_rng(0)
    rows = [delimiter.join([first, *(f"{x:g}" for x in across)])]
    rows += [delimiter.join([str(head), *(f"{0.1 + y:.5f}" for y in rng.random(len(across)))]) for head in heads]
    return "\n".join(rows)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("first", ["wavelength", "wavelength (nm)"])
def test_samples_in_rows_headed_as_wavelengths_are_refused_with_both_readings(tmp_path, first, delimiter):
    path = write(tmp_path / "a.csv", sideways([f"{c:g}" for c in LEVELS], SCAN, first, delimiter))
    with pytest.raises(
        ReaderError, match=r"transposed.*301 standards of 400 to 700 at 5 wavelengths from 20 to 100 nm"
    ) as e:
        inspect_file(path)
    assert "5 spectra at 301 wavelengths from 400 to 700" in str(e.value)
    assert "'concentration'" in str(e.value) and "swap rows and columns" in str(e.value)


def test_the_remedy_that_is_named_reads_the_table(tmp_path):
    path = write(tmp_path / "a.csv", sideways(LEVELS, SCAN, "concentration"))
    data = load_standards(path)
    assert data.shape == (5, 301) and data.levels.tolist() == list(LEVELS)


@pytest.mark.parametrize(
    "heads",
    [
        ("0", "20", "40", "60"),  # a blank: no wavelength is 0
        ("0", "20.0.1", "20.0.2", "40"),
        ("20.0.1", "20.0.2", "40", "60"),
        ("200", "400", "600", "800", "1000"),  # these might be wavelengths
    ],
)
def test_what_the_samples_are_called_hides_no_transposition(tmp_path, heads):
    with pytest.raises(ReaderError, match="transposed"):
        inspect_file(write(tmp_path / "a.csv", sideways(heads, SCAN[::-1])))


def test_a_short_scan_with_a_blank_is_named_too(tmp_path):
    with pytest.raises(ReaderError, match="transposed"):
        inspect_file(write(tmp_path / "a.csv", sideways((0, 20, 40, 60), np.arange(400.0, 701.0, 20.0))))


@pytest.mark.parametrize(
    ("wavelengths", "levels"),
    [
        ((340, 405, 450, 492, 540), np.linspace(0.0, 95.0, 96)),  # many standards at a few filters
        ((340, 405, 450, 492, 540), np.linspace(100.0, 3000.0, 30)),
        ((340, 405, 450, 492, 540), 400.0 + np.arange(40.0)),
        ((13, 14, 15, 16, 17), 100.0 * 1.1 ** np.arange(40)),  # no axis: not evenly spaced
        (tuple(range(400, 430)), np.arange(100.0, 112.0)),
    ],
)
def test_a_plate_of_many_standards_at_few_wavelengths_is_read(tmp_path, wavelengths, levels):
    found = inspect_file(write(tmp_path / "a.csv", sideways(wavelengths, levels)))
    assert found.spectra == len(levels) and found.points == (len(wavelengths),) * 2
