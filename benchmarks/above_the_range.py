"""What is said of samples above the standards' range, and of what only looks like one.

    python benchmarks/above_the_range.py --seed 71000 --steps 20     # eight assays a step; results/above_the_range.*

Simulated assays of families left out of training, one level left out, with samples at fixed multiples of the highest
standard: genuine ones, the same with an interferent of 30 % of the standards' response or scattering of 10 % of their
signal, and the strangers of posterior_strangers.py (noise, flat lines, other assays' spectra, …). Beside what is said
stands what would be if the network's probability of something strange counted above the range as it does inside.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from posterior import calibration_of  # noqa: E402
from posterior_strangers import strangers  # noqa: E402

import geonode_runtime.posterior.answers as answers  # noqa: E402
from geonode.calibration.posterior.training import HELD_OUT_FAMILIES  # noqa: E402
from geonode.corpus import common_levels, draw, stages  # noqa: E402
from geonode_runtime.files import write_text  # noqa: E402
from geonode_runtime.posterior.rules import ODD, STRANGE, TOO_CONCENTRATED  # noqa: E402
from geonode_runtime.shapes import said_above  # noqa: E402
from geonode_runtime.unknowns import Unknown  # noqa: E402

FACTORS = (1.05, 1.2, 1.5, 2.0, 2.5, 3.0, 5.0, 10.0)
RECORD = ROOT / "benchmarks" / "results" / "above_the_range.json"


@contextlib.contextmanager
def far_samples() -> Iterator[None]:
    """Inside, the corpus's eight unknowns are genuine samples at `FACTORS` times the highest standard."""

    def elsewhere(numbers, levels, low, high, amount, count, beyond, plain=stages._elsewhere):
        places = plain(numbers, levels, low, high, amount, count, beyond)
        if count != len(FACTORS):
            return places
        factor, top = torch.tensor(FACTORS, dtype=places.dtype), levels[:, -1:]
        return torch.where(amount, top * factor, top + (top - levels[:, :1]) * (factor - 1))

    def genuine(numbers, unknowns, plain=stages.draw_kinds):
        return torch.zeros_like(plain(numbers, unknowns))

    with mock.patch.object(stages, "_elsewhere", elsewhere), mock.patch.object(stages, "draw_kinds", genuine):
        yield


def asked(calibration: Any, spectrum: np.ndarray, repeats: float) -> dict[str, Any]:
    """Verdict of one spectrum and what it rests on."""
    rests: dict[str, Any] = {}

    def judge(facts, known, posterior, strange, stray, sets, mean, usable, plain=answers.judge):
        over = 1.0 - float(posterior.below_of(facts.rules.highest))
        rests.update(strange=float(strange), stray=float(stray), over=over)
        return plain(facts, known, posterior, strange, stray, sets, mean, usable)

    with mock.patch.object(answers, "judge", judge):
        unknown = Unknown(spectrum[None], np.ones(len(spectrum), dtype=bool), ())
        said = calibration.posterior.answer(calibration.inverse, calibration.facts, unknown, float(repeats), 0.8)
    up = said_above(said.verdict, calibration.facts.rules, said.verdict_components)
    refused = said.verdict == "does not match"
    caught = refused or any("holds something that the standards do not" in note for note in said.notes)
    return {"refused": refused, "above": up, "caught": caught, **rests}


def rows_of(seed: int, step: int) -> list[dict[str, Any]]:
    """Every spectrum of eight assays."""
    rng = np.random.default_rng([seed, step])
    levels, width = common_levels(seed, step) + 1, int(rng.choice((64, 128, 256)))
    kind = {"queries": 0, "unknowns": len(FACTORS), "seed": seed, "step": step, "families": HELD_OUT_FAMILIES}
    plain = draw(8, levels, width, dtype=torch.float64, **kind)
    with far_samples():
        far = draw(8, levels, width, dtype=torch.float64, **kind)
    rows, place = [], np.linspace(0.0, 1.0, width)
    scatter = (350.0 / (350.0 + 450.0 * place)) ** 4
    for row in range(8):
        calibration = calibration_of(plain, row, int(rng.integers(1, levels - 1)))
        samples, repeats = far.unknown_spectra[row].numpy(), far.unknown_count[row].tolist()
        spectra = [("genuine", *one) for one in zip(FACTORS, samples, repeats, strict=True)]
        spectra += [(name, None, *one) for name, *one in zip(*strangers(plain, row, rng), strict=True)]
        response = np.ptp(plain.spectra[row].numpy(), axis=0).max()
        for i in range(1, 5):
            band = 1.0 / (1.0 + ((place - rng.random()) / 10.0 ** rng.uniform(-1.5, -0.7)) ** 2)
            spectra.append(("with an interferent", FACTORS[i], samples[i] + 0.3 * response * band, repeats[i]))
            more = 0.1 * np.abs(plain.spectra[row].numpy()).max() * scatter
            spectra.append(("with scattering", FACTORS[i], samples[i] + more, repeats[i]))
        rows += [{"kind": n, "factor": f, **asked(calibration, x, k)} for n, f, x, k in spectra]
    return rows


def table(rows: list[dict[str, Any]], assays: int) -> tuple[dict[str, Any], str]:
    """Per cent refused or flagged, without the rule and with it; genuine samples where they are said to lie above."""

    def share(chosen: list[dict[str, Any]]) -> tuple[float, float]:
        before = [one["refused"] or one["stray"] > ODD or one["strange"] > STRANGE for one in chosen]
        without, now = (round(100.0 * float(np.mean(one)), 1) for one in (before, [one["caught"] for one in chosen]))
        return without, now

    near = [one for one in rows if one["kind"] == "genuine" and one["factor"] <= 2.5 and one["above"]]
    groups = {"genuine, 1.05 to 2.5 times, said to lie above": near}
    groups |= {f"genuine, {f:g} times, said to lie above": [r for r in near if r["factor"] == f] for f in FACTORS[:5]}
    groups |= {name: [r for r in rows if r["kind"] == name] for name in sorted({r["kind"] for r in rows} - {"genuine"})}
    far = [one for one in rows if one["kind"] == "genuine" and one["factor"] >= 3.0]
    lost = [one for one in far if one["refused"]]
    told = round(100.0 * float(np.mean([one["over"] > TOO_CONCENTRATED for one in lost])), 1)
    record = {
        "assays": assays,
        "refused or flagged": {
            name: dict(zip(("spectra", "without the rule", "with it"), (len(chosen), *share(chosen)), strict=True))
            for name, chosen in groups.items()
            if chosen
        },
        "genuine, 3 to 10 times": {"spectra": len(far), "do not match": len(lost), "of these told to dilute": told},
    }
    lines = ["# Samples above the standards' range", "", f"{assays} simulated assays; per cent refused or flagged.", ""]
    lines += ["| spectra | number | without the rule | with it |", "|---|---|---|---|"]
    for name, one in record["refused or flagged"].items():
        lines.append(f"| {name} | {' | '.join(map(str, one.values()))} |")
    last = f"Of {len(far)} genuine samples at 3 to 10 times {len(lost)} do not match; {told} % are told to dilute."
    lines += ["", last]
    return record, "\n".join(lines) + "\n"


def main() -> None:
    """See the top of the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=73_000, help="the rule's limit was chosen on 71000")
    parser.add_argument("--steps", type=int, default=24, help="of eight assays")
    parser.add_argument("--out", type=Path, default=RECORD)
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    for step in range(args.steps):
        rows += rows_of(args.seed, step)
        record, text = table(rows, 8 * (step + 1))
        write_text(args.out, json.dumps({"seed": args.seed, **record}, indent=1) + "\n")
        write_text(args.out.with_suffix(".md"), text)
        print(f"{8 * (step + 1)} assays", flush=True)
    print(text)


if __name__ == "__main__":
    main()
