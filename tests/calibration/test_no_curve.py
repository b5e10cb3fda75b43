"""Where several things vary besides the analyte the curve is the wrong model: the verdict says so and PLS answers."""

from __future__ import annotations

import json
from functools import lru_cache

import numpy as np
import pytest

import geonode
from geonode.calibration import Calibration
from geonode.data import SpectralDataset, simulate_assay
from geonode.report.calibration_report import CalibrationReport
from geonode.report.conclusion import Conclusion
from geonode.validation.inverse_comparison import evaluate_inverse
from tests.calibration.assays import LEVELS, WAVE, band, folding, monotone, noisy, straight
from tests.export.in_torch import in_torch

MANY = np.linspace(0.0, 60.0, 13)


def several(c: np.ndarray, seed: int, analytes: int, drift: bool = False) -> np.ndarray:
    """Beer and Lambert with ``analytes`` interferents of changing amount, or with one that follows the day's course."""
    rng = np.random.default_rng(seed)
    spectra = straight(c)
    for k in range(analytes):
        amount = 0.6 * rng.random(len(c)) if not drift else 0.6 * np.sin(np.arange(len(c)) * (1.1 + k)) ** 2
        spectra = spectra + amount[:, None] * band(560.0 + 25.0 * k, 45.0)
    return spectra + 0.0005 * rng.standard_normal(spectra.shape)


VARIANTS = {
    "one interferent": (MANY, {"analytes": 1}),
    "two interferents": (MANY, {"analytes": 2}),
    "a drift of the day": (MANY, {"analytes": 1, "drift": True}),
    "no blank, nine levels": (MANY[4:], {"analytes": 1}),
    "twenty levels": (np.linspace(0.0, 60.0, 20), {"analytes": 2}),
}


@lru_cache
def calibrated(name: str) -> Calibration:
    levels, options = VARIANTS[name]
    return Calibration(levels, several(levels, 3, **options), WAVE, unit="mM")


@pytest.mark.parametrize("name", VARIANTS)
def test_pls_answers_with_its_own_value_and_error(name: str) -> None:
    calibration = calibrated(name)
    assert calibration.curve_check.pls_is_much_better
    check = calibration.curve_check
    (said,) = (note for note in calibration.notes if note.startswith("use PLS: PLS finds the "))
    own, (curve, pls) = check.posterior_squares[0], check.squares
    for square, words in (
        (pls, "with an error of {} mM"),
        (curve, "the curve with {} mM"),
        (own, "({} mM with the posterior, which would answer)"),
    ):
        assert words.format(f"{np.sqrt(square.mean()):.3g}") in said
    assert "depend on more" not in said and "More may vary in these samples" in said
    assert (
        check.errors(" mM") in calibration.standing.fault and check.errors(" mM") in Conclusion(calibration).headline()
    )
    truth = np.random.default_rng(5).uniform(25.0, 55.0, 8)
    answers = calibration.quantify_many(several(truth, 6, **VARIANTS[name][1]))
    for answer, c in zip(answers, truth, strict=True):
        assert answer.verdict == "no curve" and "use PLS" in answer.notes[0] and "use PLS" in answer.sentence("mM")
        assert answer.estimate == pytest.approx(c, abs=6.0 * calibration.curve_check.pls.error)
        data = answer.to_dict()
        assert data["estimate"] == answer.estimate and data["interval"] == [answer.low, answer.high]
        assert data["pls"]["rmsecv"] == calibration.curve_check.pls.error
    covered = [a.low <= c <= a.high for a, c in zip(answers, truth, strict=True)]
    assert np.mean(covered) >= 0.5


SINGLE = {"saturating": monotone, "folding": folding, "straight": straight}


@pytest.mark.parametrize("truth", SINGLE.values(), ids=SINGLE)
@pytest.mark.parametrize(
    "levels", [LEVELS, np.linspace(0.0, 60.0, 9), np.linspace(0.0, 60.0, 18)], ids=["6", "9", "18"]
)
def test_one_analyte_is_not_called_no_curve(truth, levels: np.ndarray) -> None:
    """The false alarm rate over a few seeds of each; of a straight line both are as good."""
    alarms = [
        Calibration(levels, noisy(truth, levels, seed, 0.004), WAVE).curve_check.pls_is_better
        for seed in range(4 if len(levels) < 18 else 2)
    ]
    assert not any(alarms)


def test_the_demo_is_not_called_no_curve() -> None:
    for seed in range(4):
        assert not Calibration.from_dataset(simulate_assay(seed=seed)).curve_check.pls_is_better


def test_a_foreign_spectrum_does_not_match_and_gets_no_value() -> None:
    calibration = calibrated("one interferent")
    answer = calibration.quantify(several(np.array([30.0]), 7, 1)[0] + 3.0 * band(400.0, 8.0))
    assert answer.verdict == "does not match" and answer.pls is None and answer.to_dict()["estimate"] is None


def test_what_lies_beyond_the_range_or_at_a_blank_is_said() -> None:
    calibration = calibrated("one interferent")
    beyond = calibration.quantify(several(np.array([75.0]), 8, 1)[0])
    assert beyond.estimate == pytest.approx(75.0, abs=3.0)
    assert "outside the standards' range 0 to 60: an extrapolation; dilute it into" in " ".join(beyond.notes)
    blank = calibration.quantify(several(np.array([0.0]), 9, 1)[0])
    assert "cannot be told from a blank" in " ".join(blank.notes)


@pytest.mark.parametrize("masked", [np.s_[:10], np.s_[50:60], np.s_[::7]], ids=["an end", "inside a band", "scattered"])
def test_masked_wavelengths_are_filled_in(masked) -> None:
    calibration = calibrated("two interferents")
    spectrum = several(np.array([40.0]), 10, 2)[0]
    mask = np.zeros(len(WAVE), dtype=bool)
    mask[masked] = True
    spoilt = np.where(mask, 0.3, spectrum)
    whole, answer = calibration.quantify(spectrum), calibration.quantify(spoilt, mask=mask)
    assert answer.verdict == "no curve" and answer.masked == mask.sum()
    assert answer.estimate == pytest.approx(whole.estimate, abs=2.0 * calibration.curve_check.pls.error)


def test_a_dilution_scales_value_and_interval() -> None:
    calibration = calibrated("two interferents")
    spectrum = several(np.array([40.0]), 10, 2)[0]
    one, ten = calibration.quantify(spectrum), calibration.quantify(spectrum, dilution=10.0)
    once = np.array([one.estimate, one.low, one.high, one.std])
    assert np.array([ten.estimate, ten.low, ten.high, ten.std]) == pytest.approx(10.0 * once)


def test_bundle_report_export_and_comparison_say_the_same(tmp_path) -> None:
    levels, options = VARIANTS["no blank, nine levels"]
    dataset = SpectralDataset(several(levels, 3, **options), levels, WAVE)
    model = geonode.fit(dataset, geonode.GeodesicConfig(predictor="gp"))
    spectrum = several(np.array([33.0]), 11, 1)[0]
    own = model.quantify(spectrum)
    assert own.verdict == "no curve"
    model.save(tmp_path / "assay.bundle")
    loaded = geonode.load(tmp_path / "assay.bundle").quantify(spectrum)
    served = in_torch(model)
    mask = np.arange(len(WAVE)) < 6
    for one, other in (
        (own, loaded),
        (own, served.quantify(spectrum)),
        (model.quantify(spectrum, mask=mask), served.quantify(spectrum, mask=mask)),
    ):
        assert other.verdict == one.verdict and other.sentence() == one.sentence()
        assert [other.estimate, other.low, other.high] == pytest.approx([one.estimate, one.low, one.high], rel=1e-9)
    report = CalibrationReport(model.calibration)
    assert "use PLS" in report.to_markdown() and "use PLS" in " ".join(json.loads(report.to_json())["notes"])
    found = evaluate_inverse(dataset, methods=["geonode", "pls"])
    inner = [row for row in found["geonode"]["per_level"] if not row["edge"]]
    assert np.mean([row["verdicts"] == ["no curve"] for row in inner]) > 0.8
    assert found["geonode"]["rmsep_percent_interior"] < 2.0 * found["pls"]["rmsep_percent_interior"]


def test_on_real_series_where_several_analytes_vary(shared_data) -> None:
    from geonode.data import load_standards

    calibration = Calibration.from_dataset(load_standards(shared_data / "series" / "ir_fermentation_glucose.csv"))
    answer = calibration.quantify(calibration.spectra[-2])
    assert answer.verdict == "no curve" and answer.estimate == pytest.approx(calibration.concentrations[-2], rel=0.1)


# --- evidence that PLS is closer, but too little of it for a verdict --------------------------------------------------

LITTLE = {
    "six levels, noisy": (LEVELS, {"seed": 0, "size": 0.1, "noise": 0.01}),
    "six levels, noisy, others": (LEVELS, {"seed": 3, "size": 0.1, "noise": 0.01}),
    "four levels": (np.linspace(0.0, 60.0, 4), {"seed": 0, "size": 0.1, "noise": 0.002}),
    "five levels": (np.linspace(0.0, 60.0, 5), {"seed": 3, "size": 0.05, "noise": 0.005}),
    "nine levels": (np.linspace(0.0, 60.0, 9), {"seed": 5, "size": 0.1, "noise": 0.002}),
}


def little(name: str) -> SpectralDataset:
    levels, how = LITTLE[name]
    rng = np.random.default_rng(how["seed"])
    spectra = straight(levels) + how["size"] * rng.random(len(levels))[:, None] * band(560.0, 45.0)
    return SpectralDataset(spectra + how["noise"] * rng.standard_normal(spectra.shape), levels, WAVE)


@pytest.mark.parametrize("name", LITTLE)
def test_a_pls_that_is_closer_than_the_curve_is_told_where_the_curve_answers(name) -> None:
    """The posterior reads PLS's errors too: where it keeps up there is nothing to say beside its answers."""
    calibration = Calibration.from_dataset(little(name))
    check, alone = calibration.curve_check, calibration.curve_check.of_curve
    assert alone.pls_is_closer and not alone.pls_is_better
    answer = calibration.quantify(straight([33.0])[0], method="profile")
    assert "compare them with PLS" in answer.notes[-1] and answer.verdict != "no curve"
    own, pls = (np.sqrt(one.mean()) for one in check.posterior_squares)
    assert check.pls_is_closer == (pls < 0.5 * own)
    notes = calibration.quantify(straight([33.0])[0]).notes
    assert any("compare them with PLS" in note for note in notes) == check.pls_is_closer


def test_a_pls_that_is_closer_than_what_answers_is_told_with_both_errors_wherever_answers_are(tmp_path) -> None:
    model = geonode.fit(little("four levels"), geonode.GeodesicConfig(predictor="gp"))
    check = model.calibration.curve_check
    assert check.pls_is_closer and not check.pls_is_better
    curve, pls = (np.sqrt(one.mean()) for one in check.squares)
    (said,) = (note for note in model.calibration.notes if "compare them with PLS" in note)
    assert f"{pls:.3g}" in said and f"{curve:.3g}" in said and pls < 0.5 * curve
    assert said in model.conclusion.wrong() and said in CalibrationReport(model.calibration).to_markdown()
    spectrum = straight([33.0])[0]
    answers = [model.quantify(spectrum), *model.calibration.quantify_many(spectrum[None])]
    answers += [model.calibration.quantify(spectrum, method="posterior")]
    model.save(tmp_path / "assay.bundle")
    answers += [geonode.load(tmp_path / "assay.bundle").quantify(spectrum)]
    answers += [in_torch(model).quantify(spectrum)]
    assert "with the posterior, which answers)" in said
    assert [answer.notes[-1] for answer in answers] == [said] * len(answers) and "no curve" not in {
        a.verdict for a in answers
    }


@pytest.mark.parametrize("noise", [0.0, 1e-6, 1e-5])
@pytest.mark.parametrize("levels", [4, 6, 12])
def test_a_straight_line_almost_without_noise_is_a_curve(noise, levels) -> None:
    """PLS is exact there and the curve nearly: an error below 1 % of the range is no reason to refuse a curve."""
    at = np.linspace(0.0, 60.0, levels)
    check = Calibration(at, noisy(straight, at, 1, noise), WAVE).curve_check
    assert not check.pls_is_better and not check.pls_is_closer


@pytest.mark.parametrize("name", ["two interferents", "no blank, nine levels"])
def test_the_regressor_predicts_what_quantify_answers(name) -> None:
    from geonode import GeodesicCalibrator

    levels, options = VARIANTS[name]
    fitted = GeodesicCalibrator().fit(several(levels, 3, **options), levels)
    unknowns = several(np.array([30.0, 45.0]), 12, **options)
    answers = fitted.quantify(unknowns)
    assert [answer.verdict for answer in answers] == ["no curve"] * 2
    assert fitted.predict(unknowns) == pytest.approx([answer.estimate for answer in answers])
    assert fitted.predict_interval(unknowns) == pytest.approx(np.array([[a.low, a.high] for a in answers]))


def test_a_real_series_in_which_time_goes_on_beside_the_particles(shared_data) -> None:
    from geonode.data import load_standards

    calibration = Calibration.from_dataset(load_standards(shared_data / "series" / "nist_np_time.csv"))
    answer = calibration.quantify(calibration.spectra[-2])
    assert calibration.curve_check.pls_is_better or any("compare them with PLS" in note for note in answer.notes)
