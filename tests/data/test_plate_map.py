"""Concentrations laid out as a plate: the same standards as a list of wells would give; folders read as their files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import geonode
from geonode.cli import app
from geonode.errors import ReaderError

WAVE = np.arange(500.0, 530.0, 2.0)
LEVELS = (0.0, 2.5, 10.0)


def plate(path: Path, wells: list[str]) -> Path:
    """A plate reader's table: a column for each well."""
    rng = np.random.default_rng(3)
    spectra = rng.normal(0.5, 0.2, (len(WAVE), len(wells)))
    rows = [",".join([f"{w:g}", *(f"{v:.5f}" for v in row)]) for w, row in zip(WAVE, spectra, strict=True)]
    path.write_text("\n".join([",".join(["nm", *wells]), *rows]) + "\n", encoding="utf-8")
    return path


WELLS = [f"{letter}{column}" for letter in "ABC" for column in (1, 2, 3)]
MAPS = {
    "comma": ",1,2,3\nA,0,0,0\nB,2.5,2.5,2.5\nC,10,10,10\n",
    "unit in the corner": "µM;1;2;3\nA;0;0;0\nB;2,5;2,5;2,5\nC;10;10;10\n",
    "corner with a word": "conc / µM\t1\t2\t3\na\t0\t0\t0\nb\t2.5\t2.5\t2.5\nc\t10\t10\t10\n",
    "unit above": "Concentration [µM]\n,1,2,3\nA,0,0,0\nB,2.5,2.5,2.5\nC,10,10,10\n",
    "unit in a comment": "# in µM\n,1,2,3\nA,0,0,0\nB,2.5,2.5,2.5\nC,10,10,10\n",
    "unit in the cells": ",1,2,3\nA,0 µM,0 µM,0 µM\nB,2.5 µM,2500 nM,2.5 µM\nC,10 µM,10 µM,0.01 mM\n",
    "blanks": "  1 2 3\nA 0 0 0\nB 2.5 2.5 2.5\nC 10 10 10\n",
    "numbers with zeros before": ",01,02,03\nA,0,0,0\nB,2.5,2.5,2.5\nC,10,10,10\n",
}


@pytest.mark.parametrize("name", MAPS)
def test_a_map_says_what_a_list_of_wells_says(tmp_path, name):
    """Law: the same standards, and the unit wherever it stands."""
    spectra = plate(tmp_path / "scan.csv", WELLS)
    (tmp_path / "map.csv").write_text(MAPS[name], encoding="utf-8")
    cells = zip(WELLS, np.repeat(LEVELS, 3), strict=True)
    (tmp_path / "list.csv").write_text("well,conc\n" + "".join(f"{w},{c:g}\n" for w, c in cells))
    mine = geonode.load_standards(spectra, concentrations=tmp_path / "map.csv")
    theirs = geonode.load_standards(spectra, concentrations=tmp_path / "list.csv")
    assert mine.names == theirs.names and np.array_equal(mine.concentrations, theirs.concentrations)
    assert mine.concentration_unit == ("µM" if "unit" in name or "word" in name else "")


@pytest.mark.parametrize("empty", ["", "NaN", "?"])
@pytest.mark.parametrize(("height", "width"), [(8, 12), (16, 24), (4, 6)])
def test_full_plates_need_no_letters_and_empty_wells_are_left_out(tmp_path, height, width, empty):
    cells = [[empty] * width for _ in range(height)]
    for row, level in enumerate(LEVELS):
        cells[row][1:4] = [f"{level:g}"] * 3
    spectra = plate(tmp_path / "scan.csv", [f"{letter}{column}" for letter in "ABCD" for column in (2, 3, 4)])
    labelled = [",".join(["", *map(str, range(1, width + 1))])]
    labelled += [",".join([chr(65 + k), *row]) for k, row in enumerate(cells)]
    for text in ("\n".join(",".join(row) for row in cells), "\n".join(labelled), "mg/L\n" + "\n".join(labelled)):
        (tmp_path / "map.csv").write_text(text + "\n")
        data = geonode.load_standards(spectra, concentrations=tmp_path / "map.csv")
        assert data.levels.tolist() == list(LEVELS) and len(data) == 9
        assert data.concentration_unit == ("mg/L" if text.startswith("mg/L") else "")
        assert any("D2" in note for note in data.notes)  # said, not dropped in silence


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (",1,2,3\nA,0,0,0\nB,2.5,oops,2.5\nC,10,10,10\n", r"well B2 is 'oops', which is no number"),
        (",1,2,3\nA,0,0,0\nB,2,1.000,2\nC,10,10,10\n", r"well B2 is '1.000', which is"),
        (",1,2,3\nA,0 g/L,0 g/L,0 g/L\nB,2.5 µM,1 g/L,1 g/L\nC,2 g/L,2 g/L,2 g/L\n", r"well B1 is in µM"),
        (",1,3,2\nA,0,0,0\nB,2.5,1,2.5\nC,10,10,10\n", "write a header above it"),
    ],
)
def test_what_a_map_cannot_mean_is_refused_by_its_well(tmp_path, text, said):
    (tmp_path / "map.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ReaderError, match=said):
        geonode.load_standards(plate(tmp_path / "scan.csv", WELLS), concentrations=tmp_path / "map.csv")


# ---------------------------------------------------------------------- folders


@pytest.fixture
def folder(tmp_path) -> Path:
    """Nine files of one spectrum each, a note, a picture, a hidden file, and a list of the files."""
    there = tmp_path / "fibre"
    there.mkdir()
    rng = np.random.default_rng(5)
    for k in range(9):
        rows = [f"{w:g}\t{v:.5f}" for w, v in zip(WAVE, rng.normal(0.5, 0.1, len(WAVE)), strict=True)]
        (there / f"scan_{k + 2}.txt").write_text("\n".join(rows) + "\n")
    levels = zip(range(2, 11), np.repeat(LEVELS, 3), strict=True)
    note = "".join(f"scan_{k}.txt,{c:g}\n" for k, c in levels)
    (tmp_path / "note.csv").write_text("sample,conc (µM)\n" + note, encoding="utf-8")
    (there / "list.csv").write_text("file,conc (µM)\n" + note, encoding="utf-8")
    (there / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    (there / ".hidden").write_text("x")
    return there


def inspected(*arguments) -> dict:
    result = CliRunner().invoke(app, ["inspect", *map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


@pytest.mark.parametrize("how", ["folder", "files", "list"])
def test_inspect_and_fit_read_a_folder_alike(folder, tmp_path, how):
    """Law: a folder, its files and a list of them are the same standards, in the order in which people count."""
    files = [folder / f"scan_{k}.txt" for k in range(2, 11)]
    given = {"folder": [folder], "files": files, "list": [folder / "list.csv"]}[how]
    note = [] if how == "list" else ["--concentrations", tmp_path / "note.csv"]
    found = inspected(*given, *note)
    data = geonode.load_standards(given, concentrations=None if how == "list" else tmp_path / "note.csv")
    assert found["problem"] == "" and found["spectra"] == len(data) == 9 and found["concentration_unit"] == "µM"
    assert [sample[1][0] for sample in found["samples"]] == data.concentrations.tolist()
    assert data.concentrations.tolist() == np.repeat(LEVELS, 3).tolist()
    if how == "folder":
        said = next(note for note in found["notes"] if "left out of the folder" in note)
        assert "photo.png" in said and "list.csv" in said and "hidden" not in said


def test_what_all_files_share_is_said_once(folder, tmp_path):
    notes = geonode.load_standards(folder, concentrations=tmp_path / "note.csv").notes
    assert sum("read as" in note for note in notes) == 1 and any(
        note.startswith("all 9 files: read as") for note in notes
    )
    (folder / "scan_3.txt").write_text((folder / "scan_3.txt").read_text() + "\nend of scan\n")
    notes = geonode.load_standards(folder, concentrations=tmp_path / "note.csv").notes
    assert any(note.startswith("scan_3.txt: ") for note in notes)


def test_a_folder_without_spectra_and_a_damaged_file_in_one_are_refused(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "letter.txt").write_text("dear colleague,\n")
    with pytest.raises(ReaderError, match=r"empty: no file in this folder is recognised as spectra"):
        geonode.load_standards(tmp_path / "empty")
    broken = (folder / "scan_3.txt").read_text().splitlines()
    broken[4] = broken[4].split("\t")[0] + "\toops"
    (folder / "scan_3.txt").write_text("\n".join(broken))
    with pytest.raises(ReaderError, match=r"scan_3\.txt"):
        geonode.load_standards(folder, concentrations=tmp_path / "note.csv")
