"""Adapted weights: whole in one file with its card, named by bundles, and the same spectra wherever they are used."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

import geonode
from geonode.adaptation import Series
from geonode.adaptation.judgement import compare
from geonode.errors import InputError
from geonode.export.export import LIMITS
from geonode.prior.network import Network, NetworkSize
from geonode.prior.stored import load_network, model_card, save_network, shipped_names, weights_record
from tests.adaptation.conftest import NAMES
from tests.adaptation.instrument import series
from tests.export.in_torch import in_torch

EXPORTED = LIMITS["full"]


@pytest.fixture(scope="module")
def today():
    """A calibration that no weights have seen."""
    return series(42, width=31)


def asked(model):
    return np.linspace(*model.served_range, 13)[1:-1].astype(np.float32).astype(float)


def test_the_card_says_from_what_with_what_on_what_and_whether_it_helped(weights, base, adapted):
    card = model_card(weights)
    assert card["base"] == weights_record(base) and card["base"]["name"] == "small"
    assert card["adapters"]["rank"] == 4 and card["adapters"]["merged"] is True
    assert tuple(one["name"] for one in card["series"]) == NAMES
    assert card["judgement"]["helped"] is True
    assert [row["name"] for row in card["judgement"]["series left out"]] == list(NAMES)
    assert card["judgement"]["error after ÷ before"] == pytest.approx(adapted.judgement.ratio)
    assert json.loads(json.dumps(card, allow_nan=False)) == card
    assert load_network(weights).size == load_network(base).size


@pytest.mark.parametrize("config", [{}, {"folds": True}])
def test_bundle_and_runtime_give_the_adapted_spectra(today, weights, base, config, tmp_path):
    model = geonode.fit(today, geonode.GeodesicConfig(**config), weights=weights)
    assert model.weights == {**weights_record(weights)} and model.weights["base"] == "small"
    model.save(tmp_path / "a.bundle")
    back = geonode.load(tmp_path / "a.bundle")
    mean, std = model.predict_spectra(asked(model))
    for one, other in zip(back.predict_spectra(asked(model)), (mean, std), strict=True):
        np.testing.assert_array_equal(one.values, other.values)
    size = np.ptp(model.gp.level_means)
    plain = geonode.fit(today, geonode.GeodesicConfig(**config), weights=base)
    assert np.abs(plain.predict_spectra(asked(model))[0].values - mean.values).max() > 100 * EXPORTED * size
    loaded = in_torch(back)  # a whole export is that of the command, tests/adaptation/test_command.py
    found, width = loaded.predict(asked(model))
    assert np.abs(found - mean.values).max() < EXPORTED * size
    assert np.abs(width - std.values).max() < EXPORTED * size
    unknown = mean.values[5]
    assert loaded.quantify(unknown).estimate == pytest.approx(model.quantify(unknown).estimate, rel=1e-4)


def test_quantify_rests_on_them_with_folds(today, weights, base):
    unknown = np.asarray(today.spectra)[3] + 1e-3
    with_folds = geonode.GeodesicConfig(folds=True)
    ours, theirs = (geonode.fit(today, with_folds, weights=w).quantify(unknown).estimate for w in (weights, base))
    assert ours != theirs


def test_a_bundle_needs_the_weights_no_more(today, weights, tmp_path):
    own = shutil.copy(weights, tmp_path / "gone.safetensors")
    model = geonode.fit(today, weights=own)
    assert model.coverage()["bands_responding"] is not None
    model.save(tmp_path / "a.bundle")
    expected = model.predict_spectra([today.levels[2]])[0].values
    for change in ("removed", "truncated", "others"):
        if change == "removed":
            own.unlink()
        else:
            own.write_bytes(weights.read_bytes()[:5000] if change == "truncated" else b"other")
        back = geonode.load(tmp_path / "a.bundle")
        assert back.weights["name"] == "gone"
        np.testing.assert_array_equal(back.predict_spectra([today.levels[2]])[0].values, expected)
        assert back.coverage()["bands_responding"] is None


def test_weights_written_anew_under_one_name_are_read_anew(small, weights, tmp_path):
    path = save_network(small, {"what": "first"}, tmp_path, "same")
    first = load_network(path), weights_record(path)
    path.write_bytes(weights.read_bytes())
    assert load_network(path) is not first[0] and weights_record(path) != first[1]
    assert load_network(path) is load_network(path)


def test_evaluate_finds_the_errors_by_which_they_were_judged(today, weights, base):
    said = compare(load_network(base), load_network(weights), Series.of("today", today), ())
    for which, error in ((base, said.before), (weights, said.after)):
        found = json.loads(geonode.evaluate(today, methods=["node"], inner=False, weights=which).to_json())
        levels = [level["rmse"] for level in found["methods"]["node"]["per_level"]]
        assert np.exp(np.log(levels).mean()) == pytest.approx(error, rel=1e-4)


# ---------------------------------------------------------------------------------------------------- bad weights


def changed(weights, path, change):
    """A copy of a file of weights with something wrong with it."""
    state = load_file(weights)
    header = {"size": json.dumps({"width": 16, "blocks": 2, "heads": 2, "expansion": 2})}
    if change == "truncated":
        path.write_bytes(weights.read_bytes()[:-1000])
    elif change == "cut in its header":
        path.write_bytes(weights.read_bytes()[:100])
    elif change == "text":
        path.write_text("no weights")
    elif change == "empty":
        path.write_bytes(b"")
    elif change == "of another size":
        save_file(state, path, {"size": json.dumps({"width": 32, "blocks": 2, "heads": 2, "expansion": 2})})
    elif change == "of more blocks":
        save_file(state, path, {"size": json.dumps({"width": 16, "blocks": 3, "heads": 2, "expansion": 2})})
    elif change == "without its size":
        save_file(state, path)
    elif change == "of an impossible size":
        save_file(state, path, {"size": json.dumps({"width": 16, "blocks": 2, "heads": 3, "expansion": 2})})
    elif change == "with a nan":
        state["own.bias"][0] = float("nan")
        save_file(state, path, header)
    return path


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("truncated", "holds no weights of this network"),
        ("cut in its header", "holds no weights of this network"),
        ("text", "holds no weights of this network"),
        ("empty", "holds no weights of this network"),
        ("of another size", r"has shape \[16\] instead of \[32\].*another size, or of another version"),
        ("of more blocks", "blocks.2.*is missing"),
        ("without its size", "does not say how large"),
        ("of an impossible size", "impossible size"),
        ("with a nan", "own.bias has values that are not finite"),
    ],
)
def test_bad_weights_are_one_sentence_wherever_they_are_given(weights, today, change, says, tmp_path):
    path = changed(weights, tmp_path / "bad.safetensors", change)
    calls = (
        lambda: geonode.fit(today, weights=path),
        lambda: geonode.evaluate(today, methods=["node"], weights=path),
        lambda: geonode.adapt([today, series(1, width=31)], weights=path),
    )
    for call in calls:
        with pytest.raises(InputError, match=says) as error:
            call()
        assert str(path) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["nowhere.safetensors", "folder", "prior-0"])
def test_weights_that_are_not_there(today, name, tmp_path):
    (tmp_path / "folder").mkdir()
    given = name if name == "prior-0" else tmp_path / name
    with pytest.raises(InputError, match=f"{name} are not there; give a file .* or one of the names prior-1"):
        geonode.fit(today, weights=given)


@pytest.mark.parametrize("name", shipped_names())
def test_every_shipped_name_can_be_fitted_with(today, name):
    assert geonode.fit(today, weights=name).weights["name"] == name


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"flow": "path_independent"}, "flow='path_independent' is trained"),
        ({"flow": "velocity"}, "flow='velocity' is trained"),
        ({"predictor": "gp"}, "predictor='gp' has none"),
    ],
)
def test_weights_that_nothing_would_read_are_refused(today, weights, config, says):
    with pytest.raises(InputError, match=f"weights are those of the pre-trained flow, and {says}"):
        geonode.fit(today, geonode.GeodesicConfig(**config), weights=weights)


def test_weights_of_a_row_that_is_not_asked_for_are_refused(today, weights):
    with pytest.raises(InputError, match="weights are those of the row node"):
        geonode.evaluate(today, methods=["gp", "pretrained"], weights=weights)


def test_a_network_keeps_what_it_was(small, weights):
    assert isinstance(small, Network) and small.size == NetworkSize(width=16, blocks=2, heads=2)
    assert load_network(weights).requires_grad_(False) is load_network(weights)
