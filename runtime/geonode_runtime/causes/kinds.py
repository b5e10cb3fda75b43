"""The causes that are tried, one class each, and their names: :data:`KINDS`."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from geonode_runtime.causes.cause import Axis, Cause, Told

PATHS = (0.1, 0.2, 0.25, 0.4, 0.5, 2.0, 2.5, 4.0, 5.0, 10.0)
"""Ratios of the path lengths of cuvettes that are sold (1, 2, 4, 5, 10, 20, 40, 50, 100 mm) most often mixed up."""
_DENSEST = 10.0
_FWHM = 2.3548  # full width at half maximum ÷ σ of a Gaussian, 2 √(2 ln 2)


def centred(wavelengths: np.ndarray) -> np.ndarray:
    """Wavelengths scaled to [−1, 1], ``[W]``."""
    low, high = float(wavelengths[0]), float(wavelengths[-1])
    return (2.0 * wavelengths - low - high) / ((high - low) or 1.0)


class Offset(Cause):
    """A constant added at every wavelength."""

    parameters = 1
    remedy = "check the instrument's zero and the cuvette's windows"

    def columns(self, curve: np.ndarray, wavelengths: np.ndarray, settings: np.ndarray) -> list[np.ndarray]:
        """A column of ones."""
        return [np.ones((1, 1, len(wavelengths)))]

    def words(self, told: Told) -> str:
        """The constant."""
        return f"an offset of {told.coefficients[0]:+.3g} in {told.signal} at every wavelength"


class Tilt(Cause):
    """A straight line added: an offset and a slope."""

    parameters = 2
    remedy = "check the lamp, the baseline correction and the reference"

    def columns(self, curve: np.ndarray, wavelengths: np.ndarray, settings: np.ndarray) -> list[np.ndarray]:
        """Ones and a slope."""
        return [np.ones((1, 1, len(wavelengths))), centred(wavelengths)[None, None]]

    def words(self, told: Told) -> str:
        """The line's two ends."""
        offset, slope = told.coefficients
        w = told.wavelengths
        return (
            f"a tilted baseline, {offset - slope:+.3g} in {told.signal} at {told.at(w[0])} to {offset + slope:+.3g} at "
            f"{told.at(w[-1])}"
        )


class Scale(Cause):
    """Every value times a factor."""

    parameters = 1
    remedy = "check the reference, the gain, the filling of the cuvette and the volume"
    positive = True
    multiplies = True

    def base(self, curve: np.ndarray, wavelengths: np.ndarray, settings: np.ndarray) -> np.ndarray:
        """Nothing."""
        return np.zeros((1, 1, curve.shape[1]))

    def columns(self, curve: np.ndarray, wavelengths: np.ndarray, settings: np.ndarray) -> list[np.ndarray]:
        """The curve itself."""
        return [curve[:, None, :]]

    def words(self, told: Told) -> str:
        """The factor."""
        return f"a scale: every value is {told.coefficients[0]:.3g} times what it should be"


class PathLength(Cause):
    """Every value times the ratio of two cuvettes that are sold: no free number, so it goes before `Scale`."""

    parameters = 0
    remedy = "check the cuvette, and whether the sample was diluted, its matrix too"
    multiplies = True

    def axes(self, wavelengths: np.ndarray) -> tuple[Axis, ...]:
        """The ratios."""
        return (Axis(np.array(PATHS), between=False),)

    def base(self, curve: np.ndarray, wavelengths: np.ndarray, settings: np.ndarray) -> np.ndarray:
        """The curve times each ratio."""
        return curve[:, None, :] * settings[:, 0][None, :, None]

    def words(self, told: Told) -> str:
        """The ratio."""
        return f"another path length, {told.settings[0]:g} times that of the standards"


class Transmittance(Cause):
    """Transmittance where the standards are absorbance, T = 10^−A, as a fraction or in percent: no free number."""

    parameters = 0
    remedy = "export it as absorbance, or take −log10 of it (2 − log10 of percent)"
    other_quantity = True
    least = 0.98

    def axes(self, wavelengths: np.ndarray) -> tuple[Axis, ...]:
        """What full transmittance is called."""
        return (Axis(np.array([1.0, 100.0]), between=False),)

    def base(self, curve: np.ndarray, wavelengths: np.ndarray, settings: np.ndarray) -> np.ndarray:
        """The curve as transmittance; what is no absorbance is held where that is finite."""
        return 10.0 ** -curve.clip(-_DENSEST, _DENSEST)[:, None, :] * settings[:, 0][None, :, None]

    def words(self, told: Told) -> str:
        """Which of the two."""
        percent = told.settings[0] == 100.0
        return f"transmittance ({'percent' if percent else '0 to 1'}), where the standards look like absorbance"


class TransmittanceDifference(Cause):
    """What transmittance lacks of 1 where the standards are absorbance, with either sign, as a fraction or in percent:
    T − 1 (ΔT/T), or 1 − T (absorptance). No free number."""

    parameters = 0
    remedy = "export it as absorbance, or take −log10 of the transmittance"
    other_quantity = True
    least = 0.98

    def axes(self, wavelengths: np.ndarray) -> tuple[Axis, ...]:
        """What 1 is called, negative for 1 − T."""
        return (Axis(np.array([1.0, 100.0, -1.0, -100.0]), between=False),)

    def base(self, curve: np.ndarray, wavelengths: np.ndarray, settings: np.ndarray) -> np.ndarray:
        """The curve as such a difference; what is no absorbance is held where that is finite."""
        lost = 10.0 ** -curve.clip(-_DENSEST, _DENSEST)[:, None, :] - 1.0
        return lost * settings[:, 0][None, :, None]

    def words(self, told: Told) -> str:
        """Which of the four."""
        full = told.settings[0]
        what = "a difference of transmittance, T − 1" if full > 0.0 else "absorptance, 1 − T"
        return f"{what} ({'percent' if abs(full) == 100.0 else '0 to 1'}), where the standards look like absorbance"


class Negated(Cause):
    """The sign changed. No free number."""

    parameters = 0
    remedy = "look at which of sample and reference was taken off which"
    other_quantity = True
    least = 0.98

    def base(self, curve: np.ndarray, wavelengths: np.ndarray, settings: np.ndarray) -> np.ndarray:
        """The curve upside down."""
        return -curve[:, None, :]

    def words(self, told: Told) -> str:
        """That it is."""
        return "a spectrum with its sign changed"


class Shift(Cause):
    """The wavelength axis displaced."""

    parameters = 1
    remedy = "check the instrument's wavelengths with a holmium or didymium filter"

    def axes(self, wavelengths: np.ndarray) -> tuple[Axis, ...]:
        """Up to a fifteenth of the range either way, zero left out."""
        reach = (wavelengths[-1] - wavelengths[0]) / 15.0
        half = np.linspace(reach / 16.0, reach, 16)
        return (Axis(np.concatenate([-half[::-1], half])),)

    def base(self, curve: np.ndarray, wavelengths: np.ndarray, settings: np.ndarray) -> np.ndarray:
        """The curve, each value from the cubic through the four nearest at the wavelength it would have had."""
        asked = wavelengths[None] - settings[:, :1]
        # beyond the ends a cubic runs away: the end value stands
        return _cubic(asked.clip(wavelengths[0], wavelengths[-1]), wavelengths, curve)

    def words(self, told: Told) -> str:
        """How far and which way."""
        step = told.settings[0]
        way = "longer" if step > 0.0 else "shorter"
        return f"a shift of the wavelengths by {abs(step):.2g}{told.wavelength_unit} towards {way} ones"


class Scatter(Cause):
    """Scattered light that counts as absorbance, a power of the wavelength between −2 (large particles) and −4
    (Rayleigh, small ones)."""

    parameters = 2
    remedy = "the sample is turbid: filter or centrifuge it"
    positive = True

    def axes(self, wavelengths: np.ndarray) -> tuple[Axis, ...]:
        """The exponent."""
        return (Axis(np.array([2.0, 3.0, 4.0])),)

    def columns(self, curve: np.ndarray, wavelengths: np.ndarray, settings: np.ndarray) -> list[np.ndarray]:
        """(λ/λ_min)^−p."""
        return [_power(wavelengths, settings[:, :1])[None]]

    def words(self, told: Told) -> str:
        """Size at the short end and exponent."""
        first = told.wavelengths[0]
        return (
            f"scattering, {told.coefficients[0]:.3g} in {told.signal} at {told.at(first)} and falling with the "
            f"wavelength to the power {told.settings[0]:.2g}"
        )


def _cubic(asked: np.ndarray, x: np.ndarray, curve: np.ndarray) -> np.ndarray:
    """``curve [C, W]`` at wavelengths ``asked [T, W]``, ``[C, T, W]``: Lagrange's polynomial through the four values of
    ``x [W]`` around each."""
    first = np.clip(np.searchsorted(x, asked) - 2, 0, len(x) - 4)
    points = [x[first + k] for k in range(4)]
    made = np.zeros((len(curve), *asked.shape))
    part = np.empty_like(made)  # in place: half of the time went into memory for what lies between
    for i in range(4):
        weight = np.ones(asked.shape)
        for j in range(4):
            if i != j:
                weight *= (asked - points[j]) / (points[i] - points[j])
        np.take(curve, first + i, axis=1, out=part, mode="clip")
        part *= weight
        made += part
    return made


def _power(wavelengths: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    """(λ/λ_min)^−p, ``[T, W]``; wavelengths that are not positive (Raman shifts, pixels) count from 1."""
    positive = wavelengths if wavelengths[0] > 0.0 else wavelengths - wavelengths[0] + 1.0
    return (positive / positive[0])[None] ** -exponents


class Interferent(Cause):
    """A further band, Gaussian, positive."""

    parameters = 3
    remedy = "look for another absorbing substance, or a dirty cuvette"
    positive = True

    def axes(self, wavelengths: np.ndarray) -> tuple[Axis, ...]:
        """Centre, up to a tenth of the range outside, and σ, a hundredth to a fifth of the range."""
        low, high = wavelengths[0], wavelengths[-1]
        span = high - low
        return Axis(np.linspace(low - 0.1 * span, high + 0.1 * span, 37)), Axis(span * np.geomspace(0.012, 0.2, 7))

    def columns(self, curve: np.ndarray, wavelengths: np.ndarray, settings: np.ndarray) -> list[np.ndarray]:
        """The bands."""
        centre, sigma = settings[:, :1], settings[:, 1:]
        return [np.exp(-0.5 * ((wavelengths[None] - centre) / sigma) ** 2)[None]]

    def words(self, told: Told) -> str:
        """Where, how wide and how high."""
        centre, sigma = told.settings
        end = min(max(centre, told.wavelengths[0]), told.wavelengths[-1])
        if end != centre:
            height = told.coefficients[0] * np.exp(-0.5 * ((end - centre) / sigma) ** 2)
            return (
                f"the flank of a band beyond the wavelengths that were measured, {height:.3g} high in {told.signal} at "
                f"{told.at(end)}, where they end: an interferent"
            )
        return (
            f"a further band at {told.at(centre)}, {_FWHM * sigma:.2g}{told.wavelength_unit} wide (half maximum) and "
            f"{told.coefficients[0]:.3g} high in {told.signal}: an interferent"
        )


class Resolution(Cause):
    """Bands blunter than the standards', or sharper."""

    parameters = 1
    remedy = "measure with the slit, the step and the smoothing that the standards had"

    def __init__(self) -> None:
        # the same widths are tried at one concentration after another
        self._blunting = lru_cache(maxsize=24)(_blunting)

    def axes(self, wavelengths: np.ndarray) -> tuple[Axis, ...]:
        """σ of the blunting Gaussian, negative for sharper bands, zero left out."""
        step = float(np.median(np.diff(wavelengths)))
        widths = np.geomspace(0.5 * step, max((wavelengths[-1] - wavelengths[0]) / 6.0, step), 14)
        return (Axis(np.concatenate([-widths[5::-1], widths])),)

    def base(self, curve: np.ndarray, wavelengths: np.ndarray, settings: np.ndarray) -> np.ndarray:
        """Each spectrum convolved; sharper ones are 2 A − G∗A, one step of van Cittert's (1931)."""
        made = []
        for (sigma,) in settings:
            kernel, sums = self._blunting(np.ascontiguousarray(wavelengths, float).tobytes(), abs(float(sigma)))
            blunt = curve @ kernel / sums
            made.append(blunt if sigma > 0.0 else 2.0 * curve - blunt)
        return np.stack(made, axis=1)

    def words(self, told: Told) -> str:
        """How much."""
        sigma = told.settings[0]
        width = f"{_FWHM * abs(sigma):.2g}{told.wavelength_unit}"
        return (
            f"another resolution: bands are blunted by {width} (half maximum)"
            if sigma > 0.0
            else f"another resolution: bands are sharper than the standards', by about {width} (half maximum)"
        )


def _blunting(wavelengths: bytes, sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """A Gaussian around each wavelength, symmetric ``[W, W]``, and its sums ``[W]``."""
    x = np.frombuffer(wavelengths)
    steps = np.diff(x)
    if len(steps) and np.ptp(steps) <= 1e-9 * np.abs(steps).max():  # even steps: rows are one Gaussian shifted
        line = _gaussian(x - x[0], sigma)
        kernel = sliding_window_view(np.concatenate([line[:0:-1], line]), len(x))[::-1]
    else:
        kernel = _gaussian(x[:, None] - x[None], sigma)
    return kernel, kernel.sum(axis=1)


def _gaussian(distance: np.ndarray, sigma: float) -> np.ndarray:
    return np.exp(-0.5 * (distance / max(sigma, 1e-12)) ** 2)


KINDS: dict[str, type[Cause]] = {
    "offset": Offset,
    "tilt": Tilt,
    "scale": Scale,
    "other path length": PathLength,
    "shift": Shift,
    "scatter": Scatter,
    "interferent": Interferent,
    "resolution": Resolution,
    "transmittance": Transmittance,
    "transmittance difference": TransmittanceDifference,
    "negated": Negated,
}
