"""Gaussian process along learned arc length: the spectrum as a smooth function of warped concentration.

Every candidate warp of the concentration axis is a one-dimensional metric; its arc length is the warp itself. A
Gaussian process in that arc length is fitted for every candidate on a fixed grid, and the candidates are averaged by
their evidence. There is nothing to optimise, so a fit is deterministic and takes milliseconds.

With R the level means less their column mean (n levels × W wavelengths), ŝ the warp scaled to [−1, 1] on the
calibrated range, and M₅⸝₂ the Matérn-5/2 correlation (Rasmussen & Williams 2006, eq. 4.17):

    k(ŝ, ŝ′) = 1 + α ŝŝ′ + (1 − α) M₅⸝₂(|ŝ − ŝ′|/ℓ)        K = k + η I
    q = tr(Rᵀ K⁻¹ R)            log w = −(N/2) [ n log(q / nW) + log|K| ] + log prior of the warp

log w is the marginal likelihood with the output scale at its maximum, tempered by N, the effective number of
independent outputs (wavelengths are strongly correlated, so W would be far too many).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from geonode.calibration.gp.candidates import Candidates
from geonode.calibration.gp.grid import ALPHAS, ETAS, LENGTHS, Grid, Weighed
from geonode.calibration.gp.numerics import checked_levels, checked_ordered, concentration_tensor, one_thread
from geonode.calibration.gp.prediction import GPPrediction, GPWeights, KrigingUpdate, SpectralCovariance
from geonode.calibration.measurement_noise import noise_variance
from geonode.errors import InputError
from geonode.metric.warp import WarpMetric
from geonode_runtime.given_numbers import as_numbers

EFFECTIVE_OUTPUTS = 8.0
PRIOR_DOF = 2.0
# Training sets of one size are fitted together up to this much memory for their grids of matrices.
_CHUNK_BYTES = 64e6
_AT_ONCE, _FEWEST_AT_ONCE = 2**17, 32
"""Numbers [G, C, n] that predictions make at once: what a processor's cache holds is not fetched from memory anew by
every line. Of no fewer than so many concentrations."""


class GeodesicGP:
    """Gaussian process in evidence-weighted arc length (module docstring has the formulas).

    Args:
        effective_outputs: N, the tempering of the evidence.
        prior_dof: d₀, the weight (in degrees of freedom) of the scale shared by all wavelengths in the bands.
        lengths, alphas, etas: the grid of correlation lengths, linear shares and nuggets.

    After fitting: ``levels [n]`` (ascending), ``level_means [n, W]``, ``warp_weights [13]`` (ordered as ``WARPS``),
    ``grid_weights [13, ℓ, α, η]``, ``participation_ratio`` (effective number of spectral components: a diagnostic,
    not used), ``noise_variance [W]``, ``noise_source`` ("replicates" or "second differences").
    """

    levels: np.ndarray
    level_means: np.ndarray
    noise_variance: np.ndarray
    noise_source: str
    origin: float
    span: float
    column_mean: np.ndarray
    residual: np.ndarray
    grid_weights: np.ndarray
    warp_weights: np.ndarray
    participation_ratio: float
    candidates: Candidates

    def __init__(
        self,
        effective_outputs: float = EFFECTIVE_OUTPUTS,
        prior_dof: float = PRIOR_DOF,
        lengths: Sequence[float] = LENGTHS,
        alphas: Sequence[float] = ALPHAS,
        etas: Sequence[float] = ETAS,
    ) -> None:
        self.effective_outputs = float(effective_outputs)
        self.prior_dof = float(prior_dof)
        self.lengths = tuple(float(x) for x in lengths)
        self.alphas = tuple(float(x) for x in alphas)
        self.etas = tuple(float(x) for x in etas)

    # ------------------------------------------------------------------ fitting

    def fit(self, concentrations: Any, spectra: Any) -> GeodesicGP:
        """Fit single spectra.

        Args:
            concentrations: ``[N]``; equal values are replicates of one level.
            spectra: ``[N, W]``.

        Raises:
            InputError: values that are not finite, shapes that do not match, or fewer than three levels.
        """
        concentrations, spectra = as_numbers(concentrations, "concentrations"), as_numbers(spectra, "spectra")
        if concentrations.ndim != 1:
            raise InputError(
                f"GeodesicGP needs one concentration per spectrum (one analyte), but the concentrations have shape "
                f"{concentrations.shape}."
            )
        if spectra.ndim != 2 or len(spectra) != len(concentrations):
            raise InputError(
                f"GeodesicGP needs spectra of shape [{len(concentrations)}, W] to go with {len(concentrations)} "
                f"concentrations, but they have shape {spectra.shape}."
            )
        levels, index = np.unique(concentrations, return_inverse=True)
        counts = np.bincount(index, minlength=len(levels))
        means = np.zeros((len(levels), spectra.shape[1]))
        np.add.at(means, index, spectra)
        means /= counts[:, None]
        return self.fit_levels(levels, means, spectra - means[index] if len(spectra) > len(levels) else None)

    def fit_levels(self, levels: Any, level_means: Any, replicate_deviations: Any = None) -> GeodesicGP:
        """Fit level means.

        Args:
            levels: ``[n]`` distinct concentrations, any order, n ≥ 3 (n ≥ 2 is enough to compute; two levels are
                accepted so that inner validation of three-level series works).
            level_means: ``[n, W]``.
            replicate_deviations: ``[N, W]`` single spectra less their level mean, or None where there are no
                replicates; they set the noise part of the bands.

        Raises:
            InputError: values that are not finite, repeated levels, fewer than two levels.
        """
        levels, level_means = checked_levels(levels, level_means)
        return self._fit_batch([(levels, level_means, replicate_deviations)], own=True)[0]

    def fit_folds(
        self,
        levels: Any,
        level_means: Any,
        folds: Sequence[Any],
        replicate_deviations: Any = None,
        level_index: Any = None,
    ) -> list[GeodesicGP]:
        """Fit one GP per training set of levels; sets of equal size share one batched computation.

        Args:
            levels, level_means: as in :meth:`fit_levels`.
            folds: for every training set the indices of its levels.
            replicate_deviations, level_index: ``[N, W]`` and ``[N]`` (level of every spectrum); a fold sees the
                deviations of its own levels only.

        Returns:
            One fitted GP per fold, in order.
        """
        levels, level_means, order = checked_ordered(levels, level_means)
        rank = np.argsort(order)
        jobs = []
        for fold in folds:
            chosen = np.sort(rank[np.asarray(fold, dtype=int)])
            deviations = None
            if replicate_deviations is not None and level_index is not None:
                inside = np.isin(np.asarray(level_index), order[chosen])
                deviations = np.asarray(replicate_deviations, dtype=np.float64)[inside]
                if len(deviations) <= len(chosen):
                    deviations = None
            jobs.append((levels[chosen], level_means[chosen], deviations))
        fitted: list[GeodesicGP | None] = [None] * len(jobs)
        for size in sorted({len(job[0]) for job in jobs}):
            members = [i for i, job in enumerate(jobs) if len(job[0]) == size]
            chunk = max(1, int(_CHUNK_BYTES / (8 * self._grid.size * size * size)))
            for start in range(0, len(members), chunk):
                part = members[start : start + chunk]
                for i, gp in zip(part, self._fit_batch([jobs[i] for i in part], own=False), strict=True):
                    fitted[i] = gp
        return [gp for gp in fitted if gp is not None]

    def _clone(self) -> GeodesicGP:
        return GeodesicGP(self.effective_outputs, self.prior_dof, self.lengths, self.alphas, self.etas)

    @property
    def _grid(self) -> Grid:
        return Grid(self.lengths, self.alphas, self.etas)

    @one_thread()
    def _fit_batch(self, jobs: list[tuple[np.ndarray, np.ndarray, Any]], own: bool) -> list[GeodesicGP]:
        """Fit training sets of one size together; ``own``: the one result is ``self``."""
        levels = torch.from_numpy(np.stack([job[0] for job in jobs]))
        grams = []
        for _, means, _ in jobs:
            centred = means - means.mean(axis=0)
            grams.append(centred @ centred.T)
        gram = torch.from_numpy(np.stack(grams))
        weighed = self._grid.weigh(levels, gram, jobs[0][1].shape[1], self.effective_outputs)
        fitted = []
        for one, (level, means, deviations) in zip(weighed, jobs, strict=True):
            gp = self if own else self._clone()
            gp._set(level, means, one)
            gp.noise_variance, gp.noise_source = noise_variance(means, deviations, len(level))
            fitted.append(gp)
        return fitted

    def _set(self, levels: np.ndarray, means: np.ndarray, weighed: Weighed) -> None:
        self.levels, self.level_means = levels, means
        self.origin, self.span = weighed.origin, weighed.span
        self.column_mean = means.mean(axis=0)
        self.residual = means - self.column_mean
        weights = torch.softmax(weighed.log_weights.flatten(), 0).reshape(weighed.log_weights.shape)
        self.grid_weights = weights.numpy()
        self.warp_weights = self.grid_weights.sum(axis=(1, 2, 3))
        power = np.linalg.svd(self.residual, compute_uv=False) ** 2
        self.participation_ratio = float(power.sum() ** 2 / max((power**2).sum(), np.finfo(float).tiny))
        self.candidates = self._grid.candidates(weighed, weights, levels)

    # ------------------------------------------------------------------ prediction

    @property
    def dof(self) -> float:
        """Degrees of freedom of the predictive Student t, n − 1 + d₀."""
        return len(self.levels) - 1 + self.prior_dof

    @one_thread()
    def kriging_update(self, concentrations: Any, extra: Any) -> KrigingUpdate:
        """What would stay uncertain at ``concentrations [C]`` after a further spectrum at each of ``extra [E]``."""
        return self.candidates.kriging_update(concentration_tensor(concentrations), concentration_tensor(extra))

    @one_thread()
    def predict_rows(self, concentrations: Any) -> np.ndarray:
        """B̄ ``[C, n]`` alone at ``concentrations [C]`` (see :class:`GPWeights`).

        Raises:
            InputError: values that are not finite, or more than one axis.
        """
        return self.candidates.mean_rows(concentration_tensor(concentrations)).numpy()

    def predict_mean(self, concentrations: Any) -> np.ndarray:
        """The mean spectra ``[C, W]`` alone at ``concentrations [C]``, user units (see :meth:`predict`).

        Raises:
            InputError: values that are not finite, or more than one axis.
        """
        return self.column_mean + self.predict_rows(concentrations) @ self.residual

    @one_thread()
    def predict_weights(self, concentrations: Any) -> GPWeights:
        """What predictions at ``concentrations [C]`` are made of."""
        c = concentration_tensor(concentrations)
        most = max(_FEWEST_AT_ONCE, _AT_ONCE // (len(self.candidates.weights) * len(self.levels)))
        parts = [self._weights_at(part) for part in c.split(most)]
        return GPWeights.joined(parts)

    def _weights_at(self, c: torch.Tensor) -> GPWeights:
        weights, inverse = self.candidates.weights, self.candidates.inverse
        rows, variance = self.candidates.at(c)
        mean = torch.einsum("g,gci->ci", weights, rows)
        weighted = weights[:, None] * variance
        n = rows.shape[-1]
        within = (weighted.mT @ inverse.reshape(len(weights), -1)).reshape(-1, n, n)
        centred = (weights.sqrt()[:, None, None] * (rows - mean)).movedim(0, 1)  # [C, G, n]
        return GPWeights(weighted.sum(0).numpy(), mean.numpy(), within.numpy(), (centred.mT @ centred).numpy())

    @one_thread()
    def predict(self, concentrations: Any) -> GPPrediction:
        """Mean spectra, bands and the factors of their covariance at ``concentrations [C]`` (user units).

        Outside the calibrated range the same process extrapolates and ``extrapolated`` says so.

        Band (scale²) at wavelength λ, with d₀ = ``prior_dof`` shrinking each wavelength's own scale to the shared one:

            σ²_λ = Σ w v s²_λ + variance between candidates + max(Σ w η s²_λ, D_λ)
            s²_λ = (q_λ + d₀ q / (W(n−1))) / (n−1+d₀)

        η s² is how far standards scatter about the curve, preparation included, and a further sample scatters no less;
        D is the noise of the measurement alone. (Over the shared series, held-out levels at nominal 80 %: 83 % on
        responding wavelengths, against 77 % with D in place of the larger of the two.)

        Raises:
            InputError: concentrations that are not finite.
        """
        weights = self.predict_weights(concentrations)
        between = (self.residual * (weights.between @ self.residual)).sum(1)
        scatter = self.candidates.nugget_scatter().numpy()
        noise = np.maximum(self._shrunk(scatter[None]), self.noise_variance)
        scale2 = self._shrunk(weights.within) + between + noise
        c = np.atleast_1d(as_numbers(concentrations, "concentrations"))
        return GPPrediction(
            concentrations=c,
            mean=self.column_mean + weights.mean @ self.residual,
            scale=np.sqrt(np.maximum(scale2, 0.0)),
            dof=self.dof,
            noise_variance=noise[0],
            extrapolated=(c < self.levels[0]) | (c > self.levels[-1]),
            weights=weights,
        )

    def covariance(self, concentrations: Any) -> SpectralCovariance:
        """Scale matrix of the predictive Student t over wavelengths at ``concentrations [C]``, in rank n.

        Its diagonal is ``scale²`` of :meth:`predict`, whose formula it follows: Rᵀ(within/ν + between)R in factors, the
        shrinkage towards the scale of all wavelengths and the noise on the diagonal.
        """
        found = self.predict(concentrations)
        values, vectors = np.linalg.eigh(found.weights.within / self.dof + found.weights.between)
        half = np.sqrt(np.maximum(values, 0.0))[:, :, None] * vectors.transpose(0, 2, 1)
        factors = half @ self.residual
        return SpectralCovariance(factors, np.maximum(found.scale**2 - (factors**2).sum(axis=1), 0.0))

    def _shrunk(self, matrix: np.ndarray) -> np.ndarray:
        """Rᵀ M R per wavelength ``[C, W]`` for M ``[C, n, n]``, shrunk towards its mean, ÷ (n − 1 + d₀)."""
        n, width = self.residual.shape
        own = (self.residual * (matrix @ self.residual)).sum(1)
        shared = np.einsum("cij,ij->c", matrix, self.residual @ self.residual.T) / (width * max(n - 1, 1))
        return (own + self.prior_dof * shared[:, None]) / self.dof

    def warp_metric(self, trainable: bool = True) -> WarpMetric:
        """The learned metric: the warps mixed by ``warp_weights``, on the calibrated range (user units).

        ``trainable``: whether its weights are a parameter, to be trained on, or a buffer.
        """
        weights = torch.from_numpy(self.warp_weights)
        return WarpMetric.from_weights(
            weights, c0=self.origin, c_min=float(self.levels[0]), c_max=float(self.levels[-1]), trainable=trainable
        )

    def select_wavelengths(self, index: Any) -> GeodesicGP:
        """A copy that predicts the wavelengths at ``index`` alone, its weights still learned from all of them."""
        gp = copy.copy(self)
        for name in ("level_means", "column_mean", "residual", "noise_variance"):
            setattr(gp, name, getattr(self, name)[..., index])
        return gp

    def without_replicates(self) -> GeodesicGP:
        """A copy as it were fitted to the level means alone: the noise of its bands is told by second differences."""
        gp = copy.copy(self)
        gp.noise_variance, gp.noise_source = noise_variance(self.level_means, None, len(self.levels))
        return gp

    # ------------------------------------------------------------------ state

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and JSON metadata from which :meth:`from_state` restores the fitted process."""
        arrays = {
            "levels": self.levels,
            "level_means": self.level_means,
            "noise_variance": self.noise_variance,
        }
        meta = {
            "effective_outputs": self.effective_outputs,
            "prior_dof": self.prior_dof,
            "lengths": list(self.lengths),
            "alphas": list(self.alphas),
            "etas": list(self.etas),
            "noise_source": self.noise_source,
        }
        return arrays, meta

    @classmethod
    def from_state(cls, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> GeodesicGP:
        """Restore from the ``arrays`` and ``meta`` of :meth:`state`; the grid is recomputed (milliseconds), so nothing
        can disagree with it.
        """
        gp = cls(meta["effective_outputs"], meta["prior_dof"], meta["lengths"], meta["alphas"], meta["etas"])
        gp.fit_levels(arrays["levels"], arrays["level_means"])
        gp.noise_variance = np.asarray(arrays["noise_variance"], dtype=np.float64)
        gp.noise_source = meta["noise_source"]
        return gp
