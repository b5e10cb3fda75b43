"""What a spectroscopist met in a first day at the bench, run as a user would; each kind in several variants."""

from __future__ import annotations

import json
import os
import sys

import numpy as np
import pytest

from geonode.errors import InputError
from geonode_runtime.amounts import dilution_factor, factor_uncertainty
from tests.commands import cases
from tests.commands.cases import WAVE, fit, measured, run, write, write_standards, write_unknown
from tests.forks import python


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    write_standards(folder / "good.csv")
    fit(folder / "good.csv", folder / "good.bundle", "--unit", "µM", "-q")
    return folder / "good.bundle"


def answers(tmp_path, *arguments):
    run("quantify", *arguments, "--json", tmp_path / "answer.json", "--force", "-q")
    return json.loads((tmp_path / "answer.json").read_text())["unknowns"]


# --- names of a plate -------------------------------------------------------------------------------------------------

PLATE = {"A1": 7.0, "A2": 40.0, "A10": 9.0, "A12": 70.0, "B1": 20.0}


def plate(path, names=tuple(PLATE)):
    return write(path, np.array([measured(c, 50 + k) for k, c in enumerate(PLATE.values())]), names)


@pytest.mark.parametrize(("wanted", "level"), [("A1", 7.0), ("a1", 7.0), ("A01", 7.0), ("A10", 9.0), ("b1", 20.0)])
def test_a_whole_name_means_that_spectrum_alone(bundle, tmp_path, wanted, level):
    (found,) = answers(tmp_path, bundle, plate(tmp_path / "p.csv"), "--select", wanted)
    assert len(found["spectra"]) == 1 and found["estimate"] == pytest.approx(level, rel=0.03)


@pytest.mark.parametrize("names", [("dye 1", "dye 2", "dye 10", "dye 12", "x"), ("s-1", "s-2", "s-10", "s-12", "x")])
def test_a_whole_name_wins_over_longer_ones_of_any_kind(bundle, tmp_path, names):
    (found,) = answers(tmp_path, bundle, plate(tmp_path / "p.csv", names), "--select", names[0])
    assert len(found["spectra"]) == 1 and found["estimate"] == pytest.approx(7.0, rel=0.03)


@pytest.mark.parametrize(("wanted", "listed"), [("A", "'A1', 'A2', 'A10', 'A12'"), ("1", "'A1'"), ("A1, B1", "'B1'")])
def test_several_matches_are_listed_and_averaged_only_if_told_so(bundle, tmp_path, wanted, listed):
    file = plate(tmp_path / "p.csv")
    said = run("quantify", bundle, file, "--select", wanted, code=2).output
    assert listed in said and "--each" in said and "--average" in said and f"named like '{wanted}'" in said
    count = said.split("spectra")[0].split()[-1]
    assert len(answers(tmp_path, bundle, file, "--select", wanted, "--each")) == int(count)
    said = run("quantify", bundle, file, "--select", wanted, "--each", "--average", code=2).output
    assert "give one of them" in said


def test_averaged_names_stand_beside_the_answer(bundle, tmp_path):
    same = np.array([measured(20.0, k) for k in range(3)])
    file = write(tmp_path / "p.csv", same, ["A1", "A2", "A3"])
    said = run("quantify", bundle, file, "--average").output
    assert "average of 3 spectra: 'p.csv: A1', 'p.csv: A2', 'p.csv: A3'" in said
    singles = [write_unknown(tmp_path / f"u{k}.csv", 20.0, k) for k in range(2)]
    assert "average of 2 spectra: 'u0.csv: unknown', 'u1.csv: unknown'" in run("quantify", bundle, *singles).output
    assert "average" not in run("quantify", bundle, singles[0]).output


# --- amounts that are echoed ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "factor"),
    [("5", 5.0), ("1:5", 5.0), ("2:10", 5.0), ("1/5", 5.0), ("1+4", 5.0), (" 1 : 5 ", 5.0), ("0.2", 0.2), ("2.5", 2.5)],
)
def test_a_dilution_is_read_and_said(text, factor):
    found, said = dilution_factor(text)
    assert found == pytest.approx(factor) and f"results are {factor:g} times" in said
    assert ("concentrated 5-fold; one diluted so is --dilution 1:5" in said) == (factor < 1)


@pytest.mark.parametrize("text", ["one in five", "1:5:2", "5%", "0:5", "", "1;5"])
def test_what_is_no_dilution_is_refused(text):
    with pytest.raises(InputError, match="--dilution"):
        dilution_factor(text)
    assert dilution_factor("1") == (1.0, "")
    assert factor_uncertainty("2%", 5.0) == pytest.approx(0.1) and factor_uncertainty("0.3", 5.0) == 0.3


@pytest.mark.parametrize("way", ["1:5", "5", "1+4"])
def test_the_command_says_which_dilution_it_took(bundle, tmp_path, way):
    unknown = write_unknown(tmp_path / "u.csv", 20.0)
    assert f"dilution {way}: results are 5 times" in run("quantify", bundle, unknown, "--dilution", way).output
    (found,) = answers(tmp_path, bundle, unknown, "--dilution", way, "--dilution-std", "1%")
    assert found["estimate"] == pytest.approx(100.0, rel=0.05) and found["dilution"] == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2", "2 µM for every level; for a share of each, write 2%"),
        ("2%", "2 % of each, 0 to 2 µM"),
        ("0.5 %", "0.5 % of each, 0 to 0.5 µM"),
    ],
)
def test_a_standard_uncertainty_is_said(tmp_path, text, said):
    file = write_standards(tmp_path / "s.csv")
    found = fit(file, tmp_path / "a.bundle", "--unit", "µM", "--standard-uncertainty", text).output
    assert f"standard uncertainty of the standards: {said}" in found


# --- small things that ended badly ------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("first", ["wavelength", "nm"])
def test_few_wavelengths_end_in_an_answer_or_a_sentence_at_fit(tmp_path, count, first):
    keep = np.linspace(6, 26, count).astype(int)
    how = {"wavelengths": WAVE[keep], "first": first}
    file = write(tmp_path / "s.csv", cases.standards()[:, keep], [f"{c:.1f}" for c in cases.LEVELS], **how)
    unknown = write(tmp_path / "u.csv", measured(30.0, 9)[keep], ["unknown"], **how)
    if count < 3:
        said = run("fit", file, "--predictor", "gp", "--out", tmp_path / "a.bundle", code=2).output
        assert "export" in said and str(file) in said
        return
    fit(file, tmp_path / "a.bundle")
    assert "unknown" in run("quantify", tmp_path / "a.bundle", unknown).output


EVERY = """
import io, sys
from geonode.cli import main
for encoding in sys.argv[1:]:
    kept = io.BytesIO()
    sys.stdout = io.TextIOWrapper(kept, encoding=encoding, write_through=True)
    for words in (["inspect"], ["evaluate", "--method", "linear", "--method", "nearest"]):
        sys.argv = ["geonode", *words, "m.csv"]
        try:
            main()
        except SystemExit as stop:
            if stop.code:
                raise
    with open(encoding, "wb") as file:
        file.write(kept.getvalue())
"""


def test_a_console_that_lacks_letters_is_served(tmp_path):
    """Of a process of its own, for `main` sets up its streams: what it writes is kept by encoding."""
    encodings = ["cp1252", "cp437", "koi8-r"]
    write_standards(tmp_path / "m.csv", [f"{c:g} μM" for c in cases.LEVELS])
    (tmp_path / "every.py").write_text(EVERY)
    environment = {**os.environ, "COLUMNS": "120", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = python("every.py", *encodings, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    for encoding in encodings:
        said = (tmp_path / encoding).read_bytes().decode(encoding)
        assert ("µM" in said or "uM" in said or "μM" in said) and "winner" in said


@pytest.mark.parametrize("step", ["savgol:10,2", "derivative:10,2", "median:4", "savgol:2,1"])
def test_even_windows_are_refused(tmp_path, step):
    file = write_standards(tmp_path / "s.csv")
    said = run("fit", file, "--preprocess", step, "--predictor", "gp", "--out", tmp_path / "a.bundle", code=2).output
    assert "an even number, which has no middle" in said and not (tmp_path / "a.bundle").exists()


@pytest.mark.parametrize("command", ["quantify", "predict", "report", "suggest"])
@pytest.mark.parametrize(("name", "remedy"), [("good.onnx", "geonode-runtime quantify"), ("good.pt2", "torch.export")])
def test_an_exported_model_names_what_runs_it(tmp_path, command, name, remedy):
    (tmp_path / name).write_bytes(b"\x08\x08\x12\x00")
    unknown = write_unknown(tmp_path / "u.csv", 30.0)
    rest = {
        "quantify": [unknown],
        "predict": ["--at", 5, "--out", tmp_path / "p.csv"],
        "report": ["--out", tmp_path / "r"],
        "suggest": [],
    }[command]
    assert remedy in run(command, tmp_path / name, *rest, code=2).output


@pytest.mark.parametrize(
    ("heads", "noted"),
    [
        (["0", "5.0", "5.10", "10", "20", "50"], ["'5.10' was taken as a level of its own (5.1)"]),
        (["0", "5", "5.10", "10", "20", "50"], ["'5.10' was taken as a level of its own (5.1)"]),
        (["0", "5.0", "5.10", "10", "10.20", "50"], ["'5.10'", "'10.20' was taken as a level of its own (10.2)"]),
        (["0", "5.0", "5.1", "10", "20", "50"], []),
        (["0", "5.0", "5.0.10", "10", "20", "50"], []),
        (["0.5", "1.10", "5", "10", "20", "50"], []),
    ],
)
@pytest.mark.parametrize("first", ["wavelength", "nm"])
def test_a_count_that_may_be_meant_as_a_replicate_is_noted(tmp_path, heads, noted, first):
    said = run("inspect", write_standards(tmp_path / "s.csv", heads, first=first)).output
    assert said.count("level of its own (") == len(noted) and all(one in said for one in noted)


@pytest.mark.parametrize("unit", ["uM", "µM", "μM", "umol/L"])
def test_a_list_of_files_may_have_units_in_its_cells(tmp_path, unit):
    (tmp_path / "scans").mkdir()
    rows = ["file,concentration"]
    for k, c in enumerate(cases.LEVELS):
        write(tmp_path / "scans" / f"s{c:g}.csv", measured(c, k), ["absorbance"])
        rows.append(f"scans/s{c:g}.csv,{c:g} {unit}")
    (tmp_path / "l.csv").write_text("\n".join(rows), encoding="utf-8")
    assert "6 levels, 0 5 10 20 50 100 µM" in run("inspect", tmp_path / "l.csv").output
