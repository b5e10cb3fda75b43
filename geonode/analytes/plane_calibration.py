"""Standards of two analytes as a calibration: both concentrations from one spectrum, with regions that were checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import chdtri, fdtri, stdtrit

from geonode.analytes.answer import WORST_FIRST, PlaneAnswer
from geonode.analytes.bands import outside_hull
from geonode.analytes.ensemble import SurfaceEnsemble, fit_ensemble
from geonode.analytes.plane import Plane, PlaneDensity
from geonode.analytes.plane_sets import Region, one_analyte, region
from geonode.analytes.space import SurfaceSpace
from geonode.analytes.surface_gp import SurfaceGP
from geonode.calibration.asked_files import asked_of_files
from geonode.calibration.asking import Question, questions
from geonode.data import SpectralDataset
from geonode.errors import InputError
from geonode_runtime.answers import check_options, require_usable
from geonode_runtime.distributions import chi2_upper_quantile
from geonode_runtime.figures import figure
from geonode_runtime.remedies import VerdictRules, declined
from geonode_runtime.replicates import ask_each, taken_together
from geonode_runtime.unknowns import Unknown, prepare_unknown
from geonode_runtime.verdicts import VERDICT_LEVEL, Quantification, verdict

NOMINAL = 0.8
WIDENINGS = 2.0 ** np.arange(-3.0, 6.0)
"""Factors τ on what the process does not know, among and between which standards left out choose."""
PRIOR_WIDTH = 2.0
"""Standard deviation of ln τ in the prior around 1, as for one analyte."""
FEWEST = 9
"""Fewer levels leave too few to leave out: nothing has checked the regions, and nothing is quantified."""
_COARSE = 31  # grid points per analyte while τ is chosen
_TAIL = 0.01


class PlaneCalibration:
    """Standards of two analytes, fitted; made by `fit_plane` and `load_plane`.

    Attributes:
        dataset: the standards. gp: the process through them. ensemble: others of which the regions
            are made. wavelengths: ``[W]`` those that no standard has masked.
        widening: τ. q_limit, t2_limit: beyond them a spectrum does not match. left_out: how many standards chose them.
    """

    def __init__(
        self,
        dataset: SpectralDataset,
        gp: SurfaceGP,
        ensemble: SurfaceEnsemble,
        learned: tuple[float, float, float, int] | None = None,
    ) -> None:
        self.dataset, self.gp, self.ensemble = dataset, gp, ensemble
        usable = usable_wavelengths(dataset)
        self.wavelengths = dataset.wavelengths[usable]
        spectra = dataset.spectra[:, usable]
        index = np.asarray(dataset.level_index)
        deviations = spectra - gp.level_means[index] if len(spectra) > len(gp.levels) else None
        self.space = SurfaceSpace.of(gp.level_means, deviations)
        self.plane = Plane(ensemble, self.space)
        self.widening, self.q_limit, self.t2_limit, self.left_out = learned or self._learn()

    @property
    def analytes(self) -> tuple[str, str]:
        """Their two names."""
        first, second = self.dataset.analytes
        return first, second

    @property
    def units(self) -> tuple[str, str]:
        """Of the two concentrations; empty where they are not known one by one."""
        parts = [part.strip() for part in self.dataset.units["concentration"].split(",")]
        first, second = parts if len(parts) == 2 else ("", "")
        return ("" if first == "1" else first), ("" if second == "1" else second)

    @property
    def declines(self) -> str:
        """Why nothing is quantified with these standards, and what to do; empty where it is."""
        if self.left_out:
            return ""
        count = len(self.gp.levels)
        return (
            f"{count} standards are too few to be left out one by one, so that nothing has checked the regions "
            f"(measure {FEWEST} or more, four of them within the hull of the others)"
        )

    # ------------------------------------------------------------------ what standards left out teach

    def _learn(self) -> tuple[float, float, float, int]:
        """τ and the limits of Q and T², from standards left out one at a time within the hull of the others.

        τ is that under which they are most probable where the others predict them (log score, a proper scoring rule,
        with a log-normal prior), and no less than one: levels share their concentrations with others of their row and
        column, and an unknown does not. The limit of Q is the textbook's, or where a further one of the standards' own
        residuals, each outside the span of the others, would lie with 99 % probability (log-normal); of T² the
        textbook's.
        """
        gp, n = self.gp, len(self.gp.levels)
        width = gp.level_means.shape[1]
        spare, free = max(width - self.space.rank, 1), max(self.space.rank - 2, 1)
        q_limit = float(chdtri(spare, _TAIL)) / spare
        t2_limit = free * float(fdtri(free, self.plane.dof, 1.0 - _TAIL))
        out = [i for i in range(n) if not outside_hull(gp.levels[[i]], np.delete(gp.levels, i, axis=0))[0]]
        if n < FEWEST or len(out) < 4:
            return 1.0, q_limit, t2_limit, 0
        every = np.ones(width, dtype=bool)
        score = -0.5 * (np.log(WIDENINGS) / PRIOR_WIDTH) ** 2
        for i in out:
            score += self._left_out(i, *self.space.coordinates(gp.level_means[i], every))
        widening = float(np.exp(_highest_between(np.log(WIDENINGS), score)))
        apart = np.log([self._residual_without(i) for i in out])
        spread = float(apart.std(ddof=1)) * np.sqrt(1.0 + 1.0 / len(out))
        q_next = float(np.exp(apart.mean() + stdtrit(len(out) - 1.0, 1.0 - _TAIL) * spread))
        return max(widening, 1.0), max(q_limit, q_next), t2_limit, len(out)

    def _residual_without(self, i: int) -> float:
        """Q of standard i where the others alone say what their span and the noise are."""
        means = self.gp.level_means
        space = SurfaceSpace.of(np.delete(means, i, axis=0), None)
        return space.coordinates(means[i], np.ones(means.shape[1], dtype=bool))[2]

    def _left_out(self, i: int, place: np.ndarray, noise: np.ndarray, q: float) -> np.ndarray:
        """Log density, up to a constant, of standard i where the others predict it, for each of `WIDENINGS`."""
        plane = Plane(self.ensemble.without(i), self.space)
        first, second = self.gp.levels[i]
        mean, own, between = (part[0] for part in plane.at((np.array([first]), np.array([second]))))
        # a standard's own error of preparation is part of its distance; an unknown has none
        own = own + float(self.ensemble.eta.mean()) * plane.spread
        missed, scores = place - mean, []
        for widening in WIDENINGS:
            covariance = max(q, 1.0) * noise + float(widening) * own + between
            squared = float(missed @ np.linalg.solve(covariance, missed))
            scores.append(
                -0.5 * np.linalg.slogdet(covariance)[1]
                - 0.5 * (plane.dof + len(missed)) * np.log1p(squared / plane.dof)
            )
        return np.array(scores)

    # ------------------------------------------------------------------ unknowns

    def quantify(
        self,
        spectra: Any,
        wavelengths: Any = None,
        *,
        replicates: bool | Sequence[Any] = False,
        level: float = NOMINAL,
        mask: Any = None,
        saturation: float | None = None,
        select: str | None = None,
        name: str = "the unknown",
    ) -> Any:
        """Both concentrations of one unknown, or of several.

        Args:
            spectra: as for `geonode.GeodesicModel.quantify`: ``[V]``, or ``[k, V]`` with a sample a row; a file, a list
                of files, or what `geonode.load_unknowns` read.
            wavelengths, replicates, mask, saturation, select, name: as there.
            level: nominal coverage of the regions, 0 < level < 1.

        Returns:
            A `PlaneAnswer` for one spectrum and for ``replicates=True``; else a list, one for each sample, with
            a `Refused` in the place of a file that cannot be answered.

        Raises:
            InputError: spectra or files that do not suit the standards, replicates that are different samples, a level
                out of range.
        """
        check_options(level, 1.0, 0.0)
        together = replicates is True
        files = asked_of_files(spectra, self.dataset, select=select, replicates=together)

        def answers(given: Any, grid: Any, how: bool | Sequence[Any]) -> tuple[list[PlaneAnswer], bool]:
            unit = self.dataset.units["wavelength"]
            options = {"replicates": how, "mask": mask, "name": name, "unit": unit, "standards": self.wavelengths}
            several, single = questions(given, grid, **options)
            return [self._answer(one, level, saturation) for one in several], single

        if files is not None:
            return files.answered(lambda one: answers(one, None, False)[0][0])
        found, single = answers(spectra, wavelengths, replicates)
        return found[0] if single else found

    def _answer(self, asked: Question, level: float, saturation: float | None) -> PlaneAnswer:
        unknown = prepare_unknown(
            asked.spectra,
            self.wavelengths,
            self.gp.level_means,
            wavelengths=asked.wavelengths,
            mask=asked.mask,
            saturation=saturation,
            name=asked.name,
        )
        unknown = replace(unknown, notes=(*asked.notes, *unknown.notes))
        require_usable(self.space.basis, unknown.usable)
        notes, worth = self._one_sample(unknown, asked.name)
        place, noise, q = self.space.coordinates(unknown.spectra.mean(axis=0), unknown.usable)
        # the residual of a mean of k replicates is that of one ÷ k: what is left of it beyond that is no noise
        q *= worth
        density = self.plane.density(place, max(q, 1.0) * noise / worth, self.widening)
        return self._judged(asked.name, unknown, density, q, level, notes)

    def _one_sample(self, unknown: Unknown, name: str) -> tuple[tuple[str, ...], float]:
        """Refuse different samples; what to say of replicates, and how many their mean is worth."""
        count = len(unknown.spectra)
        if count == 1:
            return (), 1.0
        single = [self.space.coordinates(x, unknown.usable) for x in unknown.spectra]
        ends = []
        for place, noise, q in single:
            found = self.plane.density(place, max(q, 1.0) * noise, self.widening, _COARSE)
            sets = [one_analyte(found, d, VERDICT_LEVEL, self.plane.ends_at_zero(d)).components for d in range(2)]
            ends.append([(min(c.low for c in s), max(c.high for c in s)) for s in sets])
        for d, analyte in enumerate(self.analytes):
            lowest = min(range(count), key=lambda k: ends[k][d][1])
            highest = max(range(count), key=lambda k: ends[k][d][0])
            if ends[highest][d][0] > ends[lowest][d][1]:
                raise InputError(
                    f"{name}: {taken_together(count)} are of different ones: number {lowest + 1} "
                    f"has {analyte} up to {figure(ends[lowest][d][1])} and number {highest + 1} from "
                    f"{figure(ends[highest][d][0])} on (95 %); {ask_each()}."
                )
        step = np.stack([place for place, *_ in single])
        step = step - step.mean(axis=0)
        dof = (count - 1) * self.space.rank
        scatter = max(float(np.mean([q for *_, q in single])), 1.0) * single[0][1]
        square = float(np.einsum("kr,rs,ks->", step, np.linalg.inv(scatter), step))
        if square <= chi2_upper_quantile(dof, 0.05):
            return (), float(count)
        said = f"the replicates scatter {square / dof:.1f} times as much (variance) as the standards' noise explains"
        return (f"{said}: the regions were widened accordingly",), max(count * dof / square, 1.0)

    def _judged(
        self, name: str, unknown: Unknown, density: PlaneDensity, q: float, level: float, said: tuple[str, ...]
    ) -> PlaneAnswer:
        found, at_95 = region(density, level), region(density, VERDICT_LEVEL)
        levels = self.gp.levels
        parts = [self._part(d, unknown, density, q, level) for d in range(2)]
        worst = min((part.verdict for part in parts), key=WORST_FIRST.index)
        outside = self._outside(np.array([found.pieces[0].point]))[0]
        notes = [*unknown.notes, *said]
        for analyte, part in zip(self.analytes, parts, strict=True):
            notes += [f"{analyte}: {note}" if worst != "does not match" else note for note in part.notes]
        if worst not in WORST_FIRST[:2]:
            if self._beyond(at_95):
                worst = "outside calibrated range"
                notes.append("the 95 % region lies outside the hull of the standards")
            elif outside:
                notes.append("the estimate lies outside the hull of the standards, but the 95 % region reaches into it")
            if len(found.pieces) > 1 or len(at_95.pieces) > 1:
                count, which = (
                    (len(found.pieces), level) if len(found.pieces) > 1 else (len(at_95.pieces), VERDICT_LEVEL)
                )
                notes.append(
                    f"{count} separate regions of the plane explain the spectrum (the {100 * which:g} % region)"
                )
                worst = min(worst, "ambiguous", key=WORST_FIRST.index)
        if self.declines:
            notes.append(self.declines)
        own = (parts[0], parts[1])
        return PlaneAnswer(
            name, self.analytes, self.units, worst, own, found, at_95, bool(outside), tuple(dict.fromkeys(notes)),
            density, levels,
        )  # fmt: skip

    def _part(self, analyte: int, unknown: Unknown, density: PlaneDensity, q: float, level: float) -> Quantification:
        """What is known of one analyte, whatever the other."""
        levels, bounded = self.gp.levels[:, analyte], self.plane.ends_at_zero(analyte)
        one, at_95 = (one_analyte(density, analyte, at, bounded) for at in (level, VERDICT_LEVEL))
        blank = bounded and bool((levels == 0.0).any())
        rules = VerdictRules(
            float(levels.min()), float(levels.max()), blank, self.q_limit, self.t2_limit, declines=self.declines
        )
        t2 = float(density.squared.min())
        said, reasons = declined(rules, verdict(rules, one, at_95, q, t2))
        best, n, matches = one.best, len(self.gp.levels), said != "does not match"
        return Quantification(
            verdict=said,
            nearest=best.estimate,
            low=None if best.open_low or not matches else best.low,
            high=None if best.open_high or not matches else best.high,
            std=best.std if matches else None,
            level=level,
            components=one.components,
            verdict_components=at_95.components,
            q=q,
            q_limit=self.q_limit,
            t2=t2,
            t2_limit=self.t2_limit,
            replicates=len(unknown.spectra),
            masked=int((~unknown.usable).sum()),
            dilution=1.0,
            attainable=n / (n + 1.0),
            notes=reasons,
        )

    def _outside(self, points: np.ndarray) -> np.ndarray:
        return outside_hull(self.ensemble.coordinates(points), self.ensemble.coordinates(self.gp.levels))

    def _beyond(self, found: Region) -> bool:
        """Whether every cell of a region lies outside the hull of the standards."""
        i, j = np.nonzero(found.inside)
        return bool(self._outside(np.stack([found.axes[0][i], found.axes[1][j]], axis=1)).all())

    def __repr__(self) -> str:
        names = " and ".join(self.analytes)
        return f"<calibration of {names}: {len(self.gp.levels)} standards, {len(self.wavelengths)} wavelengths>"


def _highest_between(points: np.ndarray, values: np.ndarray) -> float:
    """Where the parabola through the highest of ``values`` at even ``points`` and through its neighbours is highest."""
    k = int(values.argmax())
    if k in (0, len(values) - 1):
        return float(points[k])
    before, at, after = values[k - 1 : k + 2]
    bend = before - 2.0 * at + after
    shift = 0.5 * (before - after) / bend if bend < 0.0 else 0.0
    return float(points[k] + shift * (points[1] - points[0]))


def usable_wavelengths(dataset: SpectralDataset) -> np.ndarray:
    """``[W]`` True where no standard is masked."""
    return np.asarray(np.isfinite(dataset.spectra).all(axis=0))


def fit_plane(dataset: SpectralDataset, gp: SurfaceGP | None = None) -> PlaneCalibration:
    """Fit standards of two analytes, and learn from standards left out how wide regions must be.

    Args:
        dataset: of two analytes, as `geonode.load_standards` reads it with two columns of concentrations.
        gp: settings of the process; None for the defaults.

    Raises:
        InputError: another number of analytes, too few levels (see `SurfaceGP.fit`), or every wavelength masked.
    """
    if dataset.dim != 2:
        raise InputError(f"fit_plane is for two analytes, and these standards have {dataset.dim}; use geonode.fit.")
    usable = usable_wavelengths(dataset)
    if not usable.any():
        raise InputError("every wavelength is masked in some standard, so nothing is left to calibrate with.")
    made = (gp or SurfaceGP()).fit(np.array(dataset.levels), np.array(dataset.level_means())[:, usable])
    return PlaneCalibration(dataset, made, fit_ensemble(made))
