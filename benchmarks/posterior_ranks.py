"""Simulation-based calibration of the posterior: the rank of the truth in it is uniform if it is right.

Talts et al. 2018, arXiv:1804.06788. Of each assay one unknown enters the Kolmogorov–Smirnov test, since those of one
assay are not independent; the histograms are of all. Blanks are left out: how many unknowns are blanks is
no part of what the posterior learned (geonode.calibration.posterior.examples.BLANK_WEIGHT).
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import kstest

from geonode.calibration.posterior.examples import unknowns_of
from geonode.calibration.posterior.quantifier import learned_posterior, levels_heard
from geonode.corpus import FAMILIES, UNKNOWNS, common_levels, draw
from geonode_runtime.files import write_text
from geonode_runtime.posterior.density import Posterior

RANKED = ("sample", "rough")


def is_blank(one: Posterior, c: float) -> bool:
    """Whether there is nothing of the analyte."""
    return one.floor and c == 0.0


def rank_of(one: Posterior, c: float, rng: np.random.Generator) -> float:
    """The share of the posterior below the truth; where that is an atom (zero at the end of the range, or beyond it),
    anywhere within."""
    reach = (1e-5 if c <= one.edges[0] + 1e-9 * one.span else 1e-9) * one.span
    low, high = np.asarray(one.below_of(np.array([c - reach, c + reach])))
    if c > one.edges[-1]:
        low, high = 1.0 - one.above, 1.0
    if c < one.edges[0]:
        low, high = 0.0, one.below
    return float(low + (high - low) * rng.random())


def rank_figures(assays: list[list[float]]) -> dict[str, Any]:
    """Of the ranks of every assay: shares of deciles, and the test of one of each."""
    every = np.concatenate([np.asarray(own, dtype=float) for own in assays]) if assays else np.zeros(0)
    single = [own[number % len(own)] for number, own in enumerate(assays) if own]
    counts = np.histogram(every, np.linspace(0.0, 1.0, 11))[0]
    return {
        "assays": len(assays),
        "deciles": (counts / max(counts.sum(), 1)).round(3).tolist(),
        "p": round(float(kstest(single, "uniform").pvalue), 4) if len(single) > 4 else None,
    }


def rank_groups(assays: list[dict[str, Any]]) -> dict[str, Any]:
    """By number of levels and by noise."""

    def of(chosen: list[dict[str, Any]]) -> dict[str, Any]:
        kept = [
            [r["rank"] for r in one["posterior"] if r["rank"] is not None and r["kind"] in RANKED] for one in chosen
        ]
        return rank_figures(kept)

    groups = {
        f"{low} to {high} levels": [a for a in assays if low <= a["levels"] <= high]
        for low, high in ((3, 4), (5, 6), (7, 9), (10, 24))
    }
    edges = (0.0, 0.003, 0.01, 0.03, np.inf)
    groups |= {
        f"noise {low:g} to {high:g}": [a for a in assays if low <= a["noise"] < high] for low, high in pairwise(edges)
    }
    return {"all": of(assays), **{name: of(chosen) for name, chosen in groups.items() if chosen}}


def rank_table(groups: dict[str, Any]) -> list[str]:
    lines = ["| assays | number | deciles | p |", "|---|---|---|---|"]
    for group, r in groups.items():
        deciles = " ".join(f"{100 * d:.0f}" for d in r["deciles"])
        lines.append(f"| {group} | {r['assays']} | {deciles} | {'–' if r['p'] is None else r['p']} |")
    return lines


def ranks_by_family(each: int, seed: int, keep: Path | None, until: float) -> dict[str, Any]:
    """``each`` assays of every family.

    Raises:
        SystemExit: the time was over first.
    """
    found = {}
    for number, family in enumerate(FAMILIES):
        path = None if keep is None else keep / f"family-{family}-{each}.json"
        if path is not None and path.is_file():
            found[family] = json.loads(path.read_text(encoding="utf-8"))
            continue
        if time.monotonic() > until:
            raise SystemExit(f"time is over: run it again with --keep {keep}")
        own = [ranks for step in range(each // 8) for ranks in _ranks(family, [seed, number], step)]
        found[family] = rank_figures(own)
        if path is not None:
            write_text(path, json.dumps(found[family]))
    return found


def _ranks(family: str, seed: list[int], step: int) -> list[list[float]]:
    rng = np.random.default_rng([*seed, step])
    levels, width = common_levels(seed[0], 100 * seed[1] + step), int(rng.choice((64, 128, 256)))
    assays = draw(
        8, levels, width, queries=0, unknowns=8, seed=seed[0], step=100 * seed[1] + step, families=(family,),
        dtype=torch.float64,
    )  # fmt: skip
    found = []
    for row in range(8):
        c, count = assays.concentration[row].numpy(), assays.count[row].numpy()
        standards = np.concatenate([assays.replicates[row, i, :r].numpy() for i, r in enumerate(count)])
        given = np.repeat(c, count), standards
        learned = learned_posterior(*given)
        learned = replace(learned, known=replace(learned.known, power=levels_heard(*given).power))
        spectra, repeats, truth, kind = unknowns_of(assays, row, None)
        chosen = [i for i in range(len(truth)) if UNKNOWNS[kind[i]] in RANKED]
        posteriors, _, _ = learned.posteriors(spectra[chosen], repeats[chosen]) if chosen else ([], None, None)
        drawn = [(one, float(truth[i])) for one, i in zip(posteriors, chosen, strict=True)]
        found.append([rank_of(one, c, rng) for one, c in drawn if not is_blank(one, c)])
    return found
