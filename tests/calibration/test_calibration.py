"""The calibration: recovery, ambiguity, verdicts, dilution, matrix blanks, replicates, unknowns that are not fit."""

from __future__ import annotations

import numpy as np
import pytest

from geonode.calibration import GeodesicCalibrator, detection_limits, quality_check
from geonode.calibration.calibration import Calibration
from geonode.errors import InputError
from geonode_runtime.verdicts import VERDICTS
from tests.calibration.assays import LEVELS, WAVE, band, folding, monotone, noisy


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    return Calibration(LEVELS, noisy(monotone, LEVELS, 0), WAVE)


@pytest.fixture(scope="module")
def folded() -> Calibration:
    return Calibration(LEVELS, noisy(folding, LEVELS, 0), WAVE)


def test_monotone_unknowns_are_found_and_covered(calibration: Calibration) -> None:
    c = np.linspace(4.0, 56.0, 40)
    answers = calibration.quantify_many(noisy(monotone, c, 1))
    assert {a.verdict for a in answers} == {"quantified"}
    assert np.abs([a.estimate - x for a, x in zip(answers, c, strict=True)]).max() < 1.5
    answers = calibration.quantify_many(noisy(monotone, c, 1), method="profile")
    assert {a.verdict for a in answers} == {"quantified"}
    assert np.abs([a.estimate - x for a, x in zip(answers, c, strict=True)]).max() < 1.5
    covered = [any(k.contains(x) for k in a.components) for a, x in zip(answers, c, strict=True)]
    assert np.mean(covered) >= 0.7  # that sets are not too wide either: test_by_hand, over many calibrations
    assert all(sum(k.probability for k in a.components) == pytest.approx(1.0) for a in answers)


def test_folding_unknowns_are_ambiguous(folded: Calibration) -> None:
    """Each has a twin on the other side of the fold. None is quantified, and nearly all are ambiguous: the posterior
    may give one twin in ten less than a twentieth."""
    truths = np.tile([8.0, 9.0, 34.0], 5)
    answers = folded.quantify_many(noisy(folding, truths, 2))
    assert not any(answer.verdict == "quantified" for answer in answers)
    twins = [len(answer.verdict_components) >= 2 and answer.verdict == "ambiguous" for answer in answers]
    assert np.mean(twins) >= 0.8
    held = [any(k.contains(c) for k in a.verdict_components) for a, c in zip(answers, truths, strict=True)]
    assert all(held)


def test_sets_are_nested_and_agree_with_one_at_a_time(calibration: Calibration) -> None:
    spectra = noisy(monotone, [15.0, 45.0], 3)
    wide, narrow = (calibration.quantify_many(spectra, level)[0] for level in (0.95, 0.5))
    assert wide.low < narrow.low < narrow.estimate < narrow.high < wide.high
    alone = calibration.quantify(spectra[1], level=0.95)
    together = calibration.quantify_many(spectra, 0.95)[1]
    assert alone.estimate == pytest.approx(together.estimate) and alone.low == pytest.approx(together.low)
    assert set(calibration.quantify(spectra[0]).to_dict()) >= {"verdict", "components", "q", "t2", "prior"}


def test_blank_is_below_the_detection_limit_and_beyond_is_outside(calibration: Calibration) -> None:
    blank, beyond = calibration.quantify_many(noisy(monotone, [0.0, 72.0], 4))
    assert blank.verdict == "below detection limit"
    assert beyond.verdict == "outside calibrated range"
    assert {blank.verdict, beyond.verdict} <= set(VERDICTS)


def test_foreign_spectra_do_not_match(calibration: Calibration) -> None:
    foreign = monotone(20.0)[0] + 0.3 * band(520, 15)
    assert calibration.quantify(foreign).verdict == "does not match"
    answer = calibration.quantify(foreign, method="profile")
    assert answer.verdict == "does not match" and answer.q > answer.q_limit
    assert "too unlike what these standards predict" in answer.sentence()


def test_standards_match_their_own_calibration(calibration: Calibration, folded: Calibration) -> None:
    for one in (calibration, folded):
        assert "does not match" not in {a.verdict for a in one.quantify_many(one.spectra)}


def test_dilution_scales_and_its_uncertainty_widens(calibration: Calibration) -> None:
    spectrum = noisy(monotone, 30.0, 5)[0]
    plain, diluted = calibration.quantify(spectrum), calibration.quantify(spectrum, dilution=5.0)
    assert diluted.estimate == pytest.approx(5.0 * plain.estimate)
    assert diluted.high - diluted.low == pytest.approx(5.0 * (plain.high - plain.low))
    unsure = calibration.quantify(spectrum, dilution=5.0, dilution_std=0.25)
    assert unsure.high - unsure.low > diluted.high - diluted.low


def test_matrix_blank_takes_the_matrix_off(calibration: Calibration) -> None:
    matrix = 0.08 * band(420, 80)
    spectrum = noisy(monotone, 30.0, 6)[0] + matrix
    blank = noisy(monotone, [0.0, 0.0], 7) + matrix
    corrected = calibration.quantify(spectrum, blank=blank)
    assert corrected.estimate == pytest.approx(30.0, abs=1.5)
    assert any("matrix blank" in note for note in corrected.notes)


def test_replicates_narrow_the_set() -> None:
    calibration = Calibration(np.repeat(LEVELS, 3), noisy(monotone, np.repeat(LEVELS, 3), 8), WAVE)
    spectra = noisy(monotone, np.full(9, 33.0), 9)
    one, nine = calibration.quantify(spectra[0]), calibration.quantify(spectra, replicates=True)
    assert nine.replicates == 9 and nine.high - nine.low < one.high - one.low


def test_uncertain_standards_widen_the_set() -> None:
    spectra, unknown = noisy(monotone, LEVELS, 10), noisy(monotone, 25.0, 11)[0]
    exact = Calibration(LEVELS, spectra, WAVE).quantify(unknown)
    unsure = Calibration(LEVELS, spectra, WAVE, concentration_std=1.0).quantify(unknown)
    assert unsure.high - unsure.low > 1.5 * (exact.high - exact.low)


def test_without_a_blank_no_detection_limit_is_claimed() -> None:
    calibration = Calibration(LEVELS[1:], noisy(monotone, LEVELS[1:], 12), WAVE)
    assert any("no blank" in note for note in calibration.notes)
    answer = calibration.quantify(noisy(monotone, 3.0, 13)[0])
    assert answer.verdict != "below detection limit"


def test_what_standards_can_vouch_for_is_said(calibration: Calibration) -> None:
    assert calibration.attainable == pytest.approx(6 / 7)
    answer = calibration.quantify(noisy(monotone, 25.0, 14)[0], level=0.95)
    assert any("85.7 %" in note for note in answer.notes)


def test_other_grids_are_interpolated_or_refused(calibration: Calibration) -> None:
    fine = np.arange(290.0, 720.0, 1.0)
    exact = np.interp(fine, WAVE, monotone(30.0)[0])
    answer = calibration.quantify(exact, fine)
    own = calibration.quantify(monotone(30.0)[0]).estimate
    assert answer.estimate == pytest.approx(own, abs=0.1) and "taken from its own 430" in answer.notes[0]
    between = np.arange(290.5, 720.0, 1.0)
    other = calibration.quantify(np.interp(between, WAVE, monotone(30.0)[0]), between)
    assert other.estimate == pytest.approx(own, abs=0.1) and "interpolated" in other.notes[0]
    with pytest.raises(InputError, match="misses 300 to 340"):
        calibration.quantify(exact[50:], fine[50:])


def test_saturated_values_are_masked_and_said(calibration: Calibration) -> None:
    spectrum = noisy(monotone, 30.0, 15)[0]
    clipped = np.minimum(spectrum, 0.55)
    answer = calibration.quantify(clipped, saturation=0.55)
    assert answer.masked > 5 and answer.estimate == pytest.approx(30.0, abs=3.0)
    assert any("saturated" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda x: np.where(np.arange(len(x)) == 3, np.nan, x), "is nan at wavelength 312"),
        (lambda x: 0.0 * x, "zero at every wavelength"),
        (lambda x: 1000.0 * x, "another unit"),
        (lambda x: x[:-5], "96 wavelengths and the standards have 101"),
    ],
)
def test_unfit_unknowns_are_refused(calibration: Calibration, change, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        calibration.quantify(change(monotone(30.0)[0]))


@pytest.mark.parametrize("options", [{"level": 95}, {"dilution": 0.0}, {"dilution": 2.0, "dilution_std": 3.0}])
def test_bad_options_are_refused(calibration: Calibration, options: dict) -> None:
    with pytest.raises(InputError):
        calibration.quantify(monotone(30.0)[0], **options)


def test_bad_standards_are_refused() -> None:
    with pytest.raises(InputError, match="at least 3"):
        Calibration(LEVELS[:2], monotone(LEVELS[:2]), WAVE)
    with pytest.raises(InputError, match="NaN or infinite"):
        Calibration(LEVELS, np.full((6, len(WAVE)), np.nan), WAVE)
    with pytest.raises(InputError, match="concentration_std"):
        Calibration(LEVELS, monotone(LEVELS), WAVE, concentration_std=[1.0, 2.0])


def test_state_round_trip(calibration: Calibration) -> None:
    again = Calibration.from_state(*calibration.state())
    spectrum = noisy(monotone, 22.0, 16)[0]
    assert again.quantify(spectrum).to_dict() == calibration.quantify(spectrum).to_dict()


def test_gasoline_is_no_curve_and_points_to_pls(shared_data) -> None:
    from geonode.data import load_standards

    calibration = Calibration.from_dataset(load_standards(shared_data / "series" / "nir_gasoline.csv"))
    assert not calibration.curve_check.is_curve
    assert any(n.startswith("use PLS: ") and "the curve predicts 0 %" in n and " 0.22" in n for n in calibration.notes)
    assert calibration.quantify(calibration.spectra[20]).verdict == "no curve"


def test_replicates_that_disagree_widen_the_set_and_are_named(calibration: Calibration) -> None:
    same = noisy(monotone, np.full(3, 30.0), 20)
    apart = noisy(monotone, np.array([27.5, 30.0, 32.5]), 20)
    agreed, scattered = (calibration.quantify(x, replicates=True) for x in (same, apart))
    assert not any("replicates scatter" in note for note in agreed.notes)
    assert any("replicates scatter" in note for note in scattered.notes)
    assert scattered.high - scattered.low > 2.0 * (agreed.high - agreed.low)


def test_a_spectrum_that_does_not_match_has_no_finite_interval(calibration: Calibration) -> None:
    said = calibration.quantify(monotone(20.0)[0] + 0.3 * band(520, 15)).to_dict()
    assert said["estimate"] is None and said["interval"] == [None, None] and said["components"] == []


def test_an_ambiguous_interval_encloses_every_component(folded: Calibration) -> None:
    answer = folded.quantify(noisy(folding, 9.0, 21)[0])
    low, high = answer.to_dict()["interval"]
    assert low == min(k.low for k in answer.components) and high == max(k.high for k in answer.components)


def _finite(value) -> list[float]:
    """Every finite end of an interval or standard deviation in what is written, however deep."""
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if "interval" in k or k in ("std", "components", "components_95")}
        return [x for v in kept.values() for x in _finite(v)]
    if isinstance(value, list | tuple):
        return [x for v in value for x in _finite(v)]
    return [] if value is None or isinstance(value, str) else [value]


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_fewer_than_four_standards_claim_no_interval_at_any_level(count: int, level: float) -> None:
    levels = LEVELS[[0, 5, 2][:count]]
    made = Calibration(levels, noisy(monotone, levels, 30), WAVE, minimum_levels=2)
    spectra = noisy(monotone, [7.0, 30.0, 55.0], 31)
    for answer in made.quantify_many(spectra, level):
        said = answer.to_dict()
        assert _finite(said) == [] and said["interval_rests_on"] is None
        assert (
            f"no interval can be claimed from {count} standards" in answer.sentence()
            and " to " not in answer.sentence()
        )
        assert any("no interval can be claimed" in note for note in answer.notes)
    assert any(f"{100 * count / (count + 1):.1f} %" in note for note in made.notes)
    assert detection_limits(made).detection is None and np.isinf(made.held_out.interval).all()
    check = quality_check(made, spectra[1], 30.0)
    assert (check.low, check.high, check.drift_low, check.drift_high) == (None,) * 4
    assert "no limits can be claimed" in check.sentence()
    estimator = GeodesicCalibrator(level=level).fit(
        np.repeat(made.spectra, 2, axis=0), np.repeat(levels[np.argsort(levels)], 2)
    )
    assert np.isinf(estimator.predict_interval(spectra)).all()


@pytest.mark.parametrize(
    ("count", "level", "claimed"), [(4, 0.8, True), (4, 0.81, False), (6, 0.85, True), (6, 0.95, False)]
)
def test_above_the_attainable_confidence_only_the_model_speaks(count: int, level: float, claimed: bool) -> None:
    levels = LEVELS[np.linspace(0, 5, count).round().astype(int)]
    made = Calibration(levels, noisy(monotone, levels, 32), WAVE)
    answer = made.quantify_many(noisy(monotone, 25.0, 33), level)[0]
    said, own = answer.to_dict(), list(answer.enclosing)
    assert said["interval"] == (own if claimed else [None, None])
    assert said["model_interval"] == ([None, None] if claimed else own)
    assert (
        said["interval_rests_on"] == ("standards" if claimed else "model") and said["components_95_rest_on"] == "model"
    )
    assert ("alone vouch for" in answer.sentence()) != claimed
    assert any(f"{100 * count / (count + 1):.1f} %" in note for note in answer.notes) != claimed
    ends = (
        GeodesicCalibrator().fit(made.spectra, made.concentrations).predict_interval(noisy(monotone, 25.0, 33), level)
    )
    assert np.isinf(ends).all() != claimed
    assert "95 % by the model" in quality_check(made, noisy(monotone, 25.0, 33), 25.0).sentence()


@pytest.mark.parametrize("level", [0.0, 1.0, 1.5])
def test_a_level_that_is_none_is_refused_for_many_as_for_one(level: float) -> None:
    calibration = Calibration(LEVELS, noisy(monotone, LEVELS, 0), WAVE)
    with pytest.raises(InputError, match="level of the set must lie between 0 and 1"):
        calibration.quantify_many(noisy(monotone, [20.0, 30.0], 1), level)
