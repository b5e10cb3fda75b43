"""Whole training steps out of the kernels: the default flow's, and that of ``flow="velocity"``."""

from __future__ import annotations

import torch
from kernels_common import HIDDEN, WAVELENGTHS

import geonode_kernels as gk
from geonode.flow.arctable import ArcLengthTable


class DefaultStep:
    """The default model (flow of 64 units, 16 nodes; m_θ 2→64→64→1 on a 64-node table) and its whole training step."""

    def __init__(self, pairs: int, wavelengths: int = WAVELENGTHS, seed: int = 0, kernel: bool = True) -> None:
        g = torch.Generator().manual_seed(seed)
        new = lambda *s, scale=1.0: torch.nn.Parameter((scale * torch.randn(1, *s, generator=g)).cuda())  # noqa: E731
        h, e, t = HIDDEN, 8, 64
        metric = [
            new(h, 2),
            new(h),
            new(h, h, scale=h**-0.5),
            new(h),
            new(1, h, scale=0.1 * h**-0.5),
            new(1, scale=0.1),
        ]
        flow = [new(h, scale=2.0), new(wavelengths, e), new(e, 2 * h + 1, scale=0.1), new(2 * h + 1)]
        self.parameters, self.metric, self.flow = [*metric, *flow], metric, flow
        nodes = torch.cos(torch.pi * (torch.arange(t) + 0.5) / t)
        grid = torch.linspace(-1, 1, wavelengths)
        self.u = nodes[:, None].expand(t, wavelengths).reshape(1, -1).contiguous().cuda()
        self.wavelength = grid[None].expand(t, wavelengths).reshape(1, -1).contiguous().cuda()
        ends = torch.rand(2 * pairs, generator=g, dtype=torch.float64) * 2 - 1
        self.phi = integration_matrix(torch.cat([ends, torch.ones(1, dtype=torch.float64)]), t).float().cuda()[None]
        self.target = torch.randn(1, pairs, wavelengths, generator=g).cuda()
        self.weight = torch.full((1, pairs), 1.0 / (pairs * wavelengths)).cuda()
        self.backend = "triton" if kernel else "torch"
        groups = [{"params": metric, "lr": 1e-3, "clip": 1.0}, {"params": flow, "lr": 1e-3, "clip": 1.0}]
        self.optimizer = gk.FlatAdamW(groups)

    def loss(self, dtype=None, phi=None, target=None, weight=None) -> torch.Tensor:
        to = lambda t: t if dtype is None else t.detach().to(dtype).requires_grad_(t.requires_grad)  # noqa: E731
        self.leaves = [to(p) for p in self.parameters]
        data = [self.phi if phi is None else phi, self.target if target is None else target]
        data.append(self.weight if weight is None else weight)
        u, wavelength, *data = (t if dtype is None else t.to(dtype) for t in (self.u, self.wavelength, *data))
        backend = self.backend if dtype is None else "torch"
        return gk.default_flow_loss(self.leaves[:6], self.leaves[6:], u, wavelength, *data, backend=backend)

    def gradients(self, dtype=None):
        loss = self.loss(dtype)
        return loss.detach(), torch.autograd.grad(loss.sum(), self.leaves)

    def __call__(self, phi=None, target=None) -> torch.Tensor:
        loss = self.loss(None, phi, target)
        self.optimizer.step(torch.autograd.grad(loss.sum(), self.leaves))
        return loss.detach()


def integration_matrix(points: torch.Tensor, t: int) -> torch.Tensor:
    """∫_{−1}^{u} of the cardinal polynomials at Chebyshev nodes, [points, t], in float64."""
    k = torch.arange(t, dtype=torch.float64)
    theta = torch.pi * (k + 0.5) / t
    series = torch.cos(k[:, None] * theta[None, :]) * (2.0 / t)
    series[0] *= 0.5
    angle = points.double().clamp(-1, 1).arccos()[:, None]
    poly = torch.cos(torch.arange(t + 1, dtype=torch.float64) * angle)
    end = (-1.0) ** torch.arange(t + 1, dtype=torch.float64)
    integral = torch.empty(len(points), t, dtype=torch.float64)
    integral[:, 0] = points + 1
    integral[:, 1] = 0.5 * (points**2 - 1)
    for n in range(2, t):
        at = poly[:, n + 1] / (2 * (n + 1)) - poly[:, n - 1] / (2 * (n - 1))
        integral[:, n] = at - (end[n + 1] / (2 * (n + 1)) - end[n - 1] / (2 * (n - 1)))
    return integral @ series


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
