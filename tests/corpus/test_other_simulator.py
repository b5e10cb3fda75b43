"""The other simulator: independent of the corpus, and as sound."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).resolve().parents[2] / "benchmarks" / "other_simulator.py"


@pytest.fixture(scope="module")
def other():
    spec = importlib.util.spec_from_file_location("other_simulator", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_it_shares_nothing_with_the_corpus():
    tree = ast.parse(PATH.read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not [name for name in imported if name.split(".")[0] in ("geonode", "torch")]


def test_assays_are_finite_ascending_and_reproducible(other):
    dead = 0
    for seed in range(150):
        one, again = other.other_assay(seed, wavelengths=40), other.other_assay(seed, wavelengths=40)
        assert np.array_equal(one.spectra, again.spectra)
        assert np.isfinite(one.spectra).all() and np.isfinite(one.query_truth).all()
        assert (np.diff(one.concentration) > 0).all() and one.concentration[0] >= 0
        response = np.sqrt(np.mean((one.truth - one.truth.mean(0)) ** 2))
        dead += np.sqrt(np.mean((one.spectra - one.truth) ** 2)) > response
    assert dead <= 3, "a few without a response that can be seen, as in life"


def test_every_response_is_drawn_in_about_its_share(other):
    names = Counter(other.other_assay(seed, levels=4, wavelengths=8).name for seed in range(1500))
    total = sum(share for share, _ in other.RESPONSES.values())
    for name, (share, _) in other.RESPONSES.items():
        assert abs(names[name] / 1500 - share / total) < 0.04, name


def test_files_are_standards_and_their_truth(other, tmp_path, monkeypatch):
    import geonode

    monkeypatch.setattr(sys, "argv", ["other_simulator.py", "--count", "2", "--out", str(tmp_path)])
    other.main()
    files = sorted(path for path in tmp_path.glob("*.csv") if "truth" not in path.name)
    assert len(files) == 2
    one = other.other_assay(0)
    read = geonode.load_standards(files[0])
    np.testing.assert_allclose(np.asarray(read.concentrations), one.concentration, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(read.spectra), one.spectra, rtol=1e-5, atol=1e-5 * np.abs(one.spectra).max())
