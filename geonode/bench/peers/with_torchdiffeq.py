"""torchdiffeq: its rk4 (the 3/8 rule) at the same step, and its dopri5 for work–precision."""

from __future__ import annotations

from typing import Any

import torch
import torchdiffeq

from geonode.bench import problem
from geonode.bench.peers import measuring as common


def measure(spec: common.Spec) -> tuple[list, list]:
    """Rows and curve at one count."""
    c, v, wavelength, *weights = common.torch_problem(spec.n, spec.device)
    state, times = torch.stack([c, v]), torch.tensor([0.0, 1.0], device=spec.device)
    calls = 0

    def field(_t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return torch.stack([y[1], -common.torch_gamma(y[0], wavelength, weights) * y[1] * y[1]])

    @torch.no_grad()
    def solve(**options: Any) -> torch.Tensor:
        end: Any = torchdiffeq.odeint(field, state, times, **options)[-1]
        common.torch_wait(spec.device)
        return end

    def measured(**options) -> tuple[float, list[float], int]:
        nonlocal calls
        calls = 0
        end = solve(**options)[:, : problem.CHECKED].cpu().numpy()
        used = calls
        return problem.error(end, spec.exact), common.milliseconds(lambda: solve(**options), spec.budget), used

    fixed = {"method": "rk4", "options": {"step_size": 1.0 / problem.STEPS}}
    error, samples, used = measured(**fixed)
    rows = [common.row("forward", spec.n, samples, error, used, "rk4 is the 3/8 rule; same step, same evaluations")]
    curve = []
    for rtol in (1e-3, 1e-5) if spec.curve else ():
        error, samples, used = measured(method="dopri5", rtol=rtol, atol=1e-2 * rtol)
        curve.append(common.point("torchdiffeq dopri5", f"rtol {rtol:g}", error, samples, used))
    return rows, curve


if __name__ == "__main__":
    common.main("torchdiffeq", torchdiffeq.__version__, measure)
