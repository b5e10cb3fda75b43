"""Assays that depart from their law: how far, which of them, and that all else of a draw stays."""

from __future__ import annotations

import pytest
import torch

from geonode.corpus import FAMILIES, draw
from geonode.errors import InputError

NONE = 1e-12  # a share that takes the same random numbers and lets no assay depart
NEAT = (1e-6, 0.01)  # a laboratory without errors


@pytest.fixture(scope="module")
def pair():
    """The same assays as the law has them and with departures, without errors of the laboratory."""
    return [draw(600, 7, 24, 3, seed=11, departures=share, care=NEAT) for share in (NONE, 1.0)]


def moved(pair) -> torch.Tensor:
    """Root mean square change of the truth, over the response."""
    law, real = pair
    return (real.truth - law.truth).square().mean((1, 2)).sqrt() / law.response


def test_departures_change_the_truth_of_most_assays_by_some_per_cent(pair):
    law, real = pair
    assert torch.equal(law.concentration, real.concentration) and torch.equal(law.family, real.family)
    change = moved(pair)[law.family != FAMILIES.index("beer_lambert")]
    # of the three ways each is taken by half of them, so one of eight stays as it was
    assert 0.80 < float((change > 1e-4).double().mean()) < 0.95
    assert 0.01 < float(change[change > 1e-4].median()) < 0.5


def test_straight_lines_stay_straight(pair):
    assert float(moved(pair)[pair[0].family == FAMILIES.index("beer_lambert")].max()) < 1e-5


def test_a_careful_laboratory_measures_the_truth_of_an_assay_that_departs(pair):
    real = pair[1]
    off = (real.spectra - real.truth).abs().amax((1, 2)) / real.truth.abs().amax((1, 2))
    written_whole = off < 1e-3  # the others are written down with few digits, or a detector counts photons
    assert float(written_whole.double().mean()) > 0.6
    assert float(real.noise.median()) < 1e-3


def test_a_share_is_that_share(pair):
    half = draw(600, 7, 24, 3, seed=11, departures=0.5, care=NEAT)
    able = pair[0].family != FAMILIES.index("beer_lambert")
    departed = [moved([pair[0], other])[able] > 1e-4 for other in (half, pair[1])]
    assert (departed[0] <= departed[1]).all()
    assert 0.4 < float(departed[0].sum() / departed[1].sum()) < 0.6


def test_reactions_go_further_in_one_tube_than_in_the_next():
    """Errors grow where the extent of reactions scatters, along the colours of the assay."""
    law, real = (draw(800, 7, 24, 1, seed=5, departures=share) for share in (NONE, 1.0))
    able = law.family != FAMILIES.index("beer_lambert")
    grown = (real.noise / law.noise)[able]
    assert float(grown.median()) > 1.0
    assert float((grown > 1.1).double().mean()) > 0.25


@pytest.mark.parametrize("share", [-0.1, 1.01, float("nan")])
def test_what_is_no_share_is_refused(share):
    with pytest.raises(InputError, match="departures is a share of the assays, 0 to 1"):
        draw(4, 5, 10, seed=0, departures=share)
