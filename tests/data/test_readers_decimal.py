"""Numbers that may be read in two ways are refused with both readings, and read as told where somebody says which."""

from __future__ import annotations

import numpy as np
import pytest

import geonode
from geonode.data import inspect_file
from geonode.errors import InputError, ReaderError
from tests.commands import cases
from tests.commands.cases import WAVE, run

COUNTS = np.round(1000.0 * cases.standards() / cases.standards().max() * 2.9)
HEADS = [f"{c:g}" for c in cases.LEVELS]


def grouped(value: float, mark: str) -> str:
    return f"{value:,.0f}".replace(",", mark)


def counts(path, mark: str, delimiter: str, heads=HEADS):
    rows = [delimiter.join(["wavelength", *heads])]
    for x, row in zip(WAVE, COUNTS.T, strict=True):
        rows.append(delimiter.join([f"{x:g}", *(grouped(v, mark) for v in row)]))
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(("mark", "other"), [(".", ","), (",", ".")])
@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_counts_with_marks_between_thousands(tmp_path, mark, other, delimiter):
    path = counts(tmp_path / "c.csv", mark, delimiter)
    with pytest.raises(ReaderError, match=r"which is \d{4} or \d\.\d+: .*decimal='\.'"):
        geonode.load_standards(path)
    np.testing.assert_array_equal(geonode.load_standards(path, decimal=other).spectra, COUNTS)
    small = geonode.load_standards(path, decimal=mark).spectra
    np.testing.assert_allclose(small[COUNTS >= 1000], COUNTS[COUNTS >= 1000] / 1000.0)


@pytest.mark.parametrize("mark", [".", ","])
def test_the_commands_take_the_mark(tmp_path, mark):
    other = "," if mark == "." else "."
    path, unknown = counts(tmp_path / "c.csv", mark, ";"), tmp_path / "u.csv"
    values = np.round(1000.0 * cases.measured(30.0, 9) / cases.standards().max() * 2.9)
    rows = ["wavelength;u", *(f"{x:g};{grouped(v, mark)}" for x, v in zip(WAVE, values, strict=True))]
    unknown.write_text("\n".join(rows))
    for command in (["inspect", path], ["fit", path, "--out", tmp_path / "a", "--predictor", "gp"]):
        assert "--decimal" in run(*command, code=2).output
        assert "6" in run(*command, "--decimal", other).output
    assert "--decimal" in run("quantify", tmp_path / "a", unknown, code=2).output
    said = run("quantify", tmp_path / "a", unknown, "--decimal", other).output
    assert float(said.split("quantified: ")[1].split(",")[0].split(" ")[0]) == pytest.approx(30.0, abs=1.0)


@pytest.mark.parametrize("first", ["wavelength", "nm"])
@pytest.mark.parametrize(("decimal", "level"), [(".", 1.0), (",", 1000.0)])
def test_a_header_in_doubt(tmp_path, first, decimal, level):
    """In a text parted by commas the readings have points whatever the mark of the headers."""
    heads = ["0", "50", "20", "10", "5", "1.000"]
    path = cases.write_standards(tmp_path / "h.csv", heads, first=first)
    with pytest.raises(ReaderError, match=r"'1\.000', which is 1000 or 1; .*decimal='\.'"):
        geonode.load_standards(path)
    if decimal == "," and first == "nm":  # readings with points are no numbers of a text with decimal commas
        with pytest.raises(ReaderError):
            geonode.load_standards(path, decimal=decimal)
        return
    assert level in geonode.load_standards(path, decimal=decimal).levels


@pytest.mark.parametrize(("decimal", "level"), [(".", 1000.0), (",", 1.0)])
def test_a_name_in_doubt(tmp_path, decimal, level):
    path = cases.write_standards(
        tmp_path / "n.csv", ["0 ppm", "250 ppm", "500 ppm", "750 ppm", "1,000 ppm", "2000 ppm"], first="nm", mark="\t"
    )
    with pytest.raises(ReaderError, match="1000 or 1"):
        geonode.load_standards(path)
    if decimal == ".":
        assert level in geonode.load_standards(path, decimal=decimal).levels


@pytest.mark.parametrize(("decimal", "level"), [(".", 1.0), (",", 1000.0)])
@pytest.mark.parametrize("kind", ["note", "list"])
def test_a_cell_of_a_table_in_doubt(tmp_path, decimal, level, kind):
    names = [f"s{k}" for k in range(6)]
    cells = ["0", "250", "500", "750", "1.000", "2000"]
    if kind == "note":
        plate = cases.write(tmp_path / "p.csv", COUNTS, names, first="nm", mark=";", number="{:.0f}")
        note = tmp_path / "note.csv"
        how = {"concentrations": note}
    else:
        plate = note = tmp_path / "list.csv"
        how = {}
        for name, row in zip(names, COUNTS, strict=True):
            cases.write(tmp_path / name, row, ["counts"], first="nm", mark=";", number="{:.0f}")
    key = "name" if kind == "note" else "file"
    note.write_text(f"{key};concentration\n" + "".join(f"{n};{c}\n" for n, c in zip(names, cells, strict=True)))
    with pytest.raises(ReaderError, match=r"'1\.000', which is 1000 or 1; .*decimal='\.'"):
        geonode.load_standards(plate, **how)
    assert level in geonode.load_standards(plate, decimal=decimal, **how).levels


@pytest.mark.parametrize("mark", ["'", "point", "..", " "])
def test_another_mark_is_refused(tmp_path, mark):
    with pytest.raises(InputError, match="a point or a comma"):
        inspect_file(cases.write_standards(tmp_path / "s.csv"), decimal=mark)
