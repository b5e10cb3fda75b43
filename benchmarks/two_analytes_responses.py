"""Answers for two analytes on four kinds of response: how often regions hold the truth, and what is firm and wrong.

    python benchmarks/two_analytes_responses.py --first 400 --plates 16 --unknowns 30

A pH indicator with an ion that quenches it, two ligands that compete for one site, a quencher beside a temperature
that shifts the band, and geonode's simulated sensor; 4 × 4 to 8 × 8 standards, noise 0.001 to 0.01, unknowns within.
"""

from __future__ import annotations

import argparse

import numpy as np

from geonode.analytes import fit_plane
from geonode.data import SpectralDataset, simulate_sensor

WAVELENGTHS = np.arange(400.0, 601.0, 4.0)
SHARES = {
    4: [0.0, 0.2, 0.5, 1.0],
    5: [0.0, 0.05, 0.15, 0.4, 1.0],
    6: [0.0, 0.05, 0.125, 0.3, 0.6, 1.0],
    8: [0.0, 0.025, 0.075, 0.15, 0.3, 0.5, 0.75, 1.0],
}
"""Of the highest concentration, by the number of levels."""


def _band(middle: float, width: float) -> np.ndarray:
    return np.exp(-(((WAVELENGTHS - middle) / width) ** 2))


def indicator(ph: float, ion: float) -> np.ndarray:
    """Acid and base forms with bands of their own; the ion quenches either by a constant of its own."""
    base = 1.0 / (1.0 + 10.0 ** (ph - 6.7))
    bound = ion / (ion + 15.0 + 60.0 * (1.0 - base))
    bright = base * (1.0 - 0.8 * bound) * _band(450, 25) + (1.0 - base) * (0.9 - 0.5 * bound) * _band(510, 28)
    return bright + 0.1 * bound * _band(560, 20) + 0.03


def ligands(a: float, b: float) -> np.ndarray:
    """Two ligands compete for one site; free and both complexes have a band each."""
    x, y = a / 40.0, b / 9.0
    free = 1.0 / (1.0 + x + y)
    return free * _band(460, 30) + x * free * 0.8 * _band(495, 25) + y * free * 0.9 * _band(545, 30) + 0.02


def quencher(amount: float, temperature: float) -> np.ndarray:
    """A saturating amount, and a temperature that shifts the band and quenches it."""
    bound, bright = amount / (amount + 60.0), np.exp(-(temperature - 20.0) / 45.0)
    shifted = _band(470.0 + 0.35 * (temperature - 20.0), 26)
    return (0.15 + bound) * bright * shifted + 0.25 * bound * _band(540, 22) + 0.02


KINDS = {
    "indicator": (indicator, (5.5, 8.2, "even"), (0.0, 200.0, "rising")),
    "ligands": (ligands, (0.0, 200.0, "rising"), (0.0, 60.0, "rising")),
    "quencher": (quencher, (0.0, 300.0, "rising"), (15.0, 45.0, "even")),
    "sensor": (None, (5.5, 8.3, "even"), (0.0, 400.0, "rising")),
}


def _levels(axis: tuple[float, float, str], count: int, draw: np.random.Generator) -> np.ndarray:
    low, high, kind = axis
    if kind == "rising":
        return low + (high - low) * np.array(SHARES[count])
    step = np.linspace(0.0, 1.0, count)
    step[1:-1] += draw.uniform(-0.1, 0.1, count - 2) / (count - 1)
    return (low + (high - low) * step).round(2)


def _inside(levels: np.ndarray, kind: str, count: int, draw: np.random.Generator) -> np.ndarray:
    """Unknown concentrations; along a rising axis half of them evenly over its logarithm."""
    low, high = float(levels[0]), float(levels[-1])
    if kind == "even":
        return draw.uniform(low, high, count)
    half = draw.random(count) < 0.5
    even = draw.uniform(low + 0.005 * (high - low), high, count)
    return np.where(half, even, 10.0 ** draw.uniform(np.log10(levels[1] / 3.0), np.log10(high), count))


def plate_of(seed: int, unknowns: int) -> tuple[str, float, SpectralDataset, np.ndarray, np.ndarray]:
    """Kind, noise, standards, and the unknowns' concentrations ``[U, 2]`` and spectra ``[U, W]``."""
    name, count = list(KINDS)[seed % 4], list(SHARES)[(seed // 4) % 4]
    noise = (0.001, 0.003, 0.01)[np.random.default_rng(seed).integers(3)]
    draw = np.random.default_rng(seed)
    response, *axes = KINDS[name]
    levels = [_levels(axis, count, draw) for axis in axes]
    wavelengths, spectra_at = WAVELENGTHS, lambda points: np.array([response(*point) for point in points])
    if response is None:
        sensor = simulate_sensor(levels[0].tolist(), levels[1].tolist(), range(360, 521, 4), noise=0.0, seed=seed)
        wavelengths, spectra_at = np.array(sensor.wavelengths), lambda points: sensor.truth(points.tolist()).numpy()
    grid = np.array([(a, b) for a in levels[0] for b in levels[1]])
    spectra = spectra_at(grid)
    spectra = spectra + noise * draw.standard_normal(spectra.shape)
    truth = np.stack([_inside(one, axis[2], unknowns, draw) for one, axis in zip(levels, axes, strict=True)], axis=1)
    unknown = spectra_at(truth)
    unknown = unknown + noise * draw.standard_normal(unknown.shape)
    data = SpectralDataset(spectra, grid, wavelengths, analytes=("a", "b"), concentration_unit="1, mM")
    return f"{name} {count} × {count}", noise, data, truth, unknown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plates", type=int, default=16)
    parser.add_argument("--first", type=int, default=400, help="number of the first plate")
    parser.add_argument("--unknowns", type=int, default=30)
    args = parser.parse_args()
    regions, verdicts, wrong = [], [], np.zeros(2, int)
    for seed in range(args.first, args.first + args.plates):
        name, noise, data, truth, unknown = plate_of(seed, args.unknowns)
        answers = fit_plane(data).quantify(unknown)
        held = np.array([[a.region.contains(p), a.region_95.contains(p)] for a, p in zip(answers, truth, strict=True)])
        said = [answer.verdict for answer in answers]
        missed = np.zeros(2, int)
        for answer, point in zip(answers, truth, strict=True):
            if answer.verdict == "quantified":
                sets = [part.verdict_components for part in answer.parts]
                missed = missed + [not any(c.contains(x) for c in one) for one, x in zip(sets, point, strict=True)]
        regions, verdicts, wrong = [*regions, held], [*verdicts, *said], wrong + missed
        shares = "  ".join(f"{share:5.0%}" for share in held.mean(axis=0))
        firm, odd = said.count("quantified"), said.count("does not match")
        print(
            f"{seed:5d}  {name:16s} {noise:6g}  {shares}  firm {firm}, wrong {missed.tolist()}, odd {odd}", flush=True
        )
    every = np.concatenate(regions).mean(axis=0)
    firm, odd = verdicts.count("quantified"), verdicts.count("does not match")
    print(
        f"together, {len(verdicts)} unknowns: {every[0]:.1%}  {every[1]:.1%}; {firm} quantified, 95 % sets of either "
        f"analyte that miss {wrong.tolist()}; {odd} do not match"
    )


if __name__ == "__main__":
    main()
