"""Is a one-dimensional curve over concentration the right model of these standards at all, or is PLS the better tool?

Spectra of a controlled series lie on a curve; spectra of samples that merely differ in the property (octane numbers of
gasolines) do not. What tells them apart by themselves: replicates that scatter as much as levels do, neighbours in
concentration that differ as much as any two spectra. Where several analytes vary smoothly neither shows, but the errors
do: the curve and PLS are compared on the same interior levels, each left out in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import fdtri

from geonode.calibration.assessment.held_out import HeldOut
from geonode.calibration.baselines.latent_variables import PLS, held_out_squares
from geonode.calibration.gp.geodesic_gp import GeodesicGP
from geonode_runtime.pls import PLSRegression
from geonode_runtime.verdicts import FEWEST_CHECKED

if TYPE_CHECKING:
    from geonode.calibration.posterior.own_levels import OwnLevels

PLS_MARGIN = 0.8
"""PLS is called better where its cross-validated error is below this fraction of the curve's own."""
MUCH_BETTER = 4.0
"""And whatever the spectra look like where its mean square at the interior levels is below a quarter of the curve's
(half its error), and …"""
SIGNIFICANCE = 0.01
"""… their ratio exceeds this upper point of F with as many degrees of freedom as levels on either side, and PLS is the
closer one at more than half of them, so that one level missed by far does not decide, …"""
CURVE_ERROR = 0.01
"""… and the curve misses them by more than this fraction of the range: what is smaller is what standards are prepared
with, and no reason to call a straight line no curve."""
NOT_WORSE = 1.2
"""And its error at the levels left out is at most this many times the posterior's, where that would answer: on
simulated assays of families left out of training the ratio is much the same at fresh samples (docs/calibration.md). The
posterior has PLS among what it reads, so it seldom loses to it."""
WORTH_SAYING = 0.002
"""Of errors of the curve below this fraction of the range nothing is said, however small those of PLS are."""
SCATTER = 0.5
"""Replicates of one level that differ by more than this fraction of the variance between levels are no replicates of
one concentration alone."""
DISORDER = 0.6
"""Spectra whose neighbours in concentration differ by more than this fraction of what any two differ by lie on no
curve either."""
_LEVELS_TO_JUDGE = 10
MAY_BE = (
    "More may vary in these samples than the concentration, labels may be wrong, or the curve cannot follow the "
    "response between these levels"
)
"""What may be behind a PLS that is better: the errors alone do not tell which."""


@dataclass(frozen=True)
class CurveCheck:
    """What speaks for and against the curve.

    Attributes:
        gp: fitted to the standards. held_out: each of their levels left out.
        concentrations, spectra: ``[N]``, ``[N, W]`` the standards.
        deviations: ``[N, W]`` spectra less their level means, None without replicates.
        spectra_without: as :func:`~geonode.calibration.assessment.held_out.hold_out` takes it.
        own_levels: gives what the learned posterior makes of its own left-out levels, where that answers in place of
            the curve alone: then PLS has to be the better one of both. Asked only where PLS beats the curve.
    """

    gp: GeodesicGP
    held_out: HeldOut
    concentrations: np.ndarray
    spectra: np.ndarray
    deviations: np.ndarray | None
    spectra_without: Callable[[int], np.ndarray] | None = None
    own_levels: Callable[[], OwnLevels] | None = None

    @property
    def of_curve(self) -> CurveCheck:
        """PLS against the curve alone: what counts where the profile answers."""
        return replace(self, own_levels=None)

    @cached_property
    def explained(self) -> float:
        """Q² of the spectra: 1 − Σ (held-out residual)² / Σ (level mean − grand mean)², interior held-out levels."""
        rows = self.held_out.left_out[self._inner]
        total = float((self.gp.residual[rows] ** 2).sum())
        return 1.0 - float((self.held_out.residual[self._inner] ** 2).sum()) / total if total > 0.0 else 0.0

    @property
    def _inner(self) -> np.ndarray:
        """``[m]`` which of the left-out levels are interior ones."""
        return (self.held_out.left_out > 0) & (self.held_out.left_out < len(self.gp.levels) - 1)

    @cached_property
    def scatter(self) -> float | None:
        """Variance within levels ÷ variance between them (all wavelengths pooled); None without replicates."""
        if self.deviations is None:
            return None
        n = len(self.gp.levels)
        within = float((self.deviations**2).sum()) / (len(self.spectra) - n)
        between = float((self.gp.residual**2).sum()) / (n - 1)
        return within / between if between > 0.0 else float("inf")

    @cached_property
    def disorder(self) -> float:
        """Half of von Neumann's ratio (1941, Ann. Math. Stat. 12, 367) over levels in order of concentration, all
        wavelengths pooled: near 0 for a smooth curve, 1 for spectra in no order."""
        steps = float((np.diff(self.gp.level_means, axis=0) ** 2).sum())
        total = float((self.gp.residual**2).sum())
        return 0.5 * steps / total if total > 0.0 else 1.0

    @property
    def is_curve(self) -> bool:
        """Whether one curve over concentration can describe the spectra. Said to be so unless replicates scatter like
        levels, or (from ten levels on) neighbouring levels differ like any two: with few levels a steep curve and no
        curve look alike."""
        if self.scatter is not None and self.scatter > SCATTER:
            return False
        return len(self.gp.levels) < _LEVELS_TO_JUDGE or self.disorder <= DISORDER

    @cached_property
    def residual_ratio(self) -> float:
        """RMS held-out residual of the interior levels ÷ RMS noise: the scatter of replicates where there are any, else
        the roughness along the wavelength."""
        noise = float(self.gp.noise_variance.mean())
        if not self._inner.any():
            return float("nan")
        residual = float((self.held_out.residual[self._inner] ** 2).mean())
        return float(np.sqrt(residual / noise)) if noise > 0.0 else float("inf")

    @cached_property
    def _fitted(self) -> PLS:
        return PLS().fit(self.spectra, self.concentrations)

    @property
    def pls_errors(self) -> np.ndarray:
        """``[N]`` error of PLS at each standard, its level left out, user units."""
        return self._fitted.cv_errors

    @cached_property
    def pls(self) -> PLSRegression:
        """PLS fitted to the standards, with its cross-validated error."""
        return self._fitted.regression()

    @property
    def pls_rmsecv(self) -> tuple[float, int]:
        """PLS's own cross-validated error (user units; a level left out at a time) and its number of components."""
        return self.pls.error, self.pls.components

    @cached_property
    def squares(self) -> tuple[np.ndarray, np.ndarray]:
        """``[m]``, ``[m]`` mean squared error of the curve and of PLS at the interior levels, each left out."""
        held, levels = self.held_out, self.held_out.left_out[self._inner]
        error = (held.estimate - held.concentration) ** 2
        curve = np.array([error[held.level == i].mean() for i in levels])
        if self.spectra_without is None:
            return curve, held_out_squares(self.spectra, self.concentrations)[levels]
        pls = [held_out_squares(self.spectra_without(int(i)), self.concentrations)[i] for i in levels]
        return curve, np.array(pls)

    @cached_property
    def posterior_squares(self) -> tuple[np.ndarray, np.ndarray]:
        """The same of the posterior and of PLS, at the interior levels that the posterior was asked."""
        assert self.own_levels is not None
        own, levels = self.own_levels(), self.held_out.left_out[self._inner]
        return own.squares[np.isin(own.asked, levels)], self.squares[1][np.isin(levels, own.asked)]

    def _posterior_over_pls(self) -> float:
        """Error of the posterior ÷ that of PLS at levels that both were asked; infinite where no posterior answers."""
        if self.own_levels is None:
            return float("inf")
        own, pls = (float(np.sqrt(square.mean())) if len(square) else 0.0 for square in self.posterior_squares)
        return own / pls if pls > 0.0 else float("inf")

    @property
    def _pls_keeps_up(self) -> bool:
        """Whether PLS is not clearly worse than the posterior, where that answers."""
        return NOT_WORSE * self._posterior_over_pls() >= 1.0

    @cached_property
    def _curve_loses(self) -> bool:
        """Whether PLS has less than half the error of the curve at the interior left-out levels."""
        if len(self.gp.levels) < FEWEST_CHECKED:
            return False
        curve, pls = self.squares
        return bool(curve.sum() > MUCH_BETTER * pls.sum() and self._curve_error > WORTH_SAYING)

    @property
    def _curve_error(self) -> float:
        """Root mean square error of the curve at the interior left-out levels ÷ the calibrated range."""
        return float(np.sqrt(self.squares[0].mean()) / np.ptp(self.gp.levels))

    @cached_property
    def pls_is_much_better(self) -> bool:
        """Whether PLS finds the interior left-out levels so much better than the curve that chance does not explain it,
        and no worse than the posterior, where that answers."""
        curve, pls = self.squares
        m = len(curve)
        return bool(
            self._curve_loses
            and self._curve_error > CURVE_ERROR
            and curve.sum() > float(fdtri(m, m, 1.0 - SIGNIFICANCE)) * pls.sum()
            and (pls < curve).mean() > 0.5
            and self._pls_keeps_up
        )

    @cached_property
    def pls_is_closer(self) -> bool:
        """Whether PLS has less than half the error of the curve at the interior left-out levels, and of the posterior
        where that answers. Where no more than that is known PLS does not answer, and a sentence says so."""
        return bool(self._curve_loses and self._posterior_over_pls() > np.sqrt(MUCH_BETTER))

    @property
    def rmsecv(self) -> float:
        """Root mean squared error of the held-out interior standards' concentrations, user units; NaN of two levels."""
        inner = ~self.held_out.edge
        if not inner.any():
            return float("nan")
        error = self.held_out.estimate[inner] - self.held_out.concentration[inner]
        return float(np.sqrt((error**2).mean()))

    @cached_property
    def pls_is_better(self) -> bool:
        """Whether PLS is to be used: no curve describes the spectra and PLS predicts the held-out concentrations
        clearly better, or it does so very much better."""
        if self.pls_is_much_better:
            return True
        if self.is_curve or not self.pls_rmsecv[0] < PLS_MARGIN * self.rmsecv:
            return False
        return self._pls_keeps_up

    def in_answers(self, unit: str = "") -> tuple[PLSRegression | None, str]:
        """What answers take from it: PLS where that answers, and what to say beside each where PLS is closer only."""
        if self.pls_is_better:
            return self.pls, ""
        return None, self.sentence(unit) if self.pls_is_closer else ""

    def sentence(self, unit: str = "") -> str:
        """What to say where the held-out levels are not where the curve through the others leads."""
        unit = f" {unit}" if unit else ""
        noise = "the scatter of replicates" if self.gp.noise_source == "replicates" else "the noise"
        said = (
            f"predicts {100 * max(self.explained, 0.0):.0f} % of the held-out levels' variance and misses them by "
            f"{self.residual_ratio:.1f} times {noise}"
        )
        error, components = self.pls_rmsecv
        if self.pls_is_better:
            known = "" if self.is_curve else f"; the curve {said}{self._why_none()}"
            return (
                f"use PLS: {self.errors(unit)}{known}. {MAY_BE}. The cross-validated error of PLS over all levels is "
                f"{error:.3g}{unit} with {components} components"
            )
        if self.pls_is_closer:
            return (
                f"{self.errors(unit)}. That is too little evidence for PLS to answer in place of the curve, so answers "
                "follow the curve: compare them with PLS (geonode evaluate --inverse has both), and measure more "
                "standards"
            )
        return (
            f"the curve through the standards {said}: measure more standards between them, results are wide until then "
            f"(PLS does no better: its cross-validated error is {error:.3g}{unit}, against {self.rmsecv:.3g}{unit})"
        )

    def errors(self, unit: str = "") -> str:
        """What is known of PLS beside the curve: the errors of both at the interior levels, each left out; ``unit``
        with its space before it."""
        curve, pls = (float(np.sqrt(square.mean())) if len(square) else float("nan") for square in self.squares)
        count = len(self.squares[0])
        which = f"the {count} interior levels, each left out," if count > 1 else "the interior level, left out,"
        return (
            f"PLS finds {which} with an error of {pls:.3g}{unit}, and the curve with {curve:.3g}{unit}"
            f"{self._posterior_said(unit)}"
        )

    def _why_none(self) -> str:
        """What of the spectra themselves speaks against any curve."""
        if self.scatter is not None and self.scatter > SCATTER:
            return f", and replicates scatter by {100 * self.scatter:.0f} % of the variance between levels"
        return ", and neighbours in concentration differ as much as any two levels"

    def _posterior_said(self, unit: str) -> str:
        """The error of the posterior, to stand behind that of the curve: which answers, but for PLS."""
        if self.own_levels is None or not len(self.posterior_squares[0]):
            return ""
        answers = "would answer" if self.pls_is_better else "answers"
        return f" ({np.sqrt(self.posterior_squares[0].mean()):.3g}{unit} with the posterior, which {answers})"
