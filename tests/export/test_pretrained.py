"""An exported pre-trained flow gives the library's spectra and answers, with and without folds."""

from __future__ import annotations

import numpy as np
import pytest

import geonode
import geonode_runtime
from geonode.export.export import LIMITS, export_onnx
from tests.export.in_torch import in_torch

EXPORTED = LIMITS["full"]

GRID = [350.0 + 10.0 * k for k in range(41)]


def standards(concentrations=(0.0, 10.0, 20.0, 30.0, 45.0, 60.0), **options):
    return geonode.simulate_assay(concentrations, wavelengths=GRID, noise=0.003, seed=3, **options)


def assert_same(model, loaded, limit=EXPORTED) -> None:
    """Spectra and an answer of the runtime are the library's."""
    asked = np.linspace(*model.served_range, 23)[1:-1].astype(np.float32).astype(float)
    asked = np.union1d(asked, model.gp.levels)
    mean, std = model.predict_spectra(asked)
    found, width = loaded.predict(asked)
    size = np.ptp(model.gp.level_means)
    assert np.abs(found - mean.values).max() < limit * size
    assert np.abs(width - std.values).max() < limit * size
    unknown = model.predict_spectra([0.4 * asked[0] + 0.6 * asked[-1]])[0].values[0]
    assert loaded.quantify(unknown).estimate == pytest.approx(model.quantify(unknown).estimate, rel=1e-4)


def test_the_file_gives_the_librarys_spectra_and_answers(tmp_path):
    model = geonode.fit(standards(), geonode.GeodesicConfig(folds=True))
    report = export_onnx(model, tmp_path / "a.onnx")
    assert report.mean_error < EXPORTED and report.std_error < EXPORTED
    assert_same(model, geonode_runtime.load(tmp_path / "a.onnx"))


@pytest.mark.parametrize(
    ("data", "config"),
    [
        (standards((10.0, 20.0, 30.0, 60.0), replicates=2), {"margin": 0.5}),
        (standards((5.0, 12.0, 40.0)), {}),
    ],
)
def test_so_do_the_formulas_of_other_standards(data, config):
    model = geonode.fit(data, geonode.GeodesicConfig(**config))
    assert_same(model, in_torch(model))


def test_three_standards_reduced(tmp_path):
    model = geonode.fit(standards((5.0, 12.0, 40.0)))
    report = export_onnx(model, tmp_path / "a.onnx", distill=True)
    assert report.form in ("table", "network") and report.mean_error < 1e-3
    assert report.milliseconds < report.full_milliseconds
    assert_same(model, geonode_runtime.load(tmp_path / "a.onnx"), LIMITS["distilled"])
