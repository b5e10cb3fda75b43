"""Concentrations beside the spectra: note files, sidecars, mappings, lists of files; selections; inspection."""

from __future__ import annotations

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import geonode
from geonode.commands import inspect as inspect_command
from geonode.data import inspect_file
from geonode.data.readers import concentrations, recognise
from geonode.data.readers.concentration_table import split_unit
from geonode.data.readers.joining import normalise
from geonode.data.readers.names import concentration_in, units_in
from geonode.data.readers.selection import alternatives
from geonode.errors import InputError, ReaderError

WAVELENGTHS = np.arange(400.0, 430.0)


def spectrum_file(path, c: float):
    y = 0.1 + 0.01 * c + 0.002 * np.arange(30) * (1 + 0.3 * c)
    path.write_text("nm\tA\n" + "\n".join(f"{x:g}\t{v:.4f}" for x, v in zip(WAVELENGTHS, y, strict=True)))
    return path


def folder_of(tmp_path, levels=(0.0, 5.0, 10.0)):
    return [spectrum_file(tmp_path / f"sample_{k + 1}.txt", c) for k, c in enumerate(levels)]


# --- tables -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "note",
    [
        "name,conc (ppb)\nsample_1,0\nsample_2,5\nsample_3,10\n",
        "name;conc [ppb]\nsample_3;10,0\nsample_1;0,0\nsample_2;5,0\n",
        "file\tlevel / ppb\nsample_1.txt\t0\nSample_2.TXT\t5\nsample_3.txt\t10\n",
        "#levels in ppb\n#sample_1,sample_2,sample_3\n0,5,10\n",
        "# a remark\n# name,conc (ppb)\nsample_1,0\nsample_2,5\nsample_3,10\n",
    ],
)
def test_forms_of_tables(tmp_path, note):
    path = tmp_path / "note.csv"
    path.write_text(note)
    data = geonode.load_standards(folder_of(tmp_path), concentrations=path)
    assert data.levels.tolist() == [0, 5, 10] and data.concentration_unit == "ppb"


def test_unknowns_and_samples_that_the_table_lacks(tmp_path):
    files = folder_of(tmp_path, (0.0, 5.0, 10.0, 20.0, 40.0))
    path = tmp_path / "note.csv"
    path.write_text("name,conc\nsample_1,0\nsample_2,5\nsample_3,10\nsample_4,NaN\n")
    data = geonode.load_standards(files, concentrations=path)
    assert len(data) == 3 and any("2 spectra of unknown concentration left out" in note for note in data.notes)


def test_two_analytes_and_their_units(tmp_path):
    path = tmp_path / "note.csv"
    path.write_text("name,pH,Cl (mM)\nsample_1,5,0\nsample_2,6,0\nsample_3,5,7\n")
    data = geonode.load_standards(folder_of(tmp_path), concentrations=path, column=["pH", "Cl"])
    assert data.dim == 2 and data.analytes == ("pH", "Cl") and data.concentration_unit == "1, mM"


@pytest.mark.parametrize(
    ("note", "sentence"),
    [
        ("", "not a table of concentrations"),
        ("name,conc\n", "not a table of concentrations"),
        ("name,name\na,1\n", "header of distinct names"),
        ("name,conc\nother,1\nanother,2\n", "no column with a distinct entry for each sample names the spectra"),
        ("name,conc\nsample_1,0\nsample_1,5\n", r"'sample_1' stands twice in the column 'name' \(rows 2 and 3\)"),
        ("name,conc,dose\nsample_1,0,1\nsample_2,1,2\n", None),
        ("name,a,b\nsample_1,0,1\nsample_2,1,2\n", r"2 columns may be the concentration \('a', 'b'\)"),
        ("name,colour\nsample_1,red\nsample_2,blue\n", "no column of numbers beside the names"),
        ("#a,b\n1,2,3\n", "3 concentrations under 2 names"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, note, sentence):
    path = tmp_path / "note.csv"
    path.write_text(note)
    if sentence is None:
        assert len(geonode.data.readers.record(folder_of(tmp_path), concentrations=path)) == 3
        return
    with pytest.raises(ReaderError, match=sentence) as caught:
        geonode.load_standards(folder_of(tmp_path), concentrations=path)
    assert "note.csv: " in str(caught.value)


def test_a_table_that_is_absent_or_no_number(tmp_path):
    files = folder_of(tmp_path)
    with pytest.raises(ReaderError, match="there is no such file of concentrations"):
        geonode.load_standards(files, concentrations=tmp_path / "absent.csv")
    (tmp_path / "note.csv").write_text("name,conc\nsample_1,0\nsample_2,much\nsample_3,10\n")
    with pytest.raises(ReaderError, match="row 3, column 'conc' is 'much', which is no number"):
        geonode.load_standards(files, concentrations=tmp_path / "note.csv", column="conc")
    with pytest.raises(InputError, match="a column 'conc' is named, but no table of concentrations"):
        geonode.load_standards(files, column="conc")
    with pytest.raises(InputError, match="the concentrations are no table"):
        geonode.load_standards(files, concentrations={"sample_1": 1.0}, column="conc")


@pytest.mark.smoke
def test_small_forms():
    assert [normalise(key) for key in ("A01", "a1", " B  x ", "sample_01")] == ["a1", "a1", "b x", "sample_01"]
    assert [split_unit(c) for c in ("Cl (mM)", "Cl [mM]", "Cl / mM", "Cl")] == [("Cl", "mM")] * 3 + [("Cl", "")]
    assert units_in("concentrations of the samples mM") == ["mM"] and units_in("no Ammonia") == []
    assert concentration_in("FZ010_AuNP_DMSA_250mM_NaCl") is not None and concentration_in("Rhodamine 6G") is None
    assert alternatives("a & b, c") == [["a", "b"], ["c"]]
    assert concentrations.listing(range(20)).endswith("and 8 more")


# --- lists of files ---------------------------------------------------------------------------------------------------


def test_a_list_of_files_is_a_data_set(tmp_path):
    folder_of(tmp_path, (0.0, 5.0, 10.0, 10.5, 99.0))
    path = tmp_path / "list.csv"
    rows = ["sample_1.txt,0,a", "sample_2.txt,5,a", "sample_3.txt,10,b", "sample_4.txt,10,b", "sample_5.txt,NaN,b"]
    path.write_text("\n".join(["file,concentration (ppb),group", *rows]))
    assert recognise(path).name == "manifest"
    data = geonode.load_standards(path)
    assert data.levels.tolist() == [0, 5, 10] and len(data) == 4 and data.concentration_unit == "ppb"
    assert data.groups.tolist() == ["a", "a", "b", "b"]
    assert any("'sample_5.txt'" in note for note in data.notes)
    found = inspect_file(path)
    assert found.format == "list of files (5 delimited text)" and found.problem == ""


def test_a_list_of_several_analytes_and_spectra_by_name(tmp_path):
    body = "\n".join(
        f"{x:g}\t{0.1 * i + 0.01:.3f}\t{0.2 * i + 0.02:.3f}\t{0.3 * i:.3f}" for i, x in enumerate(WAVELENGTHS)
    )
    (tmp_path / "all.txt").write_text("nm\tone\ttwo\tthree\n" + body)
    path = tmp_path / "list.csv"
    path.write_text("file;spectrum;pH;Cl\nall.txt;one;5,5;0\nall.txt;two;6,5;0\nall.txt;three;6,5;10\n")
    data = geonode.load_standards(path)
    assert data.analytes == ("pH", "Cl") and data.levels.tolist() == [[5.5, 0], [6.5, 0], [6.5, 10]]
    path.write_text("file,conc\nall.txt,1\n")
    with pytest.raises(ReaderError, match=r"row 2 lists 'all\.txt', which holds 3 spectra to choose from \('one'"):
        geonode.load_standards(path)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("absent.txt,1", r"row 2 lists a file that cannot be read: .*absent\.txt: there is no such file"),
        ("list.csv,1", r"row 2 lists 'list\.csv', which is a list of files itself"),
        (",1", "row 2 names no file"),
        ("sample_1.txt,much", "row 2, column 'concentration' is 'much'|no concentration is known"),
        ("..,1", "row 2 lists a file that cannot be read: .*a folder"),
    ],
)
def test_lists_that_cannot_be_used(tmp_path, rows, sentence):
    folder_of(tmp_path)
    path = tmp_path / "list.csv"
    path.write_text(f"file,concentration\n{rows}\nsample_2.txt,2\n")
    with pytest.raises(ReaderError, match=sentence) as caught:
        geonode.load_standards(path)
    assert "list.csv" in str(caught.value) and "\n" not in str(caught.value)


def test_files_of_different_kinds_are_not_mixed(tmp_path):
    folder_of(tmp_path)
    (tmp_path / "t.txt").write_text((tmp_path / "sample_1.txt").read_text().replace("nm\tA", "nm\t%T"))
    path = tmp_path / "list.csv"
    path.write_text("file,conc\nsample_2.txt,1\nt.txt,2\n")
    with pytest.raises(ReaderError, match=r"'t\.txt' differs from the files before it in signal \(transmittance"):
        geonode.load_standards(path)


# --- inspection -------------------------------------------------------------------------------------------------------


def invoke(*arguments):
    app = typer.Typer()
    inspect_command.register(app)
    app.command("other")(lambda: None)  # with one command alone, typer drops its name
    return CliRunner().invoke(app, ["inspect", *map(str, arguments)])


def test_inspect_says_what_is_there_and_what_lacks(tmp_path):
    path = folder_of(tmp_path)[0]
    lines = invoke(path).output.splitlines()
    assert lines[0] == f"{path}: delimited text"
    assert lines[1] == "spectra: 1 × 30 wavelengths, 400–429 nm, absorbance"
    assert lines[2] == "concentrations: none in the file"
    assert lines[-1].startswith("as standards: no concentration is known for 'sample_1'")


def test_inspect_as_json_and_with_a_table(shared_data):
    folder = shared_data / "raw" / "fp_h148g"
    result = invoke(
        folder / "h148g-spettroC.csv", "--concentrations", folder / "h148g-spettroC-nota.csv", "--column", "Cl",
        "--select", "H148G & pH=7.4", "--json",
    )  # fmt: skip
    found = json.loads(result.output)
    assert result.exit_code == 0 and found["spectra"] == 65 and found["problem"] == ""
    assert found["concentrations_from"] == "h148g-spettroC-nota.csv, column 'Cl'"


def test_inspect_of_cary_lists_the_series(shared_data):
    result = invoke(shared_data / "raw" / "aunp_cary60" / "example.csv")
    assert "series: FZ002_AuNP_Citrate, FZ008_AuNP_MUA, FZ010_AuNP_DMSA" in result.output
    assert "6 levels, 0 20 50 250 350 450 mM, from the sample names in the metadata blocks" in result.output
    assert "note: 'Baseline 100%T' (column 1) dropped" in result.output


def test_inspect_of_netcdf(tmp_path):
    geonode.simulate_assay().save(tmp_path / "a.nc")
    found = inspect_file(tmp_path / "a.nc")
    assert found.format == "geonode NetCDF" and found.spectra == 6 and not found.problem
    assert "6 levels of arsenic, 0 10 20 30 40 60 ppb" in found.lines()[2]


PLATE = "".join(
    f"{400 + i},{','.join(f'{0.1 * k + 0.01 * i + 0.001 * (k % 2):.4f}' for k in range(6))}\n" for i in range(12)
)
WELLS = ["A1", "A2", "B1", "B2", "C1", "C2"]


@pytest.mark.parametrize(
    ("head", "cells"),
    [
        ("Replikat", "121212"),
        ("Tech. replicate", "121212"),
        ("rep #", "121212"),
        ("Row", "AABBCC"),
        ("Column", "121212"),
        ("Zeile", "AABBCC"),
    ],
)
@pytest.mark.parametrize("named", ["Konzentration µM", "Conc. [µM]", "concentration in µM"])
def test_which_replicate_and_where_on_the_plate_is_no_condition(tmp_path, head, cells, named):
    (tmp_path / "s.csv").write_text("nm," + ",".join(WELLS) + "\n" + PLATE)
    rows = [f"{well};{level};{cell}" for well, level, cell in zip(WELLS, (0, 0, 5, 5, 10, 10), cells, strict=True)]
    note = tmp_path / "note.csv"
    note.write_text("\n".join([f"Well;{named};{head}", *rows]) + "\n", encoding="utf-8")
    data = geonode.load_standards(tmp_path / "s.csv", concentrations=note)
    assert data.levels.tolist() == [0, 5, 10] and data.concentration_unit == "µM" and len(data) == 6
    again = geonode.load_standards(tmp_path / "s.csv", concentrations=note, column=named)
    assert again.levels.tolist() == [0, 5, 10]


def test_a_column_that_means_something_still_parts_standards(tmp_path):
    (tmp_path / "s.csv").write_text("nm," + ",".join(WELLS) + "\n" + PLATE)
    for head, cells, said in (("pH", "787878", "differ in 'pH'"), ("Row", "xyxyxy", "2 series")):
        rows = [f"{well};{level};{cell}" for well, level, cell in zip(WELLS, (0, 0, 5, 5, 10, 10), cells, strict=True)]
        (tmp_path / "note.csv").write_text("\n".join([f"Well;Conc (µM);{head}", *rows]) + "\n", encoding="utf-8")
        with pytest.raises(ReaderError, match=said):
            geonode.load_standards(tmp_path / "s.csv", concentrations=tmp_path / "note.csv")
