"""Sentences of the page that are the library's, word for word: signals far too small, diluted samples, flanks."""

from __future__ import annotations

import numpy as np
import pytest

from geonode.report.browser.data import answer_data
from geonode_runtime.remedies import SILENT, VerdictRules, declined
from tests.calibration.assays import LEVELS, WAVE, band, folding, monotone, noisy, straight
from tests.export.in_torch import in_torch
from tests.report.test_answers import as_json, asked, compare, fitted, needs_node, of_library

TRUTHS = {"saturating": monotone, "folding": folding, "straight": straight}
SPECTRA = {
    "a thousandth": lambda truth: 1e-3 * noisy(truth, [25.0], 16),
    "a fortieth of the smallest": lambda truth: 0.02 * noisy(truth, [5.0], 17),
    "noise of an empty beam": lambda truth: 1e-4 * np.random.default_rng(18).standard_normal((1, len(WAVE))),
    "diluted": lambda truth: noisy(truth, [66.0], 17),
    "concentrated": lambda truth: noisy(truth, [66.0], 18),
    "far above": lambda truth: noisy(truth, [600.0], 19),
    "large and strange": lambda truth: noisy(truth, [100.0], 3) + 0.3 * band(400.0, 8.0),
    "strange and large": lambda truth: noisy(truth, [30.0], 3) + 3.0 * band(400.0, 8.0),
    "a spike": lambda truth: noisy(truth, [30.0], 21) * np.where(np.arange(len(WAVE)) == 44, 1000.0, 1.0),
    "upside down": lambda truth: -noisy(truth, [30.0], 22),
    "a flank": lambda truth: noisy(truth, [30.0], 20) + 0.3 * band(WAVE[-1] + 20.0, 20.0),
}
OPTIONS = {"diluted": {"dilution": 5.0, "dilutionStd": 0.1}, "concentrated": {"dilution": 0.5}}
ADVISED = {
    "saturating": {"large and strange": 0, "strange and large": 1},
    "folding": {"large and strange": 0, "strange and large": 1},
    "straight": {"large and strange": 1, "strange and large": 1},
}
"""How often it is said to dilute what does not match: once, where it is that large or would lie above the range."""


@needs_node
@pytest.mark.parametrize("name", TRUTHS)
def test_the_page_says_what_the_library_says(name):
    model = fitted(TRUTHS[name])
    unknowns = [
        {
            "name": said,
            "wavelengths": WAVE,
            "values": made(TRUTHS[name]),
            "mask": None,
            "options": OPTIONS.get(said, {}),
        }
        for said, made in SPECTRA.items()
    ]
    theirs = {one["name"]: of_library(model, one) for one in unknowns}
    for mine, one in zip(asked(answer_data(model), [as_json(one) for one in unknowns]), theirs.values(), strict=True):
        compare(model, mine, one)
    for small in list(SPECTRA)[:3]:
        assert (
            theirs[small].startswith(f"{small} reaches ")
            and "(an empty beam, water or a closed shutter)" in theirs[small]
        )
    diluted, concentrated = (" ".join(theirs[one].notes) for one in ("diluted", "concentrated"))
    assert "the result is 5 times what was in the cuvette" in diluted and "dilute further" in diluted
    assert "the result is 0.5 times what was in the cuvette" in concentrated and "further" not in concentrated
    assert "the flank of a band beyond the wavelengths" in " ".join(theirs["a flank"].why)
    said = {k: (theirs[k].sentence(), *theirs[k].notes, *theirs[k].why) for k in (*ADVISED[name], "far above")}
    advised = {k: sum("dilute" in one for one in every) for k, every in said.items()}
    assert advised == {**ADVISED[name], "far above": 1}


def answered_alike(model, spectra):
    """The library's answers to unknowns, a spectrum by its name; the page and an exported model give the same."""
    exported = in_torch(model)
    unknowns = [
        {"name": name, "wavelengths": WAVE, "values": one[None], "mask": None, "options": {}}
        for name, one in spectra.items()
    ]
    found = []
    for mine, one in zip(asked(answer_data(model), [as_json(one) for one in unknowns]), unknowns, strict=True):
        theirs = of_library(model, one)
        compare(model, mine, theirs)
        also = exported.quantify(one["values"][0], WAVE, name=one["name"])
        assert (also.verdict, also.notes, also.why) == (theirs.verdict, theirs.notes, theirs.why)
        found.append(theirs)
    return found


@needs_node
def test_standards_that_do_not_respond_quantify_nothing_and_nothing_is_advised_for_the_unknown():
    model = fitted(lambda c: np.full((len(np.atleast_1d(c)), 1), 0.2) * band(480.0, 60.0), LEVELS)
    assert not model.calibration.response.responds
    unknowns = {f"{c:g}": noisy(straight, [c], 5)[0] for c in (1.0, 25.0, 45.0, 60.0, 300.0)}
    for theirs in answered_alike(model, unknowns):
        assert theirs.verdict in ("ambiguous", "does not match")
        assert not any("dilute" in said for said in (*theirs.notes, *theirs.why))


def test_standards_that_hardly_tell_the_concentration_still_quantify_and_that_is_said():
    """Three on a straight line: the one between them says little, and what lies far above is still to be diluted."""
    model = fitted(straight, np.array([10.0, 30.0, 60.0]))
    assert not model.calibration.standing.usable
    assert model.conclusion.headline().startswith("Hardly usable: a standard between others, left out, is found wrong")
    inside, above = (model.quantify(noisy(straight, [c], 5)[0]) for c in (45.0, 300.0))
    assert inside.verdict == "quantified" and any("hardly tell the concentration" in note for note in inside.notes)
    assert above.verdict == "outside calibrated range" and sum("dilute" in note for note in above.notes) == 1


def zigzag(levels, heights):
    """A band that grows and falls from level to level, as where labels were drawn from a hat."""
    return lambda c: 0.3 * band(480.0, 60.0) + np.interp(c, levels, heights)[:, None] * band(550.0, 40.0)


ZIGZAG = {
    "four with a blank": (np.array([0.0, 20.0, 40.0, 60.0]), [0.1, 0.5, 0.2, 0.4], 0.002),
    "five without": (np.array([10.0, 15.0, 30.0, 45.0, 60.0]), [0.1, 0.3, 0.05, 0.35, 0.2], 0.002),
    "five": (np.array([0.0, 15.0, 30.0, 45.0, 60.0]), [0.1, 0.3, 0.05, 0.35, 0.2], 0.002),
}


@needs_node
@pytest.mark.parametrize("name", ZIGZAG)
def test_standards_that_are_found_hardly_better_than_by_a_guess_quantify_nothing(name):
    levels, heights, noise = ZIGZAG[name]
    model = fitted(zigzag(levels, heights), levels, noise)
    standing = model.calibration.standing
    assert model.calibration.response.responds and not standing.contradictions
    assert "found hardly better than by a guess" in standing.declines
    assert model.conclusion.headline().startswith("Not usable: a standard between others, left out, is found wrong by")
    assert "and nothing is quantified with them; measure more standards" in model.conclusion.headline()
    spectra = noisy(zigzag(levels, heights), [15.0, 25.0, 38.0, 50.0, 59.0], 5)
    spectra = np.concatenate([spectra, 3.0 * spectra[-1:]])
    unknowns = {f"{k}": one for k, one in enumerate(spectra)}
    for theirs in answered_alike(model, unknowns):
        assert theirs.verdict in ("ambiguous", "does not match")
        assert theirs.verdict != "ambiguous" or any("hardly tell the concentration" in said for said in theirs.notes)


VERDICTS = (
    "quantified",
    "below detection limit",
    "outside calibrated range",
    "ambiguous",
    "does not match",
    "no curve",
)


@pytest.mark.parametrize("usable", [True, False])
@pytest.mark.parametrize("why", ["", "these standards, each left out, are found hardly better than by a guess"])
def test_what_names_a_concentration_is_ambiguous_with_standards_that_quantify_nothing(usable, why):
    rules = VerdictRules(10.0, 100.0, False, 1.0, 1.0, True, usable, why)
    for said in VERDICTS[:3]:
        reason = f"{why or SILENT}: nothing is quantified with them, whatever the spectrum"
        assert declined(rules, (said, ("so",))) == ((said, ("so",)) if usable and not why else ("ambiguous", (reason,)))
    for said in VERDICTS[3:]:
        assert declined(rules, (said, ("so",))) == (said, ("so",))
