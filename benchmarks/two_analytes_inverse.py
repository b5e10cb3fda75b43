"""How often the regions of two analytes cover the truth, on simulated pH × chloride plates.

    python benchmarks/two_analytes_inverse.py --plates 14 --unknowns 30

Each plate is of other levels, noise and errors of preparation: the first eight are four designs twice, those after them
are drawn at random. Unknowns lie anywhere within a plate's standards.
"""

from __future__ import annotations

import argparse

import numpy as np

from geonode.analytes import fit_plane
from geonode.data import simulate_sensor

PLATES = [
    (np.linspace(5.5, 8.3, 5), [0, 10, 30, 80, 200, 500], 0.005, 0.0),
    (np.linspace(5.2, 8.2, 6), [0, 7, 27, 60, 120, 270, 670], 0.003, 0.02),
    (np.linspace(6.0, 8.0, 4), [0, 20, 60, 150, 400], 0.01, 0.0),
    (np.linspace(5.5, 8.5, 7), [0, 15, 50, 150, 500], 0.005, 0.03),
]


def plate_of(seed: int) -> tuple[np.ndarray, list[float], float, float]:
    """Levels of pH and chloride, noise and error of preparation."""
    if seed < 2 * len(PLATES):
        ph, chloride, noise, preparation = PLATES[seed % len(PLATES)]
        return ph, [float(c) for c in chloride], noise, preparation
    rng = np.random.default_rng(seed)
    rows, columns = int(rng.integers(4, 8)), int(rng.integers(5, 8))
    ph = np.linspace(rng.uniform(5.2, 6.0), rng.uniform(7.9, 8.6), rows)
    chloride = [0.0, *np.geomspace(rng.uniform(6.0, 20.0), rng.uniform(350.0, 700.0), columns - 1).round(1).tolist()]
    return ph, chloride, float(rng.choice([0.003, 0.005, 0.01])), float(rng.choice([0.0, 0.0, 0.01, 0.02, 0.03]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plates", type=int, default=14)
    parser.add_argument("--first", type=int, default=0, help="number of the first plate")
    parser.add_argument("--unknowns", type=int, default=40)
    args = parser.parse_args()
    covered = []
    print("plate  levels   noise  preparation   τ     80 % region  95 % region  pH     Cl    (80 %)")
    for seed in range(args.first, args.first + args.plates):
        ph, chloride, noise, preparation = plate_of(seed)
        plate = simulate_sensor(
            ph.tolist(), chloride, range(360, 521, 4), noise=noise, preparation=preparation, seed=seed
        )
        made = fit_plane(plate)
        draw = np.random.default_rng(1000 + seed)
        low, high = np.log10(chloride[1] / 5.0), np.log10(chloride[-1])
        count = args.unknowns
        truth = np.stack([draw.uniform(ph[0], ph[-1], count), 10 ** draw.uniform(low, high, count)], axis=1)
        spectra = plate.truth(truth.tolist()).numpy()
        answers = made.quantify(spectra + noise * draw.standard_normal(spectra.shape))
        each = [
            [a.region.contains(p), a.region_95.contains(p)]
            + [any(c.contains(p[d]) for c in a.parts[d].components) for d in range(2)]
            for a, p in zip(answers, truth, strict=True)
        ]
        covered += each
        shares = np.mean(each, axis=0)
        row = [f"{share:5.0%}" for share in shares]
        size = f"{len(ph)} × {len(chloride)}"
        print(f"{seed:5d}  {size:7s} {noise:6g} {preparation:12g}  {made.widening:5.2g}  ", *row, sep="  ", flush=True)
    shares = np.mean(covered, axis=0)
    print(f"together, {len(covered)} unknowns: {shares[0]:.1%}  {shares[1]:.1%}  {shares[2]:.1%}  {shares[3]:.1%}")


if __name__ == "__main__":
    main()
