"""Bundles of every earlier version still load and predict what they predicted; later ones are refused in a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import geonode
from geonode import bundle
from geonode.errors import BundleError

FIXTURES = Path(__file__).parent / "fixtures"
NAMES = sorted(path.stem for path in FIXTURES.glob("*.bundle"))
AT = 20.0
"""Level of the fourth standard, quantified below."""


@pytest.fixture(scope="module")
def expected():
    with np.load(FIXTURES / "expected.npz") as file:
        return dict(file)


def test_every_version_has_a_bundle():
    assert {int(name[1]) for name in NAMES} == set(range(1, bundle.VERSION + 1))


@pytest.mark.smoke
@pytest.mark.parametrize("name", NAMES)
def test_it_loads_and_predicts_the_same(name, expected):
    model = geonode.load(FIXTURES / f"{name}.bundle")
    assert model.made["bundle"]["version"] == int(name[1])
    mean, std = model.predict_spectra(expected["at"])
    size = np.abs(expected[name]).max()
    # float32 networks; another machine adds up in another order
    assert np.abs(mean.values - expected[name]).max() <= 1e-6 * size
    if f"{name}_std" in expected:
        np.testing.assert_allclose(std.values, expected[f"{name}_std"], rtol=1e-4)
    found = model.quantify(model.standards.spectra[3])
    assert found.verdict == "quantified" and found.estimate == pytest.approx(AT, abs=0.5)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_written_again_with_what_it_said_of_itself(name, tmp_path, expected):
    before = geonode.load(FIXTURES / f"{name}.bundle")
    before.save(tmp_path / "again.bundle")
    after = geonode.load(tmp_path / "again.bundle")
    assert after.standards == before.standards and after.config == before.config
    assert after.history == before.history and str(after.preprocessing) == str(before.preprocessing)
    for a, b in zip(before.predict_spectra(expected["at"]), after.predict_spectra(expected["at"]), strict=True):
        np.testing.assert_array_equal(a.values, b.values)


@pytest.mark.smoke
@pytest.mark.parametrize("version", [bundle.VERSION + 1, 1000])
def test_later_versions_are_refused_with_the_remedy(version, tmp_path):
    path = FIXTURES / "v2_gp.bundle"
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    words = {**json.loads(header["__metadata__"]["geonode_bundle"]), "version": version}
    save_file(load_file(path), tmp_path / "later.bundle", {"geonode_bundle": json.dumps(words)})
    with pytest.raises(
        BundleError, match=rf"later\.bundle is a bundle of version {version}, .* reads up to {bundle.VERSION}; upgrade"
    ):
        geonode.load(tmp_path / "later.bundle")


@pytest.mark.parametrize("version", [0, -1, True, "2", None, 2.0])
def test_versions_that_are_none_are_refused(version, tmp_path):
    words = {"version": version, "checksum": "0"}
    save_file({"a": torch.zeros(1)}, tmp_path / "odd.bundle", {"geonode_bundle": json.dumps(words)})
    with pytest.raises(BundleError, match=r"odd\.bundle"):
        geonode.load(tmp_path / "odd.bundle")


def test_unknown_words_are_passed_over(tmp_path):
    """A later state may add words without another version: readers of today must not stumble over them."""
    model = geonode.load(FIXTURES / "v2_gp.bundle")
    tensors, words = bundle.read_bundle(FIXTURES / "v2_gp.bundle")
    words = {k: v for k, v in words.items() if k not in ("version", "geonode", "checksum")}
    bundle.write_bundle(tmp_path / "new.bundle", tensors, {**words, "invented_later": [1]}, bundle.PLAIN)
    again = geonode.load(tmp_path / "new.bundle")
    np.testing.assert_array_equal(again.predict_spectra(15.0)[0].values, model.predict_spectra(15.0)[0].values)
