"""Standards are not perfect: which of them contradicts the others.

*A bad standard.* Leaving a good standard out makes the prediction of the others worse, or hardly changes it; leaving a
bad one out makes it better. So for every level i the held-out errors e_j of the other interior levels are compared with
the errors without i as well:

    gain_i = mean over j of ln( e_j(all but j) / e_j(all but j and i) )

A level is flagged where the gain exceeds ``SUSPICIOUS_GAIN`` and its own held-out error is ``SUSPICIOUS_ERROR`` times
the median of the others. A steep or sparse stretch has a large error of its own, but leaving it out helps nobody. It is
never dropped: the flag says what difference it makes and leaves the decision to the analyst.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geonode.calibration.calibration import Calibration
from geonode.calibration.inverse.model import InverseModel
from geonode.calibration.leave_out import ALL_LEVELS, levels_kept

SUSPICIOUS_GAIN = 0.25
SUSPICIOUS_ERROR = 2.0
_FEWEST_LEVELS = 6
_CANDIDATES = 5
_PARTNERS = 8


@dataclass(frozen=True)
class StandardCheck:
    """One level as the others see it.

    Attributes:
        level: its concentration, user units.
        error: RMS of its held-out residual spectrum, units of the spectra.
        relative_error: the same ÷ the median of the other levels'.
        gain: see the module; None where it was not computed (many levels, unremarkable error).
        flagged: whether it contradicts the others.
        implied: the concentration that the others give it (held out), user units.
        influence: largest change of a result anywhere in the calibrated range if it were left out, user units; None
            unless flagged.
        influence_at: the concentration where that is.
    """

    level: float
    error: float
    relative_error: float
    gain: float | None
    flagged: bool
    implied: float
    influence: float | None = None
    influence_at: float | None = None

    def sentence(self, unit: str = "") -> str:
        """What to tell the analyst about a flagged level."""
        unit = f" {unit}" if unit else ""
        return (
            f"the standard {self.level:g}{unit} contradicts the others: they would call it {self.implied:.4g}{unit}, "
            f"its held-out residual is {self.relative_error:.1f} times the others', and they agree better without it. "
            f"It was kept; leaving it out would move results by up to {self.influence or 0.0:.3g}{unit} (at "
            f"{self.influence_at or 0.0:.4g}{unit})"
        )


def check_standards(calibration: Calibration) -> list[StandardCheck]:
    """One :class:`StandardCheck` per level of ``calibration`` that was held out, ascending; nothing is flagged with
    fewer than six (:mod:`~geonode.calibration.assessment.few_standards` looks at those). Replicates that are not of
    their level are left out (`Standing.replicates`): one of them makes innocent levels look bad.
    """
    return calibration.standing.checks


def checked_levels(calibration: Calibration) -> list[StandardCheck]:
    """The same of all standards of a ``calibration`` with the Gaussian process, wrong replicates or not."""
    gp, held = calibration.gp, calibration.held_out
    errors = np.sqrt((held.residual**2).mean(axis=1))
    others = np.array([np.median(np.delete(errors, k)) for k in range(len(errors))])
    relative = errors / np.maximum(others, np.finfo(float).tiny)
    gains = _gains(calibration, held.left_out, errors)
    checks = []
    for k, i in enumerate(held.left_out):
        gain = gains.get(int(i))
        flagged = bool(gain is not None and gain > SUSPICIOUS_GAIN and relative[k] > SUSPICIOUS_ERROR)
        influence, at = _influence(calibration, int(i)) if flagged else (None, None)
        implied = float(held.estimate[held.level == i].mean())
        checks.append(
            StandardCheck(
                float(gp.levels[i]), float(errors[k]), float(relative[k]), gain, flagged, implied, influence, at
            )
        )
    return checks


def _gains(calibration: Calibration, left_out: np.ndarray, errors: np.ndarray) -> dict[int, float]:
    """Gain by level. Of many levels, only those with the largest errors are looked at, with their neighbours.

    Preprocessing that learns is fitted without the levels that are left out, and the held-out level passes through it.
    """
    gp = calibration.gp
    n = len(gp.levels)
    if n < _FEWEST_LEVELS:
        return {}
    if n <= ALL_LEVELS:
        candidates = list(range(n))
        partners = {i: [j for j in range(1, n - 1) if j != i] for i in candidates}
    else:
        candidates = [int(left_out[k]) for k in np.argsort(-errors)[:_CANDIDATES]]
        nearest = {i: np.argsort(np.abs(np.arange(n) - i), kind="stable")[1 : _PARTNERS + 1] for i in candidates}
        partners = {i: [int(j) for j in nearest[i] if 0 < j < n - 1] for i in candidates}
    single = sorted({j for i in candidates for j in partners[i]})
    pairs = sorted({(min(i, j), max(i, j)) for i in candidates for j in partners[i]})
    gone = [[j] for j in single] + [list(pair) for pair in pairs]
    seen = _level_means_without(calibration, gone)
    folds = [levels_kept(n, *out) for out in gone]
    if calibration.preprocessing is None or not calibration.preprocessing.learns:
        fitted = gp.fit_folds(gp.levels, gp.level_means, folds)
    else:
        fitted = [gp.fit_folds(gp.levels, means, [f])[0] for means, f in zip(seen, folds, strict=True)]

    def error(k: int, j: int) -> float:
        residual = fitted[k].predict_mean([gp.levels[j]])[0] - seen[k][j]
        return float(np.sqrt((residual**2).mean()))

    alone = {j: error(k, j) for k, j in enumerate(single)}
    without = {pair: len(single) + k for k, pair in enumerate(pairs)}
    tiny = np.finfo(float).tiny
    return {
        i: float(
            np.mean(
                [np.log(max(alone[j], tiny) / max(error(without[min(i, j), max(i, j)], j), tiny)) for j in partners[i]]
            )
        )
        for i in candidates
    }


def _level_means_without(calibration: Calibration, gone: list[list[int]]) -> list[np.ndarray]:
    """Level means ``[n, W]`` as the preprocessing fitted without each of these sets of levels gives them."""
    chain, index = calibration.preprocessing, calibration.level_index
    if chain is None or not chain.learns:
        return [calibration.gp.level_means] * len(gone)
    spectra = [chain.fitted_without(np.isin(index, out)) for out in gone]
    return [np.stack([x[index == i].mean(axis=0) for i in range(len(calibration.levels))]) for x in spectra]


def _influence(calibration: Calibration, level: int) -> tuple[float, float]:
    """Largest |change of the estimate| over 41 concentrations of the range when ``level`` is left out, and where."""
    gp = calibration.gp
    keep = levels_kept(len(gp.levels), level)
    fold = gp.fit_folds(gp.levels, gp.level_means, [keep])[0]
    rows = calibration.level_index != level
    deviations = calibration.deviations
    scale = calibration.inverse.curve_scale
    model = InverseModel(
        fold,
        None if deviations is None else deviations[rows],
        low=calibration.inverse.low,
        high=calibration.inverse.high,
        curve_scale=scale,
    )
    c = np.linspace(*calibration.range, 41)
    spectra = gp.predict_mean(c)
    estimates = []
    for inverse in (calibration.inverse, model):
        coordinates, residual = inverse.projection.coordinates(spectra)
        distances = inverse.distances(coordinates, np.maximum(residual, 1.0))
        estimates.append(_nearest(inverse, distances.total, c))
    change = np.abs(estimates[1] - estimates[0])
    worst = int(change.argmax())
    return float(change[worst]), float(c[worst])


def _nearest(model: InverseModel, squared: np.ndarray, c: np.ndarray) -> np.ndarray:
    """For each unknown the local minimum of d² that lies nearest to ``c``: a fold's other branch is no influence."""
    inner = np.pad(squared, ((0, 0), (1, 1)), constant_values=np.inf)
    minima = (squared <= inner[:, :-2]) & (squared <= inner[:, 2:])
    gap = np.where(minima, np.abs(model.grid - c[:, None]), np.inf)
    return model.grid[gap.argmin(axis=1)]
