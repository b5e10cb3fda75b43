"""`geonode adapt`, and the weights in `geonode fit` and `geonode evaluate`."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import geonode
import geonode_runtime
from geonode.cli import app
from geonode.export.export import LIMITS
from geonode.prior.stored import model_card
from tests.adaptation.instrument import series


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def written(data, path, prefix=""):
    """A series as an instrument's table: wavelengths, then a column a standard."""
    heads = ["wavelength", *(f"{prefix}{c:.6g} uM" for c in data.concentrations)]
    rows = np.column_stack([data.wavelengths, np.asarray(data.spectra).T])
    lines = [",".join(heads), *(",".join(f"{value:.8g}" for value in row) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("series")
    return [written(series(seed, width=31), folder / f"{seed}.csv") for seed in range(3)]


@pytest.fixture(scope="module")
def adapted(files, base, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "ours.safetensors"
    done = run("adapt", *files, "--weights", base, "--steps", 30, "--anyway", "--out", out)
    assert done.exit_code == 0, done.output
    return done.output, out


def test_it_says_whether_it_helped_and_writes_weights_and_card(adapted):
    said, out = adapted
    lines = said.splitlines()
    assert any(line.startswith("left out") and "error before" in line for line in lines)
    assert [line.split()[0] for line in lines if line[:2] in ("0.", "1.", "2.")] == ["0.csv", "1.csv", "2.csv"]
    assert lines[-1].startswith(("adapting helped", "adapting did not help"))
    assert lines[-1].endswith(f"weights written to {out}")
    card = model_card(out)
    assert [one["name"] for one in card["series"]] == ["0.csv", "1.csv", "2.csv"]
    assert card["adapters"]["steps"] == 30 and card["base"]["name"] == "small"


def test_from_the_files_to_a_bundle_predictions_answers_and_an_export(adapted, files, tmp_path):
    _, out = adapted
    today = written(series(42, width=31), tmp_path / "today.csv")
    bundle = tmp_path / "today.bundle"
    done = run("fit", today, "--weights", out, "--out", bundle)
    assert done.exit_code == 0, done.output
    assert "pre-trained weights ours, adapted from small: nothing was trained" in done.output
    model = geonode.load(bundle)
    assert model.weights["base"] == "small"
    for words in (
        ("predict", bundle, "--at", 100, "--out", tmp_path / "p.csv"),
        ("export", bundle, "--onnx", tmp_path / "a.onnx"),
        ("report", bundle, "--out", tmp_path / "r"),
    ):
        assert (done := run(*words)).exit_code == 0, done.output
    assert "adapted from small" in (tmp_path / "r" / "report.html").read_text()
    spectra = np.loadtxt(tmp_path / "p.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(spectra[:, 1], model.predict_spectra([100.0])[0].values[0], rtol=1e-8)
    loaded, asked = geonode_runtime.load(tmp_path / "a.onnx"), np.linspace(*model.served_range, 9)[1:-1]
    expected, size = model.predict_spectra(asked), LIMITS["full"] * np.ptp(model.gp.level_means)
    for one, other in zip(loaded.predict(asked), expected, strict=True):
        assert np.abs(one - other.values).max() < size
    unknown = expected[0].values[5]
    assert loaded.quantify(unknown).estimate == pytest.approx(model.quantify(unknown).estimate, rel=1e-4)
    done = run("evaluate", today, "--weights", out, "--method", "node", "--method", "gp", "--json", tmp_path / "e.json")
    assert done.exit_code == 0, done.output
    assert set(json.loads((tmp_path / "e.json").read_text())["methods"]) == {"node", "gp"}


def test_every_selection_of_a_file_is_a_series(base, tmp_path):
    one, other = series(1, width=31), series(2, width=31)
    table = tmp_path / "both.csv"
    heads = [f"{name} {c:.6g} uM" for name, d in (("A", one), ("B", other)) for c in d.concentrations]
    rows = np.column_stack([one.wavelengths, np.asarray(one.spectra).T, np.asarray(other.spectra).T])
    lines = [",".join(["wavelength", *heads]), *(",".join(f"{v:.8g}" for v in row) for row in rows)]
    table.write_text("\n".join(lines) + "\n")
    out = tmp_path / "o.safetensors"
    done = run("adapt", table, "--select", "A", "--select", "B", "--weights", base, "--steps", 2, "--anyway", "-o", out)
    assert done.exit_code == 0, done.output
    assert [one["name"] for one in model_card(out)["series"]] == ["both.csv: A", "both.csv: B"]


def test_what_does_not_help_is_told_and_not_written(files, base, tmp_path):
    out = tmp_path / "ours.safetensors"
    done = run("adapt", *files[:2], "--weights", base, "--steps", 1, "--out", out)  # a rate of zero's worth
    assert done.exit_code == 2
    assert "left out" in done.output and "adapting did not help" in done.output
    assert "nothing was written" in done.output and "--anyway" in done.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("prepare", "says"),
    [
        (
            lambda out: out.write_bytes(b"x" * 100),
            "a file of weights that geonode wrote it is not",
        ),
        (lambda out: out.with_suffix(".json").write_text("[1]"), "a model card that geonode wrote it is not"),
        (lambda out: out.mkdir(), "is a folder"),
    ],
)
def test_nothing_else_is_written_over(files, base, prepare, says, tmp_path):
    out = tmp_path / "ours.safetensors"
    prepare(out)
    done = run("adapt", *files[:2], "--weights", base, "--steps", 1, "--anyway", "--out", out)
    assert done.exit_code == 2 and says in " ".join(done.output.split())


def test_weights_are_replaced_only_by_force(adapted, files, base):
    _, out = adapted
    words = ("adapt", *files[:2], "--weights", base, "--steps", 1, "--anyway", "--out", out)
    done = run(*words)
    assert done.exit_code == 2 and "--force to replace it" in " ".join(done.output.split())
    before = out.read_bytes()
    done = run("adapt", *files[:2], "--weights", out, "--steps", 1, "--out", out, "--force")
    assert done.exit_code == 2 and "would be overwritten" in " ".join(done.output.split())
    assert out.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--out", "w.onnx"), "written as .safetensors"),
        (
            ("--out", "w.safetensors", "--weights", "nowhere.safetensors"),
            "nowhere.safetensors are not there",
        ),
        (("--out", "w.safetensors", "--select", "nothing such"), "nothing such"),
        (("--out", "w.safetensors", "--steps", "0"), "greater than or equal to 1"),
    ],
)
def test_bad_options_end_in_one_sentence(files, words, says, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    done = run("adapt", *files[:2], *words)
    assert done.exit_code == 2 and says in " ".join(done.output.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["fit", "evaluate"])
@pytest.mark.parametrize("wrong", ["missing", "cut", "trained"])
def test_bad_weights_of_fit_and_evaluate(adapted, files, command, wrong, tmp_path):
    _, out = adapted
    given = tmp_path / "w.safetensors"
    if wrong == "cut":
        given.write_bytes(out.read_bytes()[:-10])
    words = [command, files[0], "--weights", out if wrong == "trained" else given]
    if wrong == "trained":
        (tmp_path / "s.json").write_text('{"flow": "velocity"}')
        words += ["--settings", tmp_path / "s.json"]
    done = run(*words, *(("--out", tmp_path / "a.bundle") if command == "fit" else ()))
    says = {
        "missing": "are not there",
        "cut": "holds no weights of this network",
        "trained": "velocity is trained" if command == "fit" else '"flow": "velocity" is trained',
    }
    assert done.exit_code == 2 and says[wrong] in " ".join(done.output.split())
    assert not (tmp_path / "a.bundle").exists()
