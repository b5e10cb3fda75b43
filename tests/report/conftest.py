"""One small model with a neural flow, named by somebody who means harm, and its report."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import geonode
from geonode.data import SpectralDataset
from geonode.report.write_report import write_report

LEVELS = np.array([0.0, 0.0, 10.0, 20.0, 30.0, 40.0, 60.0])
HOSTILE = "</script><script>document.title='owned'</script><img src=\"http://example.invalid/x.png\" onerror='1'>&"


def dataset(wavelengths: int = 61, **words) -> SpectralDataset:
    wave = np.linspace(400.0, 700.0, wavelengths)
    share = LEVELS[:, None] / (LEVELS[:, None] + 15.0)
    bands = [np.exp(-(((wave - at) / 40.0) ** 2)) for at in (500.0, 610.0)]
    spectra = 0.2 + 0.5 * (1.0 - share) * bands[0] + 0.6 * share * bands[1]
    spectra += 1e-3 * np.random.default_rng(0).standard_normal(spectra.shape)
    return SpectralDataset(spectra, LEVELS, wave, **{"concentration_unit": "ppb", "signal": "absorbance", **words})


@pytest.fixture(scope="session")
def reported(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """The model as loaded from its bundle, the folder of its report, and the page's text."""
    folder: Path = tmp_path_factory.mktemp("report")
    data = dataset(names=[f"{HOSTILE} {i}" for i in range(len(LEVELS))], source=f"{HOSTILE}.csv")
    fitted = geonode.fit(data, geonode.GeodesicConfig(epochs=3, metric_hidden=(8, 8), flow_hidden=16), device="cpu")
    fitted.save(folder / "assay.bundle")
    model = geonode.load(folder / "assay.bundle")
    written, notes = write_report(model, folder / "out", folder / "assay.bundle")
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    return SimpleNamespace(model=model, folder=folder / "out", page=page, written=written, notes=notes)
