"""Answers explain themselves: the same words in Python, the command and its JSON; the figure; behind preprocessing."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter1d
from typer.testing import CliRunner

import geonode
from geonode.calibration import Calibration, Quantification
from geonode.cli import app
from geonode.errors import InputError

LEVELS = np.array([0.0, 5.0, 10.0, 20.0, 50.0, 100.0])
WAVE = np.arange(400.0, 701.0, 3.0)


def band(centre: float, width: float) -> np.ndarray:
    return np.exp(-0.5 * ((WAVE - centre) / width) ** 2)


def spectra(c, seed: int = 0, noise: float = 0.002) -> np.ndarray:
    bound = (np.atleast_1d(np.asarray(c, float)) / (30.0 + np.atleast_1d(np.asarray(c, float))))[:, None]
    clean = (1.0 - bound) * (band(450.0, 30.0) + 0.35 * band(620.0, 35.0)) + bound * 0.7 * band(520.0, 30.0)
    return clean + noise * np.random.default_rng(seed).standard_normal(clean.shape)


def model(preprocessing=None) -> geonode.GeodesicModel:
    data = geonode.SpectralDataset(
        spectra(LEVELS), LEVELS, WAVE, signal="absorbance", concentration_unit="µM", wavelength_unit="nm"
    )
    return geonode.fit(data, geonode.GeodesicConfig(predictor="gp"), preprocessing=preprocessing)


@pytest.fixture(scope="module")
def made() -> geonode.GeodesicModel:
    return model()


SPOILT = {
    "offset": lambda s: s + 0.02,
    "tilt": lambda s: s + np.linspace(0.04, -0.01, len(WAVE)),
    "shift": lambda s: np.interp(WAVE - 4.0, WAVE, s),
    "interferent": lambda s: s + 0.05 * band(575.0, 12.0),
    "scatter": lambda s: s + 0.06 * (WAVE / 400.0) ** -4,
    "scale": lambda s: 0.8 * s,
    "resolution": lambda s: gaussian_filter1d(s, 3.0, mode="nearest"),
}


@pytest.mark.parametrize("cause", SPOILT)
def test_what_does_not_match_says_why(made, cause):
    answer = made.quantify(SPOILT[cause](spectra(30.0, 7)[0]), method="profile")
    assert answer.verdict == "does not match" and answer.explanation.cause == cause
    assert answer.explanation.corrected == pytest.approx(30.0, rel=0.05)
    where, why = answer.why
    assert "in absorbance at" in where and " nm" in where and "µM" in why


@pytest.mark.parametrize("cause", [name for name in SPOILT if name != "resolution"])
def test_what_the_posterior_flags_says_why_too(made, cause):
    answer = made.quantify(SPOILT[cause](spectra(30.0, 7)[0]))
    assert answer.verdict == "does not match" or any("holds something" in note for note in answer.notes)
    assert answer.explanation.cause == cause and len(answer.why) == 2


@pytest.mark.parametrize("method", ["profile", "posterior"])
@pytest.mark.parametrize("cause", ["offset", "shift", "interferent"])
def test_many_answers_at_once_say_why_too(made, cause, method):
    rows = np.stack([SPOILT[cause](spectra(30.0, 7)[0]), spectra(30.0, 8)[0]])
    spoilt, healthy = made.calibration.quantify_many(rows, method=method)
    assert healthy.why == () and (spoilt.verdict != "does not match" or spoilt.explanation.cause == cause)
    if method == "profile":
        assert spoilt.why == made.quantify(rows[0], method=method).why and len(spoilt.why) == 2


@pytest.mark.parametrize("method", ["profile", "posterior"])
@pytest.mark.parametrize("c", [0.0, 30.0, 200.0])
def test_transmittance_is_told_and_no_dilution_advised(made, c, method):
    """Its size is no absorbance: 1.5 times the largest standard's here."""
    answer = made.quantify(10.0 ** -spectra(c, 7)[0], method=method)
    assert answer.verdict == "does not match" and answer.explanation.cause == "transmittance"
    assert "transmittance (0 to 1), where the standards look like absorbance" in answer.why[-1]
    assert not any("dilute" in one for one in (*answer.why, *answer.notes))


@pytest.mark.parametrize("times", [1.5, 2.0, 5.0])
def test_what_lies_above_the_range_is_no_other_cuvette(times):
    """A straight line carried on is the spectrum of the top standard in a longer cuvette: the answer is to dilute."""
    shape = band(450.0, 30.0) + 0.3 * band(560.0, 40.0)
    noise = 0.002 * np.random.default_rng(1).standard_normal((7, len(WAVE)))
    levels = np.append(LEVELS[1:], 80.0)
    line = Calibration(levels, 0.01 * levels[:, None] * shape + noise[:6], WAVE)
    answer = line.quantify(0.01 * times * levels.max() * shape + noise[6])
    assert answer.verdict == "outside calibrated range" and answer.why == ()


def test_causes_that_cannot_be_told_apart_are_all_named(made):
    """A band where the product absorbs, or more of everything: here the two differ by a concentration."""
    found = made.quantify(1.15 * spectra(30.0, 7)[0]).explanation
    assert {found.cause, *found.rivals} == {"interferent", "scale"}
    assert "would fit nearly as well" in found.why()


def test_a_healthy_answer_has_nothing_to_explain(made):
    answer = made.quantify(spectra(30.0, 7)[0])
    assert isinstance(answer, Quantification) and answer.verdict == "quantified"
    assert answer.explanation is None and answer.why == ()
    assert repr(answer).startswith("<quantified: ") and "µM" in repr(answer) and len(repr(answer)) < 120
    assert answer.overlay.concentration == answer.estimate
    assert float(np.sqrt(np.mean(answer.overlay.residual**2))) < 0.005


def test_dilution_is_undone_for_the_answer_and_not_for_the_overlay(made):
    answer = made.quantify(spectra(30.0, 7)[0], dilution=10.0)
    assert answer.estimate == pytest.approx(300.0, rel=0.05)
    assert answer.overlay.concentration == pytest.approx(30.0, rel=0.05)


def test_masked_values_are_left_out_of_overlay_and_cause(made):
    mask = (WAVE > 500.0) & (WAVE < 520.0)
    answer = made.quantify(np.where(mask, 9.9, SPOILT["offset"](spectra(30.0, 7)[0])), mask=mask)
    assert answer.explanation.cause == "offset"
    assert np.isnan(answer.overlay.measured[mask]).all() and np.isfinite(answer.overlay.residual[~mask]).all()


def test_causes_that_the_preprocessing_takes_away_are_not_named():
    derived = model(["savgol:9,2,1"])
    spectrum = spectra(30.0, 7)[0] + 0.3  # an offset that a derivative does not see
    assert derived.quantify(spectrum).verdict == "quantified"
    answer = derived.quantify(SPOILT["interferent"](spectrum))
    assert answer.verdict == "does not match" or any("holds something" in note for note in answer.notes)
    assert answer.explanation.cause == "interferent"
    assert "offset" not in answer.explanation.scores and "tilt" in answer.explanation.scores


def test_standards_that_make_no_curve_have_no_cause_of_a_misfit():
    rng = np.random.default_rng(3)
    both = np.repeat(np.arange(1.0, 9.0), 4)
    other = rng.uniform(0.0, 8.0, len(both))
    values = 0.02 * (both[:, None] * band(460.0, 20.0) + other[:, None] * band(560.0, 20.0))
    calibration = Calibration(both, values + 0.001 * rng.standard_normal(values.shape), WAVE)
    answer = calibration.quantify(values[5] + 0.001 * rng.standard_normal(len(WAVE)))
    assert calibration.curve_check.pls_is_better and answer.explanation is None and answer.why == ()


def test_command_python_and_json_say_the_same(made, tmp_path):
    made.save(tmp_path / "m.bundle")
    spectrum = np.round(SPOILT["interferent"](spectra(30.0, 7)[0]), 6)
    rows = "\n".join(f"{w:g},{v:.6f}" for w, v in zip(WAVE, spectrum, strict=True))
    (tmp_path / "u.csv").write_text(f"wavelength,u\n{rows}\n")
    call = ["quantify", tmp_path / "m.bundle", tmp_path / "u.csv"]
    result = CliRunner().invoke(
        app, [str(a) for a in (*call, "--json", tmp_path / "a.json", "--plot", tmp_path / "a.html")]
    )
    assert result.exit_code == 0, result.output
    why = made.quantify(spectrum).why
    assert len(why) == 2 and all(f"  cause: {one}\n" in result.output for one in why)
    (entry,) = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["unknowns"]
    assert entry["explanation"]["sentences"] == list(why) and entry["explanation"]["cause"] == "interferent"
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "further band at 574.8 nm" in page and "<svg role=" in page


@pytest.mark.parametrize("name", ["a.png", "a.svg", "a.html"])
def test_an_answer_is_drawn(made, tmp_path, name):
    path = made.quantify(spectra(30.0, 7)[0]).plot(tmp_path / name)
    assert path == tmp_path / name and path.stat().st_size > 5000


def test_the_figure_holds_unknown_prediction_and_residual(made):
    figure = made.quantify(SPOILT["offset"](spectra(30.0, 7)[0])).plot()
    left, right = figure.axes
    labels = [text.get_text() for text in left.get_legend().get_texts()]
    assert "unknown" in labels and any(text.startswith("predicted at 30") for text in labels)
    assert right.get_ylabel() == "unknown − predicted" and right.get_title(loc="left") == "looks like: offset"


def test_a_notebook_shows_words_and_figure_escaped(made):
    answer = made.quantify(SPOILT["offset"](spectra(30.0, 7)[0]), name="<b>")
    html = answer._repr_html_()
    assert "<b>" not in html and "does not match" in html and "aria-label=" in html


@pytest.mark.parametrize(("name", "said"), [("a.xyz", "figures are written as"), ("a.csv", "figures are written as")])
def test_a_figure_of_another_suffix_is_refused_before_any_work(tmp_path, name, said):
    result = CliRunner().invoke(app, ["quantify", "absent.bundle", "absent.csv", "--plot", str(tmp_path / name)])
    assert result.exit_code != 0 and said in result.stderr


def test_more_rows_than_a_figure_holds_are_refused(made, tmp_path):
    from geonode.report.answer import plot_answers

    answers = [made.quantify(spectra(30.0, 7)[0])] * 13
    with pytest.raises(InputError, match=r"1 to 12 answers, not 13; give a name that ends in \.html"):
        plot_answers(answers, tmp_path / "a.png")
