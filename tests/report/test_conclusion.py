"""What fit and the report say first: how good, what is wrong, what can be told apart; figures and tables they keep."""

from __future__ import annotations

import csv
import functools
import json
import re
import zipfile
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

import geonode
from geonode.calibration import Calibration, detection_limits
from geonode.calibration.baselines.latent_variables import pls_coefficients, pls_parts
from geonode.cli import app
from geonode.errors import InputError
from geonode.report.calibration_report import CalibrationReport
from geonode.report.concentration_axis import log_spaced, scale_concentration
from geonode.report.conclusion import Conclusion, LevelError
from geonode.report.page import html_report
from geonode.report.results_table import write_table
from geonode.report.slider import slider_data, slider_section
from geonode.report.tables import number

WAVE = np.linspace(400.0, 700.0, 101)
LEVELS = np.array([0.0, 5.0, 10.0, 20.0, 50.0, 100.0])


def band(centre: float, width: float = 30.0) -> np.ndarray:
    return np.exp(-0.5 * ((WAVE - centre) / width) ** 2)


def spectra(levels: np.ndarray, noise: float = 0.002) -> np.ndarray:
    bound = (levels / (30.0 + levels))[:, None]
    clean = (1.0 - bound) * band(450.0) + bound * 0.7 * band(540.0)
    return clean + noise * np.random.default_rng(1).standard_normal(clean.shape)


@functools.cache
def healthy() -> Calibration:
    return Calibration(LEVELS, spectra(LEVELS), WAVE, unit="µM")


@functools.cache
def silent() -> Calibration:
    one = np.repeat(spectra(np.array([20.0]), 0.0), len(LEVELS), axis=0)
    return Calibration(LEVELS, one + 0.002 * np.random.default_rng(2).standard_normal(one.shape), WAVE, unit="µM")


@functools.cache
def foreign() -> Calibration:
    """Samples in which another substance varies more than the analyte."""
    rng = np.random.default_rng(3)
    c = np.repeat(np.arange(1.0, 9.0), 4)
    other = rng.uniform(0.0, 8.0, len(c))
    values = 0.02 * (c[:, None] * band(460.0, 15.0) + other[:, None] * band(560.0, 25.0))
    return Calibration(c, values + 0.001 * rng.standard_normal(values.shape), WAVE, unit="%")


# ---------------------------------------------------------------------- three lines


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (healthy, "(its detection limit) to 100 µM: "),
        (silent, "Not usable: these standards do not respond"),
        (foreign, "PLS is the better tool"),
    ],
)
def test_the_headline_says_whether_to_use_it(made, said):
    found = Conclusion(made())
    assert said in found.headline() and found.headline().count("\n") == 0
    good, wrong, apart = found.lines()
    assert good.startswith("how good") and wrong.startswith("what is wrong") and apart.startswith("what can be told")


def test_errors_by_level_are_those_of_the_held_out_standards():
    calibration = healthy()
    found = Conclusion(calibration)
    held = calibration.held_out
    assert [one.level for one in found.errors] == list(calibration.levels[held.left_out])
    for k, one in enumerate(found.errors):
        rows = held.level == held.left_out[k]
        assert one.error == pytest.approx((held.estimate[rows] - held.concentration[rows]).mean())
        assert one.edge == (one.level in (0.0, 100.0))
        assert f"{one.level:g}: " in found.good()


def test_errors_of_spectra_are_shares_of_the_response_and_not_of_the_shape():
    """A constant pedestal under every spectrum changes nothing."""
    plain = Conclusion(healthy())
    raised = Conclusion(Calibration(LEVELS, spectra(LEVELS) + 5.0, WAVE))
    for a, b in zip(plain.errors, raised.errors, strict=True):
        assert a.spectrum == pytest.approx(b.spectrum, rel=1e-6)
    assert min(one.spectrum for one in Conclusion(silent()).errors) > 0.9


def test_what_is_wrong_is_what_the_report_warns_of():
    bad = spectra(LEVELS)
    bad[3] = spectra(np.array([45.0]))[0]  # labelled 20
    found = Conclusion(Calibration(LEVELS, bad, WAVE, unit="µM"))
    assert "the standard 20 µM contradicts the others" in found.wrong()
    assert found.headline().startswith("Not usable: the standard 20 µM contradicts the others")
    assert Conclusion(healthy()).wrong() == "what is wrong: nothing was found"


@pytest.mark.parametrize("made", [healthy, silent, foreign])
def test_command_report_page_and_python_say_the_same(made, tmp_path):
    calibration = made()
    standards = tmp_path / "s.csv"
    names = ["wavelength", *(f"{c:g} mM" for c in calibration.concentrations)]
    rows = [[w, *column] for w, column in zip(WAVE, np.round(calibration.spectra, 6).T, strict=True)]
    standards.write_text("\n".join(",".join(str(v) for v in row) for row in [names, *rows]) + "\n")
    done = CliRunner().invoke(app, ["fit", str(standards), "--predictor", "gp", "--out", str(tmp_path / "m.bundle")])
    assert done.exit_code == 0, done.output
    model = geonode.load(tmp_path / "m.bundle")
    lines = model.conclusion.lines()
    assert done.output.rstrip().splitlines()[-3:] == lines
    report = CalibrationReport(model.calibration)
    data = json.loads(report.to_json())
    assert data["summary"] == lines and data["conclusion"] == model.conclusion.headline()
    assert date.fromisoformat(data["date"])
    assert report.to_markdown().splitlines()[2] == f"{data['date']}. **{data['conclusion']}**"


# ---------------------------------------------------------------------- figures


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ([0.0, 1.0, 10.0, 100.0], True),
        ([0.0, 5.0, 10.0, 20.0, 50.0, 100.0], True),
        ([1.0, 3.0, 10.0, 30.0], True),
        ([0.0, 10.0, 20.0, 30.0, 40.0], False),
        ([1.0, 20.0, 40.0, 60.0, 80.0, 100.0], False),
        ([4.0, 5.0, 6.0, 7.0], False),
        ([-10.0, 1.0, 10.0, 100.0], False),
        ([0.0, 1.0, 100.0], False),
    ],
)
def test_an_axis_by_factors_is_for_standards_spaced_by_factors(levels, said):
    levels = np.array(levels)
    assert log_spaced(levels) == said
    axis = Figure().subplots()
    axis.plot(levels, levels)
    scale_concentration(axis, levels, "xy")
    assert (axis.get_xscale() != "linear") == (axis.get_yscale() != "linear") == said
    if said:
        assert axis.get_xlim()[0] <= levels[0] and number(levels[-1]) in [t.get_text() for t in axis.get_xticklabels()]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0512345, "0.0512"), (1234.5, "1230"), (99.96, "100"), (0.0, "0"), (1.23456e-9, "1.23e-09"), (None, "–")],
)
def test_numbers_have_three_digits(value, text):
    assert number(value) == text and number(value, " µM") == text + ("" if value is None else " µM")


def test_pls_parts_are_those_of_the_regression():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((12, 30)), rng.standard_normal(12)
    parts = pls_parts(x, y, 3)
    rotation = parts.weights.T @ np.linalg.inv(parts.loadings @ parts.weights.T)
    scores = (x - x.mean(0)) @ rotation
    vector = rotation @ np.linalg.lstsq(scores, y - y.mean(), rcond=None)[0]
    np.testing.assert_allclose(vector, pls_coefficients(x - x.mean(0), y - y.mean(), 3)[-1], rtol=1e-9, atol=1e-12)
    assert np.mean(parts.vip**2) == pytest.approx(1.0)


def test_pls_has_a_section_where_it_is_advised_and_its_vip_is_where_the_analyte_absorbs():
    (sheet,) = [one for one in CalibrationReport(foreign()).sheets() if one.name == "pls"]
    vip, wave = sheet.columns["vip"], sheet.columns["wavelength"]
    assert vip[np.abs(wave - 460.0) < 10.0].min() > 1.0 > vip[wave > 650.0].max()
    assert not [one for one in CalibrationReport(healthy()).sheets() if one.name == "pls"]


def test_one_wavelength_stands_beside_the_whole_spectrum():
    report = CalibrationReport(healthy())
    found, text = report.data["univariate"]["single"], report.to_markdown()
    section = text[text.index("## One wavelength") : text.index("## Limits")]
    assert f"| where | {found['wavelength']:g}" in section and "whole spectrum" in section
    assert (
        number(found["rmsecv"], " µM") in section and number(report.data["cross_validated"]["rmse"], " µM") in section
    )
    (sheet,) = [one for one in report.sheets() if one.name == "single_wavelength"]
    line = found["line"]
    np.testing.assert_allclose(
        sheet.columns["line"], line["intercept"] + line["slope"] * sheet.columns["concentration"]
    )


# ---------------------------------------------------------------------- files


@functools.cache
def gp_model() -> geonode.GeodesicModel:
    data = geonode.SpectralDataset(spectra(LEVELS), LEVELS, WAVE, concentration_unit="µM", signal="absorbance")
    return geonode.fit(data, geonode.GeodesicConfig(predictor="gp"))


def test_the_slider_marks_ends_and_standards():
    model = gp_model()
    html = slider_section(slider_data(model), "coverage")
    marks = re.findall(r'<span class="(standard|end)" style="--at:([\d.]+)">([^<]*)</span>', html)
    assert [kind for kind, _, _ in marks] == ["standard"] * 6 + ["end"]
    assert marks[0][1:] == ("0.0000", "0") and marks[-1][1:] == ("1.0000", "125")
    assert "The slider goes from 0 to 125 µM. Standards at 0, 5, 10, 20, 50, 100 µM." in html
    assert 'aria-describedby="slider-marks"' in html and "absorbance" in html


def test_the_page_begins_with_date_and_conclusion_and_can_be_printed():
    model = gp_model()
    report = CalibrationReport(model.calibration)
    page = html_report(model, report, report.sheets())
    head = page[page.index("<h1>") : page.index("<nav")]
    assert f'<time datetime="{report.data["date"]}">' in head and report.data["conclusion"] in head
    assert "@media print" in page and "@page" in page
    assert '<section id="single"' in page and '<section id="pls"' not in page


def test_results_are_files_with_numbers(tmp_path):
    model = gp_model()
    table = [{"name": "=1+1", "c": 1.5, "none": None}, {"name": "b,c", "c": 2.0, "none": None}]
    write_table(tmp_path / "t.csv", table)
    with open(tmp_path / "t.csv", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [["name", "c", "none"], ["=1+1", "1.5", ""], ["b,c", "2", ""]]
    with zipfile.ZipFile(write_table(tmp_path / "t.xlsx", table)) as book:
        sheet = book.read("xl/worksheets/sheet1.xml").decode()
        assert "<v>1.5</v>" in sheet and "<f>" not in sheet  # a name is no formula
    model.save(tmp_path / "m.bundle")
    rows = [f"{w:g},{a:.6f},{b:.6f}" for w, a, b in zip(WAVE, *spectra(np.array([30.0, 60.0])), strict=True)]
    (tmp_path / "u.csv").write_text("\n".join(["wavelength,one,two", *rows]) + "\n")
    call = ["quantify", tmp_path / "m.bundle", tmp_path / "u.csv", "--each", "--table", tmp_path / "r.csv"]
    done = CliRunner().invoke(app, [str(part) for part in call])
    assert done.exit_code == 0, done.output
    with open(tmp_path / "r.csv", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    assert [row["verdict"] for row in found] == ["quantified"] * 2
    assert [float(row["estimate / µM"]) for row in found] == pytest.approx([30.0, 60.0], rel=0.05)


@pytest.mark.parametrize("name", ["r.txt", "r.ods", "r"])
def test_a_table_of_another_kind_is_refused(name, tmp_path):
    with pytest.raises(InputError, match=r"is written as \.csv or \.xlsx; give such a name"):
        write_table(tmp_path / name, [{"a": 1}])


def test_a_workbook_without_its_package_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match="XlsxWriter; pip install"):
        write_table(tmp_path / "r.xlsx", [{"a": 1}])


# ---------------------------------------------------------------------- objects


def test_a_model_has_a_short_text_a_page_and_a_figure(tmp_path):
    model = gp_model()
    assert repr(model) == "<GeodesicModel: Gaussian process, 6 levels 0 … 100 µM, 6 spectra × 101 wavelengths>"
    html = model._repr_html_()
    assert model.conclusion.headline() in html and 'role="img"' in html
    assert model.plot(tmp_path / "m.png").stat().st_size > 10000
    left, right = model.plot(concentrations=[30.0]).axes
    assert "30 µM" in [text.get_text() for text in left.get_legend().get_texts()]
    assert right.get_xscale() == "symlog"
    with pytest.raises(InputError, match="figures are written as"):
        model.plot(tmp_path / "m.xyz")


@pytest.mark.parametrize(
    "note", ["u.csv: read as separated by commas, decimal point", "read as separated by tabs, decimal point"]
)
def test_reading_a_plain_file_needs_no_line_and_a_changed_one_has(note):
    from geonode.commands.common import remarkable

    changed = ["u.csv: read as separated by semicolons, decimal comma", "u.csv: 3 values masked"]
    assert remarkable([note, *changed]) == changed


@pytest.mark.parametrize("noise", [0.05, 0.06, 0.08])
def test_a_range_that_begins_below_the_detection_limit_is_said_to(noise: float) -> None:
    levels = np.array([0.0, 1.0, 5.0, 10.0, 20.0, 50.0, 100.0])
    noisy = Calibration(levels, spectra(levels, noise), WAVE, unit="µM")
    limit = detection_limits(noisy).detection
    assert limit is not None and limit > 1.0
    found = Conclusion(noisy).headline()
    below = ", ".join(f"{one:g}" for one in levels[(levels > 0.0) & (levels < limit)])
    assert (
        f"; below the detection limit, the standard{'s' if ',' in below else ''} {below} µM included, nothing" in found
    )
    assert found.startswith(f"Usable from {number(limit)} (its detection limit) to 100 µM: ")
    assert "below the detection limit" not in Conclusion(healthy()).headline()


@pytest.mark.parametrize("levels", [LEVELS[1:], np.array([2.0, 4.0, 8.0, 16.0, 32.0]), np.append(LEVELS[1:], 80.0)])
def test_without_a_blank_the_range_begins_at_the_lowest_standard(levels):
    found = Conclusion(Calibration(levels, spectra(levels), WAVE)).headline()
    assert found.startswith(f"Usable from {levels.min():g} to {levels.max():g}: ")


@pytest.mark.parametrize("count", [6, 7])
def test_a_range_in_which_nothing_is_told_from_a_blank_is_said_to_be_one(count, monkeypatch):
    c = np.linspace(0.0, 60.0, count)
    found = Conclusion(Calibration(c, spectra(c), WAVE))
    found.limits = replace(found.limits, detection=None, quantification=None, reason="not reached")
    assert "; but no single result of the range is told from a blank" in found.headline()


@pytest.mark.parametrize("limit", [15.0, 70.0])
def test_standards_that_are_plainly_no_blanks_are_not_said_to_be_like_one(limit):
    """A detection limit above strong standards, which lie far before it: their concentration is in doubt alone."""
    found = Conclusion(healthy())
    found.limits = replace(found.limits, detection=limit)
    below = ", ".join(f"{one:g}" for one in LEVELS[1:] if one < limit)
    said = "the spectra are no blank's, but concentrations cannot be told from zero"
    assert f"; below the detection limit, the standards {below} µM included, {said}" in found.headline()


@pytest.mark.parametrize(
    ("share", "good", "head"),
    [
        (0.034, "20: 0 (3.4 %)", "and its spectrum within 3.4 % of the response"),
        (1.0, "20: 0 (100 %)", "and its spectrum within 100 % of the response"),
        (
            2.3,
            "20: 0 (not predicted, 2.3 times)",
            "but its spectrum is not predicted (missed by 2.3 times the response)",
        ),
    ],
)
def test_an_error_of_more_than_the_response_is_no_percentage(share, good, head):
    found = Conclusion(healthy())
    found.errors = [LevelError(20.0, 0.0, share, False), LevelError(100.0, 1.0, share, True)]
    assert good in found.good() and head in found.headline()


@pytest.mark.parametrize("made", [healthy, silent, foreign])
def test_what_stands_beside_every_result_is_said_once(made):
    """The headline of standards that are not usable says a finding already: it is not said again behind it."""
    found = Conclusion(made())
    caveats = found.caveats
    assert (caveats[:1] == [found.headline()]) == (not found.usable)
    assert not any(one in other for k, one in enumerate(caveats) for other in caveats[:k])
    assert all(any(one in said for said in caveats) for one in found.findings)


@pytest.mark.parametrize("typed", [10.0, 4.0])
def test_a_wrong_label_that_leaves_no_order_is_what_the_headline_names(typed):
    """100 typed as 10 among even steps: no smooth function is what follows from it."""
    levels = np.array([0.0, 20.0, 40.0, 60.0, 80.0, 100.0])
    found = Conclusion(Calibration(np.append(levels[:-1], typed), spectra(levels), WAVE, unit="µM"))
    assert found.headline().startswith(f"Not usable: the standard {typed:g} µM contradicts the others: they would call")
    assert not found.usable
