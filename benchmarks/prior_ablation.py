"""What the parts of the pre-trained flow are worth: the same short training of a smaller network, but for one part.

    python benchmarks/prior_ablation.py --jobs 5                       # all rows, on a GPU
    python benchmarks/prior_ablation.py --row "no metric/0" --steps 20 # one of them

Rows, each with its seed:

* *start*: nothing is trained; equal to the geodesic Gaussian process, so every ratio is 1;
* *whole*: nothing is taken away, all families of chemistry are trained on;
* *10 %*, *30 %*: of the steps, the learning rate falling to zero over them likewise;
* *no other wavelengths*: attention along the wavelengths sees the wavelength itself alone (two weights of the heads are
  still shared by all wavelengths);
* *no metric*: ln g is zero, distance is that of the evidence-averaged warp;
* *without quarter 1* … *4*: a quarter of the families is left out of the training, every family of one of them.

All are judged on the same fresh assays, so many of every family: root mean square errors over the process's (geometric
means) at the level taken out and of the truth elsewhere, the negative log likelihood per wavelength of a spectrum, and
the share that 80 % bands hold. Results go to benchmarks/results/prior_ablation.json and prior_ablation.md; rows that
are there already, of as many steps on the same card, are not run again.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from geonode.corpus import FAMILIES  # noqa: E402
from geonode.prior.examples import Shape  # noqa: E402
from geonode.prior.feed import make  # noqa: E402
from geonode.prior.loss import errors, upper_decile  # noqa: E402
from geonode.prior.metric import PiecewiseMetric  # noqa: E402
from geonode.prior.network import Block, Network, NetworkSize  # noqa: E402
from geonode.prior.settings import PretrainSettings  # noqa: E402
from geonode.prior.training import PretrainModule, pretrain  # noqa: E402
from geonode_runtime.files import write_text  # noqa: E402

QUARTERS = tuple(FAMILIES[i::4] for i in range(4))
SHARES = {"10 %": 0.1, "30 %": 0.3}
ROWS = ["start/0"]
ROWS += [f"{name}/{seed}" for name in ("whole",) for seed in (0, 1, 2)]
ROWS += [f"{name}/{seed}" for name in (*SHARES, "no other wavelengths", "no metric") for seed in (0, 1)]
ROWS += [f"without quarter {i + 1}/0" for i in range(4)]
RECORD = ROOT / "benchmarks" / "results" / "prior_ablation.json"
_JUDGING_SEED, _LEVELS = 31_415_926, (4, 5, 6, 8)
MEASURES = ("held out ÷ gp", "truth ÷ gp", "surprise", "covered")


def settings_of(variant: str, seed: int, steps: int) -> PretrainSettings:
    """Of a training: a fifth of the shipped network's numbers, three fifths of the steps at a constant rate."""
    steps = max(1, round(steps * SHARES.get(variant, 1.0)))
    exclude = QUARTERS[int(variant[-1]) - 1] if variant.startswith("without") else ()
    return PretrainSettings(
        steps=steps,
        warmup=min(50, steps // 5),
        decay=2 * steps // 5,
        lr=2e-3,
        ema=0.99,
        tokens=98_304 if torch.cuda.is_available() else 4_608,
        levels=dict.fromkeys(_LEVELS, 1.0),
        exclude=exclude,
        validate_every=10**9,
        size=NetworkSize(width=64, blocks=3),
        seed=seed,
    )


@contextlib.contextmanager
def without(variant: str) -> Iterator[None]:
    """The network with one part taken away."""
    flat = PiecewiseMetric.at_standards

    def alone(block: Block, x: Tensor, pairs: Tensor) -> Tensor:
        normed = block.norm_wavelengths(x)
        _, value = block.wave_pair(normed).chunk(2, -1)
        # what is not needed takes part at no weight, as a captured loss wants of all parameters
        unused = 0.0 * (block.wave_query(normed).mean() + pairs.mean())
        x = x + block.wave_out(value) + unused
        return x + block.inner(block.norm_inner(x))

    with contextlib.ExitStack() as stack:
        if variant == "no other wavelengths":
            stack.enter_context(mock.patch.object(Block, "along_wavelengths", alone))
        if variant == "no metric":
            stack.enter_context(mock.patch.object(PiecewiseMetric, "at_standards", lambda s, m: flat(s, 0.0 * m)))
        yield


@torch.inference_mode()
def judged(network: Network, device: torch.device, assays: int) -> dict[str, dict[str, float]]:
    """`MEASURES` over all families (by their shares) and over each: errors as logarithms of their ratio."""
    rows: dict[str, list[Tensor]] = {"all": []} | {name: [] for name in FAMILIES}
    for step, levels in enumerate(_LEVELS):
        for name, parts in rows.items():
            shape = Shape(assays * (8 if name == "all" else 1), levels, 48, 40)
            families = None if name == "all" else (name,)
            batch = make(shape, seed=_JUDGING_SEED, step=step, device=device, families=families)
            f, examples = batch.features, batch.examples
            output = network(f, 40)
            e = errors(f, output, examples)
            miss = ((f.reference - examples.measured) / f.scale).float() + output.change
            half = upper_decile(output.dof) * output.variance(f.coordinate).sqrt()
            inside = (miss.abs() <= half).float().mean((1, 2))
            held, truth = (e.measured - e.start_measured)[:, 0], (e.truth - e.start_truth)[:, 1:].mean(1)
            parts.append(torch.stack([held, truth, e.surprise.mean(1), inside]))
    means = {name: torch.cat(parts, 1).mean(1).tolist() for name, parts in rows.items()}
    return {name: dict(zip(MEASURES, np.round(found, 4).tolist(), strict=True)) for name, found in means.items()}


def row(name: str, steps: int, assays: int) -> dict[str, Any]:
    """One training and what it reaches."""
    variant, seed = name.split("/")
    settings, started = settings_of(variant, int(seed), steps), time.perf_counter()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with without(variant), tempfile.TemporaryDirectory() as folder:
        module = PretrainModule(settings) if variant == "start" else pretrain(settings, folder)
        network = module.average.as_network().to(device).eval()
        return {
            "row": name,
            "steps": 0 if variant == "start" else settings.steps,
            "assays": module.seen,
            "families left out": list(settings.exclude),
            "judged": judged(network, device, assays),
            "seconds": round(time.perf_counter() - started, 1),
        }


def markdown(record: dict[str, Any]) -> str:
    """The record as tables; errors as ratios to the Gaussian process's."""
    rows = record["rows"]
    lines = ["# Parts of the pre-trained flow", "", f"{record['what']}; {record['card']}.", ""]
    lines += ["| row / seed | assays | " + " | ".join(MEASURES) + " |", "|---" * (2 + len(MEASURES)) + "|"]
    for one in rows:
        found = one["judged"]["all"]
        cells = [f"{np.exp(found[m]) if '÷' in m else found[m]:.3f}" for m in MEASURES]
        lines.append(f"| {one['row']} | {one['assays']:,} | " + " | ".join(cells) + " |")
    lines += ["", "Each family left out of the training, and trained on (mean of the seeds of *whole*):", ""]
    lines += ["| family | level left out: without, with | truth: without, with |", "|---|---|---|"]
    whole = [one["judged"] for one in rows if one["row"].startswith("whole")]
    for one in rows:
        for name in one["families left out"]:
            cells = []
            for m in MEASURES[:2]:
                kept = np.mean([found[name][m] for found in whole])
                cells.append(f"{np.exp(one['judged'][name][m]):.3f}, {np.exp(kept):.3f}")
            lines.append(f"| {name} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines) + "\n"


def kept_rows(path: Path, what: str, card: str) -> dict[str, Any]:
    """Rows of a record of the same trainings on the same card, which are not run again."""
    record = json.loads(path.read_text()) if path.is_file() else {"what": None}
    return {one["row"]: one for one in record["rows"]} if record["what"] == what and record["card"] == card else {}


def main() -> None:
    """See the top of the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--row", choices=ROWS, help="print this one alone, as JSON")
    parser.add_argument("--jobs", type=int, default=1, help="trainings side by side, a process each")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--assays", type=int, default=128, help="judged, of each family and number of standards")
    parser.add_argument("--out", type=Path, default=RECORD)
    args = parser.parse_args()
    if args.row:
        print(json.dumps(row(args.row, args.steps, args.assays)), flush=True)
        return

    def alone(name: str) -> dict[str, Any]:
        command = [sys.executable, __file__, "--row", name, "--steps", str(args.steps), "--assays", str(args.assays)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        print(done.stdout.splitlines()[-1][:300], flush=True)
        return json.loads(done.stdout.splitlines()[-1])

    card = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    what = f"Trainings of {args.steps} steps of a network of 64 × 3; error ÷ `gp`, fresh assays"
    rows = kept_rows(args.out, what, card)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        running = {pool.submit(alone, name): name for name in ROWS if name not in rows}
        for done in concurrent.futures.as_completed(running):
            rows[running[done]] = done.result()
            record = {"what": what, "card": card, "rows": [rows[name] for name in ROWS if name in rows]}
            write_text(args.out, json.dumps(record, indent=1) + "\n")
            write_text(args.out.with_suffix(".md"), markdown(record))


if __name__ == "__main__":
    main()
