"""Standards are not perfect: which of them contradicts the others, and what difference it makes.

Which is decided by its label (:mod:`~geonode.calibration.assessment.wrong_label`). A standard is never dropped: the
flag says what difference it makes and leaves the decision to the analyst.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from geonode.calibration.assessment.swapped_labels import SwappedLabels, swapped_labels
from geonode.calibration.assessment.wrong_label import FEWEST_LEVELS, WrongLabel, left_out, wrong_label
from geonode.calibration.calibration import Calibration
from geonode.calibration.inverse.model import InverseModel
from geonode.calibration.leave_out import levels_kept
from geonode_runtime.figures import figure


@dataclass(frozen=True)
class StandardCheck:
    """One level as the others see it.

    Attributes:
        level: its concentration, user units.
        error: RMS of its held-out residual spectrum, units of the spectra.
        relative_error: the same ÷ the median of the other levels'.
        gain: by how much the others agree better under another label, of those that are flagged; else None.
        flagged: whether it contradicts the others.
        implied: the concentration that the others give it, user units.
        influence: largest change of a result anywhere in the calibrated range if it were left out, user units; None
            unless flagged.
        influence_at: the concentration where that is.
        swapped_with: the level with whose label this one's looks exchanged, None where it does not.
    """

    level: float
    error: float
    relative_error: float
    gain: float | None
    flagged: bool
    implied: float
    influence: float | None = None
    influence_at: float | None = None
    swapped_with: float | None = None

    @property
    def told_before(self) -> bool:
        """Whether the sentence of a lower level says the same: that of the one with which it is exchanged."""
        return self.swapped_with is not None and self.swapped_with < self.level

    def cleared(self) -> StandardCheck:
        """The same without a charge."""
        return replace(self, flagged=False, gain=None, influence=None, influence_at=None, swapped_with=None)

    def sentence(self, unit: str = "") -> str:
        """What to tell the analyst about a flagged level."""
        unit = f" {unit}" if unit else ""
        if self.swapped_with is not None:
            low, high = sorted((self.level, self.swapped_with))
            return (
                f"the labels of the standards {low:g}{unit} and {high:g}{unit} look exchanged: with the two swapped "
                f"the levels, each left out, are found {np.exp(self.gain or 0.0):.2g} times better. They were kept as "
                "they are: check which sample was which"
            )
        return (
            f"the standard {self.level:g}{unit} contradicts the others: they would call it "
            f"{figure(self.implied, unit)}, its held-out residual is {self.relative_error:.1f} times the others', "
            f"and they agree {np.exp(self.gain or 0.0):.2g} times better if it is that. It was kept; leaving it out "
            f"would move results by up to {self.influence or 0.0:.3g}{unit} "
            f"(at {figure(self.influence_at or 0.0, unit)})"
        )


def check_standards(calibration: Calibration) -> list[StandardCheck]:
    """One :class:`StandardCheck` per level of ``calibration`` that was held out, ascending; nothing is flagged with
    fewer than five (:mod:`~geonode.calibration.assessment.few_standards` looks at four, and at five besides).
    Replicates that are not of their level are left out (`Standing.replicates`): one of them makes innocent levels look
    bad.
    """
    return calibration.standing.checks


def checked_levels(calibration: Calibration) -> list[StandardCheck]:
    """The same of all standards of a ``calibration`` with the Gaussian process, wrong replicates or not."""
    gp, held = calibration.gp, calibration.held_out
    errors = np.sqrt((held.residual**2).mean(axis=1))
    others = np.array([np.median(np.delete(errors, k)) for k in range(len(errors))])
    relative = errors / np.maximum(others, np.finfo(float).tiny)
    swapped, wrong = _wrong(calibration)
    checks = []
    for k, i in enumerate(held.left_out):
        level, error = float(gp.levels[i]), float(errors[k])
        if swapped is not None and i in (swapped.first, swapped.second):
            other = float(gp.levels[swapped.second if i == swapped.first else swapped.first])
            checks.append(
                StandardCheck(level, error, float(relative[k]), swapped.gain, True, other, swapped_with=other)
            )
            continue
        found = wrong if wrong is not None and wrong.position == i else None
        influence, at = _influence(calibration, int(i)) if found else (None, None)
        implied = found.implied if found else float(held.estimate[held.level == i].mean())
        gain = found.gain if found else None
        checks.append(StandardCheck(level, error, float(relative[k]), gain, found is not None, implied, influence, at))
    return checks


def _wrong(calibration: Calibration) -> tuple[SwappedLabels | None, WrongLabel | None]:
    """Two labels that are exchanged, or one that is wrong: what makes the levels agree better."""
    if len(calibration.levels) < FEWEST_LEVELS:
        return None, None
    now = left_out(calibration)
    swapped = swapped_labels(now, calibration.gp.level_means / calibration.inverse.projection.scale)
    wrong = wrong_label(now)
    if swapped is not None and (wrong is None or swapped.gain >= wrong.whole):
        return swapped, None
    return None, wrong


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
