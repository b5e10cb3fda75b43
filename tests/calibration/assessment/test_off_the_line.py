"""One standard off the straight line of all others is told with what the line calls it; bends and noise are not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from geonode.calibration import Calibration
from geonode.calibration.assessment.off_the_line import off_the_line
from geonode.calibration.posterior.training import HELD_OUT_FAMILIES
from geonode.corpus import draw
from tests.calibration.assays import WAVE, folding, monotone, noisy, straight

NOISE = np.full(len(WAVE), 0.002)
TRUE = np.array([0.0, 20.0, 40.0, 60.0, 80.0, 100.0])
WRONG = {  # which, written as, what is to be checked
    "a blank that is called 10": (0, 10.0, "whether it is the blank"),
    "a top diluted once more": (5, 125.0, "whether the detector was at its limit"),
    "a top that is stronger": (5, 85.0, "whether the detector was at its limit"),
    "a level between others": (2, 50.0, "its label and its dilution"),
}


@pytest.mark.parametrize("name", WRONG)
def test_it_is_told_with_what_the_line_calls_it(name):
    i, written, check = WRONG[name]
    labels = TRUE.copy()
    labels[i] = written
    found = off_the_line(labels, noisy(straight, TRUE, 3), NOISE)
    assert found is not None and found.level == written
    assert found.implied == pytest.approx(TRUE[i], abs=1.0)
    said = found.sentence("mM")
    assert check in said and f"{written:g} mM is" in said and said.endswith("It was kept as written")


def test_a_blank_of_another_matrix_is_told_as_that():
    spectra = noisy(straight, TRUE, 3)
    spectra[0] = noisy(straight, np.array([-15.0]), 4)[0]
    found = off_the_line(TRUE, spectra, NOISE)
    assert found is not None and found.level == 0.0 and "matrix" in found.sentence()


@pytest.mark.parametrize("truth", [straight, monotone, folding])
@pytest.mark.parametrize(
    "levels", [TRUE, TRUE[1:], np.array([0.0, 1.0, 3.0, 10.0, 30.0, 100.0]), np.array([0.0, 20.0, 40.0, 100.0])]
)
def test_genuine_standards_are_let_be(levels, truth):
    assert off_the_line(levels, noisy(truth, levels, 5), NOISE) is None


def test_of_genuine_simulated_assays_few_are_told_and_hardly_one_but_for_its_highest():
    """Of families that no training had: their tops level off, beyond others on a line, in up to four of a hundred."""
    said, count = {"lowest": 0, "inner": 0, "highest": 0}, 0
    for n in (5, 6, 8):
        drawn = draw(60, n, 40, 0, seed=17, step=n, families=HELD_OUT_FAMILIES, dtype=torch.float64)
        for c, means, noise in zip(drawn.concentration, drawn.spectra, drawn.noise, strict=True):
            x = means.numpy()
            rough = np.sqrt((np.diff(x, 2, axis=1) ** 2).mean() / 6.0) + 1e-12
            count += 1
            if noise < 0.3 and (found := off_the_line(c.numpy(), x, np.full(40, rough))) is not None:
                said[found.place] += 1
    assert said["highest"] <= 0.04 * count and said["lowest"] + said["inner"] <= 0.01 * count


@pytest.mark.parametrize("name", list(WRONG)[:2])
def test_fit_tells_it_and_of_the_lowest_every_answer(name):
    i, written, check = WRONG[name]
    labels = TRUE.copy()
    labels[i] = written
    made = Calibration(labels, noisy(straight, TRUE, 3), WAVE, unit="mM")
    assert any(check in one for one in made.standing.warnings)
    answer = made.quantify(noisy(straight, np.array([50.0]), 6)[0])
    assert any(check in note for note in answer.notes) == (i == 0)
