"""The standards' own spectra among unknowns: recognised, their noise taken out, all others left as they are."""

from __future__ import annotations

import numpy as np
import pytest

from geonode.calibration import GeodesicCalibrator, quality_check
from geonode.calibration.calibration import Calibration
from geonode.data import simulate_assay
from geonode.data.preprocessing import Preprocessing
from geonode.report.calibration_report import CalibrationReport
from tests.calibration.assays import LEVELS, NOISE, WAVE, folding, monotone, noisy


def made(truth, replicates: int, seed: int = 0) -> Calibration:
    c = np.repeat(LEVELS, replicates)
    return Calibration(c, noisy(truth, c, seed), WAVE)


# ---------------------------------------------------------------------- laws


@pytest.mark.parametrize("replicates", [1, 3])
@pytest.mark.parametrize("truth", [monotone, folding])
def test_without_its_noise_a_standard_lies_where_the_curve_was_fitted_to(truth, replicates: int) -> None:
    calibration = made(truth, replicates)
    own, inverse = calibration.standard_spectra, calibration.inverse
    spectra, which = own.as_new(calibration.spectra)
    np.testing.assert_array_equal(which, np.arange(len(spectra)))
    coordinates, residual = inverse.project(spectra, None)
    means = np.stack([coordinates[calibration.level_index == i].mean(axis=0) for i in range(len(LEVELS))])
    np.testing.assert_allclose(means, inverse.projection.levels, atol=1e-8 * np.abs(coordinates).max())
    np.testing.assert_allclose(residual, inverse.project(calibration.spectra, None)[1], atol=1e-8)
    # How replicates of one level differ among themselves is their own, and stays.
    before = inverse.project(calibration.spectra, None)[0]
    same = np.diff(calibration.level_index) == 0
    np.testing.assert_allclose(np.diff(coordinates - before, axis=0)[same], 0.0, atol=1e-8 * np.abs(before).max())


def test_new_spectra_are_left_as_they_are_to_the_bit() -> None:
    calibration = made(monotone, 1)
    again = np.concatenate([noisy(monotone, LEVELS, seed) for seed in range(1, 21)])
    nearly = calibration.spectra + 0.1 * NOISE * np.random.default_rng(0).standard_normal(calibration.spectra.shape)
    between = calibration.spectra[1:] * 0.5 + calibration.spectra[:-1] * 0.5  # wholly within the standards' span
    for spectra in (again, nearly, between, monotone(np.linspace(0.0, 75.0, 40))):
        found, which = calibration.standard_spectra.as_new(spectra)
        assert found is spectra and (which == -1).all()
        assert not any("no new measurement" in n for a in calibration.quantify_many(spectra) for n in a.notes)


def test_a_standards_noise_is_no_evidence_of_its_concentration() -> None:
    """Twelve assays: the standards' own spectra are found as near to what was prepared as new spectra of the same."""
    own, new = [], []
    for seed in range(12):
        calibration = made(monotone, 1, seed)
        for errors, spectra in ((own, calibration.spectra), (new, noisy(monotone, LEVELS, 1000 + seed))):
            errors.append([a.estimate for a in calibration.quantify_many(spectra)] - LEVELS)
    worst = np.abs(own).max(axis=0), np.abs(new).max(axis=0)
    assert (worst[0] <= worst[1] + 0.1).all(), worst


# ---------------------------------------------------------------------- examples


def test_every_way_to_ask_gives_the_same_answer_at_the_top_of_the_demos_assay() -> None:
    assay = simulate_assay()
    c, x = np.asarray(assay.concentrations).ravel(), np.asarray(assay.spectra)
    calibration = Calibration.from_dataset(assay)
    answer, (*_, last) = calibration.quantify(x[-1]), calibration.quantify_many(x)
    assert answer.verdict == last.verdict == "quantified" and answer.notes == last.notes
    assert answer.estimate == pytest.approx(60.0, abs=1.0) and last.estimate == pytest.approx(answer.estimate)
    assert answer.notes[0].startswith("this is the spectrum of the standard 60 itself and no new measurement")
    assert GeodesicCalibrator().fit(x, c).predict(x)[-1] == pytest.approx(answer.estimate)
    assert quality_check(calibration, x[-1], 60.0).found == pytest.approx(answer.estimate)
    assert CalibrationReport(calibration).data["fitted"]["rmse"] < 0.01 * 60.0


def test_some_of_several_replicates_are_standards() -> None:
    calibration = made(monotone, 2)
    spectra = np.concatenate([calibration.spectra[:2], noisy(monotone, [0.0], 9)])
    notes = calibration.quantify(spectra, replicates=True).notes
    assert any(note.startswith("2 of the 3 spectra are those of standards (0)") for note in notes)


def test_recognised_through_preprocessing() -> None:
    assay = simulate_assay()
    for steps in ("snv", "range:250-700, msc"):
        chain = Preprocessing.parse(steps)
        calibration = Calibration.from_dataset(chain.fit_transform(assay), preprocessing=chain)
        answer = calibration.quantify(np.asarray(assay.spectra[5]))
        assert "standard 60 itself" in " ".join(answer.notes) and answer.estimate == pytest.approx(60.0, abs=1.5)
