"""torchode: Dopri5 with fixed steps at nearly the same number of evaluations, and adaptive for work–precision.

It has no classical RK4. Each trajectory is a problem of its own there, with its own step size, so the adaptive runs are
not slowed down by the hardest one.
"""

from __future__ import annotations

import importlib.metadata

import torch
import torchode

from geonode.bench import problem
from geonode.bench.peers import measuring as common

FIXED_STEPS = 13  # six new evaluations each: 78 beside RK4's 80


def measure(spec: common.Spec) -> tuple[list, list]:
    """Rows and curve at one count."""
    c, v, wavelength, *weights = common.torch_problem(spec.n, spec.device)
    state = torch.stack([c, v], 1)
    zero = torch.zeros(spec.n, device=spec.device)
    span = torch.stack([zero, zero + 1.0], 1)

    def field(_t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.stack([y[:, 1], -common.torch_gamma(y[:, 0], wavelength, weights) * y[:, 1] ** 2], 1)

    term = torchode.ODETerm(field)
    method = torchode.Dopri5(term=term)

    def measured(controller, first_step: float | None) -> tuple[float, list[float], int]:
        solver = torchode.AutoDiffAdjoint(method, controller).to(spec.device)
        dt0 = None if first_step is None else torch.full_like(zero, first_step)
        values = torchode.InitialValueProblem(y0=state, t_eval=span)

        @torch.no_grad()
        def solve():
            solution = solver.solve(values, dt0=dt0)
            common.torch_wait(spec.device)
            return solution

        solution = solve()
        end = solution.ys[: problem.CHECKED, -1].T.cpu().numpy()
        used = int(solution.stats["n_f_evals"].max())
        return problem.error(end, spec.exact), common.milliseconds(solve, spec.budget), used

    error, samples, used = measured(torchode.FixedStepController(), 1.0 / FIXED_STEPS)
    note = f"no RK4 there: Dopri5 with {FIXED_STEPS} fixed steps"
    rows = [common.row("forward", spec.n, samples, error, used, note)]
    curve = []
    for rtol in (1e-3, 1e-5) if spec.curve else ():
        error, samples, used = measured(torchode.IntegralController(atol=1e-2 * rtol, rtol=rtol, term=term), None)
        curve.append(common.point("torchode dopri5", f"rtol {rtol:g}", error, samples, used))
    return rows, curve


if __name__ == "__main__":
    common.main("torchode", importlib.metadata.version("torchode"), measure)
