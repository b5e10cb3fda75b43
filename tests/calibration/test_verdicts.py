"""What is said of a set of concentrations: a function of it and of the calibrated range; then the demo's assay."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from geonode.calibration.calibration import Calibration
from geonode.data import simulate_assay
from geonode_runtime.causes.explainer import LARGER
from geonode_runtime.posterior.density import Posterior
from geonode_runtime.posterior.rules import _verdict
from geonode_runtime.remedies import VerdictRules
from geonode_runtime.sets import Component, ConcentrationSet
from geonode_runtime.verdicts import MEANING, VERDICTS, Quantification, verdict
from tests.calibration.assays import LEVELS, WAVE, band, folding, monotone, noisy, straight

LOWEST, HIGHEST = 10.0, 100.0


def piece(low: float, high: float, estimate: float | None = None, share: float = 1.0, **ends: bool) -> Component:
    at = 0.5 * (low + high) if estimate is None else estimate
    return Component(low, high, ends.get("open_low", False), ends.get("open_high", False), at, 0.0, share, at, 1.0)


def said(*pieces: Component, blank: bool = False, lowest: float = LOWEST, at_95: tuple = ()) -> tuple[str, str]:
    rules = VerdictRules(lowest, HIGHEST, blank, 2.0, 9.0)
    found, wide = (ConcentrationSet(level, p, 0.0, 1.0) for level, p in ((0.8, pieces), (0.95, at_95 or pieces)))
    name, notes = verdict(rules, found, wide, 1.0, 1.0)
    return name, "; ".join(notes)


def by_the_posterior(found: tuple, at_95: tuple) -> tuple[str, str]:
    """The same of the learned posterior, spread evenly over the range and half as far again."""
    rules, edges = VerdictRules(LOWEST, HIGHEST, False, 2.0, 9.0), np.linspace(0.0, 150.0, 151)
    posterior = Posterior(edges, np.full(150, 1.0 / 150.0), 0.0, 0.0, 0.0, 1.0, False)
    name, *notes = _verdict(
        rules, posterior, *(ConcentrationSet(at, p, 0.0, 1.0) for at, p in ((0.8, found), (0.95, at_95)))
    )
    return name, "; ".join(notes)


# ---------------------------------------------------------------------- laws


def test_outside_is_said_of_a_set_wholly_beyond_the_range_and_of_no_other() -> None:
    """Every interval between ticks below, within and above the range, its estimate anywhere in it, closed or open."""
    ticks = (4.0, 9.9, 10.0, 10.1, 40.0, 99.9, 100.0, 100.1, 110.0)
    for low, high in itertools.combinations(ticks, 2):
        beyond = high < LOWEST or low > HIGHEST
        for share, open_low, open_high in itertools.product((0.0, 0.5, 1.0), (False, True), (False, True)):
            one = piece(low, high, low + share * (high - low), open_low=open_low, open_high=open_high)
            name, note = said(one)
            assert (name == "outside calibrated range") == beyond, (low, high, share, open_low, open_high)
            assert ("outside the standards' range 10 to 100" in note) == (
                beyond or (name == "quantified" and not LOWEST <= one.estimate <= HIGHEST)
            )


def test_no_limit_within_reach_is_never_quantified() -> None:
    for ends in ({"open_high": True}, {"open_low": True}, {"open_low": True, "open_high": True}):
        assert said(piece(60.0, 110.0, **ends))[0] == "ambiguous"
        assert said(piece(101.0, 110.0, **ends))[0] == "outside calibrated range"


def test_the_verdict_rests_on_the_95_percent_set() -> None:
    beyond = piece(101.0, 105.0, 102.0)
    assert said(beyond)[0] == "outside calibrated range"
    name, note = said(piece(99.5, 105.0, 102.0), at_95=(piece(99.0, 107.0, 102.0),))
    assert name == "quantified" and "reaches into it" in note
    assert said(piece(98.0, 105.0, 99.0)) == ("quantified", "")


@pytest.mark.parametrize(
    ("found", "at_95", "side"),
    [
        (piece(101.0, 105.0, 102.0), piece(99.0, 107.0, 102.0), "above"),
        (piece(4.0, 9.0, 6.0), piece(2.0, 11.0, 6.0), "below"),
        (piece(8.0, 9.99, 9.0), piece(7.0, 10.0, 9.0), "below"),
        (piece(100.5, 140.0, 120.0), piece(99.9, 150.0, 120.0), "above"),
    ],
)
@pytest.mark.parametrize("by_posterior", [False, True])
def test_what_is_reported_wholly_beyond_the_standards_is_not_quantified(found, at_95, side, by_posterior) -> None:
    """Though the 95 % set reaches into the range: nothing is quantified below the lowest standard nor above the top."""
    if by_posterior:
        name, note = by_the_posterior((found,), (at_95,))
    else:
        name, note = said(found, at_95=(at_95,))
    assert name == "outside calibrated range"
    assert f"the 80 % set lies {side} the standards' range 10 to 100, though that of 95 % reaches into it" in note
    assert ("dilute" in note) == (side == "above")


def test_every_piece_counts_whatever_its_weight() -> None:
    inside, above, below = piece(50.0, 60.0, share=0.05), piece(101.0, 105.0, share=0.95), piece(1.0, 5.0, share=0.5)
    assert said(above, inside)[0] == "ambiguous"
    assert said(piece(50.0, 60.0, share=0.2), piece(101.0, 105.0, share=0.8))[0] == "ambiguous"
    assert said(below, piece(101.0, 105.0, share=0.5))[0] == "outside calibrated range"


@pytest.mark.parametrize(
    ("found", "at_95", "reason"),
    [
        ((piece(40.0, 60.0),), (piece(40.0, 60.0, share=0.99), piece(90.0, 95.0, share=0.01)), "95 % set, on which"),
        ((piece(40.0, 60.0, share=0.64), piece(80.0, 90.0, share=0.36)), (piece(35.0, 95.0),), "2 separate ranges"),
        ((piece(40.0, 60.0),), (piece(38.0, 125.0, open_high=True),), "no upper limit .* the 95 % set"),
        ((piece(40.0, 60.0, open_low=True),), (piece(38.0, 62.0, open_low=True),), "no lower limit .* the 80 % set"),
        ((piece(40.0, 60.0, open_high=True),), (piece(38.0, 62.0),), "no upper limit .* the 80 % set"),
    ],
    ids=["second piece at 95 %", "second piece at 80 %", "open at 95 %", "open below", "open at 80 %"],
)
def test_quantified_is_one_closed_piece_at_both_levels(found: tuple, at_95: tuple, reason: str) -> None:
    name, note = said(*found, at_95=at_95)
    assert name == "ambiguous" and re.search(reason.replace(" .* ", ".*"), note)


@pytest.mark.parametrize(
    ("found", "at_95", "reason"),
    [
        ((piece(40.0, 60.0),), (piece(38.0, 62.0), piece(90.0, 95.0)), "80 % set is one range, but the 95 % set, on"),
        ((piece(40.0, 60.0), piece(90.0, 95.0)), (piece(35.0, 97.0),), "2 separate ranges of concentration explain"),
        ((piece(12.0, 98.0),), (piece(11.0, 99.0),), "the 80 % set is about as wide as the calibrated range"),
        ((piece(40.0, 60.0),), (piece(38.0, 125.0, open_high=True),), "no upper limit"),
    ],
)  # fmt: skip
def test_the_posterior_gives_the_reasons_of_the_profile(found: tuple, at_95: tuple, reason: str) -> None:
    assert by_the_posterior(found, at_95) == said(*found, at_95=at_95)
    assert by_the_posterior(found, at_95)[0] == "ambiguous" and reason in by_the_posterior(found, at_95)[1]


@pytest.mark.parametrize(
    ("found", "at_95", "remedy"),
    [
        ((piece(60.0, 110.0, open_high=True),), (), "above the standards' range: if so, dilute it into the range"),
        ((piece(40.0, 60.0),), (piece(38.0, 125.0, open_high=True),), "above the standards' range: if so, dilute"),
        ((piece(20.0, 30.0), piece(90.0, 125.0, open_high=True)), (), "above the standards' range: if so, dilute"),
        ((piece(9.0, 125.0, 120.0, open_high=True),), (), "above the standards' range: if so, dilute"),
        ((piece(20.0, 30.0), piece(80.0, 90.0)), (), "dilute it by a known factor and measure again"),
        ((piece(40.0, 60.0),), (piece(40.0, 60.0), piece(90.0, 95.0)), "dilute it by a known factor"),
        ((piece(9.0, 125.0, 20.0, open_high=True),), (), None),
        ((piece(12.0, 98.0),), (), None),
        ((piece(5.0, 60.0, open_low=True),), (), None),
    ],
)
def test_what_may_lie_above_or_at_several_places_is_told_to_be_diluted(found, at_95, remedy) -> None:
    name, note = said(*found, at_95=at_95)
    assert name == "ambiguous" and (remedy in note if remedy else "dilute" not in note)


@pytest.mark.parametrize("dilution", [1.0, 10.0, 0.5])
def test_an_answer_to_a_diluted_sample_says_of_what_it_speaks(dilution) -> None:
    levels = np.array([0.0, 5.0, 10.0, 20.0, 40.0, 60.0])
    calibration = Calibration(levels, noisy(straight, levels, 1, 0.002), WAVE, unit="mM")
    answer = calibration.quantify(noisy(straight, [300.0], 2, 0.002)[0], dilution=dilution)
    times = "" if dilution == 1.0 else f"{dilution:g} times "
    above = f"outside calibrated range: above {60.0 * dilution:g} mM, {times}the highest standard"
    assert answer.sentence("mM") == above
    spoken = [note for note in answer.notes if f"the result is {dilution:g} times what was in the cuvette" in note]
    assert any(note.endswith("dilute it into the range and measure again") for note in answer.notes)
    assert len(spoken) == (dilution != 1.0) and any("dilute further" in note for note in spoken) == (dilution > 1.0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("truth", [monotone, folding, straight], ids=["saturating", "folding", "straight"])
@pytest.mark.parametrize("method", [None, "profile"])
def test_no_quantified_answer_has_a_second_piece_or_an_open_end(truth, seed: int, method: str | None) -> None:
    levels = np.delete(LEVELS, 1 + seed)
    calibration = Calibration(levels, noisy(truth, levels, seed, 0.01), WAVE)
    unknown = noisy(truth, np.random.default_rng(seed).uniform(0.0, 70.0, 12), seed + 50, 0.01)
    for level in (0.8, 0.5, 0.99):
        for answer in calibration.quantify_many(unknown, level, method=method):
            if answer.verdict == "quantified":
                (one,), (other,) = answer.components, answer.verdict_components
                assert not (one.open_low or one.open_high)
                if other.open_low or other.open_high:  # at an end of the range, by the posterior, and said so
                    assert method is None and any("no upper limit" in n or "no lower limit" in n for n in answer.notes)
                    assert one.high >= levels[-1] or one.low <= levels[0]


def test_below_the_detection_limit_the_set_includes_zero() -> None:
    assert said(piece(0.0, 12.0), blank=True, lowest=0.0)[0] == "below detection limit"
    assert said(piece(0.0, 12.0))[0] == "quantified", "no blank: nothing is claimed of zero"
    # Standards on either side of zero: a set that lies below zero does not include it.
    assert said(piece(-9.0, -5.0), blank=True, lowest=-10.0)[0] == "quantified"
    assert said(piece(-9.0, 1.0), blank=True, lowest=-10.0)[0] == "below detection limit"


# ---------------------------------------------------------------------- examples


@pytest.fixture(scope="module")
def demo() -> Calibration:
    return Calibration.from_dataset(simulate_assay())


def measured(calibration: Calibration, c: float, count: int = 12, method: str | None = None) -> list[Quantification]:
    rows = [simulate_assay([c], seed=1000 + seed).spectra[0] for seed in range(count)]
    return calibration.quantify_many(np.stack([np.asarray(row) for row in rows]), method=method)


def test_the_top_standard_measured_again_is_within_the_range(demo: Calibration) -> None:
    answers = measured(demo, 60.0)
    assert {a.verdict for a in answers} == {"quantified"}
    for answer in answers:
        assert answer.estimate == pytest.approx(60.0, abs=1.5) and any(c.contains(60.0) for c in answer.components)
        assert answer.estimate <= 60.0 or "reaches into it" in answer.notes[0]


def test_what_lies_well_beyond_the_top_is_outside(demo: Calibration) -> None:
    assert {a.verdict for a in measured(demo, 75.0)} == {"outside calibrated range"}
    assert {a.verdict for a in measured(demo, 70.0)} <= {"outside calibrated range", "ambiguous"}
    for c in (70.0, 75.0):
        assert {a.verdict for a in measured(demo, c, method="profile")} == {"outside calibrated range"}


def test_the_blank_measured_again_is_below_the_detection_limit(demo: Calibration) -> None:
    assert {a.verdict for a in measured(demo, 0.0)} == {"below detection limit"}


def test_the_lowest_standard_measured_again_is_within_a_range_without_a_blank() -> None:
    calibration = Calibration(LEVELS[1:], noisy(monotone, LEVELS[1:], 12), WAVE)
    answers = calibration.quantify_many(noisy(monotone, np.full(12, LEVELS[1]), 13))
    assert {a.verdict for a in answers} == {"quantified"}
    answers = calibration.quantify_many(noisy(monotone, np.full(12, LEVELS[1]), 13), method="profile")
    assert {a.verdict for a in answers} == {"quantified"}
    assert any(a.estimate < LEVELS[1] for a in answers), "or nothing was tested"
    assert calibration.quantify(noisy(monotone, 0.0, 14)[0]).verdict == "outside calibrated range"


# ---------------------------------------------------------------------- words


@pytest.mark.parametrize("page", ["calibration.md", "howto/unknown.md"])
def test_every_verdict_is_explained_where_it_is_read(page: str) -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / page).read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z ]+)` \|", text, flags=re.MULTILINE)
    assert [row for row in rows if row in MEANING] == list(VERDICTS)


def test_the_command_lists_every_verdict() -> None:
    from geonode.cli import app

    said = " ".join(CliRunner().invoke(app, ["quantify", "--help"], env={"COLUMNS": "200"}).output.split())
    assert all(name in said for name in VERDICTS)


@pytest.mark.parametrize("c", [75.0, 120.0, 300.0, 600.0])
def test_a_genuine_sample_above_the_range_is_not_said_to_hold_something_else(c) -> None:
    calibration = Calibration(LEVELS, noisy(monotone, LEVELS, 1), WAVE)
    genuine, spoilt = noisy(monotone, [c], 3)[0], noisy(monotone, [c], 3)[0] + 0.3 * band(400.0, 8.0)
    answer = calibration.quantify(genuine)
    assert answer.verdict == "outside calibrated range" and not any("holds something" in note for note in answer.notes)
    assert sum("dilute" in said for said in (answer.sentence(), *answer.notes, *answer.why)) == 1
    answer = calibration.quantify(spoilt)
    assert answer.verdict == "does not match" or any("holds something" in note for note in answer.notes)


@pytest.mark.parametrize(("c", "shift"), [(8.0, 5.0), (50.0, 2.0), (60.0, 2.0), (80.0, 2.0)])
def test_what_makes_an_answer_doubtful_stands_first_and_names_no_other_cause(c, shift) -> None:
    """Of a spectrum whose wavelengths are shifted: the cause, then that it is strange, then what rests on its being of
    this assay; each probability says of what it is one."""
    calibration = Calibration(LEVELS, noisy(monotone, LEVELS, 1), WAVE)
    answer = calibration.quantify(np.interp(WAVE, WAVE + shift, noisy(monotone, [c], 3)[0]))
    assert (answer.matches and "a shift of the wavelengths" in " ".join(answer.why)) or answer.verdict.startswith(
        "outside"
    )
    strange, *others = [note for note in answer.notes if "probability" in note]
    assert strange == answer.notes[0] and re.search(r"do not \(probability 0\.\d\d that it does, misfit", strange)
    assert "the cause that is named, or where none is an interferent" in strange
    assert [note.endswith("if the spectrum is of this assay") for note in others] == [True] * (c > 60.0)


@pytest.mark.parametrize(("c", "told"), [(20.0, 0), (30.0, 0), (200.0, 1), (600.0, 1)])
def test_what_does_not_match_may_be_too_concentrated(c, told) -> None:
    """A spectrum that no concentration explains and that lies above the range is told so; one within it is not."""
    calibration = Calibration(LEVELS, noisy(monotone, LEVELS, 1), WAVE)
    answer = calibration.quantify(noisy(monotone, [c], 3)[0] + 0.1 * band(400.0, 8.0))
    advice = [note for note in answer.notes if note.startswith("were it a sample of this assay, it would lie above")]
    assert answer.verdict == "does not match" and len(advice) == told
    assert all("dilute it into the range" in note for note in advice)


@pytest.mark.parametrize(("c", "strange"), [(100.0, 0.3), (200.0, 0.6), (200.0, 3.0), (30.0, 3.0)])
def test_a_refused_spectrum_larger_than_the_standards_is_told_once_to_be_diluted(c, strange) -> None:
    calibration = Calibration(LEVELS, noisy(straight, LEVELS, 1), WAVE)
    answer = calibration.quantify(noisy(straight, [c], 3)[0] + strange * band(400.0, 8.0))
    assert answer.verdict == "does not match" and answer.explainer.larger(answer.unknown) >= LARGER
    assert sum("dilute it" in said for said in (*answer.notes, *answer.why)) == 1
