"""`evaluate --inverse`: schema, honesty, and the recorded accuracy on a real series."""

from __future__ import annotations

import json

import numpy as np
import pytest

from geonode.data import SpectralDataset
from geonode.errors import InputError
from geonode.validation import evaluate
from geonode.validation.inverse_comparison import evaluate_inverse

WAVE = np.linspace(400.0, 700.0, 61)


def standards(levels=(0.0, 10.0, 20.0, 40.0, 60.0), replicates: int = 2) -> SpectralDataset:
    c = np.repeat(levels, replicates)
    x = (c / (c + 25.0))[:, None]
    exact = 0.2 + x * np.exp(-(((WAVE - 600.0) / 50.0) ** 2)) + 0.3 * (1 - x) * np.exp(-(((WAVE - 450.0) / 50.0) ** 2))
    return SpectralDataset(exact + 0.002 * np.random.default_rng(0).standard_normal(exact.shape), c, WAVE)


def test_schema_and_coverage() -> None:
    report = evaluate(standards(), methods=["linear", "gp"], inverse=True)
    inverse = json.loads(report.to_json())["inverse"]
    assert list(inverse) == ["geonode", "pls", "pls_warped", "pcr", "gp_pca", "pchip_curve"]
    for entry in inverse.values():
        assert [row["level"] for row in entry["per_level"]] == [0.0, 10.0, 20.0, 40.0, 60.0]
        assert [row["edge"] for row in entry["per_level"]] == [True, False, False, False, True]
        assert all(len(row["errors"]) == 2 for row in entry["per_level"])
        assert entry["rmsep_percent_interior"] >= 0.0
    assert inverse["pchip_curve"]["coverage"] is None
    own = inverse["geonode"]
    assert own["rmsep_percent_interior"] < 5.0 and own["confidently_wrong"] == 0
    inside = [
        np.mean(
            [
                any(low <= row["level"] and (high is None or row["level"] <= high) for low, high, _ in one)
                for one in sets
            ]
        )
        for row, sets in ((row, row["sets"]) for row in own["per_level"])
    ]
    assert own["coverage"] == pytest.approx(np.mean(inside)) and own["coverage"] >= 0.6
    assert report.inverse_table() is not None


def test_bad_input() -> None:
    with pytest.raises(InputError, match="at least four"):
        evaluate_inverse(standards((0.0, 10.0, 20.0)))
    with pytest.raises(InputError, match="no inverse method called 'svm'"):
        evaluate_inverse(standards(), methods=["geonode", "svm"])


def test_saturating_real_series(shared_data) -> None:
    from geonode.data import load_standards

    dataset = load_standards(shared_data / "series" / "h148g_cl_ph74.csv")
    result = evaluate_inverse(dataset, methods=["geonode", "pls"])
    assert result["geonode"]["rmsep_percent_interior"] <= 1.9
    assert result["pls"]["rmsep_percent_interior"] > 5.0
