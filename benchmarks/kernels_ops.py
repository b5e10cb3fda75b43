"""Single ops at training sizes: time, and bytes or operations against their ceiling."""

from __future__ import annotations

from functools import partial

import torch
from kernels_common import (
    EVALUATION_FLOP,
    HIDDEN,
    LARGE,
    SMALL,
    WAVELENGTHS,
    error,
    geodesic_arguments,
    graph_timed,
    timed,
)

import geonode_kernels as gk
from geonode_kernels.flow_quadrature.reference import flow_quadrature as flow_reference


def op_rows(rates: dict) -> list[dict]:
    """Single ops at training sizes: time, and bytes or operations against their ceiling."""
    rows = []
    points = torch.rand(2, 1, 64 * WAVELENGTHS, device="cuda") * 2 - 1
    weights = geodesic_arguments(SMALL)[3:]
    with torch.no_grad():
        rows.append({"op": "metric_density forward", "n": points[0].numel()})
        density = lambda: gk.metric_density(*points, *weights, backend="triton")  # noqa: E731
        rows[-1]["ms"], rows[-1]["graph_ms"] = timed(density), graph_timed(density)
    s = torch.rand(2, 1, 2048, WAVELENGTHS, device="cuda") * 2 - 1
    omega = 2.0 * torch.randn(1, HIDDEN, device="cuda")
    beta, a = torch.randn(2, 1, WAVELENGTHS, HIDDEN, device="cuda")
    a0 = torch.randn(1, WAVELENGTHS, device="cuda")
    leaves = [t.clone().requires_grad_() for t in (s[0], s[1], omega, beta, a, a0)]
    with torch.no_grad():
        exact = flow_reference(*(t[..., :64, :].double() if t.shape[1:2] == (2048,) else t.double() for t in leaves))
        wrong = error(gk.flow_quadrature(*leaves, backend="triton")[:, :64], exact)
        ms = timed(lambda: gk.flow_quadrature(*leaves, backend="triton"))
    rows.append({"op": "flow_quadrature forward", "n": 2048 * WAVELENGTHS, "error": wrong, "ms": ms})
    out = gk.flow_quadrature(*leaves, backend="triton")
    up = torch.randn_like(out)
    ms = timed(lambda: torch.autograd.grad(out, leaves, up, retain_graph=True))
    rows.append({"op": "flow_quadrature backward", "n": 2048 * WAVELENGTHS, "ms": ms})
    weight = torch.ones(1, 2048, device="cuda")
    ends = torch.stack(leaves[:2], 1).detach().requires_grad_()
    ms = timed(lambda: gk.flow_loss_of_ends(ends, *leaves[2:], up, weight, backend="triton"))
    rows.append({"op": "flow_loss (value and gradients)", "n": 2048 * WAVELENGTHS, "ms": ms})
    return rows + geometry_rows(rates)


def geometry_rows(rates: dict) -> list[dict]:
    """metric_christoffel both ways, shooting, and the elementwise ops against the copy bandwidth."""
    rows = []
    c, _, wavelength, *weights = geodesic_arguments(LARGE)
    with torch.no_grad():
        ms = timed(lambda: gk.metric_christoffel(c, wavelength, *weights, backend="triton"))
    rows.append({"op": "metric_christoffel forward", "n": LARGE, "ms": ms})
    leaves = [t.clone().requires_grad_() for t in (c, wavelength, *weights)]
    out = gk.metric_christoffel(*leaves, backend="triton")
    up = [torch.randn_like(o) for o in out]
    ms = timed(lambda: torch.autograd.grad(out, leaves, up, retain_graph=True))
    rows.append({"op": "metric_christoffel backward", "n": LARGE, "ms": ms})
    for row, dots in zip(rows, (2, 8), strict=True):
        floor = 3 * dots * LARGE * EVALUATION_FLOP / 2 / rates["fp16_tflop_s"] / 1e9
        row["share_of_fp16"] = floor / row["ms"]
    with torch.no_grad():
        for n in (SMALL, LARGE):
            start, _, lam, *_ = geodesic_arguments(n)
            end = torch.rand_like(start)
            run = partial(gk.geodesic_shoot, start, end, lam, *weights, backend="triton")
            shot = run()
            converged = (shot.status == 0).float().mean().item()
            rows.append({"op": "geodesic_shoot", "n": n, "ms": timed(run, 5), "converged": converged})
        metric = [1.0 + torch.rand(40 * LARGE, device="cuda") for _ in range(3)]
        shift = torch.zeros_like(metric[0])
        table = torch.randn(1, 512, WAVELENGTHS, device="cuda")
        many = torch.rand(2, 1, 40 * LARGE, device="cuda") * 2 - 1
        for name, moved, call in (
            ("christoffel_fd forward", 5 * metric[0].numel(), lambda: gk.christoffel_fd(*metric, shift, 1e-3)),
            (
                "christoffel_grid forward",
                3 * many[0].numel(),
                lambda: gk.christoffel_grid(table, many[0], many[1], (-1, 1), (-1, 1)),
            ),
        ):
            ms = timed(call)
            share = 4 * moved / ms / 1e9 / rates["copy_tb_s"]
            rows.append({"op": name, "n": moved, "ms": ms, "share_of_copy": share})
    return rows
