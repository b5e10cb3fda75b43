"""The runtime as a user meets it: its command line, its files, its own environment."""

from __future__ import annotations

import ast
import csv
import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from importlib.metadata import distributions
from pathlib import Path

import numpy as np
import pytest

from geonode_runtime import InputError, load
from geonode_runtime.__main__ import main
from tests.calibration.assays import WAVE, monotone, noisy

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = {"numpy", "onnxruntime", "geonode_runtime"}
COLD = 3.0
"""A cold start of the command may take so many times what importing numpy and onnxruntime takes; 1.4 to 1.8 do."""


def sites(home: Path) -> list[str]:
    """The folders of the packages of an environment."""
    return [str(path) for path in home.rglob("site-packages")]


def spectrum_file(path: Path, c: float, seed: int = 3, wave=WAVE, divider: str = ",", comma: bool = False) -> Path:
    values = np.interp(wave, WAVE, noisy(monotone, [c], seed)[0])
    lines = [divider.join(f"{x:.10g}" for x in row) for row in zip(wave, values, strict=True)]
    lines = [line.replace(".", ",") for line in lines] if comma else lines
    path.write_text("wavelength / nm" + divider + "absorbance\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


# ---------------------------------------------------------------------- laws


def test_the_runtime_imports_numpy_and_onnxruntime_and_nothing_else():
    for path in sorted((ROOT / "runtime").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in (n.split(".")[0] for n in names):
                assert name in ALLOWED or name in sys.stdlib_module_names, f"{path} imports {name}"


# ---------------------------------------------------------------------- command line


def test_predict_writes_what_the_library_writes(gp, tmp_path):
    from geonode.commands.common import prediction_csv

    out = tmp_path / "p.csv"
    assert main(["predict", str(gp.path), "--at", "25", "--at", "40", "--out", str(out)]) == 0
    mine = list(csv.reader(out.open()))
    theirs = [row.split(",") for row in prediction_csv(*gp.model.predict_spectra([25.0, 40.0])).splitlines()]
    assert mine[0] == theirs[0] == ["wavelength", "mean_25", "std_25", "mean_40", "std_40"]
    np.testing.assert_allclose(np.array(mine[1:], float), np.array(theirs[1:], float), atol=1e-5)


def test_quantify_says_and_writes_what_the_library_does(gp, tmp_path, capsys):
    from typer.testing import CliRunner

    from geonode.cli import app

    bundle = tmp_path / "m.bundle"
    gp.model.save(bundle)
    files = [str(spectrum_file(tmp_path / f"u{k}.csv", 25.0, k)) for k in (1, 2)]
    options = ["--dilution", "1:4", "--dilution-std", "2.5%"]
    assert main(["quantify", str(gp.path), *files, *options, "--json", str(tmp_path / "mine.json")]) == 0
    said, understood = capsys.readouterr()
    assert "dilution 1:4: results are 4 times what is in the cuvette" in understood
    result = CliRunner().invoke(app, ["quantify", str(bundle), *files, *options, "--json", str(tmp_path / "t.json")])
    assert result.exit_code == 0, result.output
    mine, theirs = (json.loads((tmp_path / name).read_text()) for name in ("mine.json", "t.json"))
    assert mine.keys() == theirs.keys() and mine["standards"] == theirs["standards"]
    assert mine["schema_version"] == theirs["schema_version"]
    a, b = mine["unknowns"][0], theirs["unknowns"][0]
    assert a.keys() == b.keys() and a["verdict"] == b["verdict"] and a["explanation"] == b["explanation"]
    assert a["estimate"] == pytest.approx(b["estimate"], rel=1e-9)
    verdict = said.splitlines()[0].split(": ", 1)[1]
    assert verdict in result.output
    assert main(["quantify", str(gp.path), *files, "--each", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["unknowns"]) == 2
    (tmp_path / "words.csv").write_text("dear colleague\n")
    files.insert(1, str(tmp_path / "words.csv"))
    assert main(["quantify", str(gp.path), *files, "--each", "--json", str(tmp_path / "each.json")]) == 2
    given = capsys.readouterr()
    assert "1 of 3 unknowns was not answered: words.csv" in given.err and given.out.count("no answer: ") == 1
    entries = json.loads((tmp_path / "each.json").read_text())["unknowns"]
    assert ["refused" in one for one in entries] == [False, True, False] and "words.csv" in entries[1]["refused"]


@pytest.mark.parametrize("size", [0.1, 0.2, 0.4])
def test_a_misfit_is_explained_on_the_screen_and_in_the_file(gp, tmp_path, capsys, size):
    path = spectrum_file(tmp_path / "u.csv", 25.0)
    _, *rows = path.read_text().splitlines()
    parted = [[float(cell) for cell in row.split(",")] for row in rows]
    spoilt = [f"{x:.10g},{y + size * np.exp(-0.5 * ((x - 620.0) / 10.0) ** 2):.10g}" for x, y in parted]
    path.write_text("\n".join(spoilt) + "\n")
    assert main(["quantify", str(gp.path), str(path), "--json", str(tmp_path / "a.json")]) == 0
    (entry,) = json.loads((tmp_path / "a.json").read_text())["unknowns"]
    said = capsys.readouterr().out
    assert entry["explanation"]["cause"] == "interferent" and "a further band at 620" in said
    assert all(f"  cause: {sentence}\n" in said for sentence in entry["explanation"]["sentences"])


@pytest.mark.parametrize("size", [1e-3, 0.02, 0.0])
def test_a_signal_far_too_small_is_refused_as_the_library_does(gp, size):
    """A thousandth, a fiftieth, and the noise of an empty beam."""
    spectrum = size * noisy(monotone, [5.0], 16)[0] + 1e-4 * np.random.default_rng(18).standard_normal(len(WAVE))
    said = []
    for ask in (gp.model.quantify, gp.runtime.quantify):
        with pytest.raises(ValueError, match="an empty beam, water or a closed shutter") as refused:
            ask(spectrum, WAVE, name="u")
        said.append(str(refused.value))
    assert said[0] == said[1] and said[0].startswith("u reaches ")


@pytest.mark.parametrize(("divider", "comma"), [(",", False), (";", True), ("\t", False), (" ", False)])
def test_plain_text_in_any_usual_form(gp, tmp_path, divider, comma):
    path = spectrum_file(tmp_path / "u.txt", 25.0, divider=divider, comma=comma)
    if divider == " ":
        path.write_text("# measured today\n" + path.read_text().split("\n", 1)[1])
    assert main(["quantify", str(gp.path), str(path)]) == 0


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_headings_in_the_encodings_of_instruments(gp, tmp_path, encoding):
    path = spectrum_file(tmp_path / "u.csv", 25.0)
    path.write_bytes(path.read_text(encoding="utf-8").replace("absorbance", "µ").encode(encoding))
    assert main(["quantify", str(gp.path), str(path)]) == 0


def test_a_reader_that_has_enough_is_no_error(gp):
    command = [sys.executable, "-m", "geonode_runtime", "predict", str(gp.path), *["--at", "25"] * 40]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "runtime")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("wavelength,a,b\n300,1,2\n304,1,2\n308,1,2\n", "row 2: 3 columns where two are meant"),
        ("300,0.1\n304,oops\n308,0.2\n312,0.2\n", "row 2: no numbers"),
        ("300,0.1\n300,0.2\n308,0.2\n", "wavelength 300 is given twice"),
        ("hello\n", "has 0 rows of numbers"),
        ("\0\0", "is no text file"),
    ],
)
def test_other_files_are_refused_with_their_row(gp, tmp_path, capsys, text, said):
    (tmp_path / "u.csv").write_text(text)
    assert main(["quantify", str(gp.path), str(tmp_path / "u.csv")]) == 2
    error = capsys.readouterr().err
    assert said in error and "u.csv" in error and error.count("\n") == 1


def test_copies_other_grids_and_missing_files_are_refused(gp, tmp_path, capsys):
    one = spectrum_file(tmp_path / "a.csv", 25.0)
    shutil.copy(one, tmp_path / "b.csv")
    other = spectrum_file(tmp_path / "c.csv", 25.0, wave=WAVE[::2])
    for files, said in (
        ([one, tmp_path / "b.csv"], "is a copy"), ([one, other], "other wavelengths"), ([tmp_path / "d"], "not exist"),
    ):  # fmt: skip
        assert main(["quantify", str(gp.path), *map(str, files)]) == 2
        assert said in capsys.readouterr().err


def test_damaged_foreign_and_missing_models_are_refused(gp, tmp_path):
    data = gp.path.read_bytes()
    for name, content, said in (
        ("short.onnx", data[: len(data) // 2], "no ONNX model or is truncated"),
        ("altered.onnx", data.replace(b"ppb", b"ppm", 1), "was altered"),
        ("text.onnx", b"hello", "no ONNX model"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=said):
            load(tmp_path / name)
    with pytest.raises(InputError, match="does not exist"):
        load(tmp_path / "none.onnx")


def test_a_foreign_onnx_model_is_refused(tmp_path):
    import onnx
    from onnx import TensorProto, helper

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Abs", ["x"], ["y"])], "g", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), tmp_path / "x.onnx")
    with pytest.raises(InputError, match="none of geonode's"):
        load(tmp_path / "x.onnx")


# ---------------------------------------------------------------------- its own environment


@pytest.mark.slow
def test_alone_with_numpy_and_onnxruntime_within_its_limits(gp, tmp_path):
    """An environment of its own: installs, imports no torch, predicts and quantifies in time, weighs little."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    source = tmp_path / "runtime"
    shutil.copytree(ROOT / "runtime", source, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "--python", python]
    installed = subprocess.run(
        [*pip, "install", "-q", "--no-compile", "-c", ROOT / "constraints.txt", source],  # what runs is compiled then
        capture_output=True,
        text=True,
    )
    if installed.returncode and any(s in installed.stderr for s in ("NewConnectionError", "resolution", "timed out")):
        pytest.skip(f"pip reaches no index here: {installed.stderr.strip().splitlines()[-1]}")
    assert installed.returncode == 0, installed.stderr
    names = {found.metadata["Name"].lower().replace("_", "-") for found in distributions(path=sites(home))}
    assert {"geonode-runtime", "numpy", "onnxruntime"} <= names
    assert not names & {
        "torch",
        "scipy",
        "pandas",
        "geodesic-node",
    }
    command = python.parent / "geonode-runtime"
    unknown = spectrum_file(tmp_path / "u.csv", 25.0)
    without = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    clean = {k: v for k, v in os.environ.items() if k not in without} | {"OMP_NUM_THREADS": "1"}

    def run(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [command, *arguments], capture_output=True, text=True, cwd=tmp_path, env=clean, check=True
        )

    run("predict", str(gp.path), "--at", "25", "--out", "p.csv")
    assert (tmp_path / "p.csv").read_text().startswith("wavelength,mean_25,std_25\n")
    answers = []

    def seconds(work: Callable[[], object]) -> float:
        """Of the processor, in the processes that ``work`` starts."""
        started = os.times()
        work()
        return sum(os.times()[2:4]) - sum(started[2:4])

    bare = [python, "-c", "import numpy, onnxruntime"]  # beside it each time: another program's work slows both
    ratios = []
    while len(ratios) < 5 and (not ratios or min(ratios) > COLD):
        cold = seconds(lambda: answers.append(run("quantify", str(gp.path), str(unknown), "--json")))
        ratios.append(cold / seconds(lambda: subprocess.run(bare, env=clean, check=True)))
    assert json.loads(answers[0].stdout)["unknowns"][0]["verdict"] == "quantified"
    assert min(ratios) <= COLD, f"a cold start takes {ratios} of importing numpy and onnxruntime"
    code = (
        "import time, numpy as np, geonode_runtime as g\n"
        f"m = g.load({str(gp.path)!r}); x = np.loadtxt({str(unknown)!r}, delimiter=',', skiprows=1)[:, 1]\n"
        "m.quantify(x); t = time.process_time(); [m.quantify(x) for _ in range(20)]\n"
        "print((time.process_time() - t) / 20)"
    )
    single = float(subprocess.run([python, "-c", code], capture_output=True, text=True, env=clean, check=True).stdout)
    assert single <= 0.02, f"one unknown takes {1e3 * single:.1f} ms"
    code_size = sum(p.stat().st_size for p in (source / "geonode_runtime").glob("*.py"))
    assert gp.path.stat().st_size + code_size < 5e6
    print(f"cold start {min(ratios):.1f} times the imports, one unknown {1e3 * single:.1f} ms")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--dilution", "1:x"], "--dilution 1:x is no number; write 5, 1:5 or 1+4"),
        (["--dilution", "0:5"], "--dilution 0:5: nothing of the sample"),
        (["--dilution-std", "some"], "--dilution-std some is no number; write 0.1 or 2%"),
        (["--dilution", "-3"], "the dilution factor must be a number between"),
    ],
)
def test_dilutions_that_are_none_are_refused(gp, tmp_path, capsys, options, words):
    unknown = spectrum_file(tmp_path / "u.csv", 25.0, 1)
    assert main(["quantify", str(gp.path), str(unknown), *options]) == 2
    assert words in capsys.readouterr().err
