"""A response that rises and falls by the same spectra: no concentration is named while another explains the spectrum
as well; limbs that differ by more than the noise are told apart, and what does not fold is left as it was."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from geonode.calibration import Calibration
from geonode_runtime.posterior import answers, twins
from tests.calibration.assays import NOISE, WAVE, band, monotone

EIGHT = np.array([0.0, 5.0, 12.0, 20.0, 30.0, 45.0, 70.0, 100.0])
FIRM = ("quantified", "below detection limit", "outside calibrated range")


def bell(c: np.ndarray) -> np.ndarray:
    """An aggregate that forms and, with more of the analyte, falls apart again; highest at 25."""
    return np.exp(-0.5 * (np.log((c + 6.0) / 31.0) / 0.55) ** 2)


def retracing(c, differing: float = 0.0) -> np.ndarray:
    """Spectra that depend on the aggregate alone, but for ``differing`` of a band that grows all the way."""
    c = np.atleast_1d(c)[:, None].astype(float)
    grown = differing * c / (c + 25.0) * band(480.0, 35.0)
    return (1.0 - 0.55 * bell(c)) * (0.3 + 0.05 * band(520.0, 60.0)) + 0.75 * bell(c) * band(610.0, 28.0) + grown


@cache
def calibration(differing: float, seed: int = 3, count: int = 8) -> Calibration:
    levels = EIGHT if count == 8 else EIGHT[[0, 2, 3, 4, 6, 7]]
    draw = np.random.default_rng(seed)
    exact = retracing(levels, differing)
    return Calibration(levels, exact + NOISE * draw.standard_normal(exact.shape), WAVE)


def asked(differing: float, concentrations, seed: int = 3, count: int = 8):
    draw = np.random.default_rng(seed + 100)
    exact = retracing(concentrations, differing)
    return calibration(differing, seed, count).quantify_many(exact + NOISE * draw.standard_normal(exact.shape))


def holds(components, c: float) -> bool:
    return any(piece.contains(c) for piece in components)


@pytest.mark.parametrize(("seed", "count"), [(3, 8), (4, 8), (5, 6)])
def test_where_the_limbs_retrace_each_other_none_is_chosen(seed: int, count: int):
    """On the way up and on the way down: the set of 95 % holds the truth, and its twin with it."""
    truth = np.array([8.0, 11.0, 14.0, 40.0, 44.4, 50.0, 58.0, 66.0])
    for c, answer in zip(truth, asked(0.0, truth, seed, count), strict=True):
        assert answer.verdict == "ambiguous", (c, answer.sentence())
        assert holds(answer.verdict_components, c), (c, answer.verdict_components)
        twin = 31.0**2 / (c + 6.0) - 6.0
        far = [piece for piece in answer.verdict_components if not piece.contains(c)]
        assert any(piece.low - 2.0 <= twin <= piece.high + 2.0 for piece in far), (c, twin, answer.verdict_components)


def test_a_limb_counts_however_many_places_an_uncertain_curve_lies_near(monkeypatch):
    """Six levels about the top of an even fold, 5 % noise: where the curve is so unsure that ends and gaps come nearer
    than the limb that was measured, that limb must be among the twins all the same."""
    levels = np.array([0.0, 10.0, 20.0, 30.0, 40.0, 50.0])
    truth = np.array([38.0, 39.2, 42.0])

    def spectra(c: np.ndarray) -> np.ndarray:
        blue = np.exp(-(((np.asarray(c) - 25.0) / 12.0) ** 2))[:, None]
        return 0.05 + 0.35 * band(520.0, 60.0) + 0.6 * blue * band(620.0, 40.0)

    def wrong() -> int:
        count = 0
        for seed in (2, 33, 59):
            draw = np.random.default_rng(seed)
            made = Calibration(levels, spectra(levels) + 0.03 * draw.standard_normal((6, len(WAVE))), WAVE)
            found = made.quantify_many(spectra(truth) + 0.03 * draw.standard_normal((3, len(WAVE))))
            count += sum(
                one.verdict in FIRM and not holds(one.verdict_components, c)
                for c, one in zip(truth, found, strict=True)
            )
        return count

    assert wrong() == 0
    every = answers.with_twins

    def of_three(known, one, cells, row):
        few = {name: getattr(cells, name)[:, :3] for name in ("minima", "scale", "excess")}
        return every(known, one, replace(cells, **few), row)

    monkeypatch.setattr(answers, "with_twins", of_three)
    assert wrong() > 0, "the case no longer shows what it is for"


def test_limbs_that_the_noise_tells_apart_are_told_apart():
    truth = np.array([8.0, 14.0, 44.4, 58.0, 66.0])
    for c, answer in zip(truth, asked(0.03, truth), strict=True):
        assert answer.verdict == "quantified" and holds(answer.verdict_components, c), (c, answer.sentence())


def test_above_a_fold_no_spectrum_is_taken_for_a_blank():
    """Beyond the standards the curve comes back to the blank's spectrum: both are said."""
    above = np.array([150.0, 200.0, 300.0, 500.0])
    for c, answer in zip((*above, 0.0), asked(0.0, (*above, 0.0)), strict=True):
        assert answer.verdict not in FIRM and holds(answer.verdict_components, c), (c, answer.sentence())


def test_a_standards_own_spectrum_is_found_at_its_label():
    for seed, count in ((3, 8), (4, 8), (5, 6)):
        one = calibration(0.0, seed, count)
        for c, answer in zip(one.levels, one.quantify_many(one.spectra, genuine=True), strict=True):
            assert holds(answer.verdict_components, c), (c, answer.sentence())


def test_what_does_not_fold_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch):
    levels, draw = np.linspace(0.0, 60.0, 7), np.random.default_rng(7)
    standards, unknowns = monotone(levels), monotone(np.linspace(1.0, 70.0, 24))
    standards = standards + NOISE * draw.standard_normal(standards.shape)
    unknowns = unknowns + NOISE * draw.standard_normal(unknowns.shape)
    with_rule = Calibration(levels, standards, WAVE).posterior.posteriors(unknowns, np.ones(24))[0]
    monkeypatch.setattr("geonode_runtime.posterior.answers.with_twins", lambda known, one, cells, row: one)
    without = Calibration(levels, standards, WAVE).posterior.posteriors(unknowns, np.ones(24))[0]
    for mine, before in zip(with_rule, without, strict=True):
        np.testing.assert_array_equal(mine.mass, before.mass)


@pytest.mark.parametrize(("differing", "count"), [(0.0, 8), (0.0, 6), (0.01, 8)])
def test_what_the_network_holds_is_not_left_out_for_twins(differing, count, monkeypatch):
    """Half of it stays whatever the curve says: it is given up for no minimum."""
    changed = []

    def spy(known, one, cells, row):
        found = twins.with_twins(known, one, cells, row)
        changed.append(found is not one)
        assert found.above >= 0.5 * one.above - 1e-12 and (found.mass >= 0.5 * one.mass - 1e-12).all()
        assert found.mass.sum() + found.below + found.above == pytest.approx(one.mass.sum() + one.below + one.above)
        return found

    monkeypatch.setattr(answers, "with_twins", spy)
    asked(differing, np.array([0.0, 2.0, 8.0, 14.0, 22.0, 30.0, 44.0, 66.0, 90.0, 150.0, 250.0]), count=count)
    assert any(changed)


@pytest.mark.parametrize("level", [2, 4])
def test_a_minimum_beside_a_level_that_is_missed_is_forgiven_as_much(level):
    """The median over all levels says nothing of the one place at which the curve is off."""
    known = calibration(0.3).posterior.known
    assert known.left_out.tolist() == list(range(8))
    distance = np.ones(8)
    distance[[0, level, 7]] = 1e3, 50.0, 1e3
    spoilt = replace(known, left_out_distance=distance)
    middles = 0.5 * (known.levels[1:] + known.levels[:-1])
    found = twins._missed(spoilt, middles)
    assert found.tolist() == [50.0 if level in (k, k + 1) else 1.0 for k in range(7)] + [1.0]
