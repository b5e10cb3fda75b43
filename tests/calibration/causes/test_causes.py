"""Causes of a misfit: each is named right on simulated residuals, with its amount; and none where there is none."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from geonode.calibration.causes import CAUSES, Cause, explain
from geonode_runtime.causes.fitting import Problem, plain

WAVE = np.linspace(400.0, 700.0, 151)
NOISE = 0.002
SIZES = (5.0, 20.0)
DRAWS = 18


def band(centre: float, width: float) -> np.ndarray:
    return np.exp(-0.5 * ((WAVE - centre) / width) ** 2)


def binding(c: np.ndarray) -> np.ndarray:
    bound = (c / (30.0 + c))[:, None]
    return (1.0 - bound) * (band(455.0, 25.0) + 0.3 * band(560.0, 40.0)) + bound * 0.8 * band(530.0, 30.0)


def line(c: np.ndarray) -> np.ndarray:
    return 0.05 * band(420.0, 60.0) + c[:, None] * 0.01 * (band(540.0, 22.0) + 0.4 * band(490.0, 25.0))


def moving(c: np.ndarray) -> np.ndarray:
    centre = 520.0 + 20.0 * (c / (40.0 + c))[:, None]
    return np.exp(-0.5 * ((WAVE[None] - centre) / 28.0) ** 2) + 0.3


ASSAYS = {"binding": binding, "straight line": line, "moving band": moving}


def spoilt(name: str, spectrum: np.ndarray, amount: float, rng: np.random.Generator) -> np.ndarray:
    """The effect of a cause, of any size: what is drawn is its shape."""
    x = np.linspace(-1.0, 1.0, len(WAVE))
    sign = rng.choice([-1.0, 1.0])
    if name == "offset":
        return spectrum + sign * amount
    if name == "tilt":
        return spectrum + sign * amount * (x + rng.uniform(-0.3, 0.3))
    if name == "scale":
        return spectrum * (1.0 + 0.1 * sign * amount)
    if name == "scatter":
        return spectrum + amount * (WAVE / WAVE[0]) ** -rng.uniform(3.0, 4.0)
    if name == "interferent":
        return spectrum + amount * band(rng.uniform(430.0, 670.0), rng.uniform(8.0, 25.0))
    if name == "shift":
        return np.interp(WAVE - sign * 10.0 * amount, WAVE, spectrum)
    assert name == "resolution"
    sigma = 40.0 * amount
    kernel = np.exp(-0.5 * ((WAVE[:, None] - WAVE[None]) / sigma) ** 2)
    return kernel @ spectrum / kernel.sum(axis=1)


def of_size(name: str, spectrum: np.ndarray, times: float, curve, seed: int) -> np.ndarray | None:
    """The spectrum spoilt so that what no concentration explains is ``times`` the noise (root mean square); None where
    the cause cannot be as large."""
    low, high = 1e-4, 1.0
    for _ in range(40):
        middle = np.sqrt(low * high)
        made = spoilt(name, spectrum, middle, np.random.default_rng(seed))
        size = np.sqrt(plain(problem(made, curve)).rss / len(WAVE))
        if abs(size / times - 1.0) < 0.01:
            break
        low, high = (middle, high) if size < times else (low, middle)
    return made if abs(size / times - 1.0) < 0.05 else None


def problem(spectrum: np.ndarray, curve) -> Problem:
    return Problem(spectrum, WAVE, np.full(len(WAVE), NOISE), curve, np.linspace(0.0, 125.0, 33))


@pytest.mark.parametrize("times", SIZES)
@pytest.mark.parametrize("name", [n for n in CAUSES if not CAUSES[n].other_quantity and n != "other path length"])
def test_each_cause_is_named_right(name, times):
    """Nine times of ten where its size, what no concentration explains of it, is five times the noise or more."""
    said = []
    for draw in range(DRAWS):
        rng = np.random.default_rng(draw)
        curve = list(ASSAYS.values())[draw % 3]
        spectrum = curve(np.array([rng.uniform(10.0, 90.0)]))[0]
        made = of_size(name, spectrum, times, curve, draw)
        if made is not None:
            said.append(explain(problem(made + NOISE * rng.standard_normal(len(WAVE)), curve)).cause)
    assert len(said) >= 6 and said.count(name) >= 0.9 * len(said), said


@pytest.mark.parametrize("ratio", [0.2, 0.5, 2.0, 5.0])
def test_a_cuvette_that_is_sold_goes_before_a_free_scale(ratio):
    said = []
    for draw in range(DRAWS):
        rng = np.random.default_rng(draw)
        curve = (binding, moving)[draw % 2]
        made = ratio * curve(np.array([rng.uniform(10.0, 90.0)]))[0] + NOISE * rng.standard_normal(len(WAVE))
        found = explain(problem(made, curve))
        assert found.cause != "other path length" or f"{ratio:g} times" in found.words
        said.append(found.cause)
    assert said.count("other path length") >= 0.9 * len(said), said


@pytest.mark.parametrize("full", [1.0, 100.0])
@pytest.mark.parametrize("assay", ASSAYS)
def test_transmittance_is_named_with_the_concentration_behind_it(assay, full):
    """Beyond the concentrations that are compared, too, and then without one."""
    rng, percent = np.random.default_rng(7), "percent" if full == 100.0 else "0 to 1"
    for c in (15.0, 40.0, 160.0):
        absorbance = ASSAYS[assay](np.array([c]))[0] + NOISE * rng.standard_normal(len(WAVE))
        found = explain(problem(full * 10.0**-absorbance, ASSAYS[assay]))
        assert found.cause == "transmittance" and f"transmittance ({percent})" in found.why()
        assert found.corrected == (pytest.approx(c, rel=0.1) if c < 100.0 else None)
        assert ("without it the spectrum would be that of" in found.why()) == (c < 100.0)
        assert found.why().endswith("export it as absorbance, or take −log10 of it (2 − log10 of percent)")


@pytest.mark.parametrize("assay", ASSAYS)
def test_other_absorbance_is_not_called_transmittance(assay):
    """Of other assays, with a large offset, and far above the standards."""
    curve = ASSAYS[assay](np.array([40.0]))[0]
    noise = NOISE * np.random.default_rng(2).standard_normal(len(WAVE))
    others = [one(np.array([40.0]))[0] for name, one in ASSAYS.items() if name != assay]
    for made in (
        *others,
        curve + 0.8,
        2.5 * curve,
        curve + band(480.0, 30.0),
        np.ones(len(WAVE)) - 0.4 * (WAVE > 550.0),
    ):
        assert explain(problem(made + noise, ASSAYS[assay])).cause != "transmittance"


@pytest.mark.parametrize("assay", ASSAYS)
@pytest.mark.parametrize(("slope", "cause"), [(0.0, "offset"), (0.0005, "offset"), (0.01, "tilt"), (0.04, "tilt")])
def test_a_baseline_with_equal_ends_is_an_offset(assay, slope, cause):
    """Of 151 wavelengths and so little noise the criterion would notice ends that differ by a hundredth."""
    rng = np.random.default_rng(3)
    line = 0.05 + slope * np.linspace(-1.0, 1.0, len(WAVE))
    made = ASSAYS[assay](np.array([40.0]))[0] + line + 2e-5 * rng.standard_normal(len(WAVE))
    quiet = replace(problem(made, ASSAYS[assay]), scale=np.full(len(WAVE), 2e-5))
    assert explain(quiet).cause == cause


@pytest.mark.parametrize("assay", ASSAYS)
@pytest.mark.parametrize("size", [1e-4, 1e-3, 0.01])
def test_noise_alone_is_no_small_multiple_of_the_first_standard(assay, size):
    noise = size * np.random.default_rng(5).standard_normal(len(WAVE))
    found = explain(problem(noise, ASSAYS[assay]))
    assert found.cause not in ("scale", "other path length")


@pytest.mark.parametrize("assay", ASSAYS)
def test_no_cause_is_named_where_there_is_none(assay):
    for draw in range(DRAWS):
        rng = np.random.default_rng(draw)
        spectrum = ASSAYS[assay](np.array([rng.uniform(5.0, 95.0)]))[0] + NOISE * rng.standard_normal(len(WAVE))
        found = explain(problem(spectrum, ASSAYS[assay]))
        assert found.cause is None and not any(s.share > 0.2 for s in found.stretches)


AMOUNTS = [
    (lambda s: s + 0.02, "offset", "an offset of +0.02"),
    (lambda s: s + 0.03 * band(640.0, 15.0), "interferent", "a further band at 640"),
    (lambda s: np.interp(WAVE - 3.0, WAVE, s), "shift", "by 3 nm towards longer"),
    (lambda s: s + 0.05 * (WAVE / 400.0) ** -4, "scatter", "scattering, 0.05"),
    (lambda s: 1.07 * s, "scale", "1.07 times"),
    (lambda s: s + np.linspace(-0.01, 0.03, len(WAVE)), "tilt", "+0.03 at 700"),
]


@pytest.mark.parametrize(("change", "cause", "words"), AMOUNTS, ids=[a[1] for a in AMOUNTS])
def test_the_amount_place_and_concentration_are_told(change, cause, words):
    found = explain(problem(change(binding(np.array([30.0]))[0]), binding), " nm", "absorbance")
    assert found.cause == cause and words in found.words and found.corrected == pytest.approx(30.0, abs=0.2)
    where, why = found.sentences("µM")
    assert "in absorbance at" in where and "times the noise" in where
    assert "30 µM" in why and found.remedy in why


@pytest.mark.parametrize(("centre", "end"), [(725.0, "700 nm"), (715.0, "700 nm"), (385.0, "400 nm")])
def test_a_band_beyond_the_wavelengths_is_told_by_its_flank(centre, end):
    """Its height is that where the wavelengths end, and no band is named where nothing was measured."""
    added = 0.3 * band(centre, 20.0)
    found = explain(problem(line(np.array([30.0]))[0] + added, line), " nm", "absorbance")
    height = added[-1 if centre > 700.0 else 0]
    told = re.fullmatch(
        rf"the flank of a band beyond the wavelengths that were measured, (.*) high in absorbance at {end}, where they "
        "end: an interferent",
        found.words,
    )
    assert found.cause == "interferent" and float(told[1]) == pytest.approx(height, rel=0.05)


def test_where_it_is_off_is_where_the_band_is():
    found = explain(problem(binding(np.array([30.0]))[0] + 0.03 * band(640.0, 10.0), binding), " nm")
    (first, *rest) = found.stretches
    assert not rest and 605.0 < first.low < 630.0 and 650.0 < first.high < 675.0
    assert first.peak == pytest.approx(640.0, abs=4.0) and first.size == pytest.approx(0.03, rel=0.1)
    assert f"from {first.low:.4g} to {first.high:.4g} nm" in found.where()


def test_what_no_cause_makes_is_called_so():
    foreign = 0.5 * band(430.0, 6.0) + 0.4 * band(600.0, 9.0) + 0.3 * band(670.0, 7.0)
    found = explain(problem(foreign, binding))
    assert found.cause is None and "no simple cause explains it (tried: " in found.why()
    assert set(found.scores) == set(CAUSES) and found.best in found.why()


def test_a_cause_of_your_own_is_tried_too():
    @CAUSES.register("ripple")
    class Ripple(Cause):
        """Interference fringes of a known period."""

        parameters = 2
        remedy = "tilt the cell"

        def columns(self, curve, wavelengths, settings):
            """Sine and cosine."""
            return [np.sin(wavelengths / 3.0)[None, None], np.cos(wavelengths / 3.0)[None, None]]

        def words(self, told):
            """The size."""
            return f"fringes {np.hypot(*told.coefficients):.3g} high"

    try:
        found = explain(problem(binding(np.array([30.0]))[0] + 0.02 * np.sin(WAVE / 3.0 + 1.0), binding))
        assert found.cause == "ripple" and found.words == "fringes 0.02 high"
    finally:
        del CAUSES._items["ripple"]
