"""The flow F = vⁱ ∂ᵢH(x, λ) over several analytes, taught by the Gaussian process on the learned embedding.

H is linear in its output layer, so that layer is solved for, not descended to: weighted least squares on the teacher's
spectra at the calibrated levels and on a grid over the whole box that will be asked for, for random tanh features in
the warp coordinates. On the pH × chloride grid 256 of them follow the teacher to 0.4 % of the spectra's standard
deviation; 64 trained by 300 steps of Adam after the same start, to 1.6 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from geonode.analytes.reach import places, require_within_reach
from geonode.analytes.surface_gp import SurfaceGP
from geonode.config import GeodesicConfig
from geonode.errors import InputError
from geonode.flow import GradientFlow, MultiAnalyteODE
from geonode.geodesic import GeodesicSolution

_HIDDEN = 256
_NEAR = 1e-2  # squared embedding distance below which sources count alike


@dataclass
class SurfaceNode:
    """A trained flow on the geometry of its teacher.

    ``ode`` is the coupled neural ODE (state [x, v, A]) with the teacher's warps and metric; spectra inside it are in
    units of ``scale``. Predictions average the geodesics from every standard, the nearer ones counting more.
    """

    gp: SurfaceGP
    ode: MultiAnalyteODE
    scale: float

    @torch.no_grad()
    def predict(self, concentrations: np.ndarray) -> np.ndarray:
        """Mean spectra ``[C, W]`` at concentrations ``[C, D]`` (user units).

        Raises:
            InputError: farther outside the standards than `geonode.analytes.reach` allows.
        """
        c = places(concentrations)
        require_within_reach(c, self.gp.levels)
        x, at = self.gp.coordinates(c), self.gp.coordinates(self.gp.levels)
        embedding = self.gp.embedding()
        weight = 1.0 / (torch.cdist(embedding(x), embedding(at)).square() + _NEAR)
        weight = weight / weight.sum(1, keepdim=True)
        dtype = next(self.ode.flow.parameters()).dtype
        potential = self.ode.flow.potential(torch.cat([x, at])[None].to(dtype))
        if potential is None:
            raise InputError(f"{type(self.ode.flow).__name__} has no potential, which this prediction needs.")
        potential = potential[0].double()
        there, here = potential[: len(x)], potential[len(x) :]
        sources = torch.from_numpy(self.gp.predict_mean(self.gp.levels)) / self.scale
        return ((weight @ (sources - here) + there) * self.scale).numpy()

    def geodesics(self, start: np.ndarray, end: np.ndarray) -> GeodesicSolution:
        """Geodesics [B] between concentrations ``[B, D]``, in warp coordinates; the metric knows no wavelength."""
        from geonode.geodesic import shoot

        return shoot(self.ode.metric, self.gp.coordinates(start), self.gp.coordinates(end))


def fit_surface_nodes(
    gps: Sequence[SurfaceGP],
    wavelengths: np.ndarray,
    reach: Sequence[np.ndarray] | None = None,
    config: GeodesicConfig | None = None,
    collocation: int = 12,
) -> list[SurfaceNode]:
    """One flow per teacher.

    Args:
        gps: fitted on training sets of one size. wavelengths: ``[W]``.
        reach: per teacher the concentrations ``[C, D]`` that will be asked for, beyond its own levels; None for none.
        config: None for 256 hidden units; ``flow_hidden``, ``embedding``, ``seed`` and the solvers' counts are used.
        collocation: grid points per analyte.

    Raises:
        InputError: no teacher, or teachers of different sizes.
    """
    if not gps or len({gp.levels.shape for gp in gps}) > 1:
        raise InputError("flows are fitted as one stack: give one or more processes fitted on equally many levels.")
    config = config or GeodesicConfig(flow_hidden=_HIDDEN)
    scales = [float(gp.residual.std()) or 1.0 for gp in gps]
    parts = [_lesson(gp, None if reach is None else reach[i], collocation) for i, gp in enumerate(gps)]
    x, weight = torch.stack([part[0] for part in parts]), torch.stack([part[2] for part in parts])
    target = torch.stack([part[1] / scale for part, scale in zip(parts, scales, strict=True)])
    weight = weight / weight.sum(1, keepdim=True)
    target = target - (weight[..., None] * target).sum(1, keepdim=True)
    flow = GradientFlow(
        len(wavelengths), gps[0].dim, config.flow_hidden, config.embedding, models=len(gps), seed=config.seed
    )
    flow.start_from(x, target, weight)
    grid = torch.as_tensor(np.array(wavelengths, dtype=np.float64))
    return [SurfaceNode(gp, _ode(gp, flow, m, grid, config), scales[m]) for m, gp in enumerate(gps)]


def _lesson(gp: SurfaceGP, reach: np.ndarray | None, collocation: int) -> tuple[Tensor, Tensor, Tensor]:
    """Points x [P, D], the teacher's spectra [P, W] and weights [P]: levels, and a grid over all that is asked for."""
    levels = gp.coordinates(gp.levels)
    asked = levels if reach is None else torch.cat([levels, gp.coordinates(reach)])
    low, high = asked.amin(0), asked.amax(0)
    unit = torch.linspace(0.0, 1.0, collocation, dtype=torch.float64)
    mesh = torch.cartesian_prod(*[low[d] + (high[d] - low[d]) * unit for d in range(gp.dim)])
    x = torch.cat([levels, mesh])
    rows, variance = gp.rows_at(x)
    spectra = torch.from_numpy(gp.column_mean) + rows.mean(0) @ torch.from_numpy(gp.residual)
    floor = float(np.mean(gp.eta)) + 1e-4
    return x, spectra, 1.0 / (variance.mean(0) + floor)


def _ode(gp: SurfaceGP, flow: GradientFlow, m: int, wavelengths: Tensor, config: GeodesicConfig) -> MultiAnalyteODE:
    """The coupled ODE of one model of the stack."""
    ode = MultiAnalyteODE(wavelengths, gp.dim, config, warps=gp.warps(), metric=gp.metric())
    ode.flow.load_state_dict({name: value[m : m + 1] for name, value in flow.state_dict().items()})
    return ode
