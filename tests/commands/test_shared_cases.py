"""The files of ``../shared/cases`` as its README says, each by the command that went wrong on it.

The kinds that they stand for have tests of their own with inputs made here; this walks over the files themselves where
they are, so that none is forgotten.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import geonode
from geonode.cli import app
from geonode.data.readers import read_file
from geonode.errors import GeonodeError, ReaderError
from tests.commands.cases import fit, run
from tests.conftest import ROOT, shared_data_path


def folder_of_cases() -> Path | None:
    data = shared_data_path()
    return None if data is None or not (data.parent / "cases").is_dir() else data.parent / "cases"


CASES = folder_of_cases()
pytestmark = pytest.mark.skipif(CASES is None, reason="no shared cases here: ../shared/cases is absent")


def case(name: str) -> Path:
    assert CASES is not None  # or the tests are skipped
    (path,) = CASES.glob(name)
    return path


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    bundle = tmp_path_factory.mktemp("good") / "good.bundle"
    fit(case("good.csv"), bundle)
    return bundle


@pytest.fixture(scope="module")
def rhodamine(tmp_path_factory, shared_data) -> Path:
    bundle = tmp_path_factory.mktemp("rhodamine") / "r.bundle"
    fit(shared_data / "series" / "rhodamine6g_meoh.csv", bundle)
    return bundle


def ask(tmp_path, *arguments) -> dict:
    run("quantify", *arguments, "--json", tmp_path / "a.json", "-q")
    (found,) = json.loads((tmp_path / "a.json").read_text())["unknowns"]
    return found


FOUND = {
    "unknown.csv": 30.0,
    "u_1.csv": 1.0,
    "u_coarse.csv": 30.0,
    "u_shifted_grid.csv": 30.0,
    "u_excel.xlsx": 30.0,
}
ABOVE = ["u_over_130.csv", "u_over_150.csv", "u_over_500.csv"]
CAUSES = {
    "u_offset01.csv": "offset",
    "u_offset02.csv": "offset",
    "u_offset05.csv": "offset",
    "u_tilt.csv": "tilt",
    "u_shift2nm.csv": "shift",
    "u_shift5nm.csv": "shift",
    "u_interferent.csv": "interferent",
    "u_interferent_small.csv": "interferent",
}
FOREIGN = ["f_noise.csv", "f_other_dye_650.csv", "f_offset.csv", "f_scatter.csv"]
REFUSED_AT_FIT = {
    "n_counts_german.csv": "which is 1097 or 1.097",
    "h_thousands_german.csv": "which is 1000 or 1;",
    "n_zero_column.csv": "'50.0' is zero at every wavelength",
    "n_dup_column.csv": "'10.0' is identical to '5.0'",
    "n_two_wl.csv": "2 wavelengths, and a spectrum read from a file needs 3",
    "l_units.csv": "scans/s0.csv",
}
FITTED = {
    "h_negative.csv": "the level -5 is negative",
    "lin_sat.csv": "15 values masked: at 3, the cap",
    "lin_ok.csv": "nothing was found",
    "n_all_same_noise.csv": "these standards do not respond",
    "h_first_energy.csv": "converted to nm from eV",
    "h_micro_utf8.csv": "µM",
    "h_units.csv": "calibrated range",
    "n_excel.xlsx": "calibrated range",
}


@pytest.mark.parametrize("name", FOUND)
def test_an_unknown_is_found(good, tmp_path, name):
    found = ask(tmp_path, good, case(name))
    assert found["verdict"] == "quantified" and found["estimate"] == pytest.approx(FOUND[name], rel=0.03)


@pytest.mark.parametrize("name", ABOVE)
def test_what_lies_above_the_range_is_to_be_diluted(good, tmp_path, name):
    found = ask(tmp_path, good, case(name))
    assert found["verdict"] == "outside calibrated range" and "dilute" in json.dumps(found)


@pytest.mark.parametrize("name", CAUSES)
def test_a_cause_is_named(good, name):
    said = run("quantify", good, case(name)).output
    # a shift by two of 2 nm steps is within what standards left out are off by, twice: flagged, and not refused
    verdict = "holds something that the standards do not" if name == "u_shift2nm.csv" else "does not match"
    assert verdict in said and "cause: the spectrum lies" in said
    (cause,) = (line for line in said.splitlines() if "cause: it looks like" in line)
    assert CAUSES[name] in cause


def test_a_well_and_two_samples(good, tmp_path):
    plate = case("u_plate96_close.csv")
    assert ask(tmp_path, good, plate, "--select", "A1")["estimate"] == pytest.approx(7.0, rel=0.03)
    assert "of different ones" in run("quantify", good, case("unknown.csv"), case("u_1.csv"), code=2).output
    said = run("quantify", good, case("unknown.csv"), case("u_1.csv"), "--each").output
    for name, truth in (("unknown.csv", 30.0), ("u_1.csv: unknown", 1.0)):
        (value,) = re.findall(rf"^{re.escape(name)}: quantified: ([\d.]+),", said, re.M)
        assert float(value) == pytest.approx(truth, rel=0.03)


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_spectrum_gets_no_concentration(rhodamine, tmp_path, name):
    found = ask(tmp_path, rhodamine, case(name))
    assert found["verdict"] == "does not match" and found["estimate"] is None


@pytest.mark.parametrize("name", ["f_2x_top.csv", "f_5x_top.csv"])
def test_many_times_the_top_is_above_the_range(rhodamine, tmp_path, name):
    assert ask(tmp_path, rhodamine, case(name))["verdict"] == "outside calibrated range"


def test_half_the_lowest_is_below_or_within_its_set(rhodamine, tmp_path):
    found = ask(tmp_path, rhodamine, case("f_half_lowest.csv"))
    low, high = found["interval"]
    if found["verdict"] == "outside calibrated range":
        assert any("lies below the standards' range 0.01 to 0.1" in note for note in found["notes"])
    else:
        assert found["verdict"] in ("ambiguous", "quantified")
        assert (low is None or low <= 0.005) and (high is None or high >= 0.005)


@pytest.mark.parametrize("name", REFUSED_AT_FIT)
def test_refused_at_fit(tmp_path, name):
    said = run("fit", case(name), "--predictor", "gp", "--out", tmp_path / "x.bundle", code=2).output
    assert REFUSED_AT_FIT[name] in said and not (tmp_path / "x.bundle").exists()


@pytest.mark.parametrize("name", FITTED)
def test_fitted_and_told(tmp_path, name):
    assert FITTED[name] in fit(case(name), tmp_path / "x.bundle").output


def test_standards_that_do_not_respond_are_said_at_evaluate_and_report(tmp_path):
    fit(case("n_all_same_noise.csv"), tmp_path / "x.bundle")
    said = run("evaluate", case("n_all_same_noise.csv"), "--method", "linear", "--method", "gp").output
    assert "these standards do not respond" in said
    run("report", tmp_path / "x.bundle", "--out", tmp_path / "report", "-q")
    assert "do not respond" in (tmp_path / "report" / "report.html").read_text(encoding="utf-8")


def test_german_counts_are_read_with_the_mark_told(tmp_path):
    fit(case("n_counts_german.csv"), tmp_path / "x.bundle", "--decimal", ",")
    found = ask(tmp_path, tmp_path / "x.bundle", case("u_counts_german.csv"), "--decimal", ",")
    assert found["estimate"] == pytest.approx(30.0, rel=0.05)


def test_every_file_of_the_folder_is_walked():
    assert CASES is not None
    walked = {"good.csv", "u_plate96_close.csv", "f_2x_top.csv", "f_5x_top.csv", "f_half_lowest.csv", "README.md"}
    walked |= {"u_counts_german.csv", "two_samples_python.py", *FOUND, *ABOVE, *CAUSES, *FOREIGN}
    walked |= {*REFUSED_AT_FIT, *FITTED}
    assert {path.name for path in CASES.iterdir() if path.is_file()} == walked


# --- readers ----------------------------------------------------------------------------------------------------------


def levels(data) -> dict[str, float]:
    return dict(zip(data.names, data.concentrations.tolist(), strict=True))


def test_tables_belong_to_their_samples():
    data = geonode.load_standards(case("readers/01*/plate.csv"), concentrations=case("readers/01*/note.csv"))
    assert levels(data) == {f"sample_{k}": 10.0 * k for k in range(1, 5)}
    data = geonode.load_standards(case("readers/02*/list.csv"))
    assert data.concentrations.tolist() == [0, 10, 20, 40] and data.units["concentration"] == "mM"
    data = geonode.load_standards(case("readers/03*/exponent.csv"))
    np.testing.assert_allclose(data.concentrations, [1e-6, 1e-5, 1e-4, 1e-3])
    with pytest.raises(GeonodeError, match="is identical to"):
        geonode.load_standards(case("readers/17*/list.csv"))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("04*/standards.xlsx", "Excel workbook"),
        ("04*/as_excel_writes.xlsx", "Excel workbook"),
        ("05*/counts.txt", "which is 1014 or 1.014"),
        ("14*/index_from_zero.csv", "counts"),
    ],
)
def test_refused_by_its_name(name, sentence):
    with pytest.raises(ReaderError, match=sentence):
        read_file(case(f"readers/{name}"))


@pytest.mark.parametrize(
    ("name", "points", "low", "high", "unit"),
    [
        ("06*/wavenumbers.jdx", 20, 4000, 4019, "cm-1"),
        ("07*/from_one.csv", 128, 300.5, 808.5, "nm"),
        ("13*/spliced.txt", 61, 400, 700, "nm"),
        ("14*/anti_stokes.txt", 51, -100, 100, ""),
        ("15*/comma.jdx", 61, 400, 700, "nm"),
        ("16*/made_up.jaz", 61, 400, 700, "nm"),
        ("20*/own_x.spc", 30, 250, 280, "nm"),
    ],
)
def test_read_to_its_axis(name, points, low, high, unit):
    found = read_file(case(f"readers/{name}"))
    (trace,) = found.traces
    assert len(trace.wavelengths) == points and found.wavelength_unit == unit
    assert (trace.wavelengths.min(), trace.wavelengths.max()) == (pytest.approx(low), pytest.approx(high))


@pytest.mark.parametrize(("scan", "points"), [("MeasA", 20), ("MeasB", 12)])
def test_two_scans_of_one_plate(scan, points):
    note = case("readers/08*/note.csv")
    data = geonode.load_standards(case("readers/08*/plate.csv"), concentrations=note, column="Cl", select=scan)
    assert data.shape == (4, points) and data.levels.tolist() == [0, 10, 20, 40]


def test_a_blank_of_zeros_runs_through(tmp_path):
    file = case("readers/09*/standards.csv")
    fit(file, tmp_path / "x.bundle")
    run("report", tmp_path / "x.bundle", "--out", tmp_path / "report", "-q")
    said = run("evaluate", file, "--inverse", "--method", "linear", "--method", "gp").output
    assert "unknown 1 is zero" not in said


def test_a_step_far_too_long_ends_in_a_sentence_or_an_answer(tmp_path):
    file, settings = case("readers/12*/standards.csv"), case("readers/12*/settings.json")
    command = ["fit", str(file), "--settings", str(settings), "--out", str(tmp_path / "x.bundle")]
    with pytest.warns(UserWarning, match="back to its last good state with half the learning rate"):
        result = CliRunner().invoke(app, command)
    assert result.exit_code in (0, 2), result.exception
    assert (tmp_path / "x.bundle").exists() == (result.exit_code == 0)


ELSEWHERE = {
    "10": "tests/calibration/test_estimator.py",
    "11": "tests/training/test_batches.py",
    "18": "tests/training/test_loop.py",
    "19": "tests/training/test_folder_names.py",
}
"""Scripts there name modules that have moved; what they try is tried in these."""


def test_every_folder_of_readers_is_walked():
    here = Path(__file__).read_text(encoding="utf-8")
    numbers = {path.name[:2] for path in case("readers").iterdir() if path.is_dir()}
    assert {number for number in numbers if f"{number}*/" not in here} == set(ELSEWHERE)
    assert all((ROOT / path).is_file() for path in ELSEWHERE.values())
