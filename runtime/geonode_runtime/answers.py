"""From spectra that were made fit to an answer: what the full library and an exported model do alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from geonode_runtime.distributions import chi2_upper_quantile
from geonode_runtime.errors import InputError
from geonode_runtime.given_numbers import as_number
from geonode_runtime.pls import PLSRegression
from geonode_runtime.remedies import VerdictRules, declined
from geonode_runtime.sets import ConcentrationSet, Curve, Distances, close_as_one, sets_at_levels
from geonode_runtime.shapes import Shapes, judged_by_shape
from geonode_runtime.standard_spectra import StandardSpectra
from geonode_runtime.unknowns import Unknown
from geonode_runtime.verdicts import (
    FEWEST_CHECKED,
    VERDICT_LEVEL,
    Quantification,
    pls_notes,
    scale_component,
    verdict,
)

DILUTIONS = (1e-9, 1e9)
UNCHECKED = (
    f"fewer than {FEWEST_CHECKED} standards leave nothing to check the curve between them with: no interval can be "
    "claimed"
)
TOO_FEW = (
    "too few wavelengths of the unknown can be used to tell concentrations apart; measure it again, with fewer of them "
    "masked or saturated."
)
_BASIS = "the model's Student distribution"
_EXCESS_TAIL = 0.05
_SMALLEST_SHARE = 1e-6


class Misfit(NamedTuple):
    """How far a spectrum lies outside the standards' span (Q) and from their curve within it (T²), and the limits."""

    q: float
    q_limit: float
    t2: float
    t2_limit: float


class Measurer(Curve, Protocol):
    """A predicted curve to which spectra can be compared."""

    def project(self, spectra: np.ndarray, usable: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Spectra ``[U, W]`` → coordinates ``[U, r]`` and residual outside the standards' span per degree of freedom
        ``[U]``; ``usable [W]``, None where all are."""
        ...

    def compare(
        self, spectra: np.ndarray, usable: np.ndarray | None, replicates: float
    ) -> tuple[Distances, np.ndarray]:
        """Distances of ``spectra [U, W]``, each the mean of so many replicates, and Q ``[U]``."""
        ...

    @property
    def scatter(self) -> np.ndarray:
        """P ``[r, r]``, the scatter of the standards' replicates within the span."""
        ...

    @property
    def basis(self) -> np.ndarray:
        """``[W, r]`` orthonormal, the span of the standards."""
        ...


@dataclass(frozen=True)
class Facts:
    """What answers need to know of the standards besides the curve: how many there are, the rules of verdicts, their
    own spectra, the shapes of their levels, PLS where that is the better model of them (None elsewhere), what is wrong
    with them, to be said beside every concentration (``cautions``), and what they leave in doubt, to be said beside
    every answer, a spectrum that does not match included (``untold``); both empty of sound ones; and the concentrations
    at which the response turns back (``turns``)."""

    levels: int
    rules: VerdictRules
    standards: StandardSpectra
    shapes: Shapes | None = None
    pls: PLSRegression | None = None
    cautions: tuple[str, ...] = ()
    untold: str = ""
    turns: tuple[float, ...] = ()

    @property
    def attainable(self) -> float:
        """n/(n + 1), the highest coverage that n standards can vouch for."""
        return self.levels / (self.levels + 1.0)


def check_options(level: float, dilution: float, dilution_std: float) -> None:
    """Refuse a level, a dilution factor or its uncertainty that is out of range.

    Raises:
        InputError: naming it.
    """
    level = as_number(level, "the level of the set")
    dilution_std = as_number(dilution_std, "the uncertainty of the dilution factor")
    if not 0.0 < level < 1.0:
        raise InputError(f"the level of the set must lie between 0 and 1, but {level} was given.")
    if isinstance(dilution, str):
        raise InputError(f"the dilution factor must be a number, 10 for 1:10, but '{dilution}' was given.")
    dilution = as_number(dilution, "the dilution factor")
    if not DILUTIONS[0] <= dilution <= DILUTIONS[1]:
        raise InputError(
            f"the dilution factor must be a number between {DILUTIONS[0]:g} and {DILUTIONS[1]:g}, but {dilution:g} was "
            "given."
        )
    if not (np.isfinite(dilution_std) and 0.0 <= dilution_std < dilution):
        raise InputError(
            f"the uncertainty of the dilution factor must lie between 0 and the factor itself, but {dilution_std} was "
            "given."
        )


def without_matrix(unknown: Unknown, matrix: Unknown, at_zero: np.ndarray, has_blank: bool) -> tuple[Unknown, float]:
    """Take the matrix blank off and put the standards' own zero ``[V]`` in its place; also the effective replicates.

    A matrix adds to what is measured, so this comes before any preprocessing.
    """
    spectra = unknown.spectra - matrix.spectra.mean(axis=0) + at_zero
    note = "the matrix blank was taken off and the standards' own zero put in its place"
    if not has_blank:
        note += " (extrapolated: no blank among the standards)"
    usable = unknown.usable & matrix.usable
    # The noise of the blank adds to that of the unknown: 1/k + 1/b.
    effective = 1.0 / (1.0 / len(unknown.spectra) + 1.0 / len(matrix.spectra))
    return Unknown(np.where(usable, spectra, 0.0), usable, (*unknown.notes, note)), effective


def answer(
    curve: Measurer,
    facts: Facts,
    unknown: Unknown,
    effective: float,
    level: float,
    dilution: float = 1.0,
    dilution_std: float = 0.0,
) -> Quantification:
    """The answer for one unknown, preprocessed as the standards were; ``effective``: replicates its mean is worth."""
    usable = None if unknown.usable.all() else unknown.usable
    if usable is not None:
        require_usable(curve.basis, usable)
    spectra, which = facts.standards.as_new(unknown.spectra, usable)
    unknown = replace(unknown, spectra=spectra, notes=(*unknown.notes, *facts.standards.notes(which)))
    mean = spectra.mean(axis=0, keepdims=True)
    excess = replicate_excess(curve, spectra, usable)
    if excess > 1.0:
        # What scatters more than the noise of the standards says is worth fewer replicates.
        effective /= excess
        said = f"the replicates scatter {excess:.1f} times as much (variance) as the standards' noise explains"
        unknown = replace(unknown, notes=(*unknown.notes, f"{said}: the set was widened accordingly"))
    sets, at_95, q, t2 = _sets(curve, mean, usable, effective, level)
    return _judge(curve, facts, unknown, (sets[0], at_95[0]), float(q[0]), float(t2[0]), level, dilution, dilution_std)


def answer_many(curve: Measurer, facts: Facts, unknowns: Sequence[Unknown], level: float) -> list[Quantification]:
    """One answer for each unknown of one spectrum, computed together where none has masked values."""
    check_options(level, 1.0, 0.0)
    if not unknowns:
        return []
    if any(not u.usable.all() for u in unknowns):
        return [answer(curve, facts, u, 1.0, level) for u in unknowns]
    spectra, which = facts.standards.as_new(np.stack([u.spectra[0] for u in unknowns]))
    unknowns = [replace(u, notes=(*u.notes, *facts.standards.notes([n]))) for u, n in zip(unknowns, which, strict=True)]
    sets, at_95, q, t2 = _sets(curve, spectra, None, 1.0, level)
    return [
        _judge(curve, facts, u, (sets[i], at_95[i]), float(q[i]), float(t2[i]), level, 1.0, 0.0)
        for i, u in enumerate(unknowns)
    ]


def replicate_excess(curve: Measurer, spectra: np.ndarray, usable: np.ndarray | None = None) -> float:
    """Scatter of replicates ``[k, W]`` ÷ what φ I + P explains, 1 unless χ² finds it larger (5 % level).

    Σ (a_i − ā)ᵀ (φ I + P)⁻¹ (a_i − ā) / ((k − 1) r), φ from their own out-of-span residuals.
    """
    k = len(spectra)
    if k < 2:
        return 1.0
    coordinates, residual = curve.project(spectra, usable)
    rank = coordinates.shape[1]
    noise = max(float(residual.mean()), 1.0) * np.eye(rank) + curve.scatter
    step = coordinates - coordinates.mean(axis=0)
    dof = (k - 1) * rank
    square = float(np.einsum("kr,rs,ks->", step, np.linalg.inv(noise), step))
    return square / dof if square > chi2_upper_quantile(dof, _EXCESS_TAIL) else 1.0


def require_usable(basis: np.ndarray, usable: np.ndarray) -> None:
    """Refuse where the wavelengths left do not determine the coordinates.

    They must outnumber the directions of ``basis [W, r]``, and keep at least a millionth of the square of each.

    Raises:
        InputError: they do not.
    """
    left = basis[usable]
    if len(left) <= left.shape[1] or np.linalg.eigvalsh(left.T @ left)[0] < _SMALLEST_SHARE:
        raise InputError(TOO_FEW)


def _sets(
    curve: Measurer, spectra: np.ndarray, usable: np.ndarray | None, replicates: float, level: float
) -> tuple[list[ConcentrationSet], list[ConcentrationSet], np.ndarray, np.ndarray]:
    distances, q = curve.compare(spectra, usable, replicates)
    sets, at_95 = sets_at_levels(curve, distances, (level, VERDICT_LEVEL))
    return sets, at_95, q, distances.closest


def _judge(
    curve: Measurer,
    facts: Facts,
    unknown: Unknown,
    sets: tuple[ConcentrationSet, ConcentrationSet],
    q: float,
    t2: float,
    level: float,
    dilution: float,
    dilution_std: float,
) -> Quantification:
    found, at_95 = (close_as_one(one, facts.rules.highest - facts.rules.lowest) for one in sets)
    said, reasons = declined(facts.rules, verdict(facts.rules, found, at_95, q, t2))
    usable = None if unknown.usable.all() else unknown.usable
    pls = facts.pls if said == "no curve" else None
    if pls is not None:
        reasons, (found, at_95) = by_pls(facts, pls, unknown.spectra.mean(axis=0), usable, sets)
    elif said == "no curve":  # a file exported before PLS was kept in it
        said, reasons = "does not match", ("one curve does not describe the standards themselves: use PLS",)
    else:
        (said, reasons), (found, at_95) = judged_by_shape(
            facts.shapes, facts.rules, unknown.spectra.mean(axis=0), usable, (said, reasons), (found, at_95)
        )
    misfit = Misfit(q, facts.rules.q_limit, t2, facts.rules.t2_limit)
    factor = (dilution, dilution_std / dilution)
    answered = quantification((said, reasons), (found, at_95), unknown, facts, misfit, factor, curve.dof, _BASIS)
    return replace(answered, pls=pls)


def by_pls(
    facts: Facts,
    pls: PLSRegression,
    spectrum: np.ndarray,
    usable: np.ndarray | None,
    sets: tuple[ConcentrationSet, ConcentrationSet],
) -> tuple[tuple[str, ...], tuple[ConcentrationSet, ConcentrationSet]]:
    """What must stand beside the answer of ``pls`` to ``spectrum [W]``, and its intervals in place of ``sets``.

    Args:
        facts: of the standards. usable: ``[W]``, None where all wavelengths are.
    """
    value = pls.value(spectrum, usable, facts.standards)
    found, at_95 = (replace(s, components=(pls.component(value, s.level),)) for s in sets)
    return pls_notes(facts.rules, found.best, at_95.best), (found, at_95)


def quantification(
    verdict: tuple[str, tuple[str, ...]],
    sets: tuple[ConcentrationSet, ConcentrationSet],
    unknown: Unknown,
    facts: Facts,
    misfit: Misfit,
    factor: tuple[float, float],
    dof: float,
    basis: str,
) -> Quantification:
    """The answer that a verdict and two sets make, whichever method they are of.

    Args:
        verdict: what is said, and the reasons, which become notes.
        sets: the one that is reported, and the one of 95 %; in the diluted sample.
        unknown: its replicates and notes.
        facts: of the standards.
        misfit: of its spectrum.
        factor: the dilution, and its relative standard uncertainty.
        dof: degrees of freedom of the sets' standard deviations.
        basis: on what a set rests of which the standards alone do not vouch.
    """
    (said, reasons), (found, at_95) = verdict, sets
    level, matches = found.level, said != "does not match"
    best = scale_component(found.best, *factor, level, dof)
    notes = [*unknown.notes, *in_the_cuvette(factor[0]), *reasons, *around_a_turn(facts.turns, said, found)]
    notes += [*(facts.cautions if matches else ()), *([facts.untold] if facts.untold else [])]
    if facts.levels < FEWEST_CHECKED:
        notes.append(UNCHECKED)
    elif level > facts.attainable:
        notes.append(
            f"{facts.levels} standards alone vouch for at most {100 * facts.attainable:.1f} % (n/(n + 1)); the "
            f"{100 * level:g} % set rests on {basis}"
        )
    return Quantification(
        verdict=said,
        nearest=best.estimate,
        low=None if best.open_low or not matches else best.low,
        high=None if best.open_high or not matches else best.high,
        std=best.std if matches else None,
        level=level,
        components=tuple(scale_component(c, *factor, level, dof) for c in found.components),
        verdict_components=tuple(scale_component(c, *factor, VERDICT_LEVEL, dof) for c in at_95.components),
        q=misfit.q,
        q_limit=misfit.q_limit,
        t2=misfit.t2,
        t2_limit=misfit.t2_limit,
        replicates=len(unknown.spectra),
        masked=int((~unknown.usable).sum()),
        dilution=factor[0],
        attainable=facts.attainable,
        notes=tuple(notes),
    )


def around_a_turn(turns: Sequence[float], verdict: str, found: ConcentrationSet) -> tuple[str, ...]:
    """That a piece of the set holds a turn of the response, where there is an answer within the range."""
    if verdict not in ("quantified", "ambiguous", "below detection limit"):
        return ()
    return tuple(
        f"the response turns back near {turn:.3g}, within the reported range: the spectrum hardly changes there, which "
        "makes that range wide; dilute or spike the sample by a known amount, to where the spectrum changes, and "
        "measure it again"
        for turn in turns
        if any(piece.low < turn < piece.high for piece in found.components)
    )


def in_the_cuvette(dilution: float) -> tuple[str, ...]:
    """Of what the number and of what the notes beside it speak, where the sample was diluted by this factor."""
    if dilution == 1.0:
        return ()
    said = (
        f"the result is {dilution:.6g} times what was in the cuvette, of which the notes and the standards' range speak"
    )
    return (f"{said}: where they advise to dilute, dilute further",) if dilution > 1.0 else (said,)
