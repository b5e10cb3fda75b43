"""Predictions of a fitted model on a GPU: everything that a prediction takes lies there, and for each number of
concentrations one CUDA graph holds all of it.

What is computed is what `GeodesicModel.predict_spectra` computes on a CPU, in the same precision; only where, and that
nothing is launched one by one, differ.
"""

from __future__ import annotations

from collections import OrderedDict
from copy import deepcopy
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from geonode.calibration import GeodesicGP
from geonode.device import resolve_device
from geonode.errors import InputError
from geonode.flow import CoupledSpectralODE
from geonode.metric.warp import warp_values
from geonode.prior.flow import KNOTS, AssayFlow, lobatto_series
from geonode.prior.metric import PiecewiseMetric, bridge
from geonode.training.ensemble import spectra_at
from geonode.training.problem import Problem
from geonode_kernels import CapturedStep

GRAPHS = 8
"""Numbers of concentrations whose graphs are kept; the one that was not asked for the longest goes first."""
LARGEST = 2**20
"""Values of a prediction (concentrations × wavelengths) up to which it is recorded: a larger one gains nothing."""


class Band(NamedTuple):
    """mean, std [C, W] of one further spectrum at each concentration, float64."""

    mean: Tensor
    std: Tensor


class ProcessOnDevice:
    """`GeodesicGP.predict` on a device.

    Args:
        gp: fitted.
        device: where.
    """

    def __init__(self, gp: GeodesicGP, device: torch.device | str) -> None:
        self.candidates = gp.candidates.to(device)
        scaled = (self.candidates.levels - self.candidates.origin) / self.candidates.span
        ends = warp_values(scaled[[0, -1]])
        self.low, self.stretch = ends[:, :1], ends[:, 1:] - ends[:, :1]
        self.levels = self.scaled(self.candidates.levels)[self.candidates.warp]
        self.residual, self.column_mean = (torch.from_numpy(x).to(device) for x in (gp.residual, gp.column_mean))
        self.dof, self.prior_dof = float(gp.dof), gp.prior_dof
        n, width = self.residual.shape
        self.gram = self.residual @ self.residual.mT / (width * max(n - 1, 1))
        noise = torch.from_numpy(np.broadcast_to(gp.noise_variance, width).copy()).to(device)
        self.noise = torch.maximum(self._shrunk(self.candidates.nugget_scatter()[None]), noise)

    def scaled(self, c: Tensor) -> Tensor:
        """Every warp, −1 and 1 at the ends of the calibrated range, [13, C] at concentrations ``c`` [C].

        All that depends on the concentration is made of these: on a GPU a prediction is as long as its launches are
        many.
        """
        values = warp_values((c - self.candidates.origin) / self.candidates.span)
        return 2.0 * (values - self.low) / self.stretch - 1.0

    def mean(self, warps: Tensor) -> Tensor:
        """Mean spectra [C, W] where the ``warps`` [13, C] have these values."""
        rows, _ = self.candidates.between(warps[self.candidates.warp], self.levels)
        return self.column_mean + torch.einsum("g,gci->ci", self.candidates.weights, rows) @ self.residual

    def band(self, c: Tensor) -> Band:
        """Mean and standard deviation [C, W] at concentrations ``c`` [C]."""
        return self.band_of(self.scaled(c))

    def band_of(self, warps: Tensor) -> Band:
        """The same where the ``warps`` [13, C] have these values; see `GeodesicGP.predict`, whose formula this is."""
        weights, inverse = self.candidates.weights, self.candidates.inverse
        rows, variance = self.candidates.between(warps[self.candidates.warp], self.levels)
        mean = torch.einsum("g,gci->ci", weights, rows)
        n = rows.shape[-1]
        within = ((weights[:, None] * variance).mT @ inverse.reshape(len(weights), -1)).reshape(-1, n, n)
        centred = (weights.sqrt()[:, None, None] * (rows - mean)).movedim(0, 1)
        scale2 = self._shrunk(within) + self._quadratic(centred.mT @ centred) + self.noise
        std = scale2.clamp_min(0.0).sqrt() * (self.dof / (self.dof - 2.0)) ** 0.5
        return Band(self.column_mean + mean @ self.residual, std)

    def _quadratic(self, matrix: Tensor) -> Tensor:
        """Rᵀ M R per wavelength [C, W] for M [C, n, n]."""
        return ((matrix @ self.residual) * self.residual).sum(1)

    def _shrunk(self, matrix: Tensor) -> Tensor:
        shared = (matrix * self.gram).sum((1, 2))
        return (self._quadratic(matrix) + self.prior_dof * shared[:, None]) / self.dof


class FlowOnDevice:
    """`AssayFlow.predict` on a device, for concentrations of the served range.

    Args:
        flow: of the standards; all of its knots are read.
        device: where.
    """

    def __init__(self, flow: AssayFlow, device: torch.device | str) -> None:
        def put(values: np.ndarray) -> Tensor:
            return torch.from_numpy(np.array(values, dtype=np.float64)).to(device)

        arrays, meta = flow.state()
        self.process, self.dof = ProcessOnDevice(flow.gp, device), float(meta["dof"])
        self.weights = flow.warp.weights.detach().to(device)
        self.edges, self.change = put(flow.edges), put(arrays["change"])
        self.sigma, self.tau = put(arrays["sigma"]), put(arrays["tau"])
        self.metric = PiecewiseMetric.at_standards(
            put(flow.coordinate(flow.levels))[None], put(arrays["log_metric"])[None]
        )
        self.lengths = self.metric.lengths()
        self.standards = self.metric.arc_length(self.metric.nodes[:, 1:-1], self.lengths)
        self.series = put(lobatto_series(KNOTS))
        self.knots = torch.arange(KNOTS, device=device)

    def band(self, c: Tensor) -> Band:
        """Mean and standard deviation [C, W] at concentrations ``c`` [C]."""
        warps = self.process.scaled(c)
        x = self.weights @ warps
        _, lower, upper = self.metric.distances(x[None], self.standards, self.lengths)
        scale = (self.sigma.square() * bridge(lower, upper)[0] + self.tau.square()).sqrt()
        return Band(self.process.mean(warps) + self._change(x), scale * (self.dof / (self.dof - 2.0)) ** 0.5)

    def _change(self, x: Tensor) -> Tensor:
        """What the network adds to the process's mean [C, W] at warp coordinates ``x`` [C]."""
        stretch = (torch.searchsorted(self.edges, x, right=True) - 1).clamp(0, len(self.edges) - 2)
        left, right = self.edges[stretch], self.edges[stretch + 1]
        z = 2.0 * (x - left) / (right - left) - 1.0
        terms = [torch.ones_like(z), z]
        for _ in range(KNOTS - 2):
            terms.append(2.0 * z * terms[-1] - terms[-2])
        values = self.change[stretch[:, None] * (KNOTS - 1) + self.knots]
        return ((torch.stack(terms, 1) @ self.series)[..., None] * values).sum(1)


class TrainedOnDevice:
    """A trained ensemble on a device: the mean of its members, the process's band and their spread.

    Args:
        gp: of the same standards.
        ode, problem: the ensemble, and what it was trained on.
        device: where.
    """

    def __init__(self, gp: GeodesicGP, ode: CoupledSpectralODE, problem: Problem, device: torch.device | str) -> None:
        self.dtype = problem.target.dtype
        self.process, self.dof = ProcessOnDevice(gp, device), float(gp.dof)
        self.ode = deepcopy(ode).place(device, self.dtype)
        self.problem = problem.to(device, self.dtype)
        self.weights = self.ode.warp.weights.detach()

    def band(self, c: Tensor) -> Band:
        """Mean and standard deviation [C, W] at concentrations ``c`` [C]."""
        warps = self.process.scaled(c)
        members = spectra_at(self.ode, self.problem, self.weights @ warps).double()
        _, std = self.process.band_of(warps)
        if len(members) > 1:
            std = (std.square() + members.var(0)).sqrt()
        return Band(members.mean(0), std)

    @property
    def looks(self) -> bool:
        """Whether its solver looks at values, so that no graph can hold it."""
        return not self.ode.flow.path_independent and self.ode.capture_refusal() is not None


Source = ProcessOnDevice | FlowOnDevice | TrainedOnDevice


class Predictor:
    """Bands by one of the classes above: a CUDA graph for each number of concentrations, of which a few are kept.

    Args:
        source: with ``band`` and ``dof``.
        device: where it lies.
    """

    def __init__(self, source: Source, device: torch.device | str) -> None:
        self.source, self.device, self.dof = source, torch.device(device), source.dof
        self._captures = self.device.type == "cuda" and not getattr(source, "looks", False)
        self._graphs: OrderedDict[int, _Recorded] = OrderedDict()

    @torch.no_grad()
    def __call__(self, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """mean, std [C, W] in float64, on the host, at concentrations ``c`` [C] of the served range."""
        graph = self._graphs.get(len(c))
        if graph is None:
            found = self.source.band(torch.from_numpy(c).to(self.device))
            if self._captures and found.mean.numel() <= LARGEST:
                self._graphs[len(c)] = _Recorded(self.source, self.device, len(c))
                if len(self._graphs) > GRAPHS:
                    self._graphs.popitem(last=False)
            return found.mean.cpu().numpy(), found.std.cpu().numpy()
        self._graphs.move_to_end(len(c))
        return graph(c)


class _Recorded:
    """One graph, with memory on the host that it copies to."""

    def __init__(self, source: Source, device: torch.device, count: int) -> None:
        self._given = torch.zeros(count, dtype=torch.float64).pin_memory()
        process = source if isinstance(source, ProcessOnDevice) else source.process
        self._shape = 2, count, process.residual.shape[1]
        middle = process.candidates.levels.mean().expand(count)
        self._graph = CapturedStep(lambda c: torch.stack(source.band(c)), [middle])
        self._done = torch.cuda.Event()

    def __call__(self, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self._given.numpy()[:] = c
        self._graph.inputs[0].copy_(self._given, non_blocking=True)
        # page-locked memory of the caller's own, from torch's cache of it: no second copy on the host
        found = torch.empty(self._shape, dtype=torch.float64, pin_memory=True)
        found.copy_(self._graph(), non_blocking=True)
        self._done.record()
        self._done.synchronize()
        mean, std = found.numpy()
        return mean, std


def predictor_of(
    device: torch.device | str,
    gp: GeodesicGP,
    flow: AssayFlow | None = None,
    ode: CoupledSpectralODE | None = None,
    problem: Problem | None = None,
) -> Predictor:
    """What predicts on a ``device``: the pre-trained flow, else a trained ensemble, else the Gaussian process.

    Args:
        device: where.
        gp: of the standards.
        flow: the pre-trained one, where the model has it.
        ode, problem: an ensemble and what it was trained on, where the model has them.
    """
    if flow is not None:
        return Predictor(FlowOnDevice(flow, device), device)
    if ode is not None and problem is not None:
        return Predictor(TrainedOnDevice(gp, ode, problem, device), device)
    return Predictor(ProcessOnDevice(gp, device), device)


class PredictsOnDevice:
    """The part of a model that chooses where it predicts."""

    gp: GeodesicGP
    flow: AssayFlow | None
    problem: Problem | None
    _ode: CoupledSpectralODE | None
    _device: torch.device
    _predictors: dict[str, Predictor]

    def to(self, device: str) -> Self:
        """Let `predict_spectra` answer on ``device`` from now on, ``cuda`` or ``cpu``; all else stays on the CPU.

        On a CUDA device the first prediction of some number of concentrations is recorded as a CUDA graph, and the
        next of as many replay it.

        Raises:
            InputError: a device that has no float64.
            DeviceError: an unknown device, or one that is not there.
        """
        found = resolve_device(device)
        if found.type == "mps":
            raise InputError("Predictions are made in float64, which mps has not; use the CPU or a CUDA device.")
        self._device, self._predictors = found, {}
        return self

    def on_device(self, predictor: str) -> Predictor | None:
        """What predicts by ``predictor`` on the device, made when first asked; None on the CPU."""
        if self._device.type == "cpu":
            return None
        if predictor not in self._predictors:
            if predictor == "node":
                made = predictor_of(self._device, self.gp, self.flow, self._ode, self.problem)
            else:
                made = predictor_of(self._device, self.gp)
            self._predictors[predictor] = made
        return self._predictors[predictor]
