"""Answers by the learned posterior: what the full library and an exported model do alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from geonode_runtime.answers import (
    Facts,
    Measurer,
    Misfit,
    check_options,
    quantification,
    replicate_excess,
    require_usable,
)
from geonode_runtime.posterior.cells import CELLS, Cells, unknown_cells
from geonode_runtime.posterior.density import Posterior
from geonode_runtime.posterior.network import ABOVE, BELOW, NONE, Weights, evaluate
from geonode_runtime.posterior.rules import judge
from geonode_runtime.posterior.standards import PosteriorStandards
from geonode_runtime.posterior.twins import with_twins
from geonode_runtime.unknowns import Unknown
from geonode_runtime.verdicts import VERDICT_LEVEL, PosteriorMasses, Quantification

_AT_ONCE = 256
_BASIS = "the posterior learned on simulated unknowns"


@dataclass(frozen=True)
class LearnedPosterior:
    """The standards of one assay and the network that was trained on simulated unknowns.

    Attributes:
        known: of the standards. weights: of the network.
    """

    known: PosteriorStandards
    weights: Weights

    def posteriors(
        self, spectra: np.ndarray, replicates: np.ndarray, usable: np.ndarray | None = None
    ) -> tuple[list[Posterior], np.ndarray, Cells]:
        """Of unknowns ``spectra [U, W]``, each the mean of ``replicates [U]``, at ``usable [W]`` wavelengths:
        posterior (widened, with the twins that the network left out), probability that it holds something strange
        ``[U]``, and what the network saw."""
        known = self.known
        cells = unknown_cells(known, spectra, replicates, usable)
        outcome = evaluate(self.weights, cells)
        none = np.exp(outcome.logs[:, NONE])
        rest = np.exp(outcome.logs[:, :NONE])
        rest /= rest.sum(1, keepdims=True)
        found = [
            Posterior(edges, p[:CELLS], float(p[BELOW]), float(p[ABOVE]), float(n), known.span, known.floor)
            for edges, p, n in zip(cells.edges, rest, none, strict=True)
        ]
        found = [with_twins(known, one.widened(known.power), cells, u) for u, one in enumerate(found)]
        return found, outcome.strange, cells

    def answer(
        self,
        curve: Measurer,
        facts: Facts,
        unknown: Unknown,
        effective: float,
        level: float,
        dilution: float = 1.0,
        dilution_std: float = 0.0,
    ) -> Quantification:
        """The answer for one unknown.

        Args:
            curve: of the calibration, by which replicates that scatter too much are known.
            facts: of the calibration. unknown: preprocessed as the standards were.
            effective: replicates its mean is worth.
            level: nominal coverage of the set.
            dilution: factor by which it was diluted. dilution_std: its standard uncertainty.

        Raises:
            InputError: too few wavelengths can be used.
        """
        usable = None if unknown.usable.all() else unknown.usable
        if usable is not None:
            require_usable(self.known.basis, usable)
        spectra, which = facts.standards.as_new(unknown.spectra, usable)
        unknown = replace(unknown, spectra=spectra, notes=(*unknown.notes, *facts.standards.notes(which)))
        excess = replicate_excess(curve, spectra, usable)
        if excess > 1.0:
            effective /= excess
            said = f"the replicates scatter {excess:.1f} times as much (variance) as the standards' noise explains"
            unknown = replace(unknown, notes=(*unknown.notes, f"{said}: the set was widened accordingly"))
        mean = spectra.mean(axis=0, keepdims=True)
        found, strange, cells = self.posteriors(mean, np.array([effective]), usable)
        factor = (dilution, dilution_std / dilution)
        return self._judged(facts, unknown, found[0], float(strange[0]), cells.stray[0], level, factor)

    def answer_many(
        self, curve: Measurer, facts: Facts, unknowns: Sequence[Unknown], level: float
    ) -> list[Quantification]:
        """One answer for each of ``unknowns`` of one spectrum at ``level``, computed together where none has masked
        values; ``curve`` and ``facts`` are those of the calibration.

        Raises:
            InputError: a level out of range, or too few wavelengths that can be used.
        """
        check_options(level, 1.0, 0.0)
        if any(not u.usable.all() for u in unknowns):
            return [self.answer(curve, facts, u, 1.0, level) for u in unknowns]
        result = []
        for start in range(0, len(unknowns), _AT_ONCE):
            part = unknowns[start : start + _AT_ONCE]
            spectra, which = facts.standards.as_new(np.stack([u.spectra[0] for u in part]))
            part = [
                replace(u, spectra=x[None], notes=(*u.notes, *facts.standards.notes([n])))
                for u, x, n in zip(part, spectra, which, strict=True)
            ]
            found, strange, cells = self.posteriors(spectra, np.ones(len(part)))
            rows = zip(part, found, strange, cells.stray, strict=True)
            result += [self._judged(facts, u, p, float(s), q, level, (1.0, 0.0)) for u, p, s, q in rows]
        return result

    def _judged(
        self,
        facts: Facts,
        unknown: Unknown,
        posterior: Posterior,
        strange: float,
        stray: np.ndarray,
        level: float,
        factor: tuple[float, float],
    ) -> Quantification:
        sets = posterior.highest(level), posterior.highest(VERDICT_LEVEL)
        usable = None if unknown.usable.all() else unknown.usable
        said, reasons, sets, pls = judge(
            facts, self.known, posterior, strange, float(stray[0]), sets, unknown.spectra.mean(axis=0), usable
        )
        misfit = Misfit(float(stray[0]), float("inf"), float(stray[1]), float("inf"))
        answered = quantification((said, reasons), sets, unknown, facts, misfit, factor, self.known.dof, _BASIS)
        masses = PosteriorMasses(posterior.below, posterior.above, posterior.none, strange)
        return replace(answered, posterior=masses, pls=pls)
