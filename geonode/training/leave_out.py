"""Seeds × folds as one stack: the flow with all standards and without each of them in turn, trained together.

Rows of the stack: the seeds of all standards first, then those of every fold. What folds say about the flow's errors is
the part of `geonode.calibration.gp.node_process`.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from geonode.calibration import GeodesicGP
from geonode.calibration.gp.node_process import Flow, NodeEnsemble
from geonode.calibration.inverse.model import searched_range
from geonode.calibration.leave_out import levels_kept, levels_to_leave_out
from geonode.config import GeodesicConfig
from geonode.data import Preprocessing, SpectralDataset
from geonode.errors import InputError
from geonode.flow import CoupledSpectralODE
from geonode.metric import WarpMetric
from geonode.training.chunks import select
from geonode.training.ensemble import predict
from geonode.training.problem import Problem, asked_range, build_problem

MOST_LEVELS = 48
"""As many as a calibration keeps apart."""
_TABLE, _FEWEST = 129, 9


@dataclass
class Folds:
    """Levels that are left out, and the processes that teach the flow without them.

    left_out [m] positions of levels; gps m of them; state the trained parameters by name, [m·members, …], or empty.
    """

    left_out: np.ndarray
    gps: list[GeodesicGP]
    state: dict[str, Tensor]

    @classmethod
    def of(cls, dataset: SpectralDataset, gp: GeodesicGP, chain: Preprocessing | None = None) -> Folds:
        """The folds of a calibration; steps that learn are fitted inside each.

        Raises:
            InputError: fewer than four levels (a fold needs three), or more than a calibration keeps apart.
        """
        levels, index = np.unique(np.asarray(dataset.concentrations), return_inverse=True)
        if not 4 <= len(levels) <= MOST_LEVELS:
            raise InputError(
                f"folds need 4 to {MOST_LEVELS} concentration levels, but there are {len(levels)}; leave folds out, so "
                "that intervals rest on the Gaussian process."
            )
        left_out = levels_to_leave_out(len(levels))
        gps = []
        for i in left_out:
            spectra = chain.fitted_without(index == i) if chain is not None and chain.learns else dataset.spectra
            means = np.stack([spectra[index == j].mean(axis=0) for j in range(len(levels))])
            keep = levels_kept(len(levels), int(i))
            gps += gp.fit_folds(levels, means, [keep], spectra - means[index], index)
        return cls(left_out, gps, {})


def build_stack(gp: GeodesicGP, folds: Folds | None, wavelengths: np.ndarray, config: GeodesicConfig) -> Problem:
    """One problem for all seeds, and with ``folds`` for all seeds of every fold behind them; all serve one range."""
    members = [gp] * config.training.members
    if folds is None:
        return build_problem(members, wavelengths, config)
    gps = members + [one for one in folds.gps for _ in range(config.training.members)]
    return build_problem(gps, wavelengths, config, [_served(gp.levels, config)] * len(gps))


def _served(levels: np.ndarray, config: GeodesicConfig) -> np.ndarray:
    """The range that is predicted or searched for concentrations, whatever is left out."""
    ranges = [asked_range(levels, config.training.margin), searched_range(levels)]
    return np.array([min(r[0] for r in ranges), max(r[1] for r in ranges)])


def split(ode: CoupledSpectralODE, config: GeodesicConfig) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Trained parameters of a stack: the seeds of all standards, and the rest."""
    state = {name: parameter.detach().cpu() for name, parameter in ode.named_parameters()}
    rows = config.training.members
    return {k: v[:rows].clone() for k, v in state.items()}, {k: v[rows:].clone() for k, v in state.items()}


def select_rows(problem: Problem, members: int) -> Problem:
    """The first ``members`` rows of a stacked problem: the seeds of all standards."""
    return problem if problem.models == members else select(problem, 0, members)


def restore(problem: Problem, config: GeodesicConfig, state: dict[str, Tensor]) -> CoupledSpectralODE:
    """A stack in evaluation mode from its trained parameters.

    Raises:
        KeyError: a parameter is missing. RuntimeError: one of another shape.
    """
    ode = CoupledSpectralODE(
        problem.wavelengths, config, problem.warp, problem.models, problem.low, problem.high, config.training.seed
    )
    ode = ode.place("cpu", problem.target.dtype)
    for name, _ in ode.named_parameters():
        if name not in state:
            raise KeyError(f"the parameter {name}")
    ode.load_state_dict(state, strict=False)
    return ode.eval()


def seeds(ode: CoupledSpectralODE, problem: Problem, served: np.ndarray) -> Flow:
    """A stack of seeds as a function of concentration within ``served`` (low, high).

    A calibration asks for thousands of concentrations, so the flow is integrated once, in float64, at about _TABLE
    points evenly spread over the warp coordinate; between them cubic splines, one for each stretch between standards:
    within it spectra are smooth, at a standard the weights of its neighbours have a kink.
    """
    double, exact = deepcopy(ode).place("cpu", torch.float64), problem.to("cpu", torch.float64)
    double.path = double.path.replace(nodes=double.path.interval_nodes)  # neighbours lie close together
    warp = WarpMetric(exact.warp.logits[0], exact.warp.c0[0], exact.warp.c_min[0], exact.warp.c_max[0], trainable=False)

    def coordinate(concentrations: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return warp.scaled(torch.from_numpy(np.ascontiguousarray(concentrations))).numpy()

    low, high = coordinate(served)
    levels = exact.level_coordinates[0, : int(exact.counts[0])].numpy()
    cuts = np.array([low, *levels[(levels > low) & (levels < high)], high])
    counts = np.maximum(_FEWEST, np.ceil(_TABLE * np.diff(cuts) / (high - low))).astype(int)
    knots = np.concatenate([np.linspace(a, b, k) for a, b, k in zip(cuts[:-1], cuts[1:], counts, strict=True)])
    from scipy.interpolate import CubicSpline

    with torch.no_grad():
        asked = warp.from_scaled(torch.from_numpy(knots)).numpy().clip(*served)
    spectra = predict(double, exact, torch.from_numpy(np.tile(asked, (exact.models, 1)))).numpy()
    ends = np.cumsum(counts)
    pieces = [CubicSpline(knots[b - k : b], spectra[:, b - k : b], axis=1) for b, k in zip(ends, counts, strict=True)]

    def flow(concentrations: np.ndarray) -> np.ndarray:
        if (concentrations < served[0]).any() or (concentrations > served[1]).any():
            raise InputError(
                f"the neural flow was trained for {served[0]:g} … {served[1]:g} and is not asked beyond; fit again "
                "with a larger margin."
            )
        at = coordinate(concentrations)
        piece = np.searchsorted(cuts[1:-1], at, side="right")
        found = np.empty((len(spectra), len(at), spectra.shape[2]))
        for k in np.unique(piece):
            found[:, piece == k] = pieces[k](at[piece == k])
        return found

    return flow


def node_ensemble(
    gp: GeodesicGP, ode: CoupledSpectralODE, problem: Problem, folds: Folds, config: GeodesicConfig
) -> NodeEnsemble:
    """The trained stack as what a calibration rests on; ``ode`` and ``problem`` are those of all standards."""
    served, flows = _served(gp.levels, config), []
    for k, one in enumerate(folds.gps):
        rows = slice(k * config.training.members, (k + 1) * config.training.members)
        own = build_problem(
            [one] * config.training.members, problem.wavelengths.numpy(), config, [served] * config.training.members
        )
        own = own.to("cpu", problem.target.dtype)
        state = {name: value[rows] for name, value in folds.state.items()}
        flows.append(seeds(restore(own, config, state), own, served))
    return NodeEnsemble.of(gp, seeds(ode, problem, served), folds.left_out, folds.gps, flows)
