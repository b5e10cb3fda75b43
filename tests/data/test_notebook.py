"""What notebooks show of data sets and calibrations: short, escaped, complete without anything else."""

from __future__ import annotations

import numpy as np
import pytest

import geonode
from geonode.calibration import Calibration
from geonode.data import SpectralDataset
from tests.calibration.assays import LEVELS, WAVE, folding, monotone, noisy, straight

TRUTHS = {"saturating": monotone, "folding": folding, "straight": straight}


@pytest.mark.parametrize("truth", TRUTHS.values(), ids=TRUTHS)
@pytest.mark.parametrize("kind", ["data set", "calibration"])
def test_a_line_and_a_page_name_levels_and_size(truth, kind):
    data = SpectralDataset(noisy(truth, LEVELS, 1), LEVELS, WAVE, concentration_unit="<b>", notes=["read & noted"])
    shown = data if kind == "data set" else Calibration.from_dataset(data)
    line, page = repr(shown), shown._repr_html_()
    assert f"{len(LEVELS)} levels 0 … 60" in line and f"{len(WAVE)} wavelengths" in line and len(line) < 200
    assert page.count("<polyline") == len(LEVELS) and "aria-label=" in page and len(page) < 40_000
    assert "<b>" not in page and "http" not in page and "src=" not in page
    assert kind == "calibration" or "read &amp; noted" in page


@pytest.mark.parametrize("masked", [slice(0, 5), slice(20, 30), slice(100, 101)])
def test_masked_values_leave_a_gap_and_no_nan(masked):
    mask = np.zeros((len(LEVELS), len(WAVE)), dtype=bool)
    mask[2, masked] = True
    page = SpectralDataset(noisy(monotone, LEVELS, 1), LEVELS, WAVE, mask=mask)._repr_html_()
    assert "nan" not in page


def test_what_is_wrong_with_the_standards_is_on_the_page():
    spectra = noisy(monotone, LEVELS, 1)
    spectra[3] = 0.0
    shown = geonode.Calibration(LEVELS, spectra, WAVE)
    assert shown.standing.warnings and all(
        one.split(":")[0][:20] in shown._repr_html_() for one in shown.standing.warnings
    )
