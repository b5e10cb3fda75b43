"""The laws of the pre-trained flow as a user meets them: through `geonode.fit`, on assays that hypothesis makes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import geonode
from geonode.data import SpectralDataset
from geonode.prior import AssayFlow

RELATIVE = 5e-5  # of the range: 159 shares from logits of up to 20 in float32, of candidates up to three scales apart
LAWS = settings(max_examples=6, deadline=None)

seeds, sizes = st.integers(0, 10_000), st.integers(3, 14)


def assay(seed: int, levels: int, width: int = 24, replicates: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Concentrations, spectra and wavelengths of a bent response of two bands, with noise."""
    rng = np.random.default_rng(seed)
    c = np.repeat(np.cumsum(rng.uniform(0.5, 8.0, levels)) - 0.5 * rng.integers(2), replicates)
    x = np.linspace(0.0, 1.0, width)
    bound = (c / (c + rng.uniform(3.0, 60.0)))[:, None]
    bands = [np.exp(-(((x - m) / w) ** 2)) for m, w in zip(rng.uniform(0.1, 0.9, 2), (0.1, 0.3), strict=True)]
    spectra = (1.0 - bound) * bands[0] + bound * bands[1]
    return c, spectra + 3e-3 * rng.standard_normal(spectra.shape), 400.0 + 300.0 * x


def between(c: np.ndarray) -> np.ndarray:
    """Concentrations inside the range and a little beyond its upper end."""
    return np.append(0.5 * (np.unique(c)[1:] + np.unique(c)[:-1]), 1.05 * c.max())


def flow_of(c, spectra, wavelengths) -> AssayFlow:
    """The flow of the model that `fit` makes with no settings."""
    flow = geonode.fit(SpectralDataset(spectra, c, wavelengths)).flow
    assert isinstance(flow, AssayFlow), "fit takes the pre-trained flow by default"
    return flow


def spectra_of(c, spectra, wavelengths, asked) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation by the model that `fit` makes with no settings."""
    model = geonode.fit(SpectralDataset(spectra, c, wavelengths))
    mean, std = model.predict_spectra(asked)
    return mean.values, std.values


@LAWS
@given(seed=seeds, levels=sizes, replicates=st.integers(1, 3))
def test_the_order_of_samples_says_nothing(seed, levels, replicates):
    c, spectra, wavelengths = assay(seed, levels, replicates=replicates)
    order = np.random.default_rng(seed).permutation(len(c))
    one, other = (spectra_of(c[o], spectra[o], wavelengths, between(c)) for o in (slice(None), order))
    for mine, theirs in zip(one, other, strict=True):
        assert np.abs(mine - theirs).max() < RELATIVE * np.ptp(spectra)


@LAWS
@given(seed=seeds, levels=sizes, by=st.sampled_from([1e-3, 1e3]), louder=st.sampled_from([1e-4, 1e3]))
@example(seed=28, levels=3, by=1e-3, louder=1e-4)  # rounding put a knot at the top standard on its other side
def test_units_of_concentration_and_of_signal_say_nothing(seed, levels, by, louder):
    c, spectra, wavelengths = assay(seed, levels)
    plain, spread = spectra_of(c, spectra, wavelengths, between(c))
    other, wider = spectra_of(by * c, louder * spectra, wavelengths, by * between(c))
    assert np.abs(other / louder - plain).max() < RELATIVE * np.ptp(spectra)
    assert np.abs(wider / louder - spread).max() < 1e-3 * spread.max()


@LAWS
@given(seed=seeds, levels=sizes, count=st.integers(1, 40))
def test_what_is_asked_for_beside_a_place_does_not_change_it(seed, levels, count):
    c, spectra, wavelengths = assay(seed, levels)
    others = np.random.default_rng(seed).uniform(c.min(), c.max(), count)
    model = geonode.fit(SpectralDataset(spectra, c, wavelengths))
    alone = model.predict_spectra([between(c)[0]])[0].values
    together = model.predict_spectra(np.append(between(c)[0], others))[0].values
    # predictions are labelled by concentration: in the order asked for
    assert np.abs(together[0] - alone[0]).max() < RELATIVE * np.ptp(spectra)


@LAWS
@given(seed=seeds, levels=sizes, places=st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3))
def test_no_length_there_and_back_and_every_way_round(seed, levels, places):
    c, spectra, wavelengths = assay(seed, levels)
    flow = flow_of(c, spectra, wavelengths)
    a, b, by_way = (np.array([c.min() + p * np.ptp(c)]) for p in places)
    assert not flow.transport(a, a).any()
    there = flow.transport(a, b)
    assert np.abs(there + flow.transport(b, a)).max() < RELATIVE * np.ptp(spectra)
    assert np.abs(flow.transport(a, by_way) + flow.transport(by_way, b) - there).max() < RELATIVE * np.ptp(spectra)


@LAWS
@given(seed=seeds, levels=sizes)
def test_doubt_is_a_function_of_geodesic_distance(seed, levels):
    c, spectra, wavelengths = assay(seed, levels)
    flow = flow_of(c, spectra, wavelengths)
    beyond = flow.predict(np.linspace(c.max(), c.max() + 0.2 * np.ptp(c), 5))
    doubt = flow.doubt
    assert np.allclose(beyond.scale**2, doubt.sigma**2 * beyond.distance + doubt.tau**2, rtol=1e-4)
    assert (np.diff(beyond.distance, axis=0) > 0.0).all()


@pytest.mark.parametrize(("levels", "width", "replicates"), [(3, 8, 1), (50, 16, 2), (6, 800, 1), (5, 30, 8)])
def test_sizes(levels, width, replicates):
    c, spectra, wavelengths = assay(1, levels, width, replicates)
    mean, std = spectra_of(c, spectra, wavelengths, between(c))
    assert mean.shape == (levels, width)
    assert np.isfinite(mean).all()
    assert (std > 0.0).all()
