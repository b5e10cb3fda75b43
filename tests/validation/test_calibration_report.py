"""The report of a calibration: every number in it can be recomputed, every figure read off its CSV."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from geonode.calibration import Calibration, merit
from geonode.errors import InputError
from geonode.validation.calibration_figures import arc_grid, sheets
from geonode.validation.calibration_report import CalibrationReport, coverage, coverage_sentence
from tests.calibration.assays import LEVELS, WAVE, folding, noisy


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return Calibration(np.repeat(LEVELS, 2), noisy(folding, np.repeat(LEVELS, 2), 0), WAVE, unit="mM")


@pytest.fixture(scope="module")
def report(calibration: Calibration) -> CalibrationReport:
    return CalibrationReport(calibration)


def test_numbers(calibration: Calibration, report: CalibrationReport) -> None:
    data = json.loads(report.to_json())
    held = calibration.held_out
    assert data["cross_validated"]["rmse"] == pytest.approx(merit.rmse(held.estimate, held.concentration))
    assert data["unit"] == "mM" and data["spectra"] == 12 and len(data["standards"]) == 6
    assert data["coverage"]["attainable_confidence"] == pytest.approx(6 / 7)
    assert data["ambiguous_pairs"] and data["limits"]["detection_factor"] == 3.29
    for budget in data["budgets"]:
        assert sum(part["share"] for part in budget["contributions"]) == pytest.approx(1.0)


def test_text_says_definitions_with_the_values(report: CalibrationReport) -> None:
    text = report.to_markdown()
    for words in ("k = 3.29", "k = 10", "ISO 11843-2", "α = β = 0.05", "85.7 %", "Uncertainty budget", "look alike"):
        assert words in text, words
    assert " mM" in text and " mm" not in text


def test_coverage_is_apart_for_responding_and_silent_wavelengths(calibration: Calibration) -> None:
    found = coverage(calibration)
    assert found["bands_responding"] is not None and found["bands_silent"] is not None
    assert found["sets"] == calibration.held_out.covered(0.8)
    sentence = coverage_sentence(found, 6)
    assert "responds" in sentence and "silent" in sentence and "85.7 %" in sentence


def test_figures_equal_their_numbers(calibration: Calibration, report: CalibrationReport, tmp_path) -> None:
    written = report.write(tmp_path / "report")
    assert len(written) == 14
    for sheet in sheets(calibration):
        with open(tmp_path / "report" / f"{sheet.name}.csv", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        assert rows[0] == list(sheet.columns)
        table = np.array(rows[1:], dtype=float)
        np.testing.assert_allclose(table, np.stack(list(sheet.columns.values()), axis=1), rtol=1e-9)
        assert (tmp_path / "report" / f"{sheet.name}.png").read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert text.count("](") == 12  # six figures, six tables


def test_held_out_sets_hold_their_estimates(calibration: Calibration) -> None:
    held = calibration.held_out
    assert (held.interval[:, 0] <= held.estimate).all() and (held.estimate <= held.interval[:, 1]).all()
    inside = (held.interval[:, 0] <= held.concentration) & (held.concentration <= held.interval[:, 1])
    assert (inside | (held.coverage > 0.8)).all()


def test_the_full_metric_is_drawn_on_the_scale_of_the_warp(calibration: Calibration) -> None:
    arc = np.linspace(-1.0, 1.0, len(arc_grid(calibration)))[:, None] * np.ones(3)
    metric = next(sheet for sheet in sheets(calibration, full_arc=arc) if sheet.name == "metric")
    assert metric.columns["full_arc_length_mean"][[0, -1]].tolist() == [0.0, 2.0]
    np.testing.assert_allclose(metric.columns["arc_length"][[0, -1]], [0.0, 2.0], atol=1e-9)


def test_bad_folders(report: CalibrationReport, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        report.write(tmp_path / "file")
    with pytest.raises(InputError, match="does not exist"):
        report.write(tmp_path / "no" / "report")
