"""Laws of the pre-trained flow: its start is the geodesic GP, paths of no length, there and back, order and units."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import geonode
from geonode.calibration import GeodesicGP
from geonode.errors import InputError
from geonode.prior.flow import AssayFlow
from geonode.prior.network import Network
from geonode.prior.stored import (
    SHIPPED,
    load_network,
    model_card,
    save_network,
    untrained_network,
    weights_at_hand,
    weights_path,
    weights_record,
)

RELATIVE = 1e-5  # of the spectra's range: the network works in float32


def assay(levels: int = 6, width: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A binding response with two bands and a little noise."""
    rng = np.random.default_rng(seed)
    c = np.sort(rng.uniform(0.0, 60.0, levels))
    c[0] = 0.0
    x = np.linspace(0.0, 1.0, width)
    bound = c / (c + 15.0)
    bands = [np.exp(-(((x - m) / 0.12) ** 2)) for m in (0.3, 0.65)]
    spectra = np.outer(1.0 - bound, bands[0]) + np.outer(bound, bands[1])
    return c, spectra + 2e-3 * rng.standard_normal(spectra.shape)


@pytest.fixture(params=["shipped", "untrained"])
def network(request) -> Network:
    return load_network() if request.param == "shipped" else untrained_network()


@pytest.mark.parametrize(("levels", "width"), [(3, 8), (5, 40), (6, 130), (24, 33)])
def test_its_start_is_the_evidence_averaged_geodesic_process(levels, width):
    c, spectra = assay(levels, width, seed=levels)
    asked = np.linspace(c[0], 1.2 * c[-1], 17)
    gp = GeodesicGP().fit_levels(c, spectra).predict(asked).mean
    start = AssayFlow(untrained_network(), c, spectra, smooth=False).predict(asked).mean
    assert np.abs(start - gp).max() < 1e-5 * np.ptp(spectra)


def test_training_has_changed_the_prediction_and_lowered_the_error():
    c, spectra = assay(6, 60, seed=3)
    truth = assay(6, 60, seed=3)[1]
    asked = np.linspace(0.0, c[-1], 9)
    moved = AssayFlow(load_network(), c, spectra, smooth=False).predict_mean(asked)
    still = AssayFlow(untrained_network(), c, spectra, smooth=False).predict_mean(asked)
    assert np.abs(moved - still).max() > 1e-4 * np.ptp(truth)


def test_a_path_of_no_length_and_there_and_back(network):
    flow = AssayFlow(network, *assay())
    here, there, by_way = np.array([3.0, 20.0]), np.array([41.0, 7.0]), np.array([28.0, 55.0])
    assert np.abs(flow.transport(here, here)).max() == 0.0
    scale = np.ptp(flow.means)
    assert np.abs(flow.transport(here, there) + flow.transport(there, here)).max() < RELATIVE * scale
    round_about = flow.transport(here, by_way) + flow.transport(by_way, there)
    assert np.abs(round_about - flow.transport(here, there)).max() < RELATIVE * scale


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1000), levels=st.integers(3, 12))
def test_the_order_of_standards_says_nothing(seed, levels):
    c, spectra = assay(levels, 16, seed)
    order = np.random.default_rng(seed).permutation(levels)
    asked = np.linspace(c[0], c[-1], 5)
    network = load_network()
    one, other = AssayFlow(network, c, spectra), AssayFlow(network, c[order], spectra[order])
    assert np.abs(one.predict_mean(asked) - other.predict_mean(asked)).max() < RELATIVE * np.ptp(spectra)


@pytest.mark.parametrize("factor", [1e-6, 1e-3, 1e3, 1e6])
def test_units_of_concentration_and_of_signal_say_nothing(network, factor):
    c, spectra = assay()
    asked = np.linspace(0.0, 1.1 * c[-1], 7)
    plain = AssayFlow(network, c, spectra).predict(asked)
    other = AssayFlow(network, factor * c, spectra).predict(factor * asked)
    louder = AssayFlow(network, c, factor * spectra).predict(asked)
    scale = np.ptp(spectra)
    assert np.abs(other.mean - plain.mean).max() < RELATIVE * scale
    assert np.abs(other.scale - plain.scale).max() < 1e-3 * plain.scale.max()
    assert np.abs(louder.mean / factor - plain.mean).max() < RELATIVE * scale


def test_places_asked_for_together_do_not_change_each_other(network):
    flow = AssayFlow(network, *assay(width=200))
    asked = np.linspace(0.0, 60.0, 90)
    alone = np.concatenate([flow.predict_mean([c]) for c in asked[::30]])
    assert np.abs(flow.predict_mean(asked)[::30] - alone).max() < RELATIVE * np.ptp(flow.means)


@pytest.mark.parametrize(("levels", "width"), [(2, 8), (3, 8), (50, 64), (6, 3000)])  # the last in several parts
def test_sizes_of_assays(levels, width):
    c, spectra = assay(max(levels, 3), width)
    found = AssayFlow(load_network(), c[:levels], spectra[:levels]).predict([0.5 * c[1], 1.1 * c[levels - 1]])
    assert found.mean.shape == found.scale.shape == (2, width)
    assert np.isfinite(found.mean).all()
    assert (found.scale > 0.0).all()
    assert found.extrapolated.tolist() == [False, True]


def test_doubt_grows_with_geodesic_distance():
    c, spectra = assay()
    flow = AssayFlow(load_network(), c, spectra)
    beyond = flow.predict(np.linspace(c[-1], 1.3 * c[-1], 6))
    assert (np.diff(beyond.distance.mean(1)) > 0.0).all()
    assert (np.diff(beyond.scale.mean(1)) > 0.0).all()
    arc = flow.predict(np.linspace(c[0], c[-1], 20)).arc_length
    assert (np.diff(arc, axis=0) > 0.0).all()
    assert np.allclose(arc[[0, -1]], [[-1.0], [1.0]], atol=1e-5)


def test_rate_is_the_derivative_of_the_prediction_by_arc_length():
    flow = AssayFlow(load_network(), *assay())
    a, b = np.array([20.0]), np.array([20.4])
    ends = flow.predict(np.concatenate([a, b]))
    step = ends.arc_length[1] - ends.arc_length[0]
    assert np.abs(flow.rate(0.5 * (a + b))[0] * step - flow.transport(a, b)[0]).max() < 2e-3 * np.ptp(flow.means)


@pytest.mark.parametrize(
    ("levels", "spectra"),
    [([0.0, 1.0, 1.0], np.ones((3, 4))), ([0.0, 1.0], np.ones((3, 4))), ([0.0, np.nan, 2.0], np.ones((3, 4)))],
)
def test_standards_that_cannot_be_read_are_refused(levels, spectra):
    with pytest.raises(InputError):
        AssayFlow(untrained_network(), levels, spectra)


def test_weights_have_a_card_that_names_what_was_left_out():
    card = model_card()
    assert card["steps"] > 0
    assert set(card["families left out"]) & set(card["families"]) == set()
    assert "no real spectra" in card["trained on"]


def test_all_weights_that_come_along_load_and_fit_into_the_wheel():
    files = sorted(SHIPPED.glob("*.safetensors"))
    assert [file.stem for file in files] == ["prior-1", "prior-6"]
    assert weights_path() == files[-1]
    for file in files:
        assert load_network(file.stem).size == load_network().size
        assert model_card(file.stem)["name"] == file.stem
    assert sum(file.stat().st_size for file in files) < 8e6


def test_weights_in_half_precision_are_rounded_by_a_2048th(tmp_path):
    network = load_network("prior-1")
    found = load_network(save_network(network, {}, tmp_path, half=True))
    for one, other in zip(network.parameters(), found.parameters(), strict=True):
        assert other.dtype == one.dtype
        assert ((one - other).abs() <= one.abs() / 2048 + 2.0**-24).all()


@pytest.mark.parametrize("shipped", ["prior-1", "prior-6"])
def test_weights_of_a_record_are_found_among_those_that_come_along(shipped, tmp_path):
    record = weights_record(weights_path(shipped))
    assert weights_at_hand(record, {}) == weights_path(shipped)
    assert weights_at_hand({**record, "sha256": "0"}, {}) is None
    elsewhere = save_network(untrained_network(), {}, tmp_path)
    assert weights_at_hand(weights_record(elsewhere), {}) is None
    assert weights_at_hand(weights_record(elsewhere), {"weights": str(elsewhere)}) == elsewhere


def test_a_bundle_made_with_earlier_weights_tells_how_often_its_bands_hold():
    model = geonode.load(Path(__file__).parents[1] / "release" / "fixtures" / "v5_pretrained.bundle")
    assert model.weights is not None and model.weights["name"] == "prior-1"
    inside = model.coverage()["bands_responding"]
    assert inside is not None and 0.5 <= inside <= 1.0


def test_a_file_that_holds_no_weights_is_refused(tmp_path):
    with pytest.raises(InputError, match="are not there"):
        load_network(tmp_path / "none.safetensors")
    (tmp_path / "text.safetensors").write_text("no weights")
    with pytest.raises(InputError, match="holds no weights of this network"):
        load_network(tmp_path / "text.safetensors")


def test_evaluate_knows_the_flow_and_its_start():
    assay = geonode.simulate_assay(noise=0.003, seed=0).select_wavelengths(slice(None, None, 15))
    report = geonode.evaluate(assay, methods=["gp", "untrained", "pretrained"])
    gp, start, flow = (report.results[name].rmse for name in ("gp", "untrained", "pretrained"))
    assert np.allclose(start, gp, rtol=1e-2)
    assert not np.allclose(flow, gp, rtol=1e-2)
