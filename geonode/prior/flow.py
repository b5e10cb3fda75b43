"""One assay read by the pre-trained network: spectra at any concentration, by transport along its geodesics.

The potential A(c, λ) is the geodesic Gaussian process's mean and what the network changes of it, less what of both is
noise along the wavelengths (`geonode.prior.smoothing`). What differs from the process is read at seven knots on each
stretch between neighbouring standards (and on the margins beyond the ends) and is their polynomial between them: A is
continuous, smooth between standards, and the same whoever asks for it (`predict`, an exported model, a coupled ODE).
Its derivative along the learned arc length is the rate h = dA/dŝ, and moving a spectrum from a to b along the geodesic
adds ∫h dŝ = A(b) − A(a), by the potential exactly: a path of no length adds nothing, there and back is nothing, and
every way round gives the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from scipy.special import stdtrit

from geonode.calibration.gp.geodesic_gp import GeodesicGP
from geonode.calibration.gp.numerics import checked_ordered, concentration_tensor
from geonode.errors import InputError
from geonode.flow import CoupledSpectralODE, PretrainedFlow
from geonode.flow.coordinates import scaled_wavelengths
from geonode.metric.conformal import ConformalWarpMetric
from geonode.metric.piecewise import PiecewiseLogMetric
from geonode.prior.metric import PiecewiseMetric
from geonode.prior.network import Network
from geonode.prior.reading import read_places
from geonode.prior.smoothing import SpectralNoise
from geonode.training.problem import asked_range

KNOTS = 7
"""Of a stretch. Between them the polynomial departs from the network by 1 % of the band's width in the median, 3 % at
the ninth decile (simulated assays of 3 to 8 standards)."""
MARGIN = 0.25
_ODE_KNOTS = 33
_LEAST_SCATTER = 0.25
"""Of tau²; for wavelengths whose noise is less than that of the others."""


@dataclass(frozen=True)
class FlowPrediction:
    """Prediction at C concentrations, numpy float64, in the units of the standards.

    Attributes:
        concentrations: ``[C]``.
        mean: ``[C, W]``.
        scale: ``[C, W]`` scale of the predictive Student t of one further spectrum.
        dof: its degrees of freedom.
        arc_length: ``[C, W]`` ŝ, −1 at the lowest standard and 1 at the highest.
        distance: ``[C, W]`` geodesic distance to the nearest standard.
        extrapolated: ``[C]`` true outside the calibrated range.
    """

    concentrations: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    dof: float
    arc_length: np.ndarray
    distance: np.ndarray
    extrapolated: np.ndarray

    @property
    def std(self) -> np.ndarray:
        """``[C, W]`` standard deviation of the predictive Student t: scale · √(ν / (ν − 2))."""
        return self.scale * np.sqrt(self.dof / (self.dof - 2.0))

    def interval(self, level: float = 0.8) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper limits ``[C, W]`` of the central interval at ``level``.

        Raises:
            InputError: a level not between 0 and 1.
        """
        if not 0.0 < level < 1.0:
            raise InputError(f"the interval level must lie between 0 and 1, but {level} was given.")
        half = stdtrit(self.dof, 0.5 + 0.5 * level) * self.scale
        return self.mean - half, self.mean + half


@dataclass(frozen=True)
class Doubt:
    """What the network says of an assay besides its spectra: the metric, and how wide bands are.

    Attributes:
        log_metric: ``[n + 2, W]`` ln g̃ at the outer node, the standards and the other outer node, float64.
        sigma, tau: ``[W]`` scale of the bridge along arc length and of the scatter of a spectrum, units of the signal.
        dof: degrees of freedom of the Student t.
    """

    log_metric: np.ndarray
    sigma: np.ndarray
    tau: np.ndarray
    dof: float


def replicate_variance(deviations: np.ndarray, levels: int) -> np.ndarray | None:
    """Pooled variance ``[W]`` of spectra about their level's mean, from ``deviations [N, W]`` at ``levels`` levels
    (NaN where masked); None where nothing was repeated."""
    if len(deviations) <= levels:
        return None
    known = np.isfinite(deviations)
    return (np.where(known, deviations, 0.0) ** 2).sum(0) / np.maximum(known.sum(0) - levels, 1)


class AssayFlow:
    """The pre-trained flow of one assay. There is nothing to train: reading the standards is the fit.

    Args:
        network: pre-trained weights (:func:`geonode.prior.stored.load_network`); None for a flow that is restored.
        levels: ``[n]`` distinct concentrations of the standards, any unit and order, n ≥ 2.
        means: ``[n, W]`` their spectra, means of replicates.
        replicate_variance: ``[W]`` variance between replicates of one level, None where nothing was repeated.
        margin: how far beyond the calibrated range knots lie, as a share of it; asked still further out, the network
            is read at the place itself.
        gp: the geodesic process of the same standards; None fits it.
        smooth: whether noise along the wavelengths is taken from predicted spectra, and its variance from that of the
            bands; the metric is as without.

    Raises:
        InputError: levels or spectra that are not finite, repeated or of shapes that do not fit.
    """

    def __init__(
        self,
        network: Network | None,
        levels: Any,
        means: Any,
        replicate_variance: Any = None,
        *,
        margin: float = MARGIN,
        gp: GeodesicGP | None = None,
        smooth: bool = True,
    ) -> None:
        self.levels, self.means, _ = checked_ordered(levels, means)
        self.gp = GeodesicGP().fit_levels(self.levels, self.means) if gp is None else gp
        self.warp = self.gp.warp_metric(trainable=False)
        self.network = None if network is None else network.eval()
        self.margin, width = float(margin), self.means.shape[1]
        self.variance = None
        if replicate_variance is not None:
            self.variance = torch.as_tensor(np.asarray(replicate_variance, dtype=np.float64))[None]
            if self.variance.shape != (1, width):
                raise InputError(f"replicate_variance needs one value for each of the {width} wavelengths.")
        self.smooth = smooth
        self.served = asked_range(self.levels, self.margin)
        ends = np.unique(np.concatenate([self.levels, self.served]))
        self.edges = self.coordinate(ends)
        self.knots = self._concentrations(ends)
        self._change = np.zeros((len(self.knots), width))
        self._known = np.zeros(len(self.knots), dtype=bool)
        self._doubt: Doubt | None = None

    # ------------------------------------------------------------------ predictions

    def predict(self, concentrations: Any) -> FlowPrediction:
        """Mean spectra and bands at ``concentrations [C]``, user units, in any order, also outside the range.

        Raises:
            InputError: concentrations that are not finite numbers.
        """
        c = concentration_tensor(concentrations).numpy()
        mean, doubt, x = self.predict_mean(c), self.doubt, torch.from_numpy(self.coordinate(c))[None]
        arc, lower, upper = (value[0].numpy() for value in self._metric().distances(x))
        bridge = self._metric().doubt(x)[0].numpy()
        scale = np.sqrt(doubt.sigma**2 * bridge + doubt.tau**2)
        outside = (c < self.levels[0]) | (c > self.levels[-1])
        return FlowPrediction(c, mean, scale, doubt.dof, arc, np.minimum(lower, upper), outside)

    def predict_mean(self, concentrations: Any) -> np.ndarray:
        """Mean spectra ``[C, W]`` at ``concentrations [C]`` alone; errors as for `predict`."""
        c = concentration_tensor(concentrations).numpy()
        return self.gp.predict_mean(c) + self.change(c)

    def change(self, concentrations: np.ndarray) -> np.ndarray:
        """What is added to the process's mean, ``[C, W]`` at ``concentrations [C]``, units of the signal."""
        beyond = (concentrations < self.served[0]) | (concentrations > self.served[1])
        found = np.empty((len(concentrations), self.means.shape[1]))
        if beyond.any():
            found[beyond] = self._read(concentrations[beyond])
        x = self.coordinate(concentrations[~beyond])
        stretch = np.clip(np.searchsorted(self.edges, x, side="right") - 1, 0, len(self.edges) - 2)
        rows = stretch[:, None] * (KNOTS - 1) + np.arange(KNOTS)
        self._require(rows)
        z = 2.0 * (x - self.edges[stretch]) / (self.edges[stretch + 1] - self.edges[stretch]) - 1.0
        found[~beyond] = np.einsum("ck,ckw->cw", cardinals(z, KNOTS), self._change[rows])
        return found

    def transport(self, start: Any, target: Any) -> np.ndarray:
        """What moving along the geodesics from ``start [C]`` to ``target [C]`` adds to a spectrum, ``[C, W]``.

        Raises:
            InputError: concentrations that are not finite, or not as many starts as targets.
        """
        start, target = concentration_tensor(start), concentration_tensor(target)
        if len(start) != len(target):
            raise InputError(f"transport needs as many starts as targets, but got {len(start)} and {len(target)}.")
        both = self.predict_mean(torch.cat([start, target]).numpy())
        return both[len(start) :] - both[: len(start)]

    def rate(self, concentrations: Any, step: float = 1e-4) -> np.ndarray:
        """h = dA/dŝ ``[C, W]`` at ``concentrations [C]``, by symmetric differences of ``step`` times the range."""
        c = concentration_tensor(concentrations).numpy()
        h = step * (self.levels[-1] - self.levels[0])
        found = self.predict(np.concatenate([c - h, c + h]))
        up, down = slice(len(c), None), slice(None, len(c))
        return (found.mean[up] - found.mean[down]) / (found.arc_length[up] - found.arc_length[down])

    # ------------------------------------------------------------------ the geometry

    def coordinate(self, concentrations: np.ndarray) -> np.ndarray:
        """The warp coordinate ``[C]`` of ``concentrations [C]``: −1 at the lowest standard and 1 at the highest."""
        with torch.no_grad():
            return self.warp.scaled(torch.from_numpy(np.ascontiguousarray(concentrations))).numpy()

    def arc_length(self, concentrations: np.ndarray) -> np.ndarray:
        """ŝ ``[C, W]`` at ``concentrations [C]``: −1 at the lowest standard and 1 at the highest."""
        x = torch.from_numpy(self.coordinate(concentrations))[None]
        return self._metric().arc_length(x)[0].numpy()

    def log_metric_nodes(self) -> np.ndarray:
        """Coordinates ``[n + 2]`` of the nodes at which `Doubt.log_metric` stands."""
        return self._metric().nodes[0].numpy()

    def metric(self, wavelengths: Any) -> ConformalWarpMetric:
        """g_λ(c) in user units of concentration, for `geonode.shoot` and Christoffel symbols.

        Args:
            wavelengths: ``[W]`` of the spectra; the metric takes them scaled to [−1, 1].
        """
        return ConformalWarpMetric(self.warp, self._log_metric(wavelengths))

    def flow(self) -> PretrainedFlow:
        """The potential as a flow in the warp coordinate, whose rate integrates to what `transport` gives."""
        nodes = -np.cos(np.pi * (np.arange(_ODE_KNOTS) + 0.5) / _ODE_KNOTS)
        low, high = self.edges[:-1, None], self.edges[1:, None]
        with torch.no_grad():
            asked = self.warp.from_scaled(torch.from_numpy(0.5 * (low + high + (high - low) * nodes))).numpy()
        values = self.predict_mean(asked.ravel().clip(*self.served)).reshape(*asked.shape, -1)
        transform = np.polynomial.chebyshev.chebvander(nodes, _ODE_KNOTS - 1).T * (2.0 / _ODE_KNOTS)
        transform[0] *= 0.5
        series = np.einsum("jk,skw->sjw", transform, values)
        return PretrainedFlow(torch.from_numpy(self.edges), torch.from_numpy(series))

    def ode(self, wavelengths: Any) -> CoupledSpectralODE:
        """Metric and flow as one coupled ODE over ``wavelengths [W]``, for solvers; float64."""
        grid = torch.from_numpy(np.array(wavelengths, dtype=np.float64))
        ends = float(min(self.edges[0], -1.0)), float(max(self.edges[-1], 1.0))
        made = CoupledSpectralODE(
            grid, None, self.warp, 1, *ends, metric=self._log_metric(wavelengths), flow=self.flow()
        )
        return made.place("cpu", torch.float64)

    def _log_metric(self, wavelengths: Any) -> PiecewiseLogMetric:
        grid = scaled_wavelengths(torch.from_numpy(np.array(wavelengths, dtype=np.float64))).double()
        metric = self._metric()
        return PiecewiseLogMetric(metric.nodes[0], metric.log_metric[0], grid)

    def _metric(self) -> PiecewiseMetric:
        standards = torch.from_numpy(self.coordinate(self.levels))[None]
        return PiecewiseMetric.at_standards(standards, torch.from_numpy(self.doubt.log_metric)[None])

    # ------------------------------------------------------------------ what the network says

    @property
    def doubt(self) -> Doubt:
        """Metric and width of the bands; the standards are read where they have not been."""
        if self._doubt is None:
            self._require(np.array([self._first_standard()]))
        assert self._doubt is not None
        return self._doubt

    def _first_standard(self) -> int:
        return (KNOTS - 1) * int(self.edges[0] < -1.0)

    def _concentrations(self, ends: np.ndarray) -> np.ndarray:
        """Concentrations of all knots; the ends of stretches are the standards themselves."""
        lobatto = -np.cos(np.pi * np.arange(KNOTS - 1) / (KNOTS - 1))
        low, high = self.edges[:-1, None], self.edges[1:, None]
        x = 0.5 * (low + high + (high - low) * lobatto)
        with torch.no_grad():
            c = self.warp.from_scaled(torch.from_numpy(x)).numpy().clip(ends[:-1, None], ends[1:, None])
        c[:, 0] = ends[:-1]
        return np.append(c.ravel(), ends[-1])

    def _require(self, rows: np.ndarray) -> None:
        """Read the network at knots where it has not been read."""
        missing = np.unique(rows)
        missing = missing[~self._known[missing]]
        if len(missing):
            self._change[missing] = self._read(self.knots[missing])
            self._known[missing] = True

    def _read(self, concentrations: np.ndarray) -> np.ndarray:
        if self.network is None:
            low, high = self.served
            raise InputError(
                f"this flow was read for {low:g} … {high:g} and is not asked beyond; fit again with a larger margin."
            )
        count, first = len(concentrations), self._doubt is None
        asked = np.concatenate([concentrations, self._middles()]) if first and self.smooth else concentrations
        found = read_places(self.network, self.levels, self.means, asked, self.variance)
        tau, change = found.tau, found.change
        if self.smooth:
            noise = self._noise.of(self.gp.predict_mean(asked) + change)
            change = (change - noise)[:count]
            tau = tau * np.sqrt(_left_of_scatter(tau, found.dof, noise[count:])) if first else tau
        if first:
            self._doubt = Doubt(found.log_metric, found.sigma, tau, found.dof)
        return change

    def _middles(self) -> np.ndarray:
        """The knots half way between neighbouring standards."""
        first, between = self._first_standard(), len(self.levels) - 1
        return self.knots[first + KNOTS // 2 + (KNOTS - 1) * np.arange(between)]

    @cached_property
    def _noise(self) -> SpectralNoise:
        return SpectralNoise(self.means)

    # ------------------------------------------------------------------ state

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and JSON metadata from which `restored` makes it again without the network: all knots are read."""
        self._require(np.arange(len(self.knots)))
        doubt = self.doubt
        arrays = {"change": self._change, "log_metric": doubt.log_metric, "sigma": doubt.sigma, "tau": doubt.tau}
        return arrays, {"dof": doubt.dof, "margin": self.margin}

    @classmethod
    def restored(cls, gp: GeodesicGP, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> Self:
        """From the ``arrays`` and ``meta`` of `state` and the process ``gp`` of the same standards.

        Raises:
            KeyError, ValueError: an array is missing or of another shape.
        """
        made = cls(None, gp.levels, gp.level_means, margin=meta["margin"], gp=gp)
        change = np.asarray(arrays["change"], dtype=np.float64)
        if change.shape != made._change.shape:
            raise ValueError(f"the flow's change has shape {change.shape} instead of {made._change.shape}")
        made._change, made._known = change, np.ones(len(change), dtype=bool)
        log_metric, sigma, tau = (np.asarray(arrays[name]) for name in ("log_metric", "sigma", "tau"))
        made._doubt = Doubt(log_metric, sigma, tau, float(meta["dof"]))
        return made


def _left_of_scatter(tau: np.ndarray, dof: float, taken: np.ndarray) -> np.ndarray:
    """The share ``[W]`` of ``tau² [W]`` that stays where noise ``taken [C, W]`` goes from predictions.

    What is taken is independent of a further spectrum and of what else the prediction errs by. A Student t is a mixture
    of normal distributions, each of which loses the variance v of what is taken. To first order in v the square of the
    half width q·tau of a central interval then falls by q²v (ν + 1)/(ν + q²); q is that of the 80 % band.
    """
    q = float(stdtrit(dof, 0.9))
    fallen = np.square(taken).mean() * (dof + 1.0) / (dof + q * q)
    return np.maximum(1.0 - fallen / tau**2, _LEAST_SCATTER)


def cardinals(z: np.ndarray, knots: int) -> np.ndarray:
    """Cardinal polynomials ``[C, K]`` at ``z [C]`` in [−1, 1] of K Chebyshev–Lobatto knots, ascending."""
    return np.polynomial.chebyshev.chebvander(z, knots - 1) @ lobatto_series(knots)


def lobatto_series(knots: int) -> np.ndarray:
    """``[K, K]``: values at the knots → coefficients of their Chebyshev series."""
    nodes = -np.cos(np.pi * np.arange(knots) / (knots - 1))
    return np.linalg.inv(np.polynomial.chebyshev.chebvander(nodes, knots - 1))
