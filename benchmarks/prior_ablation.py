"""What the parts of the pre-trained flow are worth: short trainings of a small network, on two CPU cores.

    python benchmarks/prior_ablation.py --variant whole --seed 0    # one row, added to the record; a quarter of an hour
    python benchmarks/prior_ablation.py                             # all of them

Every row is the same training (`geonode.prior.settings.cpu_settings`, three families left out) but for one part:

* *whole*: nothing is taken away;
* *no other wavelengths*: no attention along the wavelengths, every wavelength is read by itself;
* *no metric*: ln g is zero, distance is that of the evidence-averaged warp;
* *start*: nothing is trained; equal to the geodesic Gaussian process.

Errors are those of the averaged weights less the process's, on fresh assays of the families trained on and of those
left out: at the level taken out, and of the truth elsewhere; surprise is the negative log likelihood per wavelength.
Results go to benchmarks/results/prior_ablation.json and prior_ablation.md.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import math
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from geonode.prior.metric import PiecewiseMetric  # noqa: E402
from geonode.prior.network import Block  # noqa: E402
from geonode.prior.settings import PretrainSettings, cpu_settings  # noqa: E402
from geonode.prior.training import PretrainModule, pretrain  # noqa: E402
from geonode_runtime.files import write_text  # noqa: E402

VARIANTS = ("whole", "no other wavelengths", "no metric", "start")
LEFT_OUT = ("competitive", "kinetic", "redox")
RECORD = ROOT / "benchmarks" / "results" / "prior_ablation.json"


def settings_of(seed: int, steps: int) -> PretrainSettings:
    """Of a training; validation on 40 batches of either kind."""
    changes = {"steps": steps, "seed": seed, "exclude": LEFT_OUT, "validate_every": 10**9}
    return dataclasses.replace(cpu_settings(), lr=3e-3, validation_batches=40).with_changes(**changes)


@contextlib.contextmanager
def without(variant: str) -> Iterator[None]:
    """The network with one part taken away."""
    flat = PiecewiseMetric.at_standards

    def alone(block: Block, x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return x + block.inner(block.norm_inner(x))

    with contextlib.ExitStack() as stack:
        if variant == "no other wavelengths":
            stack.enter_context(mock.patch.object(Block, "along_wavelengths", alone))
        if variant == "no metric":
            stack.enter_context(mock.patch.object(PiecewiseMetric, "at_standards", lambda s, m: flat(s, 0.0 * m)))
        yield


def row(variant: str, seed: int, steps: int) -> dict[str, Any]:
    """One training and what it reaches."""
    settings = settings_of(seed, steps)
    with without(variant), tempfile.TemporaryDirectory() as folder:
        module = PretrainModule(settings) if variant == "start" else pretrain(settings, folder, accelerator="cpu")
        return {"variant": variant, "seed": seed, "steps": 0 if variant == "start" else steps, **module.validate()}


def markdown(rows: list[dict[str, Any]]) -> str:
    """The record as a table; errors as ratios to the Gaussian process's."""
    lines = ["# Parts of the pre-trained flow", "", "Short trainings of a small network on a CPU; error ÷ `gp`.", ""]
    heads = ["variant", "seed", "steps"]
    heads += [f"{kind}: {of}" for kind in ("known", "left out") for of in ("level taken out", "truth", "surprise")]
    lines += ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for one in rows:
        cells = []
        for kind in ("known families", "families left out"):
            found = one[kind]
            cells += [f"{math.exp(found[key]):.3f}" for key in ("held out", "truth")] + [f"{found['surprise']:.3f}"]
        lines.append(f"| {one['variant']} | {one['seed']} | {one['steps']} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """See the top of the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variant", action="append", choices=VARIANTS, help="default: all")
    parser.add_argument("--seed", type=int, action="append", help="default: 0 and 1")
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    for variant in args.variant or VARIANTS:
        for seed in args.seed or (0, 1):
            found = row(variant, seed, args.steps)
            rows = json.loads(RECORD.read_text()) if RECORD.is_file() else []
            rows = [one for one in rows if (one["variant"], one["seed"]) != (variant, seed)] + [found]
            rows.sort(key=lambda one: (VARIANTS.index(one["variant"]), one["seed"]))
            write_text(RECORD, json.dumps(rows, indent=1) + "\n")
            write_text(RECORD.with_suffix(".md"), markdown(rows))
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
