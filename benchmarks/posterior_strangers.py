"""Spectra that are not of the assay, of kinds that the posterior's training did not have, beside genuine ones.

Interferents are Lorentzian or two-lobed (training had Gaussian ones), of 30 % of the largest response; scattering falls
with the fourth power of the wavelength and has 10 % of the largest signal; the others are another assay's unknowns as
large as this one's, a flat line, and noise of the size of the standards'.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import torch

from geonode.calibration.posterior.quantifier import learned_posterior
from geonode.corpus import UNKNOWNS, common_levels, draw
from geonode_runtime.posterior.network import NONE, evaluate
from geonode_runtime.posterior.rules import REFUSED, STRANGE

EACH = 3  # genuine unknowns of an assay that are disturbed


def strangers(assays: Any, row: int, rng: np.random.Generator) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Names, spectra ``[U, W]`` and how many each is the mean of."""
    levels, means = assays.concentration[row].numpy(), assays.spectra[row].numpy()
    spectra, truth = assays.unknown_spectra[row].numpy(), assays.unknown_concentration[row].numpy()
    inside = (truth >= levels[0]) & (truth <= levels[-1])
    genuine = np.flatnonzero((assays.unknown_kind[row].numpy() == UNKNOWNS.index("sample")) & inside)
    count = assays.unknown_count[row].numpy().astype(float)
    place = np.linspace(0.0, 1.0, spectra.shape[1])
    signal, response = np.abs(means).max(), np.ptp(means, axis=0).max()
    scattering = (350.0 / (350.0 + 450.0 * place)) ** 4
    names, found, repeats = ["genuine"] * len(genuine), list(spectra[genuine]), list(count[genuine])
    for i in genuine[:EACH]:
        at, width = rng.random(), 10.0 ** rng.uniform(-1.5, -0.7)
        two = np.exp(-0.5 * ((place - at) / width) ** 2) - 0.6 * np.exp(
            -0.5 * ((place - at - 2.0 * width) / width) ** 2
        )
        for name, added in (
            ("interferent, Lorentzian, 30 %", 0.3 * response / (1.0 + ((place - at) / width) ** 2)),
            ("interferent, two lobes, 30 %", 0.3 * response * two),
            ("scattering, 10 %", 0.1 * signal * scattering),
        ):
            names.append(name)
            found.append(spectra[i] + added)
            repeats.append(count[i])
    other = assays.unknown_spectra[(row + 3) % len(assays)].numpy()[0]
    noise = np.sqrt(np.median(np.diff(spectra[0], n=2) ** 2) / 6.0 / 0.455) * rng.standard_normal((2, len(place)))
    for name, one in (
        ("another assay's", other * np.abs(means).max() / max(float(np.abs(other).max()), 1e-300)),
        ("flat line", 0.3 * signal + noise[0]),
        ("noise", noise[1]),
    ):
        names.append(name)
        found.append(one)
        repeats.append(1.0)
    return names, np.array(found), np.array(repeats)


def caught(count: int, seed: int, families: tuple[str, ...] | None) -> dict[str, Any]:
    """By kind: how many spectra, and the shares that are refused, and refused or flagged."""
    total: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    noticed: Counter[str] = Counter()
    for step in range(count // 8):
        rng = np.random.default_rng([seed, step])
        levels, width = common_levels(seed, step) + 1, int(rng.choice((64, 128, 256)))
        assays = draw(
            8, levels, width, queries=0, unknowns=8, seed=seed, step=step, families=families, dtype=torch.float64
        )
        for row in range(8):
            replicates = assays.count[row].numpy()
            standards = np.concatenate([assays.replicates[row, i, :r].numpy() for i, r in enumerate(replicates)])
            concentrations = np.repeat(assays.concentration[row].numpy(), replicates)
            learned = learned_posterior(concentrations, standards, own_levels=False)
            names, spectra, repeats = strangers(assays, row, rng)
            _, strange, cells = learned.posteriors(spectra, repeats)
            none = np.exp(evaluate(learned.weights, cells).logs[:, NONE]) > REFUSED
            for name, no, odd in zip(names, none, strange > STRANGE, strict=True):
                total[name] += 1
                refused[name] += bool(no)
                noticed[name] += bool(no or odd)
    return {
        name: {
            "spectra": total[name],
            "refused": round(refused[name] / total[name], 4),
            "refused_or_flagged": round(noticed[name] / total[name], 4),
        }
        for name in total
    }
