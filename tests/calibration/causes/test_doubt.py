"""Causes are not claimed where they cannot be known: of a fold's twins, behind bad standards, of too strong samples."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from geonode.calibration import Calibration
from geonode_runtime.causes.explainer import Explainer, ExportedAnswer
from geonode_runtime.shapes import NO_BLANK, PLAINLY_THERE
from geonode_runtime.verdicts import Quantification
from tests.calibration.assays import WAVE, folding, monotone, noisy, straight

LEVELS = np.array([0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0])


def band(at: float, width: float) -> np.ndarray:
    return np.exp(-0.5 * ((WAVE - at) / width) ** 2)


SPOILT = {
    "interferent": lambda s: s + 0.3 * band(WAVE[0] + 0.2 * np.ptp(WAVE), 0.03 * np.ptp(WAVE)),
    "offset": lambda s: s + 0.1,
    "tilt": lambda s: s + np.linspace(0.2, -0.05, len(WAVE)),
}


@pytest.mark.parametrize("kind", SPOILT)
def test_behind_a_fold_both_twins_are_named(kind: str) -> None:
    dense = np.arange(0.0, 61.0, 5.0)
    calibration = Calibration(dense, noisy(folding, dense, 0), WAVE, unit="ppb")
    for truth in (12.0, 48.0):
        found = calibration.quantify(SPOILT[kind](noisy(folding, truth, 9)[0]), method="profile").explanation
        assert found is not None and found.cause is not None and len(found.twins) >= 1
        told = sorted([found.corrected, *found.twins])
        assert min(abs(c - truth) for c in told) < 3.0
        assert " or ".join(f"{c:.3g} ppb" for c in told) in found.why("ppb")
        assert found.to_dict()["twins"] == list(found.twins)


@pytest.mark.parametrize("kind", SPOILT)
def test_without_a_fold_there_is_one(kind: str) -> None:
    calibration = Calibration(LEVELS, noisy(monotone, LEVELS, 0), WAVE, unit="ppb")
    found = calibration.quantify(SPOILT[kind](noisy(monotone, 25.0, 9)[0]), method="profile").explanation
    assert found is not None and found.twins == () and found.corrected == pytest.approx(25.0, abs=1.0)


def mislabelled(at: int, true: float) -> Calibration:
    sold = LEVELS.copy()
    sold[at] = true
    return Calibration(LEVELS, noisy(monotone, sold, 0), WAVE)


@pytest.mark.parametrize("kind", SPOILT)
@pytest.mark.parametrize(("at", "true"), [(3, 38.0), (5, 25.0), (4, 20.0)])
def test_behind_a_bad_standard_the_curve_of_the_others_tells_and_the_standard_is_named(kind, at, true) -> None:
    calibration = mislabelled(at, true)
    assert calibration.standing.contradictions
    answer = calibration.quantify(SPOILT[kind](noisy(monotone, 25.0, 9)[0]), method="profile")
    assert answer.verdict == "does not match" and answer.explanation.cause == kind
    assert answer.explanation.corrected == pytest.approx(25.0, abs=1.5)
    assert answer.why[-1].endswith(f"not without fault: the standard {LEVELS[at]:g} contradicts the others")


@pytest.mark.parametrize("kind", SPOILT)
def test_behind_standards_of_which_none_can_be_trusted_no_cause_is_looked_for(kind: str) -> None:
    few = np.array([0.0, 15.0, 30.0, 60.0])  # of four, none is left to learn from without one
    calibration = Calibration(few, noisy(straight, np.array([0.0, 15.0, 45.0, 60.0]), 0), WAVE)
    assert calibration.standing.contradictions and calibration.explainer.silent
    answer = calibration.quantify(SPOILT[kind](noisy(straight, 25.0, 9)[0]), method="profile")
    assert answer.explanation is None and answer.overlay.concentration >= 0.0
    if answer.verdict == "does not match":
        assert answer.why == ("no cause is looked for, for the standards are at fault themselves: the standard 30 "
                              "contradicts the others",)  # fmt: skip


@pytest.mark.parametrize("times", [1.5, 3.0, 10.0])
def test_a_sample_far_above_all_standards_may_be_too_concentrated(times: float) -> None:
    calibration = Calibration(LEVELS, noisy(monotone, LEVELS, 0), WAVE)
    strong = times * np.abs(noisy(monotone, 60.0, 9)[0]) + times * SPOILT["interferent"](np.zeros(len(WAVE)))
    answer = calibration.quantify(strong, method="profile")
    assert answer.verdict == "does not match" and "too concentrated" in answer.why[0]
    weak = calibration.quantify(SPOILT["interferent"](noisy(monotone, 25.0, 9)[0]), method="profile")
    assert weak.verdict == "does not match" and not any("too concentrated" in one for one in weak.why)


@pytest.mark.parametrize("true", [3.3, 5.0, 8.0])
def test_a_calibration_that_cannot_tell_is_not_blamed_on_the_measurement(true):
    c = np.array([0.0, 2.0, 5.0, 10.0, 20.0, 50.0])
    sold = np.where(c == 5.0, 9.0, c)  # the standard of 5 is of 9
    made = Calibration(c, noisy(straight, sold, 0, 0.0005), WAVE)
    answer = made.quantify(noisy(straight, true, 1, 0.0005)[0], method="profile")
    blank = made.quantify(noisy(straight, 0.0, 2, 0.0005)[0], method="profile")
    assert not any("from the blank" in why for why in blank.why)
    assert answer.verdict == "ambiguous" and any(note.endswith(NO_BLANK) for note in answer.notes)
    assert answer.why[0].endswith(f"from a blank, and these standards do not: {made.standing.fault}")
    far = [made.facts.shapes.above_blank(one.unknown.spectra[0]) for one in (answer, blank)]
    assert far[0] > PLAINLY_THERE and far[1] == 0.0


@pytest.mark.parametrize(
    "make", [lambda: mislabelled(3, 38.0), lambda: Calibration(LEVELS, noisy(monotone, LEVELS, 0), WAVE)]
)
def test_what_is_kept_of_the_standards_says_the_same(make) -> None:
    """An exported model's answer, from the arrays and facts in its file."""
    calibration = make()
    known = Explainer.from_state(*calibration.explainer.state())
    for change in SPOILT.values():
        answer = calibration.quantify(change(noisy(monotone, 25.0, 9)[0]), method="profile")
        kept = {one.name: getattr(answer, one.name) for one in fields(Quantification)}
        exported = ExportedAnswer(**kept, known=known, unknown=answer.unknown, name="u")
        assert exported.why == answer.why and exported.why
