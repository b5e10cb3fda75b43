"""Plain torch.compile: a hand-written step of classical RK4, compiled, called once per step."""

from __future__ import annotations

import torch

from geonode.bench import problem
from geonode.bench.peers import measuring as common


def measure(spec: common.Spec) -> tuple[list, list]:
    """Rows and curve at one count."""
    c, v, wavelength, *weights = common.torch_problem(spec.n, spec.device)

    def acceleration(c: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return -common.torch_gamma(c, wavelength, weights) * v * v

    def step(c: torch.Tensor, v: torch.Tensor, dt: float) -> tuple[torch.Tensor, torch.Tensor]:
        k1, l1 = v, acceleration(c, v)
        k2 = v + 0.5 * dt * l1
        l2 = acceleration(c + 0.5 * dt * k1, k2)
        k3 = v + 0.5 * dt * l2
        l3 = acceleration(c + 0.5 * dt * k2, k3)
        k4 = v + dt * l3
        l4 = acceleration(c + dt * k3, k4)
        return c + dt / 6 * (k1 + 2 * (k2 + k3) + k4), v + dt / 6 * (l1 + 2 * (l2 + l3) + l4)

    compiled = torch.compile(step)

    @torch.no_grad()
    def solve() -> torch.Tensor:
        x, y = c, v
        for _ in range(problem.STEPS):
            x, y = compiled(x, y, 1.0 / problem.STEPS)
        common.torch_wait(spec.device)
        return torch.stack([x, y])

    end = solve()[:, : problem.CHECKED].cpu().numpy()
    samples = common.milliseconds(solve, spec.budget)
    error, used = problem.error(end, spec.exact), 4 * problem.STEPS
    rows = [common.row("forward", spec.n, samples, error, used, "one RK4 step compiled; same step, same evaluations")]
    return rows, []


if __name__ == "__main__":
    common.main("torch.compile", torch.__version__, measure)
