"""What no check of single levels finds and is told all the same: a label that is improbable, an order that is."""

from __future__ import annotations

import numpy as np
import pytest

from geonode.calibration import Calibration
from geonode.calibration.assessment.likelier_order import likelier_exchange
from geonode.calibration.assessment.unlikely_label import unlikely_label
from geonode_runtime.wording import CommandLine, on_command_line
from tests.calibration.assays import LEVELS, WAVE, folding, monotone, noisy, straight
from tests.report.test_untold import LEVELS as FOLD_LEVELS
from tests.report.test_untold import fold

EIGHT = np.array([0.0, 4.0, 9.0, 15.0, 24.0, 36.0, 48.0, 60.0])


def made(truth, levels, factor: float = 1.0, i: int = 1, **given) -> Calibration:
    true = levels.copy()
    true[i] *= factor
    return Calibration(levels, noisy(truth, true, 5), WAVE, unit="mM", **given)


def test_a_label_that_is_a_fifth_off_is_told_where_nothing_else_finds_it():
    calibration = made(straight, LEVELS, 0.8)
    standing = calibration.standing
    assert standing.usable and not standing.contradictions and not standing.cautions
    found = unlikely_label(calibration)
    assert found.level == 10.0 and found.implied == pytest.approx(8.0, rel=0.02) and found.surprise > 5.5
    said = standing.untold
    assert said.startswith("with 10 mM left out the others make its spectrum that of 8.0")
    assert said in standing.warnings and said.endswith("how well the standards are known (concentration_std)")
    with on_command_line(CommandLine({})):
        assert unlikely_label(calibration).sentence().endswith("(geonode fit --standard-uncertainty)")
    unknown = noisy(straight, [25.0], 6)
    assert all(said in one.notes for one in (calibration.quantify(unknown[0]), *calibration.quantify_many(unknown)))


@pytest.mark.parametrize(("share", "told"), [(0.001, True), (0.1, False), (0.2, False)])
def test_standards_that_are_known_to_be_so_uncertain_are_no_surprise(share, told):
    calibration = made(straight, LEVELS, 0.8, concentration_std=share * LEVELS)
    assert (unlikely_label(calibration) is not None) == told == bool(calibration.standing.untold)


@pytest.mark.parametrize("levels", [LEVELS, EIGHT, FOLD_LEVELS], ids=["six", "eight", "doubling"])
@pytest.mark.parametrize("truth", [straight, monotone, folding], ids=["straight", "saturating", "folding"])
def test_genuine_labels_are_not_doubted(truth, levels):
    """The other branch of a response that folds is no other label: 48 of the eight lies on that of 6.7."""
    calibration = made(truth, levels)
    assert unlikely_label(calibration) is None and likelier_exchange(calibration) is None


@pytest.mark.parametrize("half", [8.0, 15.0, 30.0])
@pytest.mark.parametrize(("top", "pair", "told"), [(15.0, (0, 5), True), (12.0, (1, 3), False), (15.0, None, False)])
def test_an_order_that_makes_a_far_likelier_curve_is_told(top, pair, half, told):
    """With a top at 12, 5 and 20 exchanged make as good a curve as the right order, so that nothing can tell."""
    order = np.arange(6)
    if pair:
        order[list(pair)] = pair[::-1]
    spectra = noisy(lambda c: fold(c, top, half), FOLD_LEVELS, 1)[order]
    calibration = Calibration(FOLD_LEVELS, spectra, WAVE, unit="ppb")
    standing = calibration.standing
    assert standing.usable and not standing.cautions
    assert likelier_exchange(calibration) == (pair if told else None)
    assert standing.untold.startswith("the labels of 0 ppb and 80 ppb may be exchanged: ") == told
    assert (standing.untold in standing.warnings) == told
