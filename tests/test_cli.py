"""The `geonode` command: the main job on files, help with examples, and one sentence with exit code 2 for bad input."""

from __future__ import annotations

import json
import os
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import geonode
from geonode.cli import app, warnings_as_sentences
from tests.forks import python

WAVELENGTHS = np.arange(400, 700, 10)
LEVELS = ("0", "10", "20", "30")
METHODS = {"nearest", "linear", "pchip", "cubic", "quadratic", "line", "isotherm", "gp", "node"}
SCORES = {"level", "edge", "rmse", "nrmse", "r2", "mae", "sam", "sid", "peak_error"}


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception  # a traceback is never an answer
    assert result.exit_code == code, result.output
    return result


def table(heads=LEVELS, wavelengths=WAVELENGTHS, change=None):
    """Text of a tidy CSV; ``change`` maps (row, column) of the numbers to other text."""
    noise = np.random.default_rng(0)
    columns = [
        0.1 + 0.02 * i * np.exp(-(((WAVELENGTHS - 550) / 60.0) ** 2)) + 1e-3 * noise.normal(size=30)
        for i in range(len(heads))
    ]
    cells = [[f"{w:g}", *(f"{column[i]:.6f}" for column in columns)] for i, w in enumerate(wavelengths)]
    for (row, column), text in (change or {}).items():
        cells[row][column] = text
    return "\n".join(",".join(row) for row in [["wavelength", *heads], *cells]) + "\n"


@pytest.fixture
def standards(tmp_path):
    path = tmp_path / "standards.csv"
    path.write_text(table())
    return path


@pytest.fixture
def bundle(standards, tmp_path):
    run("fit", standards, "--predictor", "gp", "--unit", "ppb", "--out", tmp_path / "m", "--quiet")
    return tmp_path / "m"


# ---------------------------------------------------------------- what it does


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "inspect", "demo", "quantify", "report", "suggest"])
def test_every_command_shows_an_example(command):
    assert f"geonode {command}" in run(command, "--help").output


@pytest.mark.smoke
def test_version_and_doctor():
    assert run("--version").output.startswith("geonode ")
    output = run("doctor").output
    for word in ("torch", "cpu", "cuda", "kernels", "chemotools"):
        assert word in output


@pytest.mark.smoke
def test_fit_and_predict(standards, tmp_path):
    fitted = run(
        "fit", standards, "--flow", "path_independent", "--epochs", 3, "--unit", "ppb", "--out", tmp_path / "m"
    )
    assert "4 spectra × 30 wavelengths, levels 0 10 20 30 ppb" in fitted.output
    predicted = run("predict", tmp_path / "m", "--at", 5, "--at", 33, "--out", tmp_path / "p.csv")
    assert "33 lies outside the calibrated range 0 … 30 ppb: an extrapolation" in predicted.output
    frame = pd.read_csv(tmp_path / "p.csv")
    assert list(frame) == ["wavelength", "mean_5", "std_5", "mean_33_extrapolated", "std_33_extrapolated"]
    np.testing.assert_array_equal(frame["wavelength"], WAVELENGTHS)
    assert (frame[["std_5", "std_33_extrapolated"]] > 0).all(axis=None)
    between = 0.5 * (pd.read_csv(standards)["0"] + pd.read_csv(standards)["10"])
    assert np.abs(frame["mean_5"] - between).max() < 0.02


def test_fit_takes_a_file_of_settings_and_options_go_before_it(standards, tmp_path):
    wanted = geonode.GeodesicConfig(flow="velocity", epochs=50, metric_hidden=(8, 8), flow_hidden=12, predictor="node")
    (tmp_path / "s.json").write_text(wanted.to_json())
    run("fit", standards, "--settings", tmp_path / "s.json", "--epochs", 2, "--out", tmp_path / "m", "-q")
    assert geonode.load(tmp_path / "m").config == wanted.replace(epochs=2)
    refused = run("fit", standards, "--settings", tmp_path / "s.json", "--blueprint", "--out", tmp_path / "n", code=2)
    assert "or --blueprint, not both" in refused.output
    (tmp_path / "s.json").write_text('{"flux": 1}')
    refused = run("fit", standards, "--settings", tmp_path / "s.json", "--out", tmp_path / "n", code=2)
    assert "Unknown setting 'flux'" in refused.output and not (tmp_path / "n").exists()


def test_quiet_prints_nothing(standards, bundle, tmp_path):
    assert run("fit", standards, "--predictor", "gp", "--out", tmp_path / "n", "--quiet").output == ""
    assert run("predict", bundle, "--at", 99, "--out", tmp_path / "p.csv", "--quiet").output == ""


def test_one_seed_gives_the_same_file(standards, tmp_path, one_thread):
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        run(
            "fit",
            standards,
            "--flow",
            "path_independent",
            "--epochs",
            2,
            "--seed",
            seed,
            "--out",
            tmp_path / name,
            "-q",
        )
        run("predict", tmp_path / name, "--at", 15, "--out", tmp_path / f"{name}.csv", "-q")
    a, b, c = ((tmp_path / f"{name}.csv").read_bytes() for name in "abc")
    assert a == b
    assert a != c


@pytest.mark.smoke
def test_evaluate_writes_the_promised_json(standards, tmp_path):
    output = run(
        "evaluate", standards, "--method", "linear", "--method", "gp", "--json", tmp_path / "e.json", "--plot",
        tmp_path / "e.png",
    ).output  # fmt: skip
    assert "linear" in output
    report = json.loads((tmp_path / "e.json").read_text())
    assert report["levels"] == [0.0, 10.0, 20.0, 30.0]
    assert set(report["methods"]) == {"linear", "gp"}
    assert report["winner"] in report["methods"]
    rows = report["methods"]["gp"]["per_level"]
    assert [row["edge"] for row in rows] == [True, False, False, True]
    assert all(set(row) >= SCORES for row in rows)
    assert (tmp_path / "e.png").read_bytes().startswith(b"\x89PNG")


def test_demo_answers_three_questions_and_writes_everything_it_names(tmp_path):
    result = run("demo", "--out", tmp_path / "demo")
    output = result.output
    names = {p.name for p in (tmp_path / "demo").iterdir()}
    expected = {"standards.csv", "predicted.csv", "predictions.png", "evaluation.png", "evaluation.json", "table.txt"}
    assert expected | {"unknown.csv", "report", "demo.bundle"} <= names
    assert set(json.loads((tmp_path / "demo/evaluation.json").read_text())["methods"]) == METHODS
    error = float(output.split("between the standards: ")[1].split()[0])
    assert error < 0.02
    assert len(pd.read_csv(tmp_path / "demo/predicted.csv")) == 601
    found = output.split("quantified: ")[1]
    low, high = (float(part.split()[0]) for part in found.split("interval ")[1].split(" to ")[:2])
    assert low <= 33.0 <= high
    page = output.split("open file://")[1].split(" in a browser")[0]
    assert Path(page).is_file()
    assert re.search(r"^\S.*: \d+ of \d+$", result.stderr, re.M), "no line of progress where stderr is no terminal"


def test_cary_export_as_the_instrument_wrote_it(shared_data, tmp_path):
    export = shared_data / "raw/aunp_cary60/example.csv"
    output = run("fit", export, "--select", "DMSA", "--predictor", "gp", "--out", tmp_path / "m").output
    assert "6 spectra × 601 wavelengths, levels 0 20 50 250 350 450 mM" in output
    run("predict", tmp_path / "m", "--at", 100, "--out", tmp_path / "p.csv")
    frame = pd.read_csv(tmp_path / "p.csv")
    assert frame.shape == (601, 3)
    assert np.isfinite(frame).all(axis=None)


def test_the_installed_command_ends_without_a_traceback(tmp_path):
    result = python("-m", "geonode", "fit", "none.csv", "--out", "m", cwd=tmp_path)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.strip() == "geonode: none.csv: there is no such file; check the name."


# ---------------------------------------------------------------- what it refuses

BAD_FILES = {
    "two levels": (table(LEVELS[:2]), "2 concentration levels (0, 10), but at least 3 are needed"),
    "one level as two": (table(("0", "10", "10.0", "30")), "'10.0', which is the level '10' written in another way"),
    "one heading twice": (table(("0", "10", "20", "10")), "columns 3 and 5 are both headed '10'"),
    "NaN": (table(change={(5, 3): "nan"}), "row 7, column 4 ('20') is 'nan'"),
    "infinite": (table(change={(3, 2): "inf"}), "row 5, column 3 ('10') is 'inf'"),
    "hole": (table(change={(3, 2): ""}), "row 5, column 3 ('10') is empty"),
    "word": (table(change={(3, 2): "high"}), "row 5, column 3 ('10')"),
    "negative wavelengths": (table(wavelengths=WAVELENGTHS - 450), "is -50, which is not positive"),
    "duplicate wavelengths": (table(change={(4, 0): "430"}), "wavelength 430 occurs twice"),
    "heading without number": (table(("0", "ten", "20", "30")), "column 3 is headed 'ten'"),
    "no spectrum": ("Dear diary,\ntoday I measured nothing.\n" * 5, "not recognised as spectra"),
    "empty": ("", "the file is empty"),
    "vast values": (table(change={(3, 2): "1e300"}), "which no instrument measures"),
    "vast concentrations": (table(("0", "10", "1e-300", "30")), "outside what can be computed with"),
}


@pytest.mark.smoke
@pytest.mark.parametrize("what", BAD_FILES)
def test_bad_standards_are_one_sentence_that_names_file_and_place(what, tmp_path):
    text, words = BAD_FILES[what]
    (tmp_path / "bad.csv").write_text(text)
    result = run("fit", tmp_path / "bad.csv", "--predictor", "gp", "--out", tmp_path / "m", code=2)
    assert words in result.stderr
    assert "bad.csv" in result.stderr
    assert result.stderr.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["bad.csv"]


def test_unsorted_columns_and_rows_are_put_in_order_and_said(tmp_path, standards):
    lines = table(("0", "10", "20", "30")).splitlines()
    turned = [",".join(line.split(",")[i] for i in (0, 3, 1, 4, 2)) for line in [lines[0], *lines[:0:-1]]]
    (tmp_path / "turned.csv").write_text("\n".join(turned))
    output = run("fit", tmp_path / "turned.csv", "--predictor", "gp", "--out", tmp_path / "t").output
    assert "wavelengths were descending and were put in order" in output
    assert "samples were put in order of concentration" in output
    run("fit", standards, "--predictor", "gp", "--out", tmp_path / "s")
    for name in "st":
        run("predict", tmp_path / name, "--at", 15, "--out", tmp_path / f"{name}.csv")
    assert (tmp_path / "s.csv").read_bytes() == (tmp_path / "t.csv").read_bytes()


@pytest.mark.parametrize("value", ["0", "0.25"])
def test_standards_that_do_not_respond_are_refused(tmp_path, value):
    change = {(row, column): value for row in range(30) for column in range(1, 5)}
    (tmp_path / "flat.csv").write_text(table(change=change))
    for command in (["fit", "--out", tmp_path / "m"], ["evaluate"]):
        result = run(command[0], tmp_path / "flat.csv", *command[1:], code=2)
        assert "nothing responds to the concentration" in result.stderr
    assert not (tmp_path / "m").exists()


def test_two_files_with_different_wavelengths(standards, tmp_path):
    (tmp_path / "other.csv").write_text(table(("5", "15"), wavelengths=WAVELENGTHS + 5))
    result = run("fit", standards, tmp_path / "other.csv", "--out", tmp_path / "m", code=2)
    assert "have different wavelengths (number 1 is 400 in the first and 405 in the second)" in result.stderr


def test_a_file_given_twice_is_a_copy_and_no_replicate(standards, tmp_path):
    result = run("fit", standards, standards, "--out", tmp_path / "m", code=2)
    assert "is a copy and not a replicate" in result.stderr


@pytest.mark.parametrize("content", [None, b"", b"junk" * 100, "half"])
def test_bundles_that_are_none(bundle, tmp_path, content):
    if content == "half":
        content = bundle.read_bytes()[: bundle.stat().st_size // 2]
    bundle.unlink()
    if content is not None:
        bundle.write_bytes(content)
    result = run("predict", bundle, "--at", 5, "--out", tmp_path / "p.csv", code=2)
    assert str(bundle) in result.stderr.replace("\n", "")
    assert not (tmp_path / "p.csv").exists()


def test_outputs_that_cannot_be_written_are_one_sentence(standards, bundle, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for arguments in (
        ("predict", bundle, "--at", 5, "--out", pipe),
        ("fit", standards, "--predictor", "gp", "--out", pipe),
        ("evaluate", standards, "--method", "linear", "--json", pipe),
    ):
        assert "is no regular file" in run(*arguments, code=2).stderr
    assert pipe.is_fifo()
    assert "figures are written as" in run("evaluate", standards, "--plot", tmp_path / "e.txt", code=2).stderr
    assert "is a file; give a folder" in run("demo", "--out", standards, code=2).stderr


def test_a_symbolic_link_stays_one(bundle, tmp_path):
    (tmp_path / "real.csv").write_text("wavelength,mean_7,std_7\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    run("predict", bundle, "--at", 5, "--out", tmp_path / "link.csv", "--force")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text().startswith("wavelength,mean_5")


def test_options_that_cannot_work(standards, bundle, tmp_path):
    out = tmp_path / "no/where"
    assert "create it first" in run("fit", standards, "--out", out, code=2).stderr
    assert "--epochs 0" in run("fit", standards, "--epochs", 0, "--out", tmp_path / "n", code=2).stderr
    assert "device" in run("fit", standards, "--device", "tpu", "--out", tmp_path / "n", code=2).stderr
    assert "'oracle'" in run("evaluate", standards, "--method", "oracle", code=2).stderr
    assert "finite" in run("predict", bundle, "--at", "nan", "--out", tmp_path / "p.csv", code=2).stderr
    assert "--out" in run("predict", bundle, "--at", 5, code=2).stderr
    assert "none" in run("fit", standards, "--select", "none", "--out", tmp_path / "n", code=2).stderr


@pytest.mark.parametrize(
    ("category", "line"), [(UserWarning, "geonode: x\n"), (FutureWarning, None), (DeprecationWarning, None)]
)
def test_warnings_of_the_library_are_a_line_without_its_source(category, line):
    usual = warnings.formatwarning("x", category, "fit.py", 184, "model = fit_model(")
    with warnings_as_sentences():
        assert warnings.formatwarning("x", category, "fit.py", 184, "model = fit_model(") == (line or usual)
    assert warnings.formatwarning("x", category, "fit.py", 184, "model = fit_model(") == usual
