"""One bad standard, which widens what is learned from standards left out by 10⁴ and more, lets no foreign spectrum
pass: limits are learned without it."""

from __future__ import annotations

import numpy as np
import pytest

from geonode.calibration import Calibration

WAVE = np.arange(350.0, 701.0, 3.0)
LEVELS = [0.0, 2.0, 5.0, 10.0, 20.0, 50.0]


def band(centre: float, width: float) -> np.ndarray:
    return np.exp(-0.5 * ((WAVE - centre) / width) ** 2)


def dye(c: float) -> np.ndarray:
    return 0.075 * c * (band(464, 38) + 0.25 * band(420, 60))


def seen(absorbance: np.ndarray, draw: np.random.Generator, stray: float = 5e-4) -> np.ndarray:
    """By a spectrometer whose noise grows where hardly any light comes through."""
    a = -np.log10((10**-absorbance + stray) / (1.0 + stray))
    noise = draw.normal(0.0, 0.001, len(WAVE)) * np.sqrt(1.0 + (10 ** np.minimum(a, 3.3) / 30.0) ** 2)
    return a + noise + draw.normal(0.0, 0.001)


def saturated(draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    c = np.repeat(LEVELS, 2)
    return c, np.array([seen(dye(x), draw) for x in c])


def mislabelled(draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    true = np.where(np.array(LEVELS) == 5.0, 7.5, LEVELS)
    return np.array(LEVELS), np.array([seen(dye(x), draw) for x in true])


def empty_well(draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    c = np.repeat(LEVELS, 3)
    spectra = np.array([seen(dye(0.4 * x), draw) + 0.1 * band(380, 40) for x in c])
    spectra[7] = draw.normal(0.0, 0.001, len(WAVE))
    return c, spectra


@pytest.mark.parametrize("method", ["posterior", "profile"])
@pytest.mark.parametrize("standards", [saturated, mislabelled, empty_well])
def test_foreign_spectra_do_not_match_beside_a_bad_standard(standards, method) -> None:
    draw = np.random.default_rng(21)
    made = Calibration(*standards(draw), WAVE)
    assert made.standing.contradictions or standards is not empty_well  # by replicates; a label is hard to prove wrong
    scale, shape = (0.4, 0.1 * band(380, 40)) if standards is empty_well else (1.0, 0.0)
    foreign = [0.6 * band(600, 30) + 0.2 * band(400, 50), band(550, 25), dye(8.0) + 0.15 * band(600, 30)]
    for spectrum in [*foreign, 0.3 * (WAVE / 400.0) ** -4]:
        answer = made.quantify(seen(spectrum + shape, draw), method=method)
        warned = method == "posterior" and any("holds something that the standards do not" in n for n in answer.notes)
        assert answer.verdict == "does not match" or (standards is mislabelled and warned)
    for c in (15.0, 35.0):
        answer = made.quantify(seen(dye(scale * c), draw) + shape, method=method)
        assert answer.estimate == pytest.approx(c, rel=0.1)


def test_limits_of_good_standards_are_learned_from_all_of_them() -> None:
    draw = np.random.default_rng(3)
    made = Calibration(np.array(LEVELS), np.array([seen(dye(0.4 * x), draw) for x in LEVELS]), WAVE)
    assert made.standing.trusted is made.standing.sound is made
    assert (made.q_limit, made.t2_limit) == made.own_limits
