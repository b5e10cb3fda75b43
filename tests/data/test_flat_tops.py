"""Standards of several levels that are cut flat at one value are noted, and peaks that are flat by rounding are not."""

from __future__ import annotations

import numpy as np
import pytest

import geonode
from geonode.calibration.assessment.warnings import dataset_warnings
from geonode.data import SpectralDataset
from geonode.data.flat_tops import flat_tops
from tests.calibration.assays import LEVELS, WAVE, band, monotone, noisy

WHOLE = noisy(monotone, LEVELS, 0)
LIMIT = 0.8 * float(WHOLE[-2].max())
GP = geonode.GeodesicConfig(predictor="gp")


def standards(spectra: np.ndarray) -> SpectralDataset:
    return SpectralDataset(spectra, LEVELS, WAVE)


@pytest.mark.parametrize("decimals", [3, 12])
def test_a_limit_of_the_detector_is_noted(decimals):
    cut = np.minimum(WHOLE, LIMIT).round(decimals)
    model = geonode.fit(standards(cut), GP)
    (said,) = [note for note in model.dataset.notes if "cut flat" in note]
    named = ", ".join(f"{c:g}" for c in LEVELS[-3:])
    assert said.startswith(f"the standards {named} are cut flat at the same value, {cut.max():.6g}, between ")
    assert said in dataset_warnings(standards(cut))
    assert "cut flat" in flat_tops(cut[:, ::-1], LEVELS, WAVE[::-1])


def alone() -> np.ndarray:
    return np.concatenate([WHOLE[:-1], np.minimum(WHOLE[-1:], 1.01 * WHOLE[:-1].max())])


ORDINARY = {
    "as measured": WHOLE,
    "rounded to what two levels share": np.outer([0.0, 0.2, 0.5, 0.8, 0.98, 1.0], band(520.0, 50.0)).round(1),
    "one level": alone(),
    "each at a value of its own": np.minimum(WHOLE, 0.9 * WHOLE.max(axis=1, keepdims=True)),
    "nothing": np.zeros_like(WHOLE),
    "masked": np.full_like(WHOLE, np.nan),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_nothing_is_said_of_others(name):
    assert flat_tops(ORDINARY[name], LEVELS, WAVE) == ""
