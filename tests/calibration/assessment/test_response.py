"""Standards that do not respond are called so, errors are told beside the response, searched limits are not claimed."""

from __future__ import annotations

import numpy as np
import pytest

import geonode
from geonode.calibration import (
    Calibration,
    check_standards,
    detection_limits,
    single_wavelength,
    suggest_standard,
    wavelength_ratio,
)
from geonode.calibration.assessment.warnings import dataset_warnings
from geonode.data import SpectralDataset, simulate_assay
from geonode.errors import InputError
from geonode.report.conclusion import Conclusion
from tests.calibration.assays import LEVELS, NOISE, WAVE, band, folding, monotone, noisy, straight
from tests.commands.cases import run

DESIGNS = {
    "six": LEVELS,
    "four": LEVELS[[0, 1, 3, 5]],
    "replicates": np.repeat(LEVELS[:5], 2),
}


def dead(c, seed: int) -> np.ndarray:
    return noisy(lambda x: 0.2 + 0.7 * np.ones((len(x), 1)) * band(480, 60), c, seed)


@pytest.mark.parametrize("c", DESIGNS.values(), ids=DESIGNS)
def test_noise_is_no_response(c):
    for seed in range(3):
        data = SpectralDataset(dead(c, seed), c, WAVE)
        calibration = Calibration.from_dataset(data)
        assert not calibration.response.responds and calibration.response.error > 0.9
        assert calibration.notes[0].startswith("these standards do not respond")
        assert dataset_warnings(data)[0] == calibration.notes[0]
        limits = detection_limits(calibration)
        assert limits.detection is None and limits.reason in (
            "these standards do not respond",
            "fewer than four standards",
        )


@pytest.mark.parametrize("truth", [monotone, folding, straight], ids=["saturating", "folding", "straight"])
@pytest.mark.parametrize("c", DESIGNS.values(), ids=DESIGNS)
def test_what_responds_is_not_called_dead(truth, c):
    for noise in (NOISE, 10.0 * NOISE):
        calibration = Calibration(c, noisy(truth, c, 1, noise), WAVE)
        assert calibration.response.responds and not any("do not respond" in note for note in calibration.notes)
    simulated = simulate_assay(np.unique(c), seed=2)
    assert Calibration.from_dataset(simulated).response.responds


def test_a_searched_wavelength_is_claimed_of_assays_and_not_of_noise():
    claimed = []
    for seed in range(45):
        c = list(DESIGNS.values())[seed % 3]
        found = [method(c, dead(c, seed), WAVE) for method in (single_wavelength, wavelength_ratio)]
        claimed.append(any(one.line.detection is not None for one in found))
    assert np.mean(claimed) <= 0.05
    for c in DESIGNS.values():
        found = [m(c, noisy(straight, c, 0, 3.0 * NOISE), WAVE) for m in (single_wavelength, wavelength_ratio)]
        assert all(one.line.detection is not None and not one.reasons for one in found)


@pytest.fixture(scope="module", params=["swapped", "another unit"])
def unordered(request) -> Calibration:
    """A response that turns back, with two labels exchanged or one that is a thousandth of what it should be."""
    c = np.array([0.0, 20.0, 40.0, 60.0, 80.0, 100.0])
    said = c[[0, 1, 4, 3, 2, 5]] if request.param == "swapped" else c * np.array([1.0, 1.0, 0.001, 1.0, 1.0, 1.0])
    return Calibration(said, noisy(lambda x: folding(0.6 * x), c, 1), WAVE, unit="ppb")


def test_what_differs_in_no_order_is_not_called_noise(unordered):
    response = unordered.response
    assert response.unordered and not response.proven and not unordered.standing.usable
    assert not unordered.standing.has_curve
    (note,) = [note for note in unordered.notes if note == response.sentence()]
    assert note.startswith(
        "the spectra of these standards are no smooth function of the concentration: they differ by "
    )
    assert "swapped or wrong labels" in note and "where the response turns" in note and "is noise" not in note
    # In no order for the sake of a label, which the headline names; the sentence stands among what is wrong.
    exchanged = unordered.levels.min() == 0.0 and 0.04 not in np.round(unordered.levels, 6)
    named = (
        "the labels of the standards 40 ppb and 80 ppb look exchanged" if exchanged else "the standard 0.04 ppb contra"
    )
    assert Conclusion(unordered).headline().startswith(f"Not usable: {named}") and note in Conclusion(unordered).caveats
    assert detection_limits(unordered).reason == response.fault


def test_suggest_does_not_call_more_levels_useless_where_nothing_can_be_reckoned(unordered):
    found = suggest_standard(unordered, candidates=5, points=5)
    assert found.worth_it and "not worth it" not in found.sentence() and "labels and units" in found.sentence("ppb")
    gap = int(np.diff(unordered.levels).argmax())
    assert found.concentration == pytest.approx(unordered.levels[gap : gap + 2].mean())
    silent = suggest_standard(Calibration(LEVELS, dead(LEVELS, 0), WAVE), candidates=5, points=5)
    assert not silent.worth_it and silent.sentence().startswith(
        "no further standard can be chosen, for these standards do"
    )


def test_an_evaluation_says_that_nothing_responds():
    report = geonode.evaluate(SpectralDataset(dead(LEVELS, 0), LEVELS, WAVE), methods=["linear", "line"])
    assert any(note.startswith("these standards do not respond") for note in report.notes)
    assert report.to_dict()["response_scale"] < 0.02 * report.to_dict()["nrmse_scale"]
    alive = geonode.evaluate(SpectralDataset(noisy(straight, LEVELS, 0), LEVELS, WAVE), methods=["linear", "line"])
    (note,) = [note for note in alive.notes if note.startswith("relative to the response")]
    assert "interior median" in note and not any("do not respond" in note for note in alive.notes)


def zeroed(i: int) -> np.ndarray:
    spectra = noisy(monotone, LEVELS, 0)
    spectra[i] = 0.0
    return spectra


@pytest.mark.parametrize("i", [1, 3, 5])
def test_a_level_of_zeros_is_named(i):
    with pytest.raises(InputError, match=rf"'{LEVELS[i]:g}' is zero at every wavelength, and its neighbours are not"):
        geonode.fit(SpectralDataset(zeroed(i), LEVELS, WAVE), predictor_gp())


@pytest.mark.parametrize("reference", [0, 2, 5])
def test_zeros_that_the_others_are_differences_from_are_ordinary(reference):
    spectra = noisy(straight, LEVELS, 0)
    data = SpectralDataset(spectra - spectra[reference], LEVELS, WAVE)
    assert data.require_levels(3) is data
    assert SpectralDataset(zeroed(0), LEVELS, WAVE).require_levels(3)


def predictor_gp():
    return geonode.GeodesicConfig(predictor="gp")


@pytest.mark.parametrize("unit", ["µM", "mg/L", "ppb"])
def test_negative_amounts_are_refused(unit):
    c = np.append(-5.0, LEVELS[1:])
    data = SpectralDataset(noisy(straight, c, 0), c, WAVE, concentration_unit=unit)
    with pytest.raises(InputError, match=f"the level -5 {unit} is negative, which no amount is"):
        geonode.fit(data, predictor_gp())


def test_negative_levels_of_other_scales_are_said():
    for unit, c in (("mV", LEVELS - 20.0), ("", LEVELS - 20.0)):
        model = geonode.fit(SpectralDataset(noisy(straight, c, 0), c, WAVE, concentration_unit=unit), predictor_gp())
        assert any("is negative beside positive ones" in note for note in model.standards.notes)
    logs = SpectralDataset(noisy(straight, LEVELS, 0), LEVELS - 100.0, WAVE, concentration_unit="log M")
    assert not geonode.fit(logs, predictor_gp()).standards.notes


@pytest.mark.parametrize("mistaken", [2, 3])
def test_a_level_labelled_twice_its_value_is_named(mistaken):
    c = np.array([0.0, 10.0, 20.0, 35.0, 45.0, 60.0, 80.0])
    said = c.copy()
    said[mistaken] *= 2.0
    said[mistaken] += 0.5  # so that it does not fall on another
    data = SpectralDataset(noisy(monotone, c, 0), said, WAVE)
    (named,) = [w for w in dataset_warnings(data) if "contradicts the others" in w]
    assert named.startswith(f"the standard {said[mistaken]:g} contradicts")
    honest = Calibration(c, noisy(monotone, c, 0), WAVE)
    assert not any(check.flagged for check in check_standards(honest))


def drifting(kind: str, n: int, seed: int) -> np.ndarray:
    """Spectra of one sample, measured ``n`` times while the instrument drifts, in random order."""
    draw = np.random.default_rng(seed)
    line, run = np.linspace(-1.0, 1.0, len(WAVE)), draw.permutation(n)
    walk = np.cumsum(draw.normal(size=n))[run][:, None]
    x = np.tile(0.2 + 0.7 * band(480, 60), (n, 1))
    if kind == "baseline":
        x = x + 0.02 * walk + 0.01 * draw.normal(size=(n, 1)) * line
    if kind == "lamp":
        x = x * (1.0 + 0.03 * walk)
    if kind == "scatter":
        x = x + 0.05 * draw.random((n, 1)) * (WAVE / 400.0) ** -4
    return x + NOISE * draw.standard_normal(x.shape)


@pytest.mark.parametrize("kind", ["baseline", "lamp", "scatter"])
@pytest.mark.parametrize("c", [DESIGNS["four"], np.arange(0.0, 90.0, 10.0)], ids=["four", "nine"])
def test_drift_is_no_response(kind, c):
    called = []
    for seed in range(5):
        calibration = Calibration(c, drifting(kind, len(c), seed), WAVE)
        called.append(not calibration.response.responds)
    assert np.mean(called) >= (0.6 if len(c) == 4 else 0.8), "of four in random order one in twelve lies in order"


def test_every_command_says_that_drift_is_no_response(tmp_path):
    rows = zip(WAVE, drifting("lamp", 6, 1).T, strict=True)
    text = "\n".join(f"{w:g}," + ",".join(f"{v:.6f}" for v in row) for w, row in rows)
    (tmp_path / "s.csv").write_text("wavelength," + ",".join(f"{x:g}" for x in LEVELS) + "\n" + text + "\n")
    sentence = "these standards do not respond: what their spectra differ by is drift"
    assert sentence in run("fit", tmp_path / "s.csv", "--out", tmp_path / "m.bundle").output
    assert sentence in run("inspect", tmp_path / "s.csv").output
    assert sentence in Conclusion(geonode.load(tmp_path / "m.bundle").calibration).headline()


@pytest.mark.parametrize("truth", [monotone, folding, straight], ids=["saturating", "folding", "straight"])
@pytest.mark.parametrize("factor", ["path", "baseline"])
def test_drift_beside_a_response_hides_none_of_it(truth, factor):
    for seed in range(3):
        draw = np.random.default_rng(seed)
        x = noisy(truth, LEVELS, seed)
        walk = draw.normal(size=(len(LEVELS), 1))
        x = x * (1.0 + 0.02 * walk) if factor == "path" else x + 0.01 * walk
        assert Calibration(LEVELS, x, WAVE).response.responds
