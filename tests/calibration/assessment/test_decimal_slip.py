"""A concentration of 100 typed as 1000 or 10: noted where spacing and spectrum agree, and never of genuine designs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from geonode.calibration import Calibration
from geonode.calibration.assessment.decimal_slip import decimal_slip, spacing
from geonode.calibration.posterior.training import HELD_OUT_FAMILIES
from geonode.corpus import draw
from tests.calibration.assays import WAVE, folding, monotone, noisy, straight

NOISE = np.full(len(WAVE), 0.002)
DESIGNS = {
    "even, with a blank": np.array([0.0, 20.0, 40.0, 60.0, 80.0, 100.0]),
    "even, without": np.array([10.0, 20.0, 30.0, 40.0, 50.0]),
    "halves": 100.0 * 0.5 ** np.arange(5, -1, -1),
    "halves and a blank": np.append(0.0, 64.0 * 0.5 ** np.arange(4, -1, -1)),
    "1, 2, 5": np.array([0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0]),
    "1, 3, 10": np.array([0.0, 1.0, 3.0, 10.0, 30.0, 100.0]),
}
ASSAYS = {"saturating": monotone, "straight": straight}


def slipped(levels, i, factor, truth):
    """What is said of level ``i`` written as ``factor`` times itself."""
    labels = levels.copy()
    labels[i] *= factor
    order = np.argsort(labels)
    return decimal_slip(labels[order], noisy(truth, levels, 3)[order], NOISE)


@pytest.mark.parametrize("truth", ASSAYS.values(), ids=ASSAYS)
@pytest.mark.parametrize("factor", [0.1, 10.0])
@pytest.mark.parametrize("name", DESIGNS)
def test_a_zero_too_many_or_too_few_is_noted_with_what_is_meant(name, factor, truth):
    levels = DESIGNS[name]
    for i in (len(levels) - 1, len(levels) - 2):
        if np.abs(np.delete(levels, i) - factor * levels[i]).min() < 0.05 * levels[i]:
            continue  # that label stands there already
        found = slipped(levels, i, factor, truth)
        assert found is not None and found.level == pytest.approx(factor * levels[i])
        assert found.meant == pytest.approx(levels[i]) and found.regular
        assert f"check whether {levels[i]:g} mM is meant" in found.sentence("mM")


@pytest.mark.parametrize("truth", [*ASSAYS.values(), folding], ids=[*ASSAYS, "folding"])
@pytest.mark.parametrize("top", [60.0, 75.0, 100.0])
def test_a_zero_too_many_of_the_highest_is_noted_whatever_the_spacing(top, truth):
    """With ten times as much again it would lie further out still: that is no other reading of it."""
    levels = np.array([0.0, 10.0, 20.0, 30.0, 45.0, top])
    found = slipped(levels, 5, 10.0, truth)
    assert found is not None and found.level == 10.0 * top and found.meant == pytest.approx(top) and not found.regular
    assert "an order of magnitude beyond the others" in found.sentence()


@pytest.mark.parametrize("truth", [*ASSAYS.values(), folding], ids=[*ASSAYS, "folding"])
@pytest.mark.parametrize(
    "levels",
    [
        *DESIGNS.values(),
        np.array([0.0, 10.0, 20.0, 40.0, 60.0, 80.0]),  # 100 might be meant by 10, if the spectrum were not 10's
        10.0 ** np.arange(-1.0, 4.0),  # decades
        np.array([0.0, 5.0, 10.0, 20.0, 50.0, 300.0]),
        np.array([80.0, 85.0, 90.0, 95.0, 100.0]),
    ],
)
def test_genuine_standards_are_let_be(levels, truth):
    assert decimal_slip(levels, noisy(truth, levels, 4), NOISE) is None


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ((0.0, 2.0, 4.0, 6.0), "even steps"),
        ((1.0, 2.0, 3.0, 4.0), "even steps"),
        ((0.0, 1.0, 3.0, 9.0, 27.0), "one factor"),
        ((0.5, 1.0, 2.0, 5.0, 10.0), "1, 2, 5, 10, …"),
        ((0.3, 1.0, 3.0, 10.0), "1, 3, 10, 30, …"),
        ((1.0, 3.0, 30.0, 100.0), ""),
        ((0.0, 1.0, 2.0, 5.0, 7.0, 11.0), ""),
        ((0.0, 20.0, 40.0, 60.0, 1000.0), ""),
    ],
)
def test_how_levels_are_spaced(levels, words):
    assert spacing(np.array(levels)) == words


def test_less_than_two_in_a_hundred_simulated_assays_have_the_note():
    """Genuine designs of families that no training had."""
    said = 0
    for n in (5, 6, 8):
        drawn = draw(60, n, 40, 0, seed=17, step=n, families=HELD_OUT_FAMILIES, dtype=torch.float64)
        for c, means, noise in zip(drawn.concentration, drawn.spectra, drawn.noise, strict=True):
            x = means.numpy()
            rough = np.sqrt((np.diff(x, 2, axis=1) ** 2).mean() / 6.0) + 1e-12
            said += noise < 0.3 and decimal_slip(c.numpy(), x, np.full(40, rough)) is not None
    assert said <= 0.02 * 180


@pytest.mark.parametrize("typed", [1000.0, 10.0, 4.0])
def test_the_note_is_a_remark_and_no_good_standard_is_blamed(typed):
    """`fit`, `inspect` and the report have it among what is wrong."""
    levels = DESIGNS["even, with a blank"].copy()
    spectra, i = noisy(monotone, levels, 3), 2 if typed == 4.0 else 5
    meant, levels[i] = levels[i], typed
    standing = Calibration(levels, spectra, WAVE, unit="mM").standing
    assert any(f"{typed:g} mM" in one and f"{meant:g}" in one for one in standing.warnings)
    assert not any(check.flagged for check in standing.checks if check.level != typed)
