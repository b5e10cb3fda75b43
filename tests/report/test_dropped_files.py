"""Files that are dropped on the page are read by its own script as geonode's readers read them, or refused."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from geonode.calibration.unknown_files import read_unknowns
from geonode.report.browser.data import answer_data
from tests.calibration.assays import WAVE, monotone, noisy
from tests.data import samples
from tests.report.test_answers import asked, fitted, needs_node

pytest.importorskip("h5netcdf")  # the files below are made when this is collected, and one is NetCDF


def rows_of(delimiter: str, decimal: str, c: float = 25.0, digits: int = 5) -> str:
    (values,) = noisy(monotone, [c], 3)
    rows = (f"{x:g}{delimiter}{y:.{digits}f}" for x, y in zip(WAVE, values, strict=True))
    return "\n".join(rows).replace(".", decimal) + "\n"


def quoted(delimiter: str) -> str:
    """Every cell in quotes, with a decimal comma; wavelengths too."""
    rows = (line.split(";") for line in rows_of(";", ",").splitlines())
    return "".join(f'"{x},0"{delimiter}"{y}"\n' for x, y in rows)


def with_cells(**cells: str) -> str:
    lines = rows_of(",", ".").splitlines()
    for place, cell in cells.items():
        lines[int(place[1:])] = lines[int(place[1:])].split(",")[0] + "," + cell
    return "\n".join(lines)


SEVERAL = "wavelength,u1,u2\n" + "\n".join(
    f"{x:g},{a:.5f},{b:.5f}" for x, a, b in zip(WAVE, *noisy(monotone, [5.0, 45.0], 8), strict=True)
)
FILES = {
    "plain": rows_of(",", ".").encode(),
    "heading": ("wavelength / nm,absorbance\n" + rows_of(",", ".")).encode(),
    "semicolons, decimal comma": ("nm;Abs\n" + rows_of(";", ",")).encode("utf-8-sig"),
    "tabs, UTF-16": ("λ\tA\n" + rows_of("\t", ".")).encode("utf-16"),
    "Latin-1": ("Wellenlänge;Probe µ\r\n" + rows_of(";", ",").replace("\n", "\r\n")).encode("latin-1"),
    "blanks": rows_of("   ", ".").encode(),
    "comments": ("# made by hand\n\n" + rows_of(",", ".")).encode(),
    "descending": "\n".join(reversed(rows_of(",", ".").splitlines())).encode(),
    "several": SEVERAL.encode(),
    "capped": with_cells(r10="3.00000", r11="3.00000", r12="3.00000").encode(),
    "over range": with_cells(r10="OVRFLW", r20="-0").encode(),
    "an empty cell": with_cells(r20="").encode(),
    "words between": with_cells(r50="see below").encode(),
    "thousands": "\n".join(f"{x:g};{c}" for x, c in zip(WAVE, ["773", "2.752", "1.204"] * 34, strict=False)).encode(),
    "commas within": ("nm,A\n" + rows_of(",", ",")).encode(),
    "commas within two": ("nm,A,B\n" + rows_of(",", ",").replace("\n", ",0,01\n")).encode(),
    "quoted thousands": "\n".join(f'{x:g},"{c}"' for x, c in zip(WAVE, ["1,773", "2,752"] * 51, strict=False)).encode(),
    "quoted, semicolons": quoted(";").encode(),
    "quoted, tabs": quoted("\t").encode(),
    "quoted, commas": quoted(",").encode(),
    "quoted, commas, heading": ('"nm","Abs"\n' + quoted(",")).encode(),
    "quoted, commas, several": "\n".join(
        f'{row},"0,1{k % 7}"' for k, row in enumerate(quoted(",").splitlines())
    ).encode(),
    "quoted, commas, exponents": quoted(",").replace('"\n', 'E-1"\n').encode(),
    "quoted, wavelengths plain": "\n".join(f'{x:g},"{0.5 + x / 1e4:.5f}"'.replace(".", ",") for x in WAVE).encode(),
    "quoted, a comma bare": quoted(",").replace('"', "", 4).encode(),
    "quoted, one part only": quoted(",").replace('"', "", 2).encode(),
    "three digits": "\n".join(f"{x:g};{c}" for x, c in zip(WAVE, ["1,773", "2,752"] * 51, strict=False)).encode(),
    "electronvolts": ("energy / eV,absorbance\n" + rows_of(",", ".")).encode(),
    "wavenumbers": ("wavenumber / cm-1,absorbance\n" + rows_of(",", ".")).encode(),
    "last name empty": SEVERAL.replace("u2\n", "\n", 1).encode(),
    "last name empty, nm": SEVERAL.replace("wavelength", "nm", 1).replace("u2\n", "\n", 1).replace(",", ";").encode(),
    "corner and last name empty": SEVERAL.replace("wavelength", "", 1).replace("u2\n", "\n", 1).encode(),
    "a name empty between": SEVERAL.replace("u1", "", 1).replace(",", "\t").encode(),
    "no corner": SEVERAL.replace("wavelength,", "", 1).replace(",", "\t").encode(),
    "one name short": SEVERAL.replace(",u2\n", "\n", 1).replace(",", "\t").encode(),
    "no axis, last name empty": SEVERAL.replace("wavelength", "u0", 1).replace("u2\n", "\n", 1).encode(),
    "percent": ("nm,%T\n" + rows_of(",", ".")).encode(),
    "counted": "\n".join(f"{k},{0.1 + 0.01 * k:.3f}" for k in range(40)).encode(),
    "scan forth and back": (rows_of(",", ".") + "\n".join(reversed(rows_of(",", ".").splitlines()))).encode(),
    "one number": b"0.345\n",
    "nothing": b"",
    "a picture": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "a workbook": b"PK\x03\x04" + b"\0" * 40,
    "prose": b"dear colleague,\nthe spectrum is attached\nto the next letter\n",
} | {maker.__name__: maker() for maker in samples.MAKERS}
MUST_READ = ("plain", "heading", "semicolons, decimal comma", "tabs, UTF-16", "Latin-1", "blanks", "comments")
MUST_READ += (
    "last name empty",
    "last name empty, nm",
    "corner and last name empty",
    "a name empty between",
    "no corner",
)
MUST_READ += ("descending", "several", "capped", "over range", "pairs", "delimited")
MUST_READ += tuple(name for name in FILES if name.startswith("quoted, ") and not name.endswith(("bare", "only")))
MUST_REFUSE = (
    "words between",
    "thousands",
    "electronvolts",
    "wavenumbers",
    "percent",
    "counted",
    "scan forth and back",
)
MUST_REFUSE += ("one name short", "no axis, last name empty")
MUST_REFUSE += ("commas within", "commas within two", "quoted thousands", "three digits")
MUST_REFUSE += ("one number", "nothing", "a picture", "a workbook", "prose", "jcamp", "spc", "xlsx", "netcdf")


@pytest.fixture(scope="module")
def model():
    return fitted(monotone)


@pytest.fixture(scope="module")
def read(model) -> dict[str, dict[str, Any]]:
    unknowns = [{"file": f"{name}.txt", "bytes": base64.b64encode(data).decode()} for name, data in FILES.items()]
    return dict(zip(FILES, asked(answer_data(model), unknowns), strict=True))


@needs_node
@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_as_geonode_reads_it_or_refused(name, read, model, tmp_path):
    """Never another number than the readers': where the page reads at all, wavelengths, values and masks are theirs."""
    mine, standards = read[name], model.standards
    if "refused" in mine:
        assert name not in MUST_READ, mine
        assert mine["refused"].startswith(f"{name}.txt") and mine["refused"].endswith(".")
        return
    assert name not in MUST_REFUSE
    path = tmp_path / f"{name}.txt"
    path.write_bytes(FILES[name])
    theirs = read_unknowns([path], standards, each=True)
    assert len(mine["spectra"]) == len(theirs)
    order = np.argsort(mine["wavelengths"])
    for one, other in zip(mine["spectra"], theirs, strict=True):
        if len(theirs) > 1 and name != "pairs":  # whose titles the page does not take
            assert one["name"] == other.name
        assert np.array(mine["wavelengths"])[order] == pytest.approx(other.wavelengths)
        masked = np.array(one["masked"])[order]
        assert (masked == other.mask[0]).all()
        values = np.array([np.nan if v is None else v for v in one["values"]])[order]
        assert values[~masked] == pytest.approx(other.spectra[0][~masked])
