"""`quantified` is one piece with two ends, at the level asked for and at 95 %: an end standard measured again is so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from geonode.calibration import Calibration
from geonode.calibration.posterior.training import HELD_OUT_FAMILIES
from geonode.corpus import draw
from geonode.data import simulate_assay
from geonode_runtime.posterior.density import Posterior
from geonode_runtime.posterior.ends import NEAR, ended
from tests.calibration.assays import LEVELS, WAVE, monotone, noisy

ENDS = "its sets end where the search did"


def closed(answer) -> bool:
    sets = (answer.components, answer.verdict_components)
    return all(len(one) == 1 and not (one[0].open_low or one[0].open_high) for one in sets)


@pytest.mark.parametrize(("seed", "replicates"), [(0, 1), (1, 1), (2, 3)])
def test_the_demos_top_standard_and_fresh_spectra_there(seed: int, replicates: int) -> None:
    assay = simulate_assay(seed=seed, replicates=replicates)
    calibration = Calibration.from_dataset(assay)
    fresh = assay.truth([60.0]).numpy()[0] + np.random.default_rng(90 + seed).normal(0.0, 0.003, (4, 601))
    for level in (0.5, 0.8, 0.95):
        for answer in calibration.quantify_many(np.stack([assay.spectra[-1], *fresh]), level=level):
            assert answer.verdict == "quantified" and closed(answer)
            assert answer.estimate == pytest.approx(60.0, abs=1.5)
            assert any(component.contains(60.0) for component in answer.components) or level == 0.5


def test_the_law_on_families_that_taught_nothing() -> None:
    """And a set without an end says why it is ambiguous, whatever the level."""
    verdicts, open_ends = [], 0
    for step, levels in enumerate((4, 6, 9)):
        assays = draw(
            3, levels, 48, queries=0, unknowns=10, seed=7, step=step, families=HELD_OUT_FAMILIES, dtype=torch.float64
        )
        for k in range(len(assays)):
            means, is_one = assays.spectra[k].numpy(), assays.unknown_concentration[k].isfinite().numpy()
            calibration = Calibration(assays.concentration[k].numpy(), means)
            for answer in calibration.quantify_many(np.concatenate([assays.unknown_spectra[k].numpy()[is_one], means])):
                verdicts.append(answer.verdict)
                loose = [c for c in answer.verdict_components if c.open_low or c.open_high]
                open_ends += bool(loose)
                assert answer.verdict != "quantified" or closed(answer)
                pieces = len(answer.components), len(answer.verdict_components)
                if answer.verdict == "ambiguous" and pieces == (1, 1) and loose:
                    assert any(
                        "limit within the range that was searched" in n or "as wide as" in n for n in answer.notes
                    )
    assert verdicts.count("quantified") > 30 and open_ends > 5


def known_and_posterior():
    """Standards, and an unknown with 7 % of its probability above what was searched, as much below, or both."""
    learned = Calibration(LEVELS[1:], noisy(monotone, LEVELS[1:], 3), WAVE).posterior
    mass = np.full(10, 0.0)
    mass[4:6] = 0.5
    return learned.known, Posterior(np.linspace(0.0, 72.5, 11), mass, 0.0, 0.0, 0.0, 50.0, False)


@pytest.mark.parametrize(("end", "side"), [(0, "below"), (-1, "above")])
def test_near_is_a_tenth_of_the_step_to_the_next_standard(end: int, side: str) -> None:
    known, whole = known_and_posterior()
    beside = 1 if end == 0 else -2
    top, next_one = (noisy(monotone, LEVELS[1:], 3)[k] for k in (end, beside))
    mass = np.zeros(10)
    mass[:2] = 0.465
    posterior = replace(whole, mass=mass if end == 0 else mass[::-1], **{side: 0.07})
    for share, is_near in ((0.0, True), (0.9 * NEAR, True), (1.1 * NEAR, False), (0.5, False)):
        sets = posterior.highest(0.8), posterior.highest(0.95)
        assert not sets[0].best.open_high and not sets[0].best.open_low and sets[1].best.probability > 0.99
        spectrum = (1.0 - share) * top + share * next_one
        (first, second), note = ended(known, posterior, spectrum, None, sets)
        assert first == sets[0] and (second.best.open_low or second.best.open_high) == (not is_near)
        assert note.endswith(ENDS) == is_near
        usable = np.arange(len(WAVE)) % 7 > 0
        assert ended(known, posterior, np.where(usable, spectrum, 0.0), usable, sets)[1] == note


def test_what_the_posterior_believes_to_be_above_stays_open() -> None:
    """A fifth of it or more: the response stands still, and the top standard is as well anything above."""
    known, whole = known_and_posterior()
    mass = np.zeros(10)
    mass[-1] = 0.7
    posterior = replace(whole, mass=mass, above=0.3)
    sets = posterior.highest(0.9), posterior.highest(0.95)
    top = noisy(monotone, LEVELS[1:], 3)[-1]
    assert ended(known, posterior, top, None, sets) == (sets, "")
    two = replace(whole, mass=np.array([0.4, *np.zeros(8), 0.52]), above=0.08)
    sets = two.highest(0.8), two.highest(0.95)
    assert len(sets[1].components) == 2 and ended(known, two, top, None, sets) == (sets, "")
