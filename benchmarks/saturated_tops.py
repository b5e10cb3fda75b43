"""How often genuine tops of plain text are masked as a detector's cap, and how often cut-off ones are.

Simulated assays of six levels (kinds of detection that cut off by themselves left out), scaled to between 2 and 4 in
absorbance and rounded to 2 to 5 digits; as they are, and cut off at 60 to 95 % of the largest value.

    python benchmarks/saturated_tops.py --batches 14
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "kernels"), str(ROOT / "runtime")]

from geonode.corpus import DETECTIONS, draw  # noqa: E402
from geonode.data.readers.clean import masked_by_cap  # noqa: E402

CUTTING = ("camera", "counts")
WAVELENGTHS = (301, 601, 1201)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=14)
    parser.add_argument("--seed", type=int, default=777)
    args = parser.parse_args()
    rng, found = np.random.default_rng(3), defaultdict(list)
    for step in range(args.batches):
        width = WAVELENGTHS[step % len(WAVELENGTHS)]
        drawn = draw(32, 6, width, 0, seed=args.seed, step=step, dtype=torch.float64)
        for k in range(32):
            counts = drawn.count[k].tolist()
            spectra = np.concatenate([drawn.replicates[k, i, : counts[i]].numpy() for i in range(6)])
            if DETECTIONS[int(drawn.detection[k])] in CUTTING or spectra.max() <= 0.0:
                continue
            spectra = spectra / spectra.max() * np.exp(rng.uniform(np.log(2.0), np.log(4.0)))
            cut = np.minimum(spectra, rng.uniform(0.6, 0.95) * spectra.max())
            for digits in (2, 3, 4, 5):
                genuine, cut_off = (masked_by_cap(list(np.round(one, digits)), full=False) for one in (spectra, cut))
                found[digits].append((genuine.mean(), genuine.any(), cut_off.any()))
    for digits, rows in found.items():
        standards, assays, caught = 100.0 * np.mean(rows, axis=0)
        print(
            f"{digits} digits, {len(rows)} assays: genuine standards masked {standards:.2f} %, assays {assays:.1f} %; "
            f"cut-off assays masked {caught:.1f} %"
        )


if __name__ == "__main__":
    main()
