"""Where sets and learned limits say nothing, the shape of a spectrum does: no blank's, beyond the highest standard, or
none of theirs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geonode.calibration import Calibration
from geonode_runtime.sets import Component, ConcentrationSet
from geonode_runtime.shapes import NO_BLANK, PLAINLY_THERE, Shapes, carried_on, judged_by_shape
from tests.calibration.assays import LEVELS, NOISE, WAVE, band, folding, monotone, noisy, straight

FEW = np.array([10.0, 20.0, 30.0, 60.0])


@pytest.fixture(scope="module", params=[monotone, straight], ids=["saturating", "straight"])
def assay(request):
    return request.param, Calibration(LEVELS, noisy(request.param, LEVELS, 0), WAVE, unit="µM")


@pytest.mark.parametrize("times", [1.3, 1.5, 3.0, 5.0, 20.0])
def test_beyond_the_highest_standard_it_says_dilute(assay, times):
    truth, calibration = assay
    answer = calibration.quantify(noisy(truth, 60.0 * times, 3)[0])
    assert answer.verdict == "outside calibrated range"
    assert any("above the standards' range" in note or "beyond the highest" in note for note in answer.notes)
    assert sum("dilute" in said for said in (answer.sentence(), *answer.notes, *answer.why)) == 1
    assert answer.high is None and answer.low >= 60.0 - 1e-9
    if times >= 3.0:
        assert answer.sentence("µM") == "outside calibrated range: above 60 µM, the highest standard"
        assert answer.to_dict()["interval"] == [60.0, None]


def test_dilution_is_undone_in_what_it_lies_above():
    calibration = Calibration(LEVELS, noisy(straight, LEVELS, 0), WAVE, unit="µM")
    answer = calibration.quantify(noisy(straight, 300.0, 3)[0], dilution=10.0)
    assert answer.low == pytest.approx(600.0) and answer.high is None


FOREIGN = {
    "a band of something else": lambda x: x + 0.3 * band(520, 15),
    "an offset": lambda x: x + 0.1,
    "scattering": lambda x: x + 0.3 * (WAVE / 300.0) ** -4,
    "a shifted axis": lambda x: np.interp(WAVE + 12.0, WAVE, x),
}


@pytest.mark.parametrize("change", FOREIGN.values(), ids=FOREIGN)
def test_what_is_foreign_does_not_become_a_large_amount(assay, change):
    truth, calibration = assay
    spectrum = change(noisy(truth, 30.0, 4)[0])
    assert calibration.quantify(spectrum, method="profile").verdict == "does not match"
    answer = calibration.quantify(spectrum)
    assert answer.verdict == "does not match" or any("holds something" in note for note in answer.notes)


def test_a_curve_that_turns_back_has_no_beyond():
    shapes = Shapes(folding(LEVELS), np.full(len(WAVE), NOISE), True)
    assert shapes.beyond_top(1.5 * folding(20.0)[0]) == 0.0


def from_nothing(c) -> np.ndarray:
    """A dye without any background, whose band broadens: few standards of it leave all limits wide."""
    c = np.atleast_1d(c)[:, None]
    return 0.01 * c * np.exp(-0.5 * ((WAVE - 600.0) / (40.0 + 0.4 * c)) ** 2)


ALIEN = {
    "solvent": lambda rng: NOISE * rng.standard_normal(len(WAVE)),
    "noise": lambda rng: 5.0 * NOISE * rng.standard_normal(len(WAVE)),
    "another dye": lambda rng: 0.3 * band(420, 30) + NOISE * rng.standard_normal(len(WAVE)),
    "scattering": lambda rng: 0.3 * (WAVE / 300.0) ** -4 + NOISE * rng.standard_normal(len(WAVE)),
}


@pytest.mark.parametrize("alien", ALIEN.values(), ids=ALIEN)
@pytest.mark.parametrize("levels", [FEW, FEW[:3]], ids=["four", "three"])
def test_few_standards_give_no_concentration_to_what_is_none_of_theirs(alien, levels):
    calibration = Calibration(levels, noisy(from_nothing, levels, 0), WAVE)
    answer = calibration.quantify(alien(np.random.default_rng(3)))
    assert answer.verdict == "does not match" and answer.to_dict()["estimate"] is None


@pytest.mark.parametrize("levels", [FEW, FEW[:3], np.append(0.0, FEW)], ids=["four", "three", "with a blank"])
def test_samples_of_few_standards_are_not_called_alien(levels):
    calibration = Calibration(levels, noisy(from_nothing, levels, 0), WAVE)
    within = noisy(from_nothing, np.linspace(levels[0], levels[-1], 40), 5)
    assert not any(answer.verdict == "does not match" for answer in calibration.quantify_many(within))
    assert calibration.quantify(noisy(from_nothing, 5.0, 6)[0]).verdict != "does not match"


def test_a_blank_stays_a_blank():
    levels = np.append(0.0, FEW)
    calibration = Calibration(levels, noisy(from_nothing, levels, 0), WAVE)
    answer = calibration.quantify(noisy(from_nothing, 0.0, 7)[0])
    assert answer.verdict == "below detection limit"


def steep(c) -> np.ndarray:
    """Most of the response lies below the first standard above the blank."""
    c = np.atleast_1d(c)[:, None]
    return 0.05 + c / (c + 3.0) * band(600, 40)


@pytest.fixture(scope="module")
def far_first() -> Calibration:
    levels = np.array([0.0, 40.0, 50.0, 60.0])
    return Calibration(levels, noisy(steep, levels, 1), WAVE, unit="µM")


@pytest.mark.parametrize("method", [None, "profile"], ids=["posterior", "profile"])
def test_a_strong_spectrum_before_a_far_first_standard_is_no_blanks(far_first, method):
    """Hundreds of times the noise from the blank's: zero may be in the set, yet it is not called a blank's."""
    strong, weak = noisy(steep, [1.0, 2.0], 5), noisy(steep, [0.0, 0.0, 0.01], 6)
    for answer in far_first.quantify_many(strong, method=method):
        from_zero = answer.verdict_components[0].low == 0.0
        assert answer.verdict == ("ambiguous" if from_zero else "quantified")
        assert any(note.endswith(NO_BLANK) for note in answer.notes) == from_zero
        assert not any("cannot be told from a blank" in note for note in answer.notes)
    for answer in far_first.quantify_many(weak, method=method):
        assert answer.verdict == "below detection limit"
        assert "the 95 % set includes zero: it cannot be told from a blank" in answer.notes


def test_whatever_the_sets_say_a_strong_spectrum_is_no_blanks(far_first):
    """The rule alone, which both methods and the runtime share; without a blank at the lowest level it is silent."""
    facts, strong = far_first.facts, noisy(steep, [1.0], 5)[0]
    one = ConcentrationSet(0.95, (Component(0.0, 9.0, False, False, 2.0, 0.0, 1.0, 3.0, 2.0),), 0.0, 1.0)
    said, sets = ("below detection limit", ("includes zero",)), (one, one)
    (verdict, (note,)), _ = judged_by_shape(facts.shapes, facts.rules, strong, None, said, sets)
    assert verdict == "ambiguous" and note.endswith(NO_BLANK)
    assert judged_by_shape(facts.shapes, facts.rules, far_first.spectra[0], None, said, sets)[0] == said
    elsewhere = replace(facts.rules, lowest=-10.0)
    assert judged_by_shape(facts.shapes, elsewhere, strong, None, said, sets)[0] == said


def test_what_carries_the_standards_on_is_told_from_what_is_above_by_verdict_alone(assay):
    """Noise may be said to lie above the range; nothing of it is the standards', of a genuine sample nearly all is."""
    truth, calibration = assay
    facts, said = calibration.facts, "outside calibrated range"
    top = facts.rules.highest
    above, inside = (
        ConcentrationSet(0.95, (Component(low, 9.0 * top, False, False, top, 0.0, 1.0, top, 1.0),), 0.0, 1.0)
        for low in (top, 0.9 * top)
    )
    genuine, noise = noisy(truth, 2.0 * top, 7)[0], 5.0 * NOISE * np.random.default_rng(8).normal(size=len(WAVE))

    def carried(spectrum, verdict=said, at_95=above, shapes=facts.shapes) -> bool:
        return carried_on(shapes, facts.rules, spectrum, None, verdict, at_95) is not None

    assert carried(genuine) and not carried(noise) and not carried(genuine + 0.3 * band(520, 15))
    assert not (carried(genuine, "ambiguous") or carried(genuine, said, inside) or carried(genuine, shapes=None))


@pytest.mark.parametrize("times", [1.0, 2.0, 5.0, 10.0])
def test_noise_of_the_standards_grows_as_they_are_carried_on(times):
    """By hand: of levels 0 and 1 on a straight line a sample at t leaves x − t m₁ + (t − 1) m₀."""
    levels = np.array([[0.0], [1.0]]) * band(520, 40)
    shapes = Shapes(levels, np.full(len(WAVE), 1e-4), False)
    assert shapes.carried_noise(times * levels[1]) == pytest.approx(
        (1.0 + times**2 + (times - 1.0) ** 2) / 2.0, rel=1e-3
    )


def test_no_blanks_is_a_part_of_the_step_and_many_times_the_noise():
    """Both: half of a step that is noise is a blank's, and so is a sliver of a long step."""
    blank, first = np.zeros(len(WAVE)), band(600, 40)
    size = float(np.linalg.norm(first))
    for noise, share, there in ((0.5, 0.9, 0.0), (0.001, 0.19, 0.0), (0.001, 0.21, 0.21), (0.001, -0.5, 0.0)):
        shapes = Shapes(np.stack([blank, first, 2.0 * first]), np.full(len(WAVE), noise), False)
        times = shapes.above_blank(share * first)
        assert (times > PLAINLY_THERE) == (there > 0.0)
        if there:
            assert times == pytest.approx(there * size / noise)
    masked = np.arange(len(WAVE)) % 3 > 0
    there = np.where(masked, 0.3 * first, 9.0)
    assert shapes.above_blank(there, masked) == pytest.approx(0.3 * np.linalg.norm(first[masked]) / 0.001)
