"""Another hand's simulated calibrations, to judge what was trained on `geonode.corpus`.

Written apart from the corpus and without it: numpy alone, one assay at a time, other functional forms of response
(Gompertz, Weibull, logarithms, rational functions, monotone and wavy interpolants), other bands (Pearson VII,
hyperbolic secants, asymmetric log-normals in wavenumber, splines), other noise (Student t, autoregressive, random
walks, spikes, multiplicative log-normal). A network that knows the corpus's habits alone does worse here than there.

    python benchmarks/other_simulator.py --count 100 --seed 0 --out FOLDER

writes each assay as two tidy files, `NNN_<response>.csv` (standards, as `geonode.load_standards` reads them) and
`NNN_<response>_truth.csv` (noiseless spectra at concentrations in between and beyond).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.interpolate import BSpline, CubicSpline, PchipInterpolator

Curve = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class OtherAssay:
    """One calibration.

    Attributes:
        name: of its response.
        wavelength: [W], nm.
        concentration: levels [n], ascending.
        spectra: measured means [n, W].
        truth: noiseless at the levels [n, W].
        query_concentration: [Q], between the levels and up to a fifth beyond the ends.
        query_truth: [Q, W].
    """

    name: str
    wavelength: np.ndarray
    concentration: np.ndarray
    spectra: np.ndarray
    truth: np.ndarray
    query_concentration: np.ndarray
    query_truth: np.ndarray


# --- responses: t = concentration over the highest level, any t ≥ 0 --------------------------------------------------


def _line(rng: np.random.Generator) -> Curve:
    intercept = rng.uniform(0, 0.3) * (rng.random() < 0.5)
    return lambda t: intercept + t


def _parabola(rng: np.random.Generator) -> Curve:
    bend = rng.uniform(-0.45, 0.6)
    return lambda t: t + bend * t * t


def _gompertz(rng: np.random.Generator) -> Curve:
    rate, delay = rng.uniform(2, 12), rng.uniform(0.5, 5)
    return lambda t: np.exp(-delay * np.exp(-rate * t))


def _weibull(rng: np.random.Generator) -> Curve:
    scale, shape = np.exp(rng.uniform(-2.5, 0.4)), rng.uniform(0.5, 3.5)
    return lambda t: 1 - np.exp(-((t / scale) ** shape))


def _logarithm(rng: np.random.Generator) -> Curve:
    knee = np.exp(rng.uniform(-6, 0))
    return lambda t: np.log1p(t / knee) / np.log1p(1 / knee)


def _rational(rng: np.random.Generator) -> Curve:
    a, b, c = np.exp(rng.uniform(-1, 3)), np.exp(rng.uniform(-1, 3)), rng.uniform(-1, 3)
    return lambda t: (a * t + c * t * t) / (1 + b * t + 0.5 * a * t * t)


def _hook(rng: np.random.Generator) -> Curve:
    place, width = rng.uniform(0.15, 0.7), rng.uniform(0.5, 1.4)
    return lambda t: (t / place) ** width * np.exp(width * (1 - t / place))  # the prozone effect of immunoassays


def _monotone(rng: np.random.Generator) -> Curve:
    x = np.concatenate([[0], np.sort(rng.uniform(0.05, 1, 4)), [1.4]])
    return PchipInterpolator(x, np.cumsum(rng.gamma(0.7, 1.0, 6)) / 3, extrapolate=True)


def _wavy(rng: np.random.Generator) -> Curve:
    return CubicSpline(np.linspace(0, 1.4, 6), rng.normal(0, 0.5, 6), bc_type="natural")


RESPONSES: dict[str, tuple[float, Callable[[np.random.Generator], Curve]]] = {
    "line": (0.27, _line),
    "parabola": (0.12, _parabola),
    "gompertz": (0.1, _gompertz),
    "weibull": (0.12, _weibull),
    "logarithm": (0.1, _logarithm),
    "rational": (0.1, _rational),
    "hook": (0.06, _hook),
    "monotone": (0.08, _monotone),
    "wavy": (0.05, _wavy),
}


# --- spectra --------------------------------------------------------------------------------------------------------


def _pearson(rng: np.random.Generator, nm: np.ndarray, center: float, width: float) -> np.ndarray:
    power = np.exp(rng.uniform(0, 3))
    return (1 + ((nm - center) / width) ** 2 * (2 ** (1 / power) - 1)) ** -power


def _secant(rng: np.random.Generator, nm: np.ndarray, center: float, width: float) -> np.ndarray:
    return 1 / np.cosh(1.32 * np.clip((nm - center) / width, -200, 200))


def _log_normal(rng: np.random.Generator, nm: np.ndarray, center: float, width: float) -> np.ndarray:
    """Siano and Metzler's band: a log-normal in wavenumber."""
    wavenumber, middle, skew = 1e7 / nm, 1e7 / center, rng.uniform(1.1, 1.8)
    half = 2 * width * 1e7 / center**2
    inside = 1 + (wavenumber - middle) * (skew**2 - 1) / (half * skew)
    return np.exp(-np.log(2) * (np.log(np.maximum(inside, 1e-12)) / np.log(skew)) ** 2) * (inside > 0)


def _spectrum(rng: np.random.Generator, nm: np.ndarray) -> np.ndarray:
    span = nm[-1] - nm[0]
    if rng.random() < 0.15:  # a smooth curve of no shape
        knots = np.r_[[nm[0] - 1] * 4, np.linspace(nm[0], nm[-1], 8)[1:-1], [nm[-1] + 1] * 4]
        return BSpline(knots, rng.gamma(0.8, 1.0, len(knots) - 4), 3)(nm)
    band = (_pearson, _secant, _log_normal)[rng.integers(3)]
    size = span * np.exp(rng.uniform(np.log(0.02), np.log(0.15)))
    return sum(
        rng.gamma(1.0, 1.0) * band(rng, nm, nm[0] + span * rng.uniform(-0.05, 1.05), size * rng.uniform(0.6, 1.7))
        for _ in range(rng.integers(1, 5))
    )


def _mean_spectra(rng: np.random.Generator, nm: np.ndarray) -> tuple[str, Curve]:
    """The name of the response and the noiseless spectra [m, W] at any t [m]."""
    shares = np.array([share for share, _ in RESPONSES.values()])
    first = list(RESPONSES)[rng.choice(len(shares), p=shares / shares.sum())]
    curves = [RESPONSES[first][1](rng)]
    bands = [_spectrum(rng, nm)]
    if first != "line" or rng.random() < 0.1:  # a second response at other wavelengths, of the same or another kind
        for _ in range(rng.integers(0, 3)):
            other = first if rng.random() < 0.6 else list(RESPONSES)[rng.integers(len(RESPONSES))]
            curves.append(RESPONSES[other][1](rng))
            bands.append(rng.uniform(-0.6, 1.0) * _spectrum(rng, nm))
    ground = _spectrum(rng, nm) * rng.choice([0.0, 0.3, 1.0])
    drift = rng.normal(0, 0.03) * (nm[-1] - nm[0]) if rng.random() < 0.2 else 0.0
    ceiling = np.exp(rng.uniform(0.3, 2.0)) if rng.random() < 0.12 else np.inf

    def spectra(t: np.ndarray) -> np.ndarray:
        amounts = np.stack([curve(np.maximum(t, 0.0)) for curve in curves], -1)
        total = ground + amounts @ np.stack(bands)
        if drift:  # the whole spectrum moves with the first response
            total = np.stack([np.interp(nm - drift * a, nm, row) for a, row in zip(amounts[:, 0], total, strict=True)])
        return total if np.isinf(ceiling) else total / (1 + (np.abs(total) / ceiling) ** 4) ** 0.25

    return first, spectra


# --- designs and noise ----------------------------------------------------------------------------------------------


def _levels(rng: np.random.Generator, n: int) -> np.ndarray:
    kind = rng.choice(4, p=[0.4, 0.25, 0.2, 0.15])
    if kind == 0:
        t = np.arange(n) / (n - 1) if rng.random() < 0.5 else np.arange(1, n + 1) / n
    elif kind == 1:
        t = rng.uniform(1.4, 3.2) ** -np.arange(n - 1, -1, -1.0)
    elif kind == 2:
        t = np.cumsum(rng.gamma(2.0, 1.0, n))
        t = t / t[-1]
    else:
        t = (np.arange(n) / (n - 1)) ** rng.uniform(1.3, 2.5)
    if rng.random() < 0.3:
        t[0] = 0.0
    return t


def _noise(rng: np.random.Generator, clean: np.ndarray, scale: float) -> np.ndarray:
    m, w = clean.shape
    size = scale * np.exp(rng.normal(np.log(4e-3), 1.1))
    noisy = clean * rng.lognormal(0, np.exp(rng.uniform(-8, -3.6)) * (rng.random() < 0.6), (m, 1))
    noisy = noisy + size * (rng.standard_t(4, (m, w)) if rng.random() < 0.3 else rng.normal(size=(m, w)))
    if rng.random() < 0.5:  # autoregressive along the wavelength
        memory, walk = np.exp(-1 / rng.uniform(1, 40)), np.zeros((m, w))
        for k in range(1, w):
            walk[:, k] = memory * walk[:, k - 1] + np.sqrt(1 - memory**2) * rng.normal(size=m)
        noisy = noisy + size * rng.uniform(0.5, 4) * walk
    if rng.random() < 0.4:  # offset that wanders from spectrum to spectrum
        noisy = noisy + size * rng.uniform(0.5, 3) * np.cumsum(rng.normal(size=(m, 1)), 0) / np.sqrt(m)
    if rng.random() < 0.1:  # spikes
        hit = rng.random((m, w)) < 0.002
        noisy = noisy + hit * scale * rng.normal(0, 0.5, (m, w))
    return noisy


def other_assay(seed: int, levels: int | None = None, wavelengths: int = 120, queries: int = 24) -> OtherAssay:
    """One assay, a function of its arguments.

    Args:
        seed: of everything.
        levels: standards, at least 3; None: 4 to 16, as common.
        wavelengths: readings a spectrum.
        queries: concentrations of the truth.
    """
    rng = np.random.default_rng([seed, 20_177])
    n = levels or int(rng.choice([4, 5, 6, 7, 8, 10, 12, 16], p=[0.1, 0.2, 0.25, 0.1, 0.15, 0.1, 0.05, 0.05]))
    start = rng.uniform(200, 500)
    nm = np.linspace(start, start + rng.uniform(80, 500), wavelengths)
    name, spectra = _mean_spectra(rng, nm)
    t = _levels(rng, n)
    made = np.maximum(t * (1 + np.exp(rng.uniform(-8, -3.5)) * (rng.random() < 0.6) * rng.normal(size=n)), 0)
    truth = spectra(t)
    scale = float(np.sqrt(np.mean((truth - truth.mean(0)) ** 2))) + 1e-12
    query = rng.uniform(max(0.0, t[0] - 0.1), 1.2, queries)
    unit = float(10 ** rng.uniform(-2, 3))
    gain = float(10 ** rng.choice([0, 0, 2, 4])) / np.abs(truth).max()
    return OtherAssay(
        name,
        nm,
        t * unit,
        _noise(rng, spectra(made), scale) * gain,
        truth * gain,
        query * unit,
        spectra(query) * gain,
    )


def _write(path: Path, nm: np.ndarray, concentration: np.ndarray, spectra: np.ndarray) -> None:
    heads = ",".join(["wavelength", *(f"{c:.6g}" for c in concentration)])
    np.savetxt(path, np.column_stack([nm, spectra.T]), delimiter=",", header=heads, comments="", fmt="%.7g")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for i in range(arguments.count):
        one = other_assay(arguments.seed + i)
        stem = arguments.out / f"{i:03d}_{one.name}"
        _write(stem.with_suffix(".csv"), one.wavelength, one.concentration, one.spectra)
        order = np.argsort(one.query_concentration)
        _write(
            stem.with_name(stem.name + "_truth.csv"),
            one.wavelength,
            one.query_concentration[order],
            one.query_truth[order],
        )


if __name__ == "__main__":
    main()
