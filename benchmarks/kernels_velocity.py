"""The training step of ``flow="velocity"``: the metric network at every node of every path."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "kernels")]

import geonode_kernels as gk  # noqa: E402
from geonode.flow.arctable import ArcLengthTable  # noqa: E402


class VelocityStep:
    """Flow of 64 units that sees u̇, 16 nodes, m_θ 2→64→64→1 at each, 64-node table; loss, gradients and update."""

    def __init__(self, pairs: int, wavelengths: int, hidden: int = 64, size: int = 64, seed: int = 0) -> None:
        g = torch.Generator().manual_seed(seed)
        new = lambda *s, scale=1.0: torch.nn.Parameter((scale * torch.randn(1, *s, generator=g)).cuda())  # noqa: E731
        h = hidden
        self.metric = [new(h, 2), new(h), new(h, h, scale=h**-0.5), new(h), new(1, h, scale=0.1 * h**-0.5), new(1)]
        self.flow = [new(h, scale=2.0), new(h, scale=0.1), new(wavelengths, 8), new(8, 2 * h + 1, scale=0.1)]
        self.flow.append(new(2 * h + 1))
        self.parameters = [*self.metric, *self.flow]
        edge = torch.full((1,), 1.0 + 1e-6, dtype=torch.float64)
        table = ArcLengthTable(-edge, edge, nodes=size)
        points = torch.rand(1, 2 * pairs + 1, generator=g, dtype=torch.float64) * 2 - 1
        points[:, -1] = 1.0
        shape = (1, size, wavelengths)
        data = [table.nodes[:, :, None].expand(shape).reshape(1, -1)]
        data.append(torch.linspace(-1, 1, wavelengths).expand(shape).reshape(1, -1))
        self.data = [t.float().cuda() for t in (*data, table.phi(points))]
        self.matrices = gk.TableMatrices(*(t.float().cuda() for t in table.matrices()))
        self.target = torch.randn(1, pairs, wavelengths, generator=g).cuda()
        self.weight = torch.full((1, pairs), 1.0 / (pairs * wavelengths)).cuda()
        self.optimizer = gk.FlatAdamW([{"params": p, "lr": 1e-3, "clip": 1.0} for p in (self.metric, self.flow)])

    def gradients(self, backend: str = "triton", dtype: torch.dtype = torch.float32):
        """Loss and gradients of every parameter."""
        leaves = [p if p.dtype == dtype else p.detach().to(dtype).requires_grad_() for p in self.parameters]
        matrices = gk.TableMatrices(*(t.to(dtype) for t in self.matrices))
        data = [t.to(dtype) for t in (*self.data, self.target, self.weight)]
        loss = gk.velocity_flow_loss(leaves[:6], leaves[6:], *data[:3], matrices, *data[3:], backend=backend)
        return loss.detach(), torch.autograd.grad(loss.sum(), leaves)

    def __call__(self, _=None) -> torch.Tensor:
        """One step."""
        loss, gradients = self.gradients()
        self.optimizer.step(gradients)
        return loss
