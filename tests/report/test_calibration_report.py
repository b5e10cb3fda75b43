"""The report of a calibration: every number in it can be recomputed, every figure read off its CSV."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from geonode.calibration import Calibration
from geonode.calibration.design import merit
from geonode.data import SpectralDataset
from geonode.errors import InputError
from geonode.report.calibration_report import CalibrationReport, coverage, coverage_sentence
from geonode.report.calibration_sheets import arc_grid, sheets
from geonode.report.style import new_figure
from tests.calibration.assays import LEVELS, WAVE, band, folding, monotone, noisy


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return Calibration(np.repeat(LEVELS, 2), noisy(folding, np.repeat(LEVELS, 2), 0), WAVE, unit="mM")


@pytest.fixture(scope="module")
def report(calibration: Calibration) -> CalibrationReport:
    return CalibrationReport(calibration)


@pytest.fixture(scope="module")
def report_of_few() -> CalibrationReport:
    """A response that levels off: the highest standards, left out, have no upper limit."""
    return CalibrationReport(Calibration(LEVELS, noisy(folding, LEVELS, 0, 0.02), WAVE, unit="mM"))


def test_numbers(calibration: Calibration, report: CalibrationReport) -> None:
    data = json.loads(report.to_json())
    held = calibration.held_out
    assert data["cross_validated"]["rmse"] == pytest.approx(merit.rmse(held.estimate, held.concentration))
    assert data["unit"] == "mM" and data["spectra"] == 12 and len(data["standards"]) == 6
    assert data["coverage"]["attainable_confidence"] == pytest.approx(6 / 7)
    assert data["ambiguous_pairs"] and data["limits"]["detection_factor"] == 3.29
    assert len(data["budgets"]) == 3 and {budget["prior"] for budget in data["budgets"]} == {"none"}
    assert any(budget["resolved"] for budget in data["budgets"]) and "uniform prior" in data["next_standard"]["prior"]
    for budget in (budget for budget in data["budgets"] if budget["resolved"]):
        assert sum(part["share"] for part in budget["contributions"]) == pytest.approx(1.0)


def test_text_says_definitions_with_the_values(report: CalibrationReport) -> None:
    text = report.to_markdown()
    said = ("k = 3.29", "k = 10", "no straight line, do not use it", "not reached by this calibration", "85.7 %")
    for words in (*said, "Uncertainty budget", "look alike"):
        assert words in text, words
    assert " mM" in text and " mm" not in text


def test_limits_of_a_straight_line_say_by_which_standard() -> None:
    levels = np.repeat(LEVELS, 2)
    spectra = 0.02 * levels[:, None] * band(600.0, 40.0) + np.random.default_rng(4).normal(0.0, 0.002, (12, len(WAVE)))
    text = CalibrationReport(Calibration(levels, spectra, WAVE, unit="mM")).to_markdown()
    assert "ISO 11843-2" in text and "α = β = 0.05" in text and "no limit can be claimed" not in text


def test_coverage_is_apart_for_responding_and_silent_wavelengths(calibration: Calibration) -> None:
    found = coverage(calibration)
    assert found["bands_responding"] is not None and found["bands_silent"] is not None
    assert found["sets"] == calibration.own_levels.share() and found["sets_by"] == "posterior"
    profile = coverage(calibration, "profile")
    assert profile["sets"] == calibration.held_out.covered(0.8) and "of the profile" in coverage_sentence(profile, 6)
    sentence = coverage_sentence(found, 6)
    assert "of the posterior" in sentence and "kinds it never saw" in sentence
    assert "responds" in sentence and "silent" in sentence and "85.7 %" in sentence


def test_figures_equal_their_numbers(calibration: Calibration, report: CalibrationReport, tmp_path) -> None:
    written = report.write(tmp_path / "report")
    assert len(written) == 16
    for sheet in report.sheets():
        with open(tmp_path / "report" / f"{sheet.name}.csv", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        assert rows[0] == list(sheet.columns)
        table = np.array(rows[1:], dtype=float)
        np.testing.assert_allclose(table, np.stack(list(sheet.columns.values()), axis=1), rtol=1e-9)
        assert (tmp_path / "report" / f"{sheet.name}.png").read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert text.count("](") == 14  # seven figures, seven tables


def test_held_out_sets_hold_their_estimates(calibration: Calibration) -> None:
    held = calibration.held_out
    assert (held.interval[:, 0] <= held.estimate).all() and (held.estimate <= held.interval[:, 1]).all()
    inside = (held.interval[:, 0] <= held.concentration) & (held.concentration <= held.interval[:, 1])
    assert (inside | (held.coverage > 0.8)).all()


def test_ends_that_only_the_search_set_are_open() -> None:
    # so noisy that the highest standard, left out, has no upper limit
    made = CalibrationReport(Calibration(LEVELS, noisy(monotone, LEVELS, 0, 0.1), WAVE, unit="mM"))
    held = made.calibration.held_out
    top = held.edge & (held.concentration > 0.0)
    assert np.isinf(held.interval[top, 1]).any(), "the case must have an open end"
    searched = made.calibration.inverse.high
    assert not (np.abs(held.interval[:, 1] - searched) < 1e-6).any()
    (sheet,) = (sheet for sheet in made.sheets() if sheet.name == "predicted")
    rows = list(csv.DictReader(sheet.csv().splitlines()))
    assert [row["set_80_percent_high"] == "inf" for row in rows] == np.isinf(held.interval[:, 1]).tolist()
    for row in rows:
        assert (row["open_high"] == "1") == (row["set_80_percent_high"] == "inf")


@pytest.mark.parametrize(
    "levels", [LEVELS[1:], LEVELS[[1, 2, 4, 5]], np.repeat(LEVELS[1:], 2)], ids=["five", "four", "measured twice"]
)
def test_that_there_is_no_blank_is_a_sentence_of_the_report_once(levels) -> None:
    made = CalibrationReport(Calibration(levels, noisy(monotone, levels, 0), WAVE, unit="mM"))
    text = made.to_markdown()
    head, limits = text.split("## Figures of merit")[0], text.split("## Limits")[1].split("- Single wavelength")[0]
    assert head.count("no blank among the standards") == limits.count("no blank among the standards") == 1
    assert "quantification: none (for the same reason)" in limits
    assert any("no blank among the standards" in line for line in made.data["summary"])


def test_limits_and_budgets_that_mean_nothing_are_said(report_of_few: CalibrationReport) -> None:
    assert "No prior is in these figures" in report_of_few.to_markdown()
    folded = CalibrationReport(Calibration(np.repeat(LEVELS, 3), noisy(folding, np.repeat(LEVELS, 3), 0), WAVE))
    assert "the criterion holds only from" in folded.to_markdown()
    without = CalibrationReport(Calibration(LEVELS[1:], noisy(folding, LEVELS[1:], 0), WAVE, unit="mM"))
    data = json.loads(without.to_json())
    assert data["univariate"]["single"]["line"]["detection"] is None
    said = without.to_markdown()
    assert "no limit of detection or quantification" in said and "No blank among the standards" in said
    assert "no straight line, do not use it" in said
    # a response that is over after the first standard: at the middle of the range there is nothing to tell
    exact = 0.2 + 0.8 * np.tanh(LEVELS[:, None] / 4.0) * band(600, 35)
    spectra = exact + 0.002 * np.random.default_rng(0).standard_normal(exact.shape)
    early = Calibration(LEVELS, spectra, WAVE, unit="mM")
    nothing = CalibrationReport(early)
    assert "not resolved by this calibration" in nothing.to_markdown()
    budgets = json.loads(nothing.to_json())["budgets"]
    assert not budgets[1]["resolved"] and "combined" not in budgets[1] and budgets[1]["contributions"] == []


def test_the_full_metric_is_drawn_on_the_scale_of_the_warp(calibration: Calibration) -> None:
    arc = np.linspace(-1.0, 1.0, len(arc_grid(calibration)))[:, None] * np.ones(3)
    metric = next(sheet for sheet in sheets(calibration, full_arc=arc) if sheet.name == "metric")
    assert metric.columns["full_arc_length_mean"][[0, -1]].tolist() == [0.0, 2.0]
    np.testing.assert_allclose(metric.columns["arc_length"][[0, -1]], [0.0, 2.0], atol=1e-9)


def draw(calibration: Calibration, name: str):
    figure, axes = new_figure(7.0, 4.0)
    next(sheet for sheet in sheets(calibration) if sheet.name == name).draw(axes[0, 0])
    figure.draw_without_rendering()
    return axes[0, 0]


def test_axes_carry_signal_and_units_and_gaps_are_not_crossed() -> None:
    keep = (WAVE < 400.0) | (WAVE > 460.0)
    spectra = noisy(folding, LEVELS, 0)[:, keep]
    dataset = SpectralDataset(spectra, LEVELS, WAVE[keep], signal="fluorescence", concentration_unit="mM")
    calibration = Calibration.from_dataset(dataset)
    axis = draw(calibration, "spectra")
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("wavelength / nm", "fluorescence")
    legend = axis.get_legend()
    assert "dashed: predicted" in legend.get_title().get_text() and len(legend.get_texts()) == 11
    for line in axis.get_lines():
        x, y = line.get_data()
        (gap,) = np.flatnonzero(np.isnan(y))
        assert x[gap - 1] == 396.0 and x[gap + 1] == 464.0
    assert draw(calibration, "residuals").get_ylabel() == "fluorescence, measured − predicted"
    assert draw(calibration, "predicted").get_xlabel() == "true concentration / mM"


@pytest.mark.parametrize("name", ["spectra", "resolution", "metric", "predicted"])
def test_legends_cover_no_data(calibration: Calibration, name: str) -> None:
    axis = draw(calibration, name)
    assert not axis.get_legend().get_window_extent().overlaps(axis.get_window_extent())


def test_open_ends_are_arrows(report_of_few: CalibrationReport) -> None:
    axis, held = draw(report_of_few.calibration, "predicted"), report_of_few.calibration.held_out
    arrows = [x for line in axis.get_lines() if line.get_marker() == "^" for x in line.get_xdata()]
    assert sorted(arrows) == sorted(held.concentration[np.isinf(held.interval[:, 1])]) and arrows


def test_bad_folders(report: CalibrationReport, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        report.write(tmp_path / "file")
    with pytest.raises(InputError, match="does not exist"):
        report.write(tmp_path / "no" / "report")


def test_three_standards_claim_no_interval_anywhere() -> None:
    three = CalibrationReport(Calibration(LEVELS[[0, 2, -1]], noisy(folding, LEVELS[[0, 2, -1]], 0), WAVE, unit="mM"))
    found = coverage(three.calibration)
    assert found["sets"] is None and found["sets_interior"] is None
    sentence = coverage_sentence(found, 3)
    assert (
        "no interval or band is claimed" in sentence and "sets" not in sentence and "rest on the model" not in sentence
    )
    text = three.to_markdown()
    assert "not claimed: too few standards" in text and "expanded 0" not in text
    assert " nan" not in text and " inf" not in text
    (predicted,) = (sheet for sheet in sheets(three.calibration) if sheet.name == "predicted")
    assert np.isnan(predicted.columns["covered_by_80_percent_set"]).all()


def test_expanded_uncertainties_say_what_they_rest_on(report: CalibrationReport) -> None:
    from geonode.report.calibration_tables import budget_table

    resolved = [budget for budget in report.data["budgets"] if budget["resolved"]]
    assert resolved and {budget["rests_on"] for budget in resolved} == {"model"}
    for said in (report.to_markdown(), budget_table(report.data["budgets"], " mM").html()):
        assert said.count("expanded ") == said.count("rests on the model)") == len(resolved)
