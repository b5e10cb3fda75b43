"""Spectra that a slip of a hand or of a file has spoilt: one cell, the sign, a stretch that is missing."""

from __future__ import annotations

import numpy as np
import pytest

from geonode.calibration import Calibration
from geonode.data import SpectralDataset
from geonode.errors import InputError
from geonode.report.browser.data import answer_data
from geonode_runtime.spikes import spike_in
from geonode_runtime.unknowns import prepare_unknown
from tests.calibration.assays import LEVELS, WAVE, band, folding, monotone, noisy, straight
from tests.report.test_answers import as_json, asked, compare, fitted, needs_node, of_library


def falling(c) -> np.ndarray:
    """A dye that is bleached: no standard is below zero, and the curve carried on is."""
    return np.exp(-np.atleast_1d(c) / 25.0)[:, None] * band(520.0, 50.0)


TRUTHS = {"monotone": monotone, "folding": folding, "straight": straight, "falling": falling}
SPIKES = {"times 1000": (44, lambda v: 1000.0 * v), "a count": (71, lambda v: 65535.0), "first": (0, lambda v: v + 4.0)}
SPIKES |= {"second": (1, lambda v: v + 4.0), "last": (len(WAVE) - 1, lambda v: v + 4.0)}


@pytest.fixture(scope="module", params=TRUTHS)
def assay(request) -> tuple[Calibration, np.ndarray]:
    truth = TRUTHS[request.param]
    return Calibration(LEVELS, noisy(truth, LEVELS, 1), WAVE), noisy(truth, [30.0], 9)[0]


# ---------------------------------------------------------------------- one cell


@pytest.mark.parametrize("name", SPIKES)
def test_a_cell_that_stands_alone_is_named(assay, name):
    calibration, spectrum = assay
    (k, change), spoilt = SPIKES[name], spectrum.copy()
    spoilt[k] = change(spoilt[k])
    with pytest.raises(InputError, match=rf"u1 is .* at wavelength {WAVE[k]:g} and .* a spike, or a decimal mark"):
        calibration.quantify(spoilt, name="u1")
    with pytest.raises(InputError, match=rf"replicate 2 of u1 is .* at wavelength {WAVE[k]:g} "):
        calibration.quantify(np.stack([spectrum, spoilt]), replicates=True, name="u1")
    beyond = np.append(WAVE, WAVE[-1] + 5.0)  # what the standards have nothing of is no matter
    calibration.quantify(np.append(spectrum, 1e3), beyond)
    mask = np.arange(len(WAVE)) == k
    assert calibration.quantify(spoilt, mask=mask).masked == 1


@pytest.mark.parametrize("name", SPIKES)
@pytest.mark.parametrize("level", [1, 4])
def test_a_cell_of_a_standard_is_named_with_its_column(name, level):
    (k, change), spectra = SPIKES[name], noisy(monotone, LEVELS, 1)
    spectra[level, k] = change(spectra[level, k])
    data = SpectralDataset(spectra, LEVELS, WAVE, names=[f"{c:g}.0" for c in LEVELS])
    with pytest.raises(InputError, match=rf"'{LEVELS[level]:g}\.0' is .* at wavelength {WAVE[k]:g} and "):
        data.require_levels()


@pytest.mark.parametrize("width", [2.0, 6.0])
def test_a_sharp_line_of_the_analyte_is_no_spike(width):
    spectra = 1e-3 * band(500.0, 60.0) + np.array([0.0, 1.0, 10.0])[:, None] * band(500.0, width)
    assert all(spike_in(one, np.delete(spectra, i, axis=0)) is None for i, one in enumerate(spectra))
    assert spike_in(2.0 * spectra[2], spectra) is None
    assert spike_in(spectra[2] + 200.0 * (np.arange(len(WAVE)) == 20), spectra[:2]) == 20


@pytest.mark.parametrize(
    "edge", [lambda x: 3.0 * x**2, lambda x: np.exp(6.0 * x), lambda x: 8.0 * x, lambda x: 2.0 / (1.05 - x)]
)
def test_a_steep_end_is_no_spike(edge):
    """A band that the window cuts, or a solvent's: of one spectrum alone, without noise, at either end."""
    for x in (np.linspace(0.0, 1.0, 20), np.linspace(1.0, 0.0, 20)):
        others = np.array([[1.0], [2.0]]) * np.linspace(0.1, 0.3, 20)
        assert spike_in(0.3 + edge(x), others) is None


# ---------------------------------------------------------------------- the sign


@pytest.mark.parametrize("change", [lambda s: -s, lambda s: -0.4 * s])
def test_a_spectrum_with_its_sign_changed_is_not_above_the_range(assay, change):
    calibration, spectrum = assay
    found = calibration.quantify(change(spectrum))
    assert found.verdict == "does not match" and not any("dilute" in said for said in (*found.notes, *found.why))
    if change(1.0) == -1.0:
        assert "it looks like a spectrum with its sign changed" in found.why[1]
        assert found.explanation.corrected == pytest.approx(30.0, abs=1.5) or found.explanation.twins


@pytest.mark.parametrize("c", [20.0, 45.0])
@pytest.mark.parametrize(
    ("full", "said"), [(1.0, "a difference of transmittance, T − 1"), (-1.0, "absorptance, 1 − T")]
)
def test_what_transmittance_lacks_of_one_is_told(c, full, said):
    calibration = Calibration(LEVELS, 2.0 * noisy(straight, LEVELS, 1), WAVE)
    found = calibration.quantify(full * (10.0 ** -(2.0 * noisy(straight, [c], 9)[0]) - 1.0))
    assert said in " ".join(found.why) and not any("dilute" in one for one in (*found.notes, *found.why))


# ---------------------------------------------------------------------- a stretch that is missing

KEPT = (WAVE <= 480.0) | (WAVE >= 560.0)


@pytest.mark.parametrize("shift", [0.5, 1.5])
def test_a_gap_of_the_standards_is_not_the_unknowns(shift):
    standards, own = noisy(straight, LEVELS, 1)[:, KEPT], WAVE[KEPT][:-1] + shift
    spectrum = np.interp(own, WAVE, straight([30.0])[0])
    found = prepare_unknown(spectrum, WAVE[KEPT], standards, wavelengths=own)
    assert any("the standards have a gap of 80 between their wavelengths, as it has" in note for note in found.notes)
    np.testing.assert_allclose(found.spectra[0, found.usable], straight([30.0])[0][KEPT][found.usable], atol=0.01)
    assert 0 < (~found.usable).sum() <= 4


@pytest.mark.parametrize("shift", [0.0, 1.5])
def test_a_gap_of_the_unknown_is_said_where_it_is(shift):
    own = WAVE[KEPT] + shift
    with pytest.raises(
        InputError, match=rf"u1 has no wavelengths between {480 + shift:g} and {560 + shift:g}, where the"
    ):
        prepare_unknown(straight([30.0])[0][KEPT], WAVE, noisy(straight, LEVELS, 1), wavelengths=own, name="u1")


@needs_node
def test_the_page_says_the_same_of_gaps():
    model = fitted(lambda c: straight(c)[:, KEPT], wavelengths=WAVE[KEPT])
    unknowns = []
    for k, own in enumerate(
        (WAVE[KEPT][:-1] + 0.5, WAVE[WAVE != 320.0], WAVE[(WAVE < 400.0) | (WAVE > 470.0)][:-1] + 1.5)
    ):
        spectrum = np.interp(own, WAVE, straight([30.0])[0])
        unknowns.append({"name": f"u{k}", "wavelengths": own, "values": spectrum[None], "mask": None, "options": {}})
    theirs = [of_library(model, one) for one in unknowns]
    for mine, one in zip(asked(answer_data(model), [as_json(one) for one in unknowns]), theirs, strict=True):
        compare(model, mine, one)
    assert "a gap of 80" in " ".join(theirs[0].notes) and "no wavelengths between" in theirs[2]
