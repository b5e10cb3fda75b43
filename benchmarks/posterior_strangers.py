"""Spectra that are not of the assay, of kinds that the posterior's training did not have.

Interferents are Lorentzian or two-lobed (training had Gaussian ones), of 30 % of the largest response; scattering falls
with the fourth power of the wavelength and has 10 % of the largest signal; the others are another assay's unknowns as
large as this one's, a flat line, and noise of the size of the standards'. Where a blank was measured that is nothing
but noise, noise is a blank: such are counted apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from geonode.corpus import UNKNOWNS

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
    names: list[str] = []
    found: list[np.ndarray] = []
    repeats: list[float] = []
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
    blank = levels[0] == 0.0 and float(np.sqrt((means[0] ** 2).mean())) < 3.0 * float(noise.std())
    for name, one in (
        ("another assay's", other * np.abs(means).max() / max(float(np.abs(other).max()), 1e-300)),
        ("flat line", 0.3 * signal + noise[0]),
        ("noise, as the blank is" if blank else "noise", noise[1]),
    ):
        names.append(name)
        found.append(one)
        repeats.append(1.0)
    return names, np.array(found), np.array(repeats)
