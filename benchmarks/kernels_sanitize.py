"""Every kernel, forward and backward, on small odd sizes: what compute-sanitizer watches.

    export PYTORCH_NO_CUDA_MEMORY_CACHING=1
    compute-sanitizer --tool memcheck  --error-exitcode 1 python benchmarks/kernels_sanitize.py
    compute-sanitizer --tool racecheck --error-exitcode 1 python benchmarks/kernels_sanitize.py

Without torch's cache of memory every buffer is an allocation of its own, so that a step beyond it is seen.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "kernels"))

import geonode_kernels as gk  # noqa: E402


def leaf(*shape: int) -> torch.Tensor:
    """Random numbers that want a gradient."""
    return torch.randn(shape, device="cuda").requires_grad_()


def weights(models: int, h1: int, h2: int) -> list[torch.Tensor]:
    """One set of metric weights a model."""
    shapes = [(h1, 2), (h1,), (h2, h1), (h2,), (1, h2), (1,)]
    return [leaf(models, *shape) for shape in shapes]


def points(count: int) -> list[torch.Tensor]:
    """Lists of points [2, 70]."""
    return [leaf(2, 70) for _ in range(count)]


def both_ways(op, *arguments: torch.Tensor, **options) -> None:
    """Forward, then the gradient of every argument that wants one."""
    out = op(*arguments, backend="triton", **options)
    out = out if isinstance(out, tuple) else (out,)
    wanted = [a for a in arguments if a.requires_grad]
    torch.autograd.grad(out, wanted, [torch.ones_like(o) for o in out], allow_unused=True)
    torch.cuda.synchronize()


def gentle(tensors: list[torch.Tensor], by: float) -> list[torch.Tensor]:
    """The same, smaller: paths whose poles are far, so that Γ is interpolated along them."""
    return [(by * t.detach()).requires_grad_() for t in tensors]


def coupled(units: int, steps: int, by: float) -> None:
    """The coupled ODE from a velocity and by shooting, [2, 14 × 5] rows, with a flow of that many units."""
    flow = gk.FlowUnits(*(leaf(2, units) for _ in range(2)), leaf(2, units, 5), leaf(2, units), leaf(2))
    inputs = gentle([*points(3), *weights(2, 20, 30)], by)
    search = {"newton": 2, "stages": 2}
    for op, options in ((gk.coupled_rk4, {"steps": steps}), (gk.coupled_shot, {"steps": steps, **search})):
        out = op(*inputs, flow, **options, backend="triton")
        change = torch.nan_to_num(out[0] if isinstance(out, tuple) else out)
        torch.autograd.grad(change.sum(), [*inputs, *flow])
        torch.cuda.synchronize()


def main() -> None:
    torch.manual_seed(0)
    for hidden in ((64, 64), (20, 30)):
        both_ways(gk.metric_christoffel, leaf(2, 70), leaf(2, 70), *weights(2, *hidden))
        both_ways(gk.metric_density, leaf(2, 70), leaf(2, 70), *weights(2, *hidden))
        both_ways(gk.metric_value, leaf(2, 70), leaf(2, 70), *weights(2, *hidden))
        both_ways(gk.geodesic_rk4, leaf(2, 70), leaf(2, 70), leaf(2, 70), *weights(2, *hidden), steps=2)
    with torch.no_grad():
        gk.geodesic_rk4(*points(3), *weights(2, 20, 30), steps=2, backend="triton")
    both_ways(gk.geodesic_states, *points(3), *weights(2, 20, 30), steps=3)
    both_ways(
        lambda *a, **k: gk.geodesic_shoot(*a, **k).velocity,
        *points(3), *weights(2, 20, 30), steps=2, newton=2, stages=2,
    )  # fmt: skip
    for units, steps, by in ((5, 2, 1.0), (20, 6, 0.2), (20, 6, 1.0)):
        coupled(units, steps, by)
    for by in (0.2, 1.0):  # interpolated along their paths, and too steep for it
        both_ways(gk.geodesic_rk4, *gentle([*points(3), *weights(2, 20, 30)], by), steps=6)
        both_ways(gk.geodesic_states, *gentle([*points(3), *weights(2, 20, 30)], by), steps=6)
        both_ways(
            lambda *a, **k: gk.geodesic_shoot(*a, **k).velocity,
            *gentle([*points(3), *weights(2, 20, 30)], by), steps=6, newton=2, stages=2, output="exp",
        )  # fmt: skip
    both_ways(gk.christoffel_fd, *points(4), step=0.1)
    both_ways(lambda c, w, **k: gk.christoffel_grid(leaf(2, 5, 4).detach(), c, w, (-9, 9), (-9, 9), **k), *points(2))
    flow = [leaf(2, 37, 5), leaf(2, 37, 5), leaf(2, 20), leaf(2, 5, 20), leaf(2, 5, 20), leaf(2, 5)]
    both_ways(gk.flow_quadrature, *flow)
    both_ways(gk.flow_loss_of_ends, leaf(2, 2, 37, 5), *flow[2:], leaf(2, 37, 5).detach(), leaf(2, 37).detach())
    both_ways(gk.arc_length, leaf(2, 38, 6).detach(), leaf(2, 6, 5))
    path = leaf(2, 2, 37, 5).detach().tanh().requires_grad_()
    t = 9
    nodes = torch.linspace(-1.1, 1.1, t, device="cuda").expand(2, t)
    edge = torch.full((2,), 1.1, device="cuda")
    series = torch.zeros(2, t + 1, 5, device="cuda")
    series[:, 0], series[:, 1] = 1.0, 1.1
    slope = torch.zeros(2, t, 5, device="cuda")
    slope[:, 0] = 1.0
    ascending = (1.0 + nodes)[..., None].expand(2, t, 5)
    half = torch.ones(2, 5, device="cuda").requires_grad_()
    both_ways(gk.path_points, path, half, series.requires_grad_(), slope, ascending, nodes, -edge, edge, nodes=6)
    density = leaf(2, 6, 37, 5).detach().exp().requires_grad_()
    fixed = [leaf(2, 37, 5).detach(), leaf(2, 37).detach()]
    both_ways(gk.velocity_loss, path, density, half, leaf(2, 20), leaf(2, 20), *flow[3:], *fixed)
    parameters = [torch.nn.Parameter(w.detach()) for w in weights(2, 5, 7)]
    optimizer = gk.FlatAdamW([{"params": parameters, "lr": 1e-2, "clip": 1.0}])
    optimizer.step([torch.randn_like(p) for p in parameters])
    torch.cuda.synchronize()
    print("every kernel ran, forward and backward")


if __name__ == "__main__":
    main()
