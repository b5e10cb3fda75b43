"""`PosteriorQuantifier`: the learned posterior of one calibration, ready for unknowns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from geonode.calibration.posterior.cells import CELLS, Cells, unknown_cells
from geonode.calibration.posterior.density import Posterior
from geonode.calibration.posterior.network import ABOVE, BELOW, NONE, PosteriorNetwork
from geonode.calibration.posterior.own_levels import widening
from geonode.calibration.posterior.reading import Reading
from geonode.calibration.posterior.rules import judge
from geonode.calibration.posterior.stored import load_posterior
from geonode_runtime.answers import TOO_FEW, Facts, Misfit, check_options, quantification
from geonode_runtime.errors import InputError
from geonode_runtime.unknowns import Unknown
from geonode_runtime.verdicts import VERDICT_LEVEL, PosteriorMasses, Quantification

if TYPE_CHECKING:
    from geonode.calibration.calibration import Calibration

_AT_ONCE = 512
_BASIS = "the posterior learned on simulated unknowns"


class PosteriorQuantifier:
    """Standards and the network that was trained on simulated unknowns.

    Args:
        concentrations, spectra: ``[N]``, ``[N, W]`` of the standards, preprocessed.
        concentration_std: ``[n]`` standard uncertainty of each level, or None.
        network: None for the weights that come with geonode.
        own_levels: whether the assay's own left-out levels may widen the posterior.
        spectra_without: gives all ``[N, W]`` as a preprocessing fitted without a level (its position) makes them; None
            where the spectra do not depend on what is left out.
    """

    def __init__(
        self,
        concentrations: np.ndarray,
        spectra: np.ndarray,
        concentration_std: np.ndarray | None = None,
        network: PosteriorNetwork | None = None,
        own_levels: bool = True,
        spectra_without: Callable[[int], np.ndarray] | None = None,
    ) -> None:
        self.concentrations, self.spectra, self.std = concentrations, spectra, concentration_std
        self.network = load_posterior() if network is None else network
        self.own_levels, self._spectra_without = own_levels, spectra_without
        self.levels, self.level_index = np.unique(concentrations, return_inverse=True)
        self.reading = reading_of(concentrations, spectra, concentration_std)

    @classmethod
    def of(cls, calibration: Calibration) -> PosteriorQuantifier:
        """For the standards of a ``calibration``, preprocessed as they are there."""
        without = calibration.measured.spectra_without(calibration.level_index)
        standards = calibration.concentrations, calibration.spectra, calibration.concentration_std
        return cls(*standards, spectra_without=without)

    @cached_property
    def power(self) -> float:
        """t ≤ 1, to which the density is raised (:mod:`geonode.calibration.posterior.own_levels`)."""
        if not self.own_levels:
            return 1.0
        return widening(self.levels, self.level_index, self.spectra, self._without)

    def _without(self, stay: np.ndarray, unknown: np.ndarray) -> list[Posterior]:
        left_out = int(self.level_index[~stay][0])
        std = None if self.std is None else np.delete(self.std, left_out)
        spectra, rows = self.spectra[stay], unknown
        if self._spectra_without is not None:
            seen = self._spectra_without(left_out)
            spectra, rows = seen[stay], seen[~stay][: len(unknown)]
        reading = reading_of(self.concentrations[stay], spectra, std)
        return posteriors(self.network, reading, unknown_cells(reading, rows, np.ones(len(rows))))[0]

    def posteriors(
        self, spectra: np.ndarray, replicates: np.ndarray, usable: np.ndarray | None = None
    ) -> tuple[list[Posterior], np.ndarray, Cells]:
        """Of unknowns ``spectra [U, W]``, each the mean of ``replicates [U]``, at ``usable [W]`` wavelengths:
        posterior (widened), probability that it holds something strange ``[U]``, and what the network saw."""
        cells = unknown_cells(self.reading, spectra, replicates, usable)
        found, strange = posteriors(self.network, self.reading, cells)
        return [one.widened(self.power) for one in found], strange, cells

    def answer(
        self,
        facts: Facts,
        unknown: Unknown,
        effective: float,
        level: float,
        dilution: float = 1.0,
        dilution_std: float = 0.0,
    ) -> Quantification:
        """The answer for one unknown.

        Args:
            facts: of the calibration. unknown: preprocessed as the standards were.
            effective: replicates its mean is worth.
            level: nominal coverage of the set.
            dilution: factor by which it was diluted. dilution_std: its standard uncertainty.

        Raises:
            InputError: too few wavelengths can be used.
        """
        usable = None if unknown.usable.all() else unknown.usable
        if usable is not None and int(usable.sum()) <= self.reading.white.basis.shape[1]:
            raise InputError(TOO_FEW)
        mean = unknown.spectra.mean(axis=0, keepdims=True)
        found, strange, cells = self.posteriors(mean, np.array([effective]), usable)
        stray = cells.stray[0]
        return _answer(facts, unknown, found[0], float(strange[0]), stray, level, dilution, dilution_std, self.reading)

    def answer_many(self, facts: Facts, unknowns: Sequence[Unknown], level: float) -> list[Quantification]:
        """One answer for each of ``unknowns`` of one spectrum at ``level``, computed together where none has masked
        values; ``facts`` are those of the calibration.

        Raises:
            InputError: a level out of range, or too few wavelengths that can be used.
        """
        check_options(level, 1.0, 0.0)
        if any(not u.usable.all() for u in unknowns):
            return [self.answer(facts, u, 1.0, level) for u in unknowns]
        result = []
        for start in range(0, len(unknowns), _AT_ONCE):
            part = unknowns[start : start + _AT_ONCE]
            spectra = np.stack([u.spectra[0] for u in part])
            found, strange, cells = self.posteriors(spectra, np.ones(len(part)))
            rows = zip(part, found, strange, cells.stray, strict=True)
            result += [_answer(facts, u, p, float(s), q, level, 1.0, 0.0, self.reading) for u, p, s, q in rows]
        return result


def reading_of(concentrations: np.ndarray, spectra: np.ndarray, std: np.ndarray | None) -> Reading:
    """Standards ``[N]``, ``[N, W]`` by level."""
    levels, index = np.unique(concentrations, return_inverse=True)
    counts = np.bincount(index).astype(float)
    means = np.stack([spectra[index == i].mean(axis=0) for i in range(len(levels))])
    deviations = None if len(spectra) == len(levels) else spectra - means[index]
    return Reading(levels, means, counts, deviations, std)


@torch.no_grad()
def posteriors(network: PosteriorNetwork, reading: Reading, cells: Cells) -> tuple[list[Posterior], np.ndarray]:
    """What the network makes of the cells of one assay's unknowns, and the probability of something strange in each
    ``[U]``."""
    width = np.diff(cells.edges, axis=1)
    even = width / width.sum(1, keepdims=True)
    parts = (cells.values, cells.whole, cells.base, cells.odd, even)
    outcome = network(*(torch.from_numpy(part).float() for part in parts))
    logs = outcome.logs.double().numpy()
    none = np.exp(logs[:, NONE])
    rest = np.exp(logs[:, :NONE])
    rest /= rest.sum(1, keepdims=True)
    floor = reading.low == 0.0 and reading.levels[0] >= 0.0
    found = [
        Posterior(edges, p[:CELLS], float(p[BELOW]), float(p[ABOVE]), float(n), reading.span, floor)
        for edges, p, n in zip(cells.edges, rest, none, strict=True)
    ]
    return found, torch.sigmoid(outcome.strange.double()).numpy()


def _answer(
    facts: Facts,
    unknown: Unknown,
    posterior: Posterior,
    strange: float,
    stray: np.ndarray,
    level: float,
    dilution: float,
    dilution_std: float,
    reading: Reading,
) -> Quantification:
    found, at_95 = posterior.highest(level), posterior.highest(VERDICT_LEVEL)
    said, reasons = judge(facts.rules, posterior, strange, found, at_95)
    misfit = Misfit(float(stray[0]), float("inf"), float(stray[1]), float("inf"))
    factor = (dilution, dilution_std / dilution)
    answered = quantification((said, reasons), (found, at_95), unknown, facts, misfit, factor, reading.dof, _BASIS)
    return replace(answered, posterior=PosteriorMasses(posterior.below, posterior.above, posterior.none, strange))
