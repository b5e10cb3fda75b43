"""What is asked of a model on the command line: concentrations with their unit, several files, files that are none,
parts of names. What was understood is said, or refused with what to give in its place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import geonode
from geonode.cli import app
from geonode.commands.amounts import concentration
from geonode.data import SpectralDataset, load_standards
from geonode.errors import InputError, ReaderError
from tests.calibration.assays import LEVELS, WAVE, monotone, noisy
from tests.data.small_tables import table, write


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("asked") / "gp.bundle"
    data = SpectralDataset(noisy(monotone, LEVELS, 0), LEVELS, WAVE, concentration_unit="µM")
    geonode.fit(data, geonode.GeodesicConfig(predictor="gp")).save(path)
    return path


def run(*arguments) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(one) for one in arguments])
    return done.exit_code, " ".join(done.output.split())


def unknown(path: Path, c: float) -> Path:
    rows = (f"{w:.6g},{v:.6f}" for w, v in zip(WAVE, noisy(monotone, c, int(c))[0], strict=True))
    return write(path, "\n".join(["wavelength,signal", *rows]))


# --- concentrations ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "unit", "value", "said"),
    [
        ("15", "µM", 15.0, ""),
        ("1e-3", "", 1e-3, ""),
        ("15 uM", "µM", 15.0, ""),
        ("15µM", "uM", 15.0, ""),
        ("0.015 mM", "µM", 15.0, "--at 0.015 mM is 15 µM"),
        ("2 mg/L", "ppb", None, "mg/L does not convert; give a number in ppb, that of the standards"),
        ("2 ppm", "ppb", 2000.0, "--at 2 ppm is 2000 ppb"),
        ("15 uM", "", None, "µM does not convert; give a number without a unit: the standards state none"),
        ("1,5", "µM", None, "give a number with a decimal point in µM, that of the standards, such as --at 1.5"),
        ("a lot", "µM", None, "that is no concentration; give a number in µM"),
    ],
)
def test_a_concentration_is_read_with_its_unit_or_refused_with_the_standards(text, unit, value, said):
    if value is None:
        with pytest.raises(InputError, match=f"^--at {text}: .*{said}"):
            concentration(text, "--at", unit)
        return
    found, understood = concentration(text, "--at", unit)
    assert found == pytest.approx(value, rel=1e-12) and understood == said


def test_predict_and_controls_say_what_they_understood(bundle, tmp_path):
    code, said = run("predict", bundle, "--at", "0.025 mM", "--at", "25", "--out", tmp_path / "p.csv")
    assert code == 0 and "--at 0.025 mM is 25 µM" in said and "1 of the 2 concentrations were given before" in said
    assert (tmp_path / "p.csv").read_text().startswith("wavelength,mean_25,std_25\n")
    code, said = run("quantify", bundle, unknown(tmp_path / "c.csv", 25), "--qc", "25000 nM")
    assert code == 0 and "--qc 25000 nM is 25 µM" in said and "where 25 µM was prepared" in said
    assert run("predict", bundle, "--at", "5 ppm", "--out", tmp_path / "p.csv", "--force")[0] == 2


# --- several files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [(5, 40), (50, 10, 30), (20, 20, 45)])
def test_several_files_that_are_several_samples_say_what_was_done_and_offer_each(bundle, tmp_path, levels):
    files = [unknown(tmp_path / f"{'abc'[k]}.csv", c + k / 100) for k, c in enumerate(levels)]
    code, said = run("quantify", bundle, *files)
    assert code == 2 and f"the {len(files)} spectra were taken as replicates of one sample, as several files" in said
    assert "given together are without --each" in said and "ask for an answer to each of them (--each)" in said
    assert "'a.csv: signal' is found" in said or "'b.csv: signal' is found" in said
    assert run("quantify", bundle, *files, "--each")[0] == 0
    model = geonode.load(bundle)
    with pytest.raises(InputError, match=r"the \d spectra given as replicates of one sample .*without replicates=True"):
        model.quantify([str(file) for file in files], replicates=True)


NOT_SPECTRA = {
    "times": "time,value\n" + "".join(f"{k},{2.5 * k}\n" for k in range(20)),
    "list": "file,time,operator\na,10:00,x\nb,10:05,y\n",
    "words": "dear colleague\nthe lamp was changed\n",
}


@pytest.mark.parametrize("kind", NOT_SPECTRA)
def test_a_file_that_is_none_of_spectra_is_named_with_the_remedy(bundle, tmp_path, kind):
    files = [unknown(tmp_path / f"{name}.csv", c) for name, c in (("a", 10), ("b", 30))]
    foreign = write(tmp_path / "times.csv", NOT_SPECTRA[kind])
    code, said = run("quantify", bundle, *files, foreign)
    assert code == 2 and f"geonode: {foreign}: " in said
    assert "if times.csv holds no spectra, take it out of the 3 files that are read together" in said
    code, said = run("quantify", bundle, *files, foreign, "--each")
    assert code == 2 and f"no answer: {foreign}: " in said and "if times.csv holds no spectra, leave it out" in said
    assert "1 of 3 unknowns was not answered: times.csv" in said
    code, said = run("quantify", bundle, tmp_path, "--each")  # of a folder what is none is left out, if that shows
    assert (code == 0 and "left out of the folder" in said) or "if times.csv holds no spectra, leave it out" in said
    with pytest.raises(ReaderError) as refused:  # alone it is no foreign file among others
        load_standards(foreign)
    assert "take it out" not in str(refused.value)


@pytest.mark.parametrize("column", ["temperature", "T [°C]", "temperature (°C)"])
def test_a_file_of_columns_that_are_no_spectra_is_left_out_and_named(bundle, tmp_path, column):
    unknown(tmp_path / "a.csv", 10)
    foreign = write(
        tmp_path / "times.csv", f"time (s),{column}\n" + "".join(f"{60 * k},{25 + k / 9}\n" for k in range(20))
    )
    code, said = run("quantify", bundle, tmp_path, "--each")
    assert code == 0 and "times.csv left out" in said and "a.csv" in said
    code, said = run("quantify", bundle, foreign)
    assert code == 2 and "no spectrum is in it" in said and "give files of spectra" in said


@pytest.mark.parametrize("wave", [WAVE[20:], WAVE / 1000, np.linspace(WAVE[0], WAVE[-1], 4)])
def test_what_is_wrong_with_one_of_several_names_its_file(bundle, tmp_path, wave):
    good = unknown(tmp_path / "a.csv", 10)
    y = np.interp(wave, WAVE, noisy(monotone, 30.0, 1)[0])
    rows = (f"{w:.6g},{v:.6f}" for w, v in zip(wave, y, strict=True))
    write(tmp_path / "odd.csv", "\n".join(["x,signal", *rows]))
    code, said = run("quantify", bundle, good, tmp_path / "odd.csv", "--each")
    assert code == 2 and "no answer: odd.csv" in said and "a.csv: signal: quantified" in said


# --- parts of names ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("select", "said"),
    [
        ("_C", "select='_C' took 6 of 9 spectra: '0 mM A_C', '10 mM A_C', '20 mM A_C', '0 mM B_control' and 2 more"),
        ("control", "select='control' took 3 of 9 spectra: '0 mM B_control', '10 mM B_control', '20 mM B_control'"),
        ("a_c", "select='a_c' took 3 of 9 spectra: '0 mM A_C', '10 mM A_C', '20 mM A_C'"),
    ],
)
def test_a_selection_by_parts_of_names_says_what_it_took(tmp_path, select, said):
    names = [f"{c} mM {one}" for one in ("A_C", "B_control", "D") for c in (0, 10, 20)]
    path = write(tmp_path / "a.csv", table(names, (0, 10, 20, 1, 12, 23, 2, 13, 25)))
    assert said in load_standards(path, select=select).notes
