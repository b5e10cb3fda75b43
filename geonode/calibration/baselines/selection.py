"""Is what a search among wavelengths found more than a search among noise finds?

Of hundreds of wavelengths, or thousands of ratios, some follow the concentration by chance, and the line through the
best of them looks like a calibration line. So the whole search is repeated on standards that do not respond: the level
means are turned at random about their mean (a rotation test; Langsrud 2005, Statistics and Computing 15, 53). Turned
noise is noise of the same covariance along the wavelengths, whatever that is, so without a response the limit found is
one draw among those of the turned spectra, for any search. Unlike permutations, of which four levels have 24, turns are
as many as are wanted.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

TURNS = 199
CHANCE = 0.025
"""Nominal share of assays without response for which a search is believed. Two searches are made of each assay, one of
single wavelengths and one of ratios: together 5 %."""


def better_than_chance(search: Callable[[np.ndarray], float], spectra: np.ndarray, concentrations: np.ndarray) -> bool:
    """Whether fewer than :data:`CHANCE` of searches among turned spectra do as well.

    Args:
        search: the smallest detection limit that it finds among spectra ``[N, W]``.
        spectra: ``[N, W]``. concentrations: ``[N]``, equal ones for replicates, which are turned together.
    """
    from scipy.stats import ortho_group  # heavy: a third of a second in every command

    levels, index = np.unique(concentrations, return_inverse=True)
    n = len(levels)
    means = np.stack([spectra[index == i].mean(axis=0) for i in range(n)])
    contrasts = np.linalg.qr(np.eye(n) - 1.0 / n)[0][:, : n - 1]
    parts, scatter = contrasts.T @ means, spectra - means[index] + means.mean(axis=0)
    found, as_good, allowed = search(spectra), 0, int(CHANCE * (TURNS + 1)) - 1
    for turn in ortho_group(n - 1, seed=0).rvs(TURNS):
        as_good += search(scatter + (contrasts @ (turn @ parts))[index]) <= found
        if as_good > allowed:
            return False
    return True
