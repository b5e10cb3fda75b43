"""The runtime's own reader of two columns: what it reads in one way, and what might be read in two."""

from __future__ import annotations

import numpy as np
import pytest

from geonode_runtime.errors import InputError
from geonode_runtime.text_files import read_spectrum

WAVE = np.arange(300.0, 340.0, 2.0)


def written(path, cells, divider=";"):
    path.write_text("".join(f"{w:g}{divider}{cell}\n" for w, cell in zip(WAVE, cells, strict=True)), encoding="utf-8")
    return path


@pytest.mark.parametrize("divider", [";", "\t"])
@pytest.mark.parametrize("cells", [["1,773", "2,752"] * 10, ["1,773", "752"] * 10, ["-1,204", "12,204"] * 10])
def test_commas_that_may_part_thousands_are_refused(tmp_path, divider, cells):
    with pytest.raises(InputError, match=r"u.csv: '-?1,\d{3}' may be -?1\d{3} or -?1\.\d{3}; write every number"):
        read_spectrum(written(tmp_path / "u.csv", cells, divider))


@pytest.mark.parametrize("cells", [["0,202", "1,204"] * 10, ["1,2", "1,204"] * 10, ["1,2041", "1,204"] * 10])
def test_decimal_commas_are_read(tmp_path, cells):
    found = read_spectrum(written(tmp_path / "u.csv", cells))[1]
    assert found.tolist() == [float(cell.replace(",", ".")) for cell in cells]


@pytest.mark.parametrize("cell", ['"1,773"', "0,1773"])
def test_commas_within_and_between_are_refused(tmp_path, cell):
    with pytest.raises(InputError, match=r"row|rows of numbers"):
        read_spectrum(written(tmp_path / "u.csv", [cell] * 20, ","))
