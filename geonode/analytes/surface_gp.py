"""Gaussian process on a learned embedding of several concentrations: the spectrum as a smooth function of all of them.

The D ≥ 2 relative of `geonode.calibration.GeodesicGP`. With R the level means less their column mean (n levels × W
wavelengths) and x the analytes' warp coordinates, one mixture of the closed-form warps each,

    k(x, x′) = Π_d (1 + a_d x_d x′_d) + exp(−½ ‖φ(x) − φ(x′)‖²)        K = k + η I
    log evidence = −(N/2) [ n log(tr(Rᵀ K⁻¹ R)/nW) + log|K| ]           N = 8, as for one analyte

Warps, lengths, linear shares, η and the interaction inside φ (`embedding`) are fitted by Adam on evidence plus wide
normal priors, from S starts that differ in their random interaction and share their warps; predictions average the
starts. Nothing else is chosen by data: no validation set, no early stopping. Training sets of one size are one batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.special import stdtrit
from torch import Tensor

from geonode.analytes.bands import RowEffect, new_values, outside_hull, row_effect
from geonode.analytes.embedding import EmbeddingMetric, EnsembleEmbedding, Surfaces
from geonode.analytes.evidence import log_evidence, maximise, scaled_gram, strongest_first, take_in_order
from geonode.analytes.reach import places, require_within_reach
from geonode.calibration.gp.numerics import one_thread
from geonode.errors import InputError
from geonode.metric import WarpMetric
from geonode.metric.warp import WARPS, scaled_warps


@dataclass(frozen=True)
class SurfacePrediction:
    """``mean`` and ``scale [C, W]`` of a Student t with ``dof`` degrees of freedom for one further spectrum;
    ``variance [C]`` is the kriging variance (dimensionless, mean over starts).

    ``between_rows [C]``: some analyte has a concentration that no standard has; bands are widened there by what whole
    rows left out were off (`geonode.analytes.bands`). ``extrapolated [C]``: outside the convex hull of the standards
    (in warp coordinates). ``claimed [C]``: the bands' 80 % rests on standards left out; False where extrapolated, and
    between rows of which fewer than four can be left out.
    """

    mean: np.ndarray
    scale: np.ndarray
    dof: float
    variance: np.ndarray
    between_rows: np.ndarray
    extrapolated: np.ndarray
    claimed: np.ndarray

    def sentence(self) -> str:
        """What the bands may be taken for, to stand beside them."""
        count = len(self.claimed)
        parts = [f"Bands at {int(self.claimed.sum())} of {count} concentrations rest on standards left out"]
        if self.between_rows.any():
            parts.append(f"{int(self.between_rows.sum())} lie between rows and are widened by what rows left out show")
        if self.extrapolated.any():
            parts.append(f"{int(self.extrapolated.sum())} lie outside the standards, where no coverage is claimed")
        few = ~self.claimed & ~self.extrapolated
        if few.any():
            parts.append(f"{int(few.sum())} lie between too few rows for a claim; measure four or more")
        return "; ".join(parts) + "."

    def interval(self, level: float = 0.8) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper limits ``[C, W]`` of the central interval at ``level``, per wavelength.

        Raises:
            InputError: a level outside 0 < level < 1.
        """
        if not 0.0 < level < 1.0:
            raise InputError(f"the interval level must lie between 0 and 1, but {level} was given.")
        half = stdtrit(self.dof, 0.5 + 0.5 * level) * self.scale
        return self.mean - half, self.mean + half


class SurfaceGP:
    """Gaussian process over D ≥ 2 analytes (module docstring has the formulas).

    Args:
        effective_outputs: N, the tempering of the evidence.
        starts: S embeddings that are averaged. hidden: tanh units of the interaction. steps: of Adam, a fixed number.
        prior_dof: d₀, degrees of freedom of the scale shared by all wavelengths in the bands.
        seed: of the starts.

    Raises:
        InputError: starts, hidden units or steps below one.

    After fitting: ``levels [n, D]``, ``level_means [n, W]``, ``warp_weights [13, D]``, ``eta [S]``.
    """

    levels: np.ndarray
    level_means: np.ndarray
    origin: np.ndarray

    def __init__(
        self,
        effective_outputs: float = 8.0,
        starts: int = 4,
        hidden: int = 8,
        steps: int = 300,
        prior_dof: float = 2.0,
        seed: int = 0,
    ) -> None:
        for name, count in (("starts", starts), ("hidden", hidden), ("steps", steps)):
            if count < 1:
                raise InputError(f"{name} must be at least 1, but {count} was given.")
        self.effective_outputs, self.prior_dof = float(effective_outputs), float(prior_dof)
        self.starts, self.hidden, self.steps, self.seed = starts, hidden, steps, seed

    # ------------------------------------------------------------------ fitting

    def fit(self, levels: Any, level_means: Any) -> SurfaceGP:
        """Fit level means.

        Args:
            levels: ``[n, D]`` distinct concentrations, D ≥ 2, n ≥ D + 2.
            level_means: ``[n, W]``.

        Raises:
            InputError: values that are not finite, shapes that do not match, too few levels, a level given twice, or an
                analyte that does not vary.
        """
        levels, means = _checked(levels, level_means)
        return self._fit_batch([(levels, means)], [self])[0]

    def fit_folds(self, levels: Any, level_means: Any, folds: Sequence[Any]) -> list[SurfaceGP]:
        """One process per training set of levels; sets of equal size are one batch.

        Args:
            levels, level_means: ``[n, D]`` and ``[n, W]``, as for `fit`.
            folds: per process, the indices of the levels it is fitted to.

        Raises:
            InputError: as `fit`, for all levels or those of one fold.
        """
        levels, means = _checked(levels, level_means)
        jobs = [_checked(levels[np.asarray(fold, dtype=int)], means[np.asarray(fold, dtype=int)]) for fold in folds]
        fitted: dict[int, SurfaceGP] = {}
        for size in sorted({len(job[0]) for job in jobs}):
            members = [i for i, job in enumerate(jobs) if len(job[0]) == size]
            copies = [
                SurfaceGP(self.effective_outputs, self.starts, self.hidden, self.steps, self.prior_dof, seed=self.seed)
                for _ in members
            ]
            fitted.update(zip(members, self._fit_batch([jobs[i] for i in members], copies), strict=True))
        return [fitted[i] for i in range(len(jobs))]

    @one_thread()
    def _fit_batch(self, jobs: list[tuple[np.ndarray, np.ndarray]], into: list[SurfaceGP]) -> list[SurfaceGP]:
        levels = np.stack([job[0] for job in jobs])
        means = np.stack([job[1] for job in jobs])
        warped = torch.stack([warps_of(level, level) for level in levels])
        surfaces = Surfaces(len(jobs), self.starts, self.hidden, levels.shape[2], len(WARPS), self.seed)
        take_in_order(surfaces, [strongest_first(*job) for job in jobs])
        evidence, inverse, x = maximise(
            surfaces, warped, scaled_gram(means), means.shape[2], self.effective_outputs, self.steps
        )
        for f, (gp, job) in enumerate(zip(into, jobs, strict=True)):
            gp._set(job, surfaces, f, inverse[f], x[f], evidence[f])
        return into

    @torch.no_grad()
    def _set(
        self,
        job: tuple[np.ndarray, np.ndarray],
        surfaces: Surfaces,
        index: int,
        inverse: Tensor,
        x: Tensor,
        evidence: Tensor,
    ) -> None:
        self.levels, self.level_means = job
        self.origin = origin_of(self.levels)
        self.column_mean = self.level_means.mean(0)
        self.residual = self.level_means - self.column_mean
        own = Surfaces(1, self.starts, self.hidden, self.levels.shape[1], len(WARPS), self.seed)
        own.load_state_dict({name: value[index : index + 1] for name, value in surfaces.state_dict().items()})
        self._surfaces = own.requires_grad_(False)
        self._inverse, self._x = inverse.clone(), x.clone()
        self.warp_weights = torch.softmax(own.logits[0], 0).numpy()
        self.eta = own.log_eta[0].exp().numpy()
        self.evidence = evidence.numpy().copy()
        self._row_effects: dict[int, RowEffect] = {}

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The fitted parameters, and the settings they were fitted with (JSON)."""
        names = ("effective_outputs", "starts", "hidden", "steps", "prior_dof", "seed")
        return dict(self._surfaces.state_dict()), {name: getattr(self, name) for name in names}

    @classmethod
    def from_state(cls, levels: Any, level_means: Any, state: dict[str, Tensor], settings: dict[str, Any]) -> SurfaceGP:
        """A fitted process again.

        Args:
            levels, level_means: ``[n, D]`` and ``[n, W]`` that were fitted. state, settings: what `state` gave.
        """
        made, job = cls(**settings), _checked(levels, level_means)
        surfaces = Surfaces(1, made.starts, made.hidden, job[0].shape[1], len(WARPS), made.seed)
        surfaces.load_state_dict(state)
        with torch.no_grad():
            evidence, inverse, x = log_evidence(
                surfaces, warps_of(job[0], job[0])[None], scaled_gram(job[1][None]), job[1].shape[1],
                made.effective_outputs,
            )  # fmt: skip
        made._set(job, surfaces, 0, inverse[0], x[0], evidence[0])
        return made

    # ------------------------------------------------------------------ prediction

    @property
    def dim(self) -> int:
        """D, the number of analytes."""
        return self.levels.shape[1]

    @property
    def kernel_inverse(self) -> Tensor:
        """K⁻¹ of every start, ``[S, n, n]``."""
        return self._inverse

    @property
    def dof(self) -> float:
        """Degrees of freedom of the predictive Student t, n − 1 + d₀."""
        return len(self.levels) - 1 + self.prior_dof

    def coordinates(self, concentrations: Any) -> Tensor:
        """Warp coordinates ``[C, D]`` (float64) of ``concentrations [C, D]``.

        Raises:
            InputError: values that are not finite, or another number of analytes.
        """
        c = places(concentrations)
        if c.ndim != 2 or c.shape[1] != self.dim or not np.isfinite(c).all():
            raise InputError(f"concentrations must be finite numbers of shape [C, {self.dim}], got shape {c.shape}.")
        return self._surfaces.coordinates(warps_of(c, self.levels)[None])[0]

    @one_thread()
    def rows_at(self, at: Tensor) -> tuple[Tensor, Tensor]:
        """k*ᵀK⁻¹ ``[S, C, n]`` and kriging variance ``[S, C]`` of every start at warp coordinates ``at [C, D]``."""
        cross = self._surfaces.kernel(at[None], self._x[None])[0]
        rows = cross @ self._inverse
        return rows, (self._surfaces.prior_variance(at[None])[0] - (rows * cross).sum(-1)).clamp_min(0.0)

    def predict_mean(self, concentrations: Any) -> np.ndarray:
        """Mean spectra ``[C, W]`` at concentrations ``[C, D]`` (user units), outside the calibrated range too.

        Raises:
            InputError: as `coordinates`, or farther outside than `geonode.analytes.reach` allows.
        """
        c = places(concentrations)
        require_within_reach(c, self.levels)
        rows, _ = self.rows_at(self.coordinates(c))
        return self.column_mean + rows.mean(0).numpy() @ self.residual

    def predict(self, concentrations: Any) -> SurfacePrediction:
        """Mean and bands at concentrations ``[C, D]``.

        scale² is that of `predict_within` and, where an analyte has a concentration that no standard has, a share of
        the wavelength's variance over the standards: the largest `row_effect` of those analytes. The first such
        prediction fits the process again without each row.

        Raises:
            InputError: as `coordinates`, or farther outside than `geonode.analytes.reach` allows.
        """
        c = places(concentrations)
        require_within_reach(c, self.levels)
        within = self.predict_within(c)
        new = new_values(c, self.levels)
        claimed, share = ~within.extrapolated, np.zeros(len(c))
        for d in np.flatnonzero(new.any(0)):
            effect = self.row_effect(int(d))
            share = np.where(new[:, d], np.maximum(share, effect.share), share)
            claimed &= ~new[:, d] | effect.claimed
        scale = np.sqrt(within.scale**2 + share[:, None] * self.level_means.var(0))
        return replace(within, scale=scale, claimed=claimed)

    def row_effect(self, analyte: int) -> RowEffect:
        """What a row of standards of ``analyte`` is off by itself (`geonode.analytes.bands`); measured once."""
        if analyte not in self._row_effects:
            self._row_effects[analyte] = row_effect(self, analyte)
        return self._row_effects[analyte]

    def predict_within(self, concentrations: Any) -> SurfacePrediction:
        """Mean and bands as the process alone has them: for cells of rows that were measured, and too narrow elsewhere.

        scale²_λ = mean over starts of (v + η) s²_λ + variance between starts, with each wavelength's own
        s²_λ = (q_λ + d₀ q̄)/(n − 1 + d₀) shrunk to the shared one as for one analyte.

        Args:
            concentrations: ``[C, D]``.

        Raises:
            InputError: as `coordinates`.
        """
        at = self.coordinates(concentrations)
        rows, variance = self.rows_at(at)
        q = np.einsum("iw,sij,jw->sw", self.residual, self._inverse.numpy(), self.residual, optimize=True)
        n = len(self.levels)
        shared = q.mean(1, keepdims=True) / (n - 1)
        own = (q + self.prior_dof * shared) / self.dof
        within = np.einsum("sc,sw->cw", variance.numpy() + self.eta[:, None], own) / self.starts
        means = rows.numpy() @ self.residual
        new = new_values(places(concentrations), self.levels)
        between = np.asarray(new.any(1))
        outside = outside_hull(at.numpy(), self._x.numpy())
        return SurfacePrediction(
            self.column_mean + means.mean(0),
            np.sqrt(within + means.var(0)),
            self.dof,
            variance.mean(0).numpy(),
            between,
            outside,
            ~(between | outside),
        )

    def embedding(self) -> EnsembleEmbedding:
        """φ of the starts side by side, as a function of warp coordinates."""
        s = self._surfaces
        return EnsembleEmbedding(s.log_lengths[0], s.log_linear[0], s.u[0], s.b[0], s.v[0])

    def metric(self) -> EmbeddingMetric:
        """g = JᵀJ (and a small floor) in warp coordinates: squared correlation lengths, the mean over the starts."""
        return EmbeddingMetric(self.embedding())

    def warps(self) -> list[WarpMetric]:
        """One warp metric per analyte: ``warps()[d].scaled(c)`` is the coordinate x_d, ``from_scaled`` its inverse."""
        low, high = self.levels.min(0), self.levels.max(0)
        return [
            WarpMetric.from_weights(
                torch.from_numpy(self.warp_weights[:, d]), float(self.origin[d]), float(low[d]), float(high[d]), False
            )
            for d in range(self.dim)
        ]


def origin_of(levels: np.ndarray) -> np.ndarray:
    """c₀ ``[D]`` of levels ``[n, D]``: 0 for amounts, c_min where zero lies far away or below (pH, temperature)."""
    low, span = levels.min(0), np.ptp(levels, axis=0)
    return np.where((low >= 0.0) & (low <= span), 0.0, low)


def warps_of(concentrations: np.ndarray, levels: np.ndarray) -> Tensor:
    """Every warp, scaled to [−1, 1] over ``levels``, at ``concentrations [C, D]``: ``[13, C, D]``."""
    origin, low, high = origin_of(levels), levels.min(0), levels.max(0)
    span = high - origin
    columns = [
        scaled_warps(
            torch.from_numpy((concentrations[:, d] - origin[d]) / span[d]), (low[d] - origin[d]) / span[d], 1.0
        )
        for d in range(levels.shape[1])
    ]
    return torch.stack(columns, -1)


def _checked(levels: Any, level_means: Any) -> tuple[np.ndarray, np.ndarray]:
    levels, means = np.array(levels, dtype=np.float64), np.array(level_means, dtype=np.float64)
    if levels.ndim != 2 or levels.shape[1] < 2:
        raise InputError(
            f"SurfaceGP needs levels of shape [n, D] with two or more analytes, got shape {levels.shape}; for one use "
            "GeodesicGP."
        )
    if means.ndim != 2 or len(means) != len(levels) or means.shape[1] == 0:
        raise InputError(f"level means must have shape [{len(levels)}, wavelengths], got shape {means.shape}.")
    for name, values in (("levels", levels), ("level means", means)):
        if not np.isfinite(values).all():
            row = int(np.argwhere(~np.isfinite(values))[0][0])
            raise InputError(f"row {row} of the {name} is NaN or infinite; remove that standard or mask the value.")
    if len(levels) < levels.shape[1] + 2:
        raise InputError(
            f"{len(levels)} levels of {levels.shape[1]} analytes are too few; {levels.shape[1] + 2} or more are needed."
        )
    if len(np.unique(levels, axis=0)) < len(levels):
        raise InputError("a combination of concentrations is given twice; average its replicates first.")
    still = np.flatnonzero(np.ptp(levels, axis=0) == 0.0)
    if len(still):
        raise InputError(f"analyte {still[0] + 1} has one concentration in all standards; leave that analyte out.")
    return levels, means
