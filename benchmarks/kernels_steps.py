"""Whole training steps as the library runs them: the default flow's, and that of ``flow="velocity"``."""

from __future__ import annotations

import torch
from kernels_common import WAVELENGTHS

import geonode_kernels as gk
from geonode.config import GeodesicConfig
from geonode.flow import CoupledSpectralODE
from geonode.training.loss import losses
from geonode.training.terms.batch import PairsBatch


class Step:
    """Loss of explicit pairs, gradients, clipping and AdamW of a model drawn at random.

    Flow of 64 units, 16 nodes; m_θ 2→64→64→1 on a table of 64 nodes.
    """

    def __init__(self, flow: str, pairs: int, wavelengths: int = WAVELENGTHS, dtype=torch.float32) -> None:
        draw = torch.Generator().manual_seed(0)
        ode = CoupledSpectralODE(torch.linspace(350.0, 950.0, wavelengths), GeodesicConfig(flow=flow), seed=0)
        with torch.no_grad():
            for parameter in ode.parameters():
                parameter += 0.1 * torch.randn(parameter.shape, generator=draw)
        self.ode = ode.place("cuda", dtype)
        start, end = (2.0 * torch.rand(2, 1, pairs, generator=draw, dtype=torch.float64) - 1.0).cuda()
        source, target = torch.rand(2, 1, pairs, wavelengths, generator=draw).to("cuda", dtype)
        weight = torch.ones(1, pairs, dtype=dtype, device="cuda")
        phi = self.ode.table.phi(torch.cat([start, end], 1)).to(dtype)
        self.batch = PairsBatch(start, end, source, target, weight, phi=phi)
        parts = [list(module.parameters()) for module in (self.ode.metric, self.ode.flow)]
        self.optimizer = gk.FlatAdamW([{"params": part, "lr": 1e-3, "clip": 1.0} for part in parts])

    def gradients(self) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        """Loss and its gradient by every parameter."""
        total = losses(self.ode, self.batch, {"reconstruction": 1.0})["total"]
        return total.detach(), torch.autograd.grad(total.sum(), self.optimizer.parameters)

    def __call__(self, _=None) -> torch.Tensor:
        """One step."""
        loss, found = self.gradients()
        self.optimizer.step(found)
        return loss


def compared(flow: str) -> list[tuple[float, float]]:
    """Norm and relative error of the loss and of every gradient of a small step against float64."""
    from kernels_common import error

    loss, ours = Step(flow, 61, 37).gradients()
    exact_loss, exact = Step(flow, 61, 37, torch.float64).gradients()
    pairs = zip((loss, *ours), (exact_loss, *exact), strict=True)
    return [(b.norm().item(), error(a, b)) for a, b in pairs]


def wrong_by(flow: str) -> float:
    """Largest relative error of `compared`."""
    # a bias added to ln g̃ scales every arc length alike: its gradient is zero but for rounding, and not looked at
    return max(wrong for size, wrong in compared(flow) if size > 1e-9)
