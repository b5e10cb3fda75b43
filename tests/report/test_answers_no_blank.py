"""The page calls a spectrum a blank's where the library does: not a strong one before a far first standard."""

from __future__ import annotations

import numpy as np
import pytest

from geonode.report.browser.data import answer_data
from geonode_runtime.shapes import NO_BLANK
from tests.calibration.assays import WAVE, band, noisy
from tests.report.test_answers import as_json, asked, compare, fitted, needs_node, of_library


@needs_node
@pytest.mark.parametrize("noise", [0.002, 0.0005])
def test_what_is_no_blanks_gets_the_librarys_answer(noise):
    """Before a far first standard: zero in the 95 % set, the spectrum far from the blank's."""

    def steep(c):
        return 0.2 + np.asarray(c)[:, None] / (np.asarray(c)[:, None] + 3.0) * band(600.0, 40.0)

    model = fitted(steep, np.array([0.0, 40.0, 50.0, 60.0]), noise)
    asking = {"mask": None, "options": {}, "wavelengths": WAVE}
    values = noisy(steep, [0.0, 0.5, 1.0, 2.0, 4.0], 5, noise)
    unknowns = [asking | {"name": f"u{k}", "values": one[None]} for k, one in enumerate(values)]
    theirs = [of_library(model, one) for one in unknowns]
    for mine, one in zip(asked(answer_data(model), [as_json(one) for one in unknowns]), theirs, strict=True):
        compare(model, mine, one)
    assert theirs[0].verdict == "below detection limit"
    assert any(one.notes[0].endswith(NO_BLANK) for one in theirs)
