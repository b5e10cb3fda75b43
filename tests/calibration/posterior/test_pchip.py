"""Many small tables at once are interpolated as scipy interpolates each."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import PchipInterpolator

from geonode.calibration.posterior.pchip import pchip

SHAPES = {
    "any": lambda draw, shape: draw.standard_normal(shape),
    "rising": lambda draw, shape: np.cumsum(draw.random(shape), axis=1),
    "flat in places": lambda draw, shape: draw.integers(-1, 2, shape).astype(float),
    "a bend at the end": lambda draw, shape: np.where(np.arange(shape[1])[:, None] < 1, 9.0, draw.random(shape)),
}


@pytest.mark.parametrize("count", [2, 3, 4, 9])
@pytest.mark.parametrize("kind", SHAPES)
def test_every_table_is_interpolated_as_scipy_does(kind, count):
    draw = np.random.default_rng(count)
    levels = np.cumsum(0.05 + draw.random((40, count)) ** 3, axis=1)
    values = SHAPES[kind](draw, (40, count, 5))
    places = np.concatenate([np.linspace(-1.0, 4.0, 60), levels[0]])
    found = pchip(levels, values, places)
    for one, c, y in zip(found, levels, values, strict=True):
        expected = PchipInterpolator(c, y, extrapolate=True)(places)
        np.testing.assert_allclose(one, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())
