"""The pre-trained flow of one assay in closed form: polynomials between standards, a bridge for its doubt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from geonode.export.closed_form import GPSpectra, Warps, float64
from geonode.model import GeodesicModel
from geonode.prior.flow import KNOTS, AssayFlow, lobatto_series

_SERIES = 8
"""Terms of (eˣ − 1)/x about zero, where it is 0/0."""


class PretrainedSpectra(nn.Module):
    """Mean and standard deviation of the pre-trained flow: concentrations [C] float32 → two of [C, W] float32.

    The change is a sum over stretches of what each adds on the way from the lowest knot: its polynomial at the place
    held within the stretch, less that at its low end, so nothing is looked up and no value decides a branch. Lengths of
    the metric are sums over its cells likewise. With folds the variance is that of the ensemble (`NodeSpectra`).
    """

    __getattr__: Callable[[str], Any]  # buffers are tensors, of which the type checker knows nothing

    @torch.no_grad()
    def __init__(self, model: GeodesicModel) -> None:
        super().__init__()
        flow = model.flow
        assert flow is not None
        arrays, meta = flow.state()
        self.gp = GPSpectra(model.gp)
        warp = flow.warp
        self.warps = Warps(*(float(v) for v in (warp.c0, warp.c_max - warp.c0, warp.c_min, warp.c_max)))
        self._change(flow, arrays["change"])
        self._lengths(flow, arrays["log_metric"])
        process = None if model.ensemble is None else model.ensemble.process
        self.held_out = process is not None
        factor = float(meta["dof"]) / (float(meta["dof"]) - 2.0)
        buffers: dict[str, Any] = {
            "mixture": warp.weights[:, None],
            "sigma2": factor * arrays["sigma"] ** 2,
            "tau2": factor * arrays["tau"] ** 2,
        }
        if process is not None:
            buffers |= {"shape": process._shape(), "noise_square": process.noise_square}
        for name, value in buffers.items():
            self.register_buffer(name, float64(value))

    def _change(self, flow: AssayFlow, change: np.ndarray) -> None:
        """Chebyshev coefficients [S·K, W] of every stretch; the constant is the change at the lowest knot."""
        stretches = len(flow.edges) - 1
        rows = np.arange(stretches)[:, None] * (KNOTS - 1) + np.arange(KNOTS)
        series = np.einsum("jk,skw->sjw", lobatto_series(KNOTS), change[rows])
        self.register_buffer("series", float64(series.reshape(stretches * KNOTS, -1)))
        self.register_buffer("lowest", float64(change[0]))
        self.register_buffer("edges", float64(flow.edges))
        # T_k(−1) = (−1)ᵏ
        self.register_buffer("at_low", float64((-1.0) ** np.arange(KNOTS)))

    def _lengths(self, flow: AssayFlow, log_metric: np.ndarray) -> None:
        """Nodes of the metric [N], ½ ln g̃ there [N, W], and arc length at the standards."""
        metric = flow.log_metric_nodes()
        self.register_buffer("nodes", float64(metric))
        self.register_buffer("half_log", float64(0.5 * log_metric))
        raw = self._raw(float64(metric)[1:-1])  # [n, W] length from the lowest node
        self.register_buffer("unit", 2.0 / (raw[-1] - raw[0]))
        self.register_buffer("at_standards", raw)
        self.register_buffer("standards", float64(metric)[1:-1].clone())

    def _raw(self, x: Tensor) -> Tensor:
        """Length from the lowest node to x [C]: [C, W], Σ over cells ∫exp; straight on beyond the nodes."""
        low, high = self.nodes[:-1], self.nodes[1:]
        inside = torch.minimum(torch.maximum(x[:, None], low), high) - low  # [C, cells]
        slope = (self.half_log[1:] - self.half_log[:-1]) / (high - low)[:, None]  # [cells, W]
        bend = slope * inside[:, :, None]
        length = (torch.exp(self.half_log[:-1]) * inside[:, :, None] * _expm1_over(bend)).sum(1)
        below = torch.clamp(x - self.nodes[0], max=0.0)[:, None] * torch.exp(self.half_log[0])
        above = torch.clamp(x - self.nodes[-1], min=0.0)[:, None] * torch.exp(self.half_log[-1])
        return length + below + above

    def _added(self, x: Tensor) -> Tensor:
        """What the network adds to the process's mean at x [C]: [C, W]."""
        low, high = self.edges[:-1], self.edges[1:]
        z = 2.0 * (torch.minimum(torch.maximum(x[:, None], low), high) - low) / (high - low) - 1.0  # [C, S]
        terms = [torch.ones_like(z), z]
        for _ in range(KNOTS - 2):
            terms.append(2.0 * z * terms[-1] - terms[-2])
        basis = torch.stack(terms, -1) - self.at_low
        return self.lowest + torch.matmul(basis.flatten(1), self.series)

    def _bridge(self, x: Tensor) -> Tensor:
        """d₁d₂/(d₁ + d₂) between standards, d beyond the ends: [C, W]."""
        at = self._raw(x)
        gap = (at[:, None] - self.at_standards) * self.unit  # [C, n, W]
        after = (x[:, None] >= self.standards)[:, :, None]
        far = torch.full_like(gap, 1e30)
        lower = torch.where(after, torch.clamp(gap, min=0.0), far).amin(1)
        upper = torch.where(after, far, torch.clamp(-gap, min=0.0)).amin(1)
        near, other = torch.minimum(lower, upper), torch.maximum(lower, upper)
        return near / (near / other + 1.0)

    def forward(self, c: Tensor) -> tuple[Tensor, Tensor]:
        exact = c.double()
        x = (self.mixture * self.warps(exact)).sum(0)
        process, square = self.gp.mean_and_square(c)
        mean = process + self._added(x).float()
        if self.held_out:
            return mean, torch.sqrt(self.gp.factor * (square + self.noise_square) * self.shape).float()
        return mean, torch.sqrt(self.sigma2 * self._bridge(x) + self.tau2).float()


def _expm1_over(x: Tensor) -> Tensor:
    """(eˣ − 1)/x, by its series near zero."""
    near = torch.abs(x) < 0.1
    safe = torch.where(near, torch.ones_like(x), x)
    series = torch.ones_like(x)
    for k in range(_SERIES, 0, -1):
        series = 1.0 + series * x * (1.0 / (k + 1))
    return torch.where(near, series, (torch.exp(safe) - 1.0) / safe)
