"""Files that are no spectra, files in each other's place, and options that are the cause: named, with what to do."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import geonode
from geonode.bundle import write_tensors
from geonode.data.readers import read_file
from geonode.errors import BundleError, InputError, ReaderError

TABLE = "wavelength,0,10,20\n" + "".join(f"{400 + i},0.{i:02d},0.{i + 10},0.{i + 30}\n" for i in range(10, 40))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gzip.compress(TABLE.encode()), "compressed by gzip; unpack it"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj", "a PDF document; export the spectra as text"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "a PNG picture; export the spectra as text"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "a JPEG picture"),
        (b"7z\xbc\xaf\x27\x1c\x00\x04", "a 7-Zip archive; unpack it"),
    ],
)
@pytest.mark.parametrize("name", ["spectra.csv", "spectra"])
def test_what_is_no_spectra_is_named(tmp_path, content, said, name):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ReaderError, match=f"{name}: {said}"):
        read_file(path)


def test_a_bundle_in_the_place_of_spectra_and_spectra_in_that_of_a_bundle(tmp_path):
    bundle, table = tmp_path / "m", tmp_path / "unknown.csv"
    write_tensors(bundle, {}, {"geonode": "{}"})
    table.write_text(TABLE)
    with pytest.raises(ReaderError, match="m: a bundle or weights of geonode and no spectra; name the bundle first"):
        read_file(bundle)
    with pytest.raises(BundleError, match=r"unknown\.csv holds text and is not a geonode bundle; name the bundle"):
        geonode.load(table)
    bundle.write_bytes(b"\x00" * 100)
    with pytest.raises(BundleError, match="is not a geonode bundle or is truncated"):
        geonode.load(bundle)


def test_a_decimal_mark_that_leaves_no_numbers_is_named_as_the_cause(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("wavelength,0 ppb,9 ppb\n" + "".join(f"{400 + i}.00000,0.{i}123,0.{i}345\n" for i in range(40)))
    with pytest.raises(ReaderError, match="no rows of numbers whose decimal mark is ','; leave decimal out"):
        geonode.load_standards(path, decimal=",")


def test_complex_numbers_are_refused_and_not_cut(tmp_path):
    spectra = np.ones((3, 30)) * (1.0 + 0.5j)
    with pytest.raises(InputError, match="spectra must be real numbers, and complex ones were given"):
        geonode.SpectralDataset(spectra, [0.0, 1.0, 2.0], np.arange(400.0, 430.0))
