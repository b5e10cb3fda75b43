"""`geonode quantify`, `report` and `suggest` as a lab would run them: results, and one sentence for bad input."""

from __future__ import annotations

import csv
import json
from html import escape
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import geonode
from geonode.cli import app
from geonode.commands.amounts import standard_uncertainty
from geonode.errors import BundleError, InputError

LEVELS = np.array([0.0, 10.0, 20.0, 30.0, 40.0, 60.0])
WAVE = np.arange(300.0, 701.0, 4.0)


def truth(c) -> np.ndarray:
    x = np.atleast_1d(c)[:, None] / (np.atleast_1d(c)[:, None] + 25.0)
    one, two = (np.exp(-0.5 * ((WAVE - m) / 45.0) ** 2) for m in (600.0, 450.0))
    return 0.2 + 0.9 * x * one + 0.3 * (1 - x) * two


def spectrum(c: float, seed: int = 1) -> np.ndarray:
    return truth(c)[0] + 0.002 * np.random.default_rng(seed).standard_normal(len(WAVE))


def write(path: Path, columns, heads=("absorbance",), wavelengths=WAVE) -> str:
    rows = zip(wavelengths, *np.atleast_2d(columns), strict=True)
    path.write_text("\n".join([",".join(["wavelength", *heads]), *(",".join(f"{v:.8g}" for v in r) for r in rows)]))
    return str(path)


def run(*arguments: str):
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("bundle")
    standards = truth(LEVELS) + 0.002 * np.random.default_rng(0).standard_normal((6, len(WAVE)))
    table = write(folder / "standards.csv", standards, [f"{c:.1f}" for c in LEVELS])
    made = run("fit", table, "--out", folder / "a.bundle", "--unit", "ppb", "--predictor", "gp", "-q")
    assert made.exit_code == 0, made.output
    return str(folder / "a.bundle")


@pytest.mark.smoke
def test_one_unknown(bundle: str, tmp_path: Path) -> None:
    unknown = write(tmp_path / "u.csv", spectrum(27.0))
    done = run("quantify", bundle, unknown, "--json", tmp_path / "r.json")
    assert done.exit_code == 0 and "quantified" in done.output and "85.7 %" in done.output
    data = json.loads((tmp_path / "r.json").read_text())
    (found,) = data["unknowns"]
    assert data["unit"] == "ppb" and found["verdict"] == "quantified"
    assert found["interval"][0] < found["estimate"] < found["interval"][1]
    assert found["estimate"] == pytest.approx(27.0, abs=1.0)
    assert {"sets", "bands_responding", "bands_silent", "attainable_confidence"} <= set(data["standards"])
    model = geonode.load(bundle)
    assert model.quantify(spectrum(27.0)).estimate == pytest.approx(found["estimate"], rel=1e-4)


def test_replicates_dilution_and_matrix_blank(bundle: str, tmp_path: Path) -> None:
    matrix = 0.05 * np.exp(-WAVE / 300.0)
    files = [write(tmp_path / f"u{i}.csv", spectrum(27.0, i) + matrix) for i in range(3)]
    blank = write(tmp_path / "blank.csv", spectrum(0.0, 9) + matrix)
    out = tmp_path / "r.json"
    options = ("--dilution", "10", "--dilution-std", "0.2", "--blank", blank, "--json", out, "-q")
    assert run("quantify", bundle, *files, *options).exit_code == 0
    (found,) = json.loads(out.read_text())["unknowns"]
    assert found["replicates"] == 3 and found["estimate"] == pytest.approx(270.0, abs=20.0) and found["dilution"] == 10


def test_each_and_select(bundle: str, tmp_path: Path) -> None:
    plate = write(tmp_path / "plate.csv", [spectrum(15.0, 1), spectrum(15.0, 2), spectrum(50.0, 3)], ["A1", "A2", "B1"])
    refused = run("quantify", bundle, plate)
    assert refused.exit_code == 2 and "3 spectra ('A1', 'A2', 'B1')" in refused.output and "--each" in refused.output
    out = tmp_path / "r.json"
    assert run("quantify", bundle, plate, "--each", "--json", out, "-q").exit_code == 0
    assert [round(u["estimate"] / 5) * 5 for u in json.loads(out.read_text())["unknowns"]] == [15, 15, 50]
    assert run("quantify", bundle, plate, "--select", "A", "--average", "--json", out, "--force", "-q").exit_code == 0
    (found,) = json.loads(out.read_text())["unknowns"]
    assert found["replicates"] == 2 and len(found["spectra"]) == 2


def test_a_control_passes_or_fails(bundle: str, tmp_path: Path) -> None:
    control = write(tmp_path / "qc.csv", spectrum(30.0, 4))
    assert run("quantify", bundle, control, "--qc", "30").exit_code == 0
    failed = run("quantify", bundle, control, "--qc", "20", "--json", tmp_path / "qc.json")
    assert failed.exit_code == 1 and "FAIL" in failed.output
    assert json.loads((tmp_path / "qc.json").read_text())["unknowns"][0]["qc"]["passed"] is False


def test_saturated_values_are_masked_and_said(bundle: str, tmp_path: Path) -> None:
    clipped = write(tmp_path / "u.csv", np.minimum(spectrum(50.0), 0.6))
    done = run("quantify", bundle, clipped, "--saturation", "0.6", "--json", tmp_path / "r.json")
    assert done.exit_code == 0 and "saturated wavelengths were masked" in done.output
    (found,) = json.loads((tmp_path / "r.json").read_text())["unknowns"]
    assert found["masked_wavelengths"] > 5 and found["estimate"] == pytest.approx(50.0, abs=5.0)


def test_another_grid_is_interpolated_where_it_covers_all(bundle: str, tmp_path: Path) -> None:
    own = np.arange(295.0, 710.0, 1.5)
    shifted = write(tmp_path / "u.csv", np.interp(own, WAVE, spectrum(27.0)), wavelengths=own)
    done = run("quantify", bundle, shifted)
    assert done.exit_code == 0 and "interpolated" in done.output


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda p: write(p, spectrum(27.0)[25:], wavelengths=WAVE[25:]), "misses 300 to 400"),
        (lambda p: write(p, 0.0 * WAVE), "zero at every wavelength"),
        (lambda p: write(p, np.where(WAVE == 400.0, np.nan, spectrum(27.0))), "'nan', which is no number"),
        (lambda p: write(p, 1000.0 * spectrum(27.0)), "another unit"),
        (lambda p: write(p, 100.0 * 10.0 ** -spectrum(27.0), ["%T"]), "percent transmission"),
        (lambda p: str(p), "there is no such file"),
    ],
)
def test_bad_unknowns_are_one_sentence_and_exit_code_2(bundle: str, tmp_path: Path, make, sentence: str) -> None:
    done = run("quantify", bundle, make(tmp_path / "u.csv"))
    assert done.exit_code == 2 and sentence in done.output and "Traceback" not in done.output
    assert len(done.output.strip().splitlines()) == 1


def test_another_signal_than_the_standards_is_refused(tmp_path: Path) -> None:
    standards = geonode.SpectralDataset(truth(LEVELS), LEVELS, WAVE, signal="absorbance")
    geonode.fit(standards, geonode.GeodesicConfig(predictor="gp")).save(tmp_path / "a.bundle")
    done = run("quantify", tmp_path / "a.bundle", write(tmp_path / "u.csv", spectrum(27.0), ["%T"]))
    assert done.exit_code == 2 and "its signal is transmittance and that of the standards absorbance" in done.output


def test_a_copy_is_no_replicate(bundle: str, tmp_path: Path) -> None:
    one = write(tmp_path / "u.csv", spectrum(27.0))
    two = write(tmp_path / "copy.csv", spectrum(27.0))
    for pair in ((one, one), (one, two)):
        done = run("quantify", bundle, *pair)
        assert done.exit_code == 2 and "is a copy and not a replicate" in done.output


def test_bad_options_and_bundles(bundle: str, tmp_path: Path) -> None:
    unknown = write(tmp_path / "u.csv", spectrum(27.0))
    assert run("quantify", bundle, unknown, "--level", "80").exit_code == 2
    assert run("quantify", bundle, unknown, "--dilution", "0").exit_code == 2
    for option in (("--qc", "nan"), ("--qc", "61"), ("--dilution", "1e308"), ("--saturation", "-1")):
        done = run("quantify", bundle, unknown, *option)
        assert done.exit_code == 2 and len(done.output.strip().splitlines()) == 1, done.output
    assert run("quantify", unknown, unknown).exit_code == 2
    assert run("quantify", bundle, unknown, "--json", tmp_path / "no" / "r.json").exit_code == 2
    assert run("report", bundle, "--out", unknown).exit_code == 2


@pytest.mark.smoke
def test_report_and_suggest(bundle: str, tmp_path: Path) -> None:
    done = run("report", bundle, "--out", tmp_path / "report")
    assert done.exit_code == 0, done.output
    names = {p.name for p in (tmp_path / "report").iterdir()}
    figures = {"spectra", "predicted", "residuals", "resolution", "ambiguity", "metric", "single_wavelength"}
    pages = {"report.html", "report.md", "report.json", "results.csv", "results.xlsx"}
    assert names == {f"{f}.{e}" for f in figures for e in ("png", "csv")} | pages
    suggested = run("suggest", bundle, "--json", tmp_path / "s.json")
    assert suggested.exit_code == 0 and "standard uncertainty of results" in suggested.output
    data = json.loads((tmp_path / "s.json").read_text())
    assert data["after"] < data["before"] and data["concentration"] in data["candidates"]
    assert "uniform prior" in data["prior"] and "uniform prior" in suggested.output


def test_uncertain_standards_survive_the_bundle(tmp_path: Path) -> None:
    assert standard_uncertainty("2%", LEVELS).tolist() == (0.02 * LEVELS).tolist()
    assert standard_uncertainty("0.5", LEVELS).tolist() == [0.5] * 6
    with pytest.raises(InputError, match="is no number"):
        standard_uncertainty("two", LEVELS)
    for text in ("200%", "100 %", "1e3%"):
        with pytest.raises(InputError, match="uncertain by all of what they are called"):
            standard_uncertainty(text, LEVELS)
    for text in ("-1%", "nan", "-0.5", "inf%"):
        with pytest.raises(InputError, match="an uncertainty is no less than 0"):
            standard_uncertainty(text, LEVELS)
    standards = truth(LEVELS) + 0.002 * np.random.default_rng(0).standard_normal((6, len(WAVE)))
    data = geonode.SpectralDataset(standards, LEVELS, WAVE)
    config = geonode.GeodesicConfig(predictor="gp")
    exact = geonode.fit(data, config)
    unsure = geonode.fit(data, config, concentration_std=1.0)
    unsure.save(tmp_path / "u.bundle")
    again = geonode.load(tmp_path / "u.bundle")
    widths = [a.high - a.low for a in (m.quantify(spectrum(27.0)) for m in (exact, unsure, again))]
    assert widths[1] > 1.3 * widths[0] and widths[2] == widths[1]


def test_the_estimator_is_saved_without_pickle(bundle: str, tmp_path: Path) -> None:
    model = geonode.GeodesicCalibrator(concentration_std=0.3).fit(truth(LEVELS), LEVELS)
    model.save(tmp_path / "c.safetensors")
    again = geonode.GeodesicCalibrator.load(tmp_path / "c.safetensors")
    assert again.get_params() == model.get_params()
    assert again.predict(truth([12.0, 45.0])).tolist() == model.predict(truth([12.0, 45.0])).tolist()
    with pytest.raises(BundleError, match="no GeodesicCalibrator"):
        geonode.GeodesicCalibrator.load(bundle)


def test_three_standards_decide_no_control_and_claim_no_band(tmp_path: Path) -> None:
    levels = LEVELS[[0, 2, -1]]
    table = write(tmp_path / "three.csv", truth(levels), [f"{c:.1f}" for c in levels])
    made = tmp_path / "three.bundle"
    assert run("fit", table, "--out", made, "--unit", "ppb", "--predictor", "gp", "-q").exit_code == 0
    unknown = write(tmp_path / "u.csv", spectrum(27.0))
    done = run("quantify", made, unknown, "--qc", "27", "--json", tmp_path / "r.json")
    assert done.exit_code == 1 and "QC: not decided (3 standards" in done.output
    assert "no interval or band is claimed" in done.output and "rest on the model" not in done.output
    (found,) = json.loads((tmp_path / "r.json").read_text())["unknowns"]
    assert found["qc"]["passed"] is False and found["qc"]["drift_low"] is None and found["interval"] == [None, None]
    predicted = run("predict", made, "--at", "27", "--out", tmp_path / "p.csv")
    assert predicted.exit_code == 0 and "no interval or band is claimed" in predicted.output
    page = run("report", made, "--out", tmp_path / "page")
    assert page.exit_code == 0, page.output
    text = (tmp_path / "page" / "report.html").read_text(encoding="utf-8")
    assert "80 % band of one further spectrum" not in text and "no set is claimed" in text and '"half":null' in text


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (np.zeros(len(WAVE)), "is zero at every wavelength"),
        (np.full(len(WAVE), 25.0), "is 25 at every wavelength"),
        (1e-4 * spectrum(5.0), "or nothing was measured (an empty beam, water or a closed shutter)"),
    ],
)
def test_of_many_unknowns_one_without_an_answer_costs_no_other_its(bundle, tmp_path, bad, said) -> None:
    columns, heads = [spectrum(15.0), bad, spectrum(50.0)], ["one", "two", "three"]
    plate = write(tmp_path / "plate.csv", columns, heads)
    made = run("quantify", bundle, plate, "--each", "--json", tmp_path / "r.json", "--table", tmp_path / "t.csv")
    assert made.exit_code == 2 and "no answer: " in made.output and said in made.output
    assert "1 of 3 unknowns was not answered: " in made.output.splitlines()[-1] and made.output.count(said) == 1
    silent = run("quantify", bundle, plate, "--each", "--quiet")
    assert silent.exit_code == 2 and silent.output.count(said) == 1
    entries = json.loads((tmp_path / "r.json").read_text())["unknowns"]
    assert [entry["name"].split(": ")[-1] for entry in entries] == heads
    assert said in entries[1]["refused"] and "estimate" not in entries[1]
    assert [entries[k]["estimate"] for k in (0, 2)] == pytest.approx([15.0, 50.0], abs=2.0)
    row = list(csv.DictReader((tmp_path / "t.csv").open()))[1]
    assert (row["verdict"], row["estimate / ppb"]) == ("refused", "") and said in row["why"]
    none = run("quantify", bundle, write(tmp_path / "none.csv", [bad, 2 * bad], ["a", "b"]), "--each")
    assert none.exit_code == 2 and "none of the 2 unknowns was answered" in none.output
    assert none.output.count("no answer: ") == 2


@pytest.mark.parametrize(
    ("head", "axis"),
    [("wavelength (µm)", WAVE / 1e3), ("wavenumber (cm-1)", 1e7 / WAVE), ("wavelength (Å)", 10 * WAVE)],
)
def test_an_unknown_in_another_unit_of_the_axis_is_converted_and_says_so(bundle, tmp_path, head, axis) -> None:
    rows = "\n".join(f"{w:.12g},{v:.9g}" for w, v in zip(axis, spectrum(27.0), strict=True))
    (tmp_path / "u.csv").write_text(f"{head},absorbance\n{rows}\n")
    done = run("quantify", bundle, tmp_path / "u.csv", "--json", tmp_path / "r.json")
    assert done.exit_code == 0 and "to nm, that of the standards" in done.output, done.output
    (found,) = json.loads((tmp_path / "r.json").read_text())["unknowns"]
    assert found["estimate"] == pytest.approx(27.0, abs=1.0)


def test_of_many_files_one_that_cannot_be_read_costs_no_other_its_answer(bundle: str, tmp_path: Path) -> None:
    """A file of words, one that is not there, another signal, an empty folder and a copy, among two good ones."""
    good = [write(tmp_path / f"{name}.csv", spectrum(c)) for name, c in (("a", 15.0), ("b", 50.0))]
    (tmp_path / "words.csv").write_text("dear colleague,\nthe spectrum is attached\n")
    (tmp_path / "empty").mkdir()
    copy = write(tmp_path / "c.csv", spectrum(15.0))
    bad = {
        "words.csv": (str(tmp_path / "words.csv"), "words.csv"),
        "gone.csv": (str(tmp_path / "gone.csv"), "there is no such file"),
        "empty": (str(tmp_path / "empty"), "no file in this folder is recognised as spectra"),
        "c.csv": (copy, "'c.csv' is identical to 'a.csv'"),
    }
    files = [good[0], *(path for path, _ in bad.values()), good[1]]
    out, page = tmp_path / "r.json", tmp_path / "p.html"
    table = tmp_path / "t.csv"
    done = run("quantify", bundle, *files, "--each", "--json", out, "--plot", page, "--table", table)
    assert done.exit_code == 2 and "Traceback" not in done.output
    last = done.output.splitlines()[-1]
    assert "4 of 6 unknowns were not answered: words.csv, gone.csv, empty, c.csv; why is said in the place of" in last
    entries = json.loads(out.read_text())["unknowns"]
    assert [one["name"] for one in entries] == ["a.csv", *bad, "b.csv"]
    assert [entries[k]["estimate"] for k in (0, 5)] == pytest.approx([15.0, 50.0], abs=2.0)
    rows = list(csv.DictReader(table.open()))
    for entry, row, (_, reason) in zip(entries[1:5], rows[1:5], bad.values(), strict=True):
        assert reason in entry["refused"] and row["verdict"] == "refused" and row["why"] == entry["refused"]
        assert done.output.count(f"no answer: {entry['refused']}") == 1
        assert escape(entry["refused"]) in page.read_text()
    together = run("quantify", bundle, *files[:2])
    assert together.exit_code == 2 and "words.csv" in together.output  # replicates of one: refused whole
    alone = run("quantify", bundle, files[1], "--each")
    assert alone.exit_code == 2 and len(alone.output.strip().splitlines()) == 1
    none = run("quantify", bundle, *files[1:4], "--each", "--json", out, "--plot", tmp_path / "p.png", "--force")
    assert none.exit_code == 2 and "none of the 3 unknowns was answered" in none.output.splitlines()[-1]
    assert all(one["refused"] for one in json.loads(out.read_text())["unknowns"])
