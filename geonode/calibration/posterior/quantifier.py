"""The learned posterior of one calibration: its standards read, its own left-out levels heard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from geonode.calibration.assessment.match_limits import USELESS_FACTOR, ends_held
from geonode.calibration.posterior.own_levels import OwnLevels, own_levels
from geonode.calibration.posterior.reading import Reading
from geonode.calibration.posterior.stored import posterior_weights
from geonode_runtime.posterior.answers import LearnedPosterior
from geonode_runtime.posterior.density import Posterior
from geonode_runtime.posterior.network import Weights

if TYPE_CHECKING:
    from geonode.calibration.calibration import Calibration

FEWEST_LEVELS = 3
"""The posterior was trained on 3 to 25 levels."""


def learned_posterior(
    concentrations: np.ndarray,
    spectra: np.ndarray,
    concentration_std: np.ndarray | None = None,
    weights: Weights | None = None,
) -> LearnedPosterior:
    """The posterior for standards ``[N]``, ``[N, W]``, preprocessed, before its own left-out levels are heard.

    Args:
        concentration_std: ``[n]`` standard uncertainty of each level, or None.
        weights: None for those that come with geonode.
    """
    weights = posterior_weights() if weights is None else weights
    return LearnedPosterior(reading_of(concentrations, spectra, concentration_std).known, weights)


def levels_heard(
    concentrations: np.ndarray,
    spectra: np.ndarray,
    concentration_std: np.ndarray | None = None,
    weights: Weights | None = None,
    spectra_without: Callable[[int], np.ndarray] | None = None,
) -> OwnLevels:
    """What the assay's own levels, left out one by one, say of the posterior for its standards.

    Args:
        concentrations, spectra, concentration_std, weights: as for :func:`learned_posterior`.
        spectra_without: gives all ``[N, W]`` as a preprocessing fitted without a level (its position) makes them; None
            where the spectra do not depend on what is left out.
    """
    levels, index = np.unique(concentrations, return_inverse=True)

    def without(stay: np.ndarray, unknown: np.ndarray) -> list[Posterior]:
        left_out = int(index[~stay][0])
        std = None if concentration_std is None else np.delete(concentration_std, left_out)
        kept, rows = spectra[stay], unknown
        if spectra_without is not None:
            seen = spectra_without(left_out)
            kept, rows = seen[stay], seen[~stay][: len(unknown)]
        alone = learned_posterior(concentrations[stay], kept, std, weights)
        return alone.posteriors(rows, np.ones(len(rows)))[0]

    return own_levels(levels, index, spectra, without)


def own_levels_of(calibration: Calibration) -> OwnLevels:
    """What the levels of a ``calibration``, each left out, say of the posterior for its standards."""
    without = calibration.measured.spectra_without(calibration.level_index)
    standards = calibration.concentrations, calibration.spectra, calibration.concentration_std
    return levels_heard(*standards, spectra_without=without)


def posterior_of(calibration: Calibration) -> LearnedPosterior:
    """For the standards of a ``calibration``, preprocessed as they are there, widened as its own levels ask for."""
    bare = learned_posterior(calibration.concentrations, calibration.spectra, calibration.concentration_std)
    ridge, power = _trusted_ridge(calibration, bare), calibration.own_levels.power
    return replace(bare, known=replace(bare.known, power=power, left_out_ridge=ridge))


def _trusted_ridge(calibration: Calibration, made: LearnedPosterior) -> np.ndarray:
    """The misfit of levels left out ``[m]``, none taken for more than those of the standards that are trusted: what a
    standard that contradicts the others is off by is no measure of how far off a genuine spectrum may be."""
    ridge, trusted = _held(made.known.left_out_ridge), calibration.standing.trusted
    while trusted is not trusted.standing.trusted:
        trusted = trusted.standing.trusted
    if trusted is calibration.of_process:
        return ridge
    alone = reading_of(trusted.concentrations, trusted.spectra, trusted.concentration_std).known
    return np.minimum(ridge, _held(alone.left_out_ridge).max())


def _held(ridge: np.ndarray) -> np.ndarray:
    """The misfit of levels left out ``[m]``, the ends held to the others where anything would pass beside theirs."""
    return ridge if ridge.max() <= USELESS_FACTOR else ends_held(ridge, np.arange(len(ridge)))


def unfit_for(calibration: Calibration) -> str:
    """Why the posterior cannot answer for a ``calibration``, and what does; empty where it can."""
    if calibration.ensemble is not None:
        return "the neural flow stands in place of the standards' own curve, on which the posterior rests"
    if len(calibration.levels) < FEWEST_LEVELS:
        return (
            f"the posterior learned from {FEWEST_LEVELS} levels of standards or more, and this calibration has "
            f"{len(calibration.levels)}"
        )
    return ""


def reading_of(concentrations: np.ndarray, spectra: np.ndarray, std: np.ndarray | None) -> Reading:
    """Standards ``[N]``, ``[N, W]`` by level."""
    levels, index = np.unique(concentrations, return_inverse=True)
    counts = np.bincount(index).astype(float)
    means = np.stack([spectra[index == i].mean(axis=0) for i in range(len(levels))])
    by_level = np.argsort(index, kind="stable")
    deviations = None if len(spectra) == len(levels) else (spectra - means[index])[by_level]
    return Reading(levels, means, counts, deviations, std)
