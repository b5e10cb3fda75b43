"""What the conclusion says of left-out levels in their own sets, of which method, as the report's numbers have it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geonode.calibration import Calibration
from geonode.report.calibration_sheets import sheets
from geonode.report.conclusion import Conclusion
from tests.report.test_conclusion import LEVELS, WAVE, spectra


@pytest.mark.parametrize("by", ["posterior", "profile"])
@pytest.mark.parametrize(
    ("outside", "said"),
    [
        ((), None),
        ((2,), "; 5 of 6 levels, each left out, lie in their own 80 % sets of the BY (not 10)"),
        ((1, 4), "; 4 of 6 levels, each left out, lie in their own 80 % sets of the BY (not 5, 50)"),
        (
            (1, 2, 3),
            "; but only 3 of 6 levels, each left out, lie in their own 80 % sets of the BY (not 5, 10, 20): take",
        ),
        ((1, 2, 3, 4), "; but only 2 of 6 levels"),
    ],
)
def test_levels_outside_the_sets_of_what_answers_are_told(outside, said, by, monkeypatch):
    calibration = Calibration(LEVELS, spectra(LEVELS), WAVE)
    out = np.isin(np.arange(6), outside)
    if by == "posterior":
        own = replace(calibration.own_levels, covered=np.where(out, 0.0, 1.0))
        calibration.own_levels = own
    else:
        monkeypatch.setattr(Calibration, "unfit_for_posterior", "it is not asked")
        calibration.held_out = replace(calibration.held_out, coverage=np.where(out, 0.99, 0.3))
    for text in (Conclusion(calibration).headline(), Conclusion(calibration).good()):
        assert (said.replace("BY", by) in text) if said else "80 % sets" not in text
    (sheet,) = (one for one in sheets(calibration) if one.name == "predicted")
    column = sheet.columns[f"covered_by_80_percent_set{'_of_posterior' if by == 'posterior' else ''}"]
    assert np.array_equal(column[~np.isnan(column)] < 0.5, out)


@pytest.mark.parametrize(
    ("count", "said"), [(9, "; 48 was not left out)"), (10, " were not left out)"), (20, "; 12 others were")]
)
def test_of_many_levels_those_that_were_not_left_out_are_told(count, said):
    """Eight are left out: the one that lies outside and those that were not asked are named apart."""
    levels = np.linspace(0.0, 12.0 * (count - 1), count)
    calibration = Calibration(levels, spectra(levels), WAVE)
    own = calibration.own_levels
    calibration.own_levels = replace(own, covered=np.where(np.arange(8) == 2, 0.0, 1.0))
    text = Conclusion(calibration).good()
    assert (
        f"7 of 8 levels, each left out, lie in their own 80 % sets of the posterior (not {levels[own.asked[2]]:g}; "
        in text
    )
    assert said in text
    rest = [f"{one:g}" for one in np.delete(levels, own.asked)]
    assert len(rest) > 4 or f"; {', '.join(rest)} w" in text
