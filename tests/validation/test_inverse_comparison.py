"""`evaluate --inverse`: schema, honesty, and the recorded accuracy on a real series."""

from __future__ import annotations

import json

import numpy as np
import pytest

from geonode.calibration import Calibration
from geonode.data import SpectralDataset
from geonode.errors import InputError
from geonode.report.calibration_report import CalibrationReport
from geonode.validation import evaluate
from geonode.validation.inverse_comparison import evaluate_inverse
from tests.calibration import assays

WAVE = np.linspace(400.0, 700.0, 61)


def standards(levels=(0.0, 10.0, 20.0, 40.0, 60.0), replicates: int = 2) -> SpectralDataset:
    c = np.repeat(levels, replicates)
    x = (c / (c + 25.0))[:, None]
    exact = 0.2 + x * np.exp(-(((WAVE - 600.0) / 50.0) ** 2)) + 0.3 * (1 - x) * np.exp(-(((WAVE - 450.0) / 50.0) ** 2))
    return SpectralDataset(exact + 0.002 * np.random.default_rng(0).standard_normal(exact.shape), c, WAVE)


def test_schema_and_coverage() -> None:
    report = evaluate(standards(), methods=["linear", "gp"], inverse=True)
    inverse = json.loads(report.to_json())["inverse"]
    assert list(inverse) == ["geonode", "profile", "pls", "pls_warped", "pcr", "gp_pca", "pchip_curve"]
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


def zeroed(replicates: int = 1, noise: float = 0.002, blank: float = 0.0) -> SpectralDataset:
    """An instrument zeroed on the blank, whose spectrum is ``blank`` × noise and nothing else."""
    c = np.repeat(assays.LEVELS, replicates)
    rng = np.random.default_rng(5)
    exact = assays.monotone(c) - assays.monotone([0.0])
    spectra = exact + noise * rng.standard_normal(exact.shape)
    spectra[c == 0.0] = blank * noise * rng.standard_normal((replicates, len(assays.WAVE)))
    return SpectralDataset(spectra, c, assays.WAVE)


@pytest.mark.parametrize(
    "dataset",
    [zeroed(), zeroed(3), zeroed(3, blank=0.01), zeroed(2, blank=1.0)],
    ids=["zeros", "replicates of zeros", "nearly zero", "noise about zero"],
)
def test_a_zero_blank_is_ordinary(dataset: SpectralDataset) -> None:
    result = evaluate_inverse(dataset, methods=["geonode", "pls"])
    for entry in result.values():
        assert [row["level"] for row in entry["per_level"]] == assays.LEVELS.tolist()
        assert not any("failed" in row for row in entry["per_level"])
        assert entry["rmsep_percent_interior"] < 15.0
    calibration = Calibration.from_dataset(dataset)
    answer = calibration.quantify(np.zeros(len(assays.WAVE)))
    assert answer.verdict == "below detection limit"
    CalibrationReport(calibration)  # quantifies the standards themselves


def test_zeros_are_no_spectrum_where_no_standard_is_empty() -> None:
    calibration = Calibration(assays.LEVELS, assays.noisy(assays.monotone, assays.LEVELS, 1), assays.WAVE)
    with pytest.raises(InputError, match="zero at every wavelength"):
        calibration.quantify(np.zeros(len(assays.WAVE)))


@pytest.mark.parametrize("level", [0.0, 20.0, 60.0])
def test_a_level_that_cannot_be_done_is_reported_and_the_rest_go_on(level: float, monkeypatch) -> None:
    from geonode.calibration.baselines.latent_variables import PLS

    usual = PLS._fit

    def without(self, spectra, concentrations):
        if level not in concentrations:
            raise InputError(f"cannot be fitted without {level:g}.")
        return usual(self, spectra, concentrations)

    monkeypatch.setattr(PLS, "_fit", without)
    report = evaluate(zeroed(), methods=["line"], inverse=True, inverse_methods=["pls"])
    assert report.inverse is not None
    rows = report.inverse["pls"]["per_level"]
    assert [row["level"] for row in rows if "failed" in row] == [level]
    assert report.inverse["pls"]["rmsep_percent_interior"] > 0.0
    said = [note for note in report.notes if "could not be done" in note]
    assert said == [
        f"Concentration from spectrum by pls: the level {level:g} could not be done (cannot be fitted without "
        f"{level:g}.)"
    ]
    report.to_json()
    assert report.inverse_table() is not None


def test_a_method_that_can_do_no_level_has_no_summary(monkeypatch) -> None:
    from geonode.calibration.baselines.latent_variables import PLS

    def never(self, spectra, concentrations):
        raise InputError("never.")

    monkeypatch.setattr(PLS, "_fit", never)
    entry = evaluate_inverse(zeroed(), methods=["pls"])["pls"]
    assert entry["rmsep_percent_interior"] is None and entry["coverage"] is None
