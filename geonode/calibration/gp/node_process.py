"""The neural ensemble as a process over concentration: the same interface as the Gaussian process that taught it.

An ensemble is trained over seeds and over folds: every seed on all standards, and every seed without each standard in
turn. From it, at any concentration,

* the mean is that of the seeds that saw all standards;
* the covariance over wavelengths has two parts. *Between seeds*: the scatter of the members. *Held out*: with e_j =
  standard j − what the flows trained without j say of it, q(c) the mean square (over wavelengths) by which the teacher
  expects its curve to be off at c, and q_j(c_j) that of the teacher without j,

      q(c) · mean over j of (e_j e_jᵀ / (q_j(c_j) + N))

  where N is the noise of a measured spectrum (mean square), which e_j contains too; a band for a measured spectrum has
  q(c) + N in place of q(c). As in the Gaussian process each wavelength's own share is shrunk towards that of all. So
  the folds say *how* the flow errs (which wavelengths, together or apart, how much more than the teacher believed),
  the teacher says *where* (little at the standards, more between them, most beyond their ends). The rank of both
  together is at most the number of standards plus that of seeds.

Both are written as weights of the standards' spectra (M in RᵀM R, n × n), as the whole calibration is: sets, budgets,
figures of merit take a :class:`NodeProcess` wherever they take a :class:`~geonode.calibration.GeodesicGP`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from geonode.calibration.gp.geodesic_gp import GeodesicGP
from geonode.calibration.gp.prediction import GPPrediction, GPWeights, SpectralCovariance
from geonode.calibration.measurement_noise import whitening_variance
from geonode_runtime.given_numbers import as_numbers

Flow = Callable[[np.ndarray], np.ndarray]
"""Concentrations ``[C]`` → spectra of the seeds ``[members, C, W]``, units of the standards."""


@dataclass(frozen=True)
class HeldOutResidual:
    """What flows trained without one standard get wrong about it.

    Attributes:
        level: its position among all levels. spectrum: ``[W]`` measured level mean − predicted mean.
        expected: q, the mean square that the teacher without it expected of the curve there.
    """

    level: int
    spectrum: np.ndarray
    expected: float


def expected_square(gp: GeodesicGP, weights: GPWeights) -> np.ndarray:
    """q ``[C]``: mean square over wavelengths by which ``gp`` expects its curve to be off, noise not counted."""
    gram = gp.residual @ gp.residual.T
    total = np.einsum("cij,ij->c", weights.within / gp.dof + weights.between, gram)
    return total / gp.residual.shape[1]


class NodeProcess(GeodesicGP):
    """Seeds of a neural flow with the held-out errors of their folds (module docstring has the formulas).

    Args:
        teacher: the fitted Gaussian process of the same standards.
        flow: predicts with every seed.
        residuals: held-out errors of folds; empty for the scatter of the seeds alone.
    """

    teacher: GeodesicGP

    def __init__(self, teacher: GeodesicGP, flow: Flow, residuals: Sequence[HeldOutResidual] = ()) -> None:
        vars(self).update(vars(teacher))
        self.teacher, self.flow = teacher, flow
        self.noise_square = float(teacher.predict(teacher.levels[:1]).noise_variance.mean())
        self._scale = np.sqrt(whitening_variance(self.level_means))
        left, size, right = np.linalg.svd(self.residual / self._scale, full_matrices=False)
        # Directions of the standards' spectra that are their own noise (total square W) are no place to put an error.
        keep = np.maximum(size**2 + len(self._scale), np.finfo(float).tiny)
        self._to_rows = (right.T / self._scale[:, None]) @ ((size / keep)[:, None] * left.T)
        # Standardised held-out errors [m, W]. As Rᵀ K⁻¹ R does, their squares grow with n − 1 and are divided by the
        # degrees of freedom where they are used.
        scales = [np.sqrt(max(one.expected + self.noise_square, np.finfo(float).tiny)) for one in residuals]
        errors = [one.spectrum / scale for one, scale in zip(residuals, scales, strict=True)]
        share = (len(self.levels) - 1) / max(len(residuals), 1)
        self._errors = np.sqrt(share) * np.array(errors).reshape(len(errors), self.residual.shape[1])
        rows = self.rows_of(self._errors)
        self._pattern = rows.T @ rows

    def rows_of(self, difference: np.ndarray) -> np.ndarray:
        """Difference spectra ``[…, W]`` as weights of the standards' spectra ``[…, n]`` (least squares)."""
        return difference @ self._to_rows

    def predict_rows(self, concentrations: Any) -> np.ndarray:
        """B̄ ``[C, n]`` of the seeds' mean spectrum."""
        c = np.atleast_1d(as_numbers(concentrations, "concentrations"))
        rows = super().predict_rows(c)
        # The flow is not asked below zero where no standard lies there: a difference quotient at a blank would.
        asked = np.maximum(c, 0.0) if self.levels[0] >= 0.0 else c
        taught = rows if asked is c else super().predict_rows(asked)
        return rows + self.rows_of(self.flow(asked).mean(axis=0) - (self.column_mean + taught @ self.residual))

    def predict_mean(self, concentrations: Any) -> np.ndarray:
        """Mean spectra ``[C, W]`` of the seeds."""
        return self.flow(np.atleast_1d(as_numbers(concentrations, "concentrations"))).mean(axis=0)

    def predict_weights(self, concentrations: Any) -> GPWeights:
        """What predictions at ``concentrations [C]`` are made of, in terms of the standards' spectra."""
        c = np.atleast_1d(as_numbers(concentrations, "concentrations"))
        taught = super().predict_weights(c)
        members = self.flow(c)
        rows = taught.mean + self.rows_of(members - (self.column_mean + taught.mean @ self.residual))  # [members, C, n]
        centred = (rows - rows.mean(axis=0)).transpose(1, 0, 2)
        between = centred.transpose(0, 2, 1) @ centred / max(len(members) - 1, 1)
        within = expected_square(self.teacher, taught)[:, None, None] * self._pattern
        return GPWeights(taught.variance, rows.mean(axis=0), within, between)

    def predict(self, concentrations: Any) -> GPPrediction:
        """Mean spectra of the seeds, with bands for one further measured spectrum (module docstring); otherwise as
        :meth:`GeodesicGP.predict`."""
        c = np.atleast_1d(as_numbers(concentrations, "concentrations"))
        found, weights = self.covariance(c), self.predict_weights(c)
        return GPPrediction(
            concentrations=c,
            mean=self.predict_mean(c),
            scale=np.sqrt((found.factors**2).sum(axis=1) + found.diagonal),
            dof=self.dof,
            noise_variance=self.noise_square * self._shape(),
            extrapolated=(c < self.levels[0]) | (c > self.levels[-1]),
            weights=weights,
        )

    def covariance(self, concentrations: Any) -> SpectralCovariance:
        """Scale matrix of the predictive Student t over wavelengths at ``concentrations [C]``, as
        :meth:`GeodesicGP.covariance`."""
        c = np.atleast_1d(as_numbers(concentrations, "concentrations"))
        members = self.flow(c)
        curve = expected_square(self.teacher, self.teacher.predict_weights(c))[:, None, None]
        seeds = (members - members.mean(axis=0)).transpose(1, 0, 2) / np.sqrt(max(len(members) - 1, 1))
        factors = np.concatenate([np.sqrt(curve / self.dof) * self._errors, seeds], axis=1)
        shape, own = self._shape(), (self._errors**2).sum(axis=0) / self.dof
        return SpectralCovariance(factors, curve[:, 0] * (shape - own) + self.noise_square * shape)

    def _shape(self) -> np.ndarray:
        """``[W]`` variance of standardised errors at every wavelength, its own shrunk towards that of all."""
        own = (self._errors**2).sum(axis=0)
        return (own + self.prior_dof * own.mean() / max(len(self.levels) - 1, 1)) / self.dof


@dataclass(frozen=True)
class NodeEnsemble:
    """What a calibration needs to rest on the flow.

    Attributes:
        process: of all standards. left_out: positions of the levels that were left out.
        folds: the process without each of them, with the held-out errors of the other folds.
    """

    process: NodeProcess
    left_out: np.ndarray
    folds: tuple[NodeProcess, ...]

    @classmethod
    def of(
        cls,
        teacher: GeodesicGP,
        flow: Flow,
        left_out: np.ndarray,
        fold_gps: Sequence[GeodesicGP],
        flows: Sequence[Flow],
    ) -> NodeEnsemble:
        """From the flow trained on all standards and those trained without each level of ``left_out``, with the
        Gaussian processes that taught them."""
        errors = []
        for i, gp, own in zip(left_out, fold_gps, flows, strict=True):
            at = teacher.levels[[i]]
            spectrum = teacher.level_means[i] - own(at).mean(axis=0)[0]
            errors.append(HeldOutResidual(int(i), spectrum, float(expected_square(gp, gp.predict_weights(at))[0])))
        folds = tuple(
            NodeProcess(gp, own, [e for e in errors if e.level != i])
            for i, gp, own in zip(left_out, fold_gps, flows, strict=True)
        )
        return cls(NodeProcess(teacher, flow, errors), np.asarray(left_out), folds)
