"""More levels than the pre-trained flow reads are refused before anything is computed from them."""

from __future__ import annotations

import numpy as np
import pytest

import geonode
from geonode.config import GeodesicConfig
from geonode.data import SpectralDataset
from geonode.errors import InputError
from geonode.prior.standards import MOST_LEVELS, levels_to_read


def test_too_many_levels_are_refused_with_how_many_there_may_be(monkeypatch):
    def computed(*_):
        raise AssertionError("computed before the levels were counted")

    monkeypatch.setattr("geonode.model.fit_gp", computed)
    levels, x = np.arange(301.0), np.arange(400.0, 410.0)
    data = SpectralDataset(np.outer(levels, x) + 1.0, levels, x)
    with pytest.raises(InputError, match=rf"301 distinct concentrations.*reads {MOST_LEVELS} at most.*predictor='gp'"):
        geonode.fit(data)


def test_what_does_not_read_them_takes_any_number():
    plain = GeodesicConfig()
    assert levels_to_read(np.arange(MOST_LEVELS), plain) == MOST_LEVELS
    for other in (plain.replace(flow="path_independent"), plain.replace(flow="path_independent", predictor="gp")):
        assert levels_to_read(np.arange(300), other) == 300
