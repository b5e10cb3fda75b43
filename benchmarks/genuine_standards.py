"""How often genuine standards are refused or accused, and how often wrong and exchanged labels are named.

Simulated assays of 4 to 10 levels, of families that no training had (`HELD_OUT_FAMILIES`), with all kinds of errors and
60 wavelengths; replicates as they are common. Each is asked as drawn, and every third once more with the label of one
level, the lowest excepted, halved or doubled, and once with those of two levels, any two, exchanged. A level is *really
off* where its mean spectrum is 2.5 times as far from the truth as the median of the others.

    python benchmarks/genuine_standards.py                # 75 assays of each number of levels
    python benchmarks/genuine_standards.py --assays 10

Results go to benchmarks/results/genuine_standards.{json,md}.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "kernels"), str(ROOT / "runtime")]

from geonode.calibration import Calibration, single_wavelength  # noqa: E402
from geonode.calibration.assessment.untold import untold_levels  # noqa: E402
from geonode.calibration.posterior.training import HELD_OUT_FAMILIES  # noqa: E402
from geonode.corpus import draw  # noqa: E402
from geonode_runtime.files import write_text  # noqa: E402

LEVELS = range(4, 11)
WAVELENGTHS = np.linspace(300.0, 700.0, 60)
QUIET = 0.3
"""Assays whose errors are a larger share of the response are told apart: some of them do not respond at all."""
REALLY_OFF = 2.5
EVERY = 3
SIZES = ((4, 4), (5, 5), (6, 7), (8, 10))


def named(calibration: Calibration) -> list[float]:
    """The levels that are said to be wrong."""
    standing = calibration.standing
    return [check.level for check in standing.checks if check.flagged] + [slip.level for slip in standing.slips]


def exchanged(calibration: Calibration) -> list[float]:
    """The levels whose labels are said to be exchanged."""
    return [check.level for check in calibration.standing.checks if check.swapped_with is not None]


def asked(c: np.ndarray, rows: list[np.ndarray], deviation: np.ndarray) -> dict[str, Any]:
    """What is said of one assay: levels ``c [n]``, the spectra of each, and how far each mean is from the truth."""
    concentrations, spectra = np.repeat(c, [len(own) for own in rows]), np.concatenate(rows)
    made = Calibration(concentrations, spectra, WAVELENGTHS)
    said = named(made)
    places = [int(np.abs(c - level).argmin()) for level in said]
    off = [bool(deviation[i] >= REALLY_OFF * np.median(np.delete(deviation, i))) for i in places]
    single = single_wavelength(concentrations, spectra, WAVELENGTHS, made.response.proven)
    return {
        "no_response": not made.response.responds,
        "accused": bool(said),
        "accused_wrongly": bool(said) and not any(off),
        "exchanged": bool(exchanged(made)),
        "untold": bool(untold_levels(made)) and bool(made.standing.untold),
        "doubtful": bool(made.standing.untold) and not untold_levels(made),
        "replicates": bool(made.standing.replicates),
        "pls": made.curve_check.pls_is_better,
        "straight": bool(single.line.r2 >= 0.95 and made.has_blank),
        "withheld": bool(single.line.r2 >= 0.95 and made.has_blank and single.line.detection is None),
    }


def relabelled(c: np.ndarray, rows: list[np.ndarray], rng: np.random.Generator) -> dict[str, Any] | None:
    """The same with one label halved or doubled; None where that falls on another level."""
    for _ in range(12):
        i, factor = int(rng.integers(1, len(c))), float(rng.choice([0.5, 2.0]))
        labels = c.copy()
        labels[i] *= factor
        apart = np.abs(np.delete(labels, i) - labels[i]).min()
        if labels[i] > c[0] and apart > 0.02 * max(0.2 * float(np.ptp(c)), labels[i]):
            break
    else:
        return None
    order = np.argsort(labels)
    spectra = [rows[j] for j in order]
    made = Calibration(np.repeat(labels[order], [len(own) for own in spectra]), np.concatenate(spectra), WAVELENGTHS)
    said = [bool(np.isclose(level, labels[i])) for level in named(made)]
    place = int(np.flatnonzero(order == i)[0])
    return {"end": place in (0, len(c) - 1), "named": any(said), "another": any(not one for one in said)}


def two_exchanged(c: np.ndarray, rows: list[np.ndarray], rng: np.random.Generator) -> dict[str, Any]:
    """The same with the labels of two levels exchanged."""
    pair = sorted(rng.choice(len(c), 2, replace=False).tolist())
    order = np.arange(len(c))
    order[pair] = order[pair[::-1]]
    spectra = [rows[j] for j in order]
    made = Calibration(np.repeat(c, [len(own) for own in spectra]), np.concatenate(spectra), WAVELENGTHS)
    said = sorted(exchanged(made))
    both = len(said) == 2 and bool(np.allclose(said, c[pair]))
    innocent = [level for level in named(made) if not np.isclose(level, c[pair]).any()]
    one = bool(named(made)) and not both and not innocent
    said = {"named": both, "one": one, "another": bool(innocent)}
    standing = made.standing
    silent = standing.usable and not standing.cautions
    return {"neighbours": pair[1] - pair[0] == 1, **said, "silent": silent, "untold": bool(standing.untold)}


def run(assays: int, seed: int) -> list[dict[str, Any]]:
    found, rng = [], np.random.default_rng(seed)
    for n in LEVELS:
        drawn = draw(assays, n, len(WAVELENGTHS), 0, seed=seed, step=n, families=HELD_OUT_FAMILIES, dtype=torch.float64)
        for k in range(assays):
            counts = drawn.count[k].tolist()
            rows = [drawn.replicates[k, i, : counts[i]].numpy() for i in range(n)]
            means = np.stack([own.mean(axis=0) for own in rows])
            deviation = np.sqrt(((means - drawn.truth[k].numpy()) ** 2).mean(axis=1))
            c, noise = drawn.concentration[k].numpy(), float(drawn.noise[k])
            one = {"levels": n, "noise": noise, **asked(c, rows, deviation)}
            if k % EVERY == 0 and noise < QUIET:
                one["relabelled"] = relabelled(c, rows, rng)
                one["two_exchanged"] = two_exchanged(c, rows, np.random.default_rng([seed, n, k]))
            found.append(one)
        print(f"{n} levels: {len(found)} assays", flush=True)
    return found


def share(rows: list[Any]) -> str:
    """How many of them are so; None is one that was not asked."""
    rows = [one for one in rows if one is not None]
    return f"{sum(rows)} of {len(rows)} ({100 * np.mean(rows):.1f} %)" if rows else "–"


def markdown(found: list[dict[str, Any]]) -> str:
    quiet = [one for one in found if one["noise"] < QUIET]
    pairs = [one["two_exchanged"] for one in quiet if one["levels"] >= 5 and one.get("two_exchanged")]
    told = (__doc__ or "").split("\n\n")[1].replace("\n", " ")
    if not pairs:  # a record of before the exchange was counted
        told = told.replace(", and once with those of two levels, any two, exchanged", "")
    lines = ["# Genuine standards, and wrong labels", "", told, ""]
    lines += [f"| said | all | errors below {100 * QUIET:.0f} % of the response |", "|---|---|---|"]
    kinds = {
        "no_response": "these standards do not respond",
        "accused": "a standard contradicts the others",
        "accused_wrongly": "… and is not really off",
        "exchanged": "… for the labels of two look exchanged",
        "untold": "nothing else, but a level left out is missed by more than half of the response",
        "doubtful": "nothing else, but a label is unlikely, or another order far likelier",
        "replicates": "a replicate is not of its level",
        "pls": "no curve: PLS answers",
    }
    for key, words in kinds.items():
        cells = [share([one.get(key) for one in rows]) for rows in (found, quiet)]
        if cells[0] != "–":
            lines.append(f"| {words} | {cells[0]} | {cells[1]} |")
    lines_of = [[one["withheld"] for one in rows if one["straight"]] for rows in (found, quiet)]
    lines.append(f"| no limit of one wavelength, R² ≥ 0.95 and a blank | {share(lines_of[0])} | {share(lines_of[1])} |")
    heads = ("levels", "accused wrongly", "inner label wrong: named", "another named", "end: named", "another named")
    lines += ["", f"| {' | '.join(heads)} |", "|---|---|---|---|---|---|"]
    for low, high in SIZES:
        own = [one for one in quiet if low <= one["levels"] <= high]
        wrong = [one["relabelled"] for one in own if one.get("relabelled")]
        cells = [share([one["accused_wrongly"] for one in own])]
        for end in (False, True):
            cells += [share([one[key] for one in wrong if one["end"] == end]) for key in ("named", "another")]
        lines.append(f"| {low if low == high else f'{low} to {high}'} | " + " | ".join(cells) + " |")
    if not pairs:
        return "\n".join([*lines, ""])
    heads = ("labels of two exchanged, 5 levels and more", "both named", "one of them", "another one named")
    lines += ["", f"| {' | '.join(heads)} |", "|---|---|---|---|"]
    for words, own in (("any two", pairs), ("… neighbours", [one for one in pairs if one["neighbours"]])):
        cells = [share([one[key] for one in own]) for key in ("named", "one", "another")]
        lines.append(f"| {words} | " + " | ".join(cells) + " |")
    silent = [one["untold"] for one in pairs if one.get("silent")]
    if silent:
        lines += ["", f"Of exchanges that no other check finds {share(silent)} leave a level that the others miss so."]
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assays", type=int, default=75)
    parser.add_argument("--seed", type=int, default=4242)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "genuine_standards")
    args = parser.parse_args()
    found = run(args.assays, args.seed)
    write_text(args.out.with_suffix(".json"), json.dumps({"seed": args.seed, "assays": found}) + "\n")
    write_text(args.out.with_suffix(".md"), markdown(found))
    print(markdown(found))


if __name__ == "__main__":
    main()
