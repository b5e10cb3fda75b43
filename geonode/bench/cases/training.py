"""Training as `geonode.training` does it: mega-batches, the batched ensemble, and the original recipe."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import torch

from geonode.bench.case import Case, Checked, Setting, Size, Work, register
from geonode.bench.cases.common import DOTS, EPOCH, MEGA, evaluations, products, sizes
from geonode.bench.cases.node import CHECK
from geonode.bench.correctness import compare
from geonode.config import GeodesicConfig
from geonode.flow import CoupledSpectralODE, linear_warp
from geonode.metric import WarpMetric

if TYPE_CHECKING:
    from geonode.training.problem import Problem

# every ordered pair of 46 standards at 601 wavelengths: 1 244 070 trajectories, and one step is the epoch
MEGA_EPOCH = Size(46 * 45, 601)
# of 128 standards, 9 769 856 trajectories: what fills the card between the step's small launches
LARGEST = Size(128 * 127, 601)


def random_problem(models: int, levels: int, points: int, wavelengths: int, seed: int) -> Problem:
    """A float64 `Problem` of M models' random spectra on the unit range, ``levels`` of its ``points`` measured."""
    from geonode.training.problem import Problem

    generator = torch.Generator().manual_seed(3 + seed)
    target = torch.rand(models, points, wavelengths, generator=generator, dtype=torch.float64)
    place = torch.linspace(-1.0, 1.0, points, dtype=torch.float64).expand(models, -1).contiguous()
    at = torch.linspace(0, points - 1, levels).round().long()
    one = torch.ones(models, dtype=torch.float64)
    weights = linear_warp(0.0, 1.0).weights.expand(models, -1)
    warp = WarpMetric.from_weights(weights, c0=0.0 * one, c_min=0.0 * one, c_max=one, trainable=False)
    return Problem(
        wavelengths=torch.linspace(350.0, 950.0, wavelengths, dtype=torch.float64), warp=warp,
        low=-one, high=one, levels=0.5 * (place[:, at] + 1.0), level_coordinates=place[:, at],
        counts=torch.full((models,), levels), spectra=target[:, at], points=place, target=target,
        weight=torch.ones_like(place), centre=torch.zeros_like(target[:, :1]), scale=one[:, None, None],
    )  # fmt: skip


def _training(
    setting: Setting, shape: tuple[int, int, int, int], config: GeodesicConfig, steps: int, limit: float = 1e-5,
    drawn: bool = True, levels: int = CHECK.pairs, **shortened: Any,
) -> dict[str, Any]:  # fmt: skip
    """``run``, ``check`` and on a GPU ``drive`` of `geonode.training.train` for (models, levels, points, wavelengths).

    ``run`` trains a fresh model for ``steps`` epochs of one step each; ``limit`` is of the spectra after ten of them,
    against float64. ``shortened`` are settings of that comparison alone, of ``levels`` standards, and with ``drawn`` it
    starts far from the optimum that the recipe begins at.
    """
    from geonode.training import predict, train

    def problem(dtype: torch.dtype, of: tuple[int, int, int, int]) -> Problem:
        return random_problem(*of, setting.seed).to(setting.device, dtype)

    measured = problem(torch.float32, shape)
    few = config.replace(epochs=steps)

    def run(i: int) -> Any:
        return train(measured, few, seed=i)

    def drive(after: Callable[[], bool]) -> None:
        def progress(done: int, of: int) -> None:
            if not after():
                raise _Enough

        with suppress(_Enough):
            train(measured, config.replace(epochs=20_000), seed=0, progress=progress)

    def check() -> list[Checked]:
        small = (shape[0], levels, max(levels, shape[2] - shape[1]), CHECK.wavelengths)
        short = config.replace(**{"epochs": 10, **shortened})
        if not config.all_pairs:
            pairs = levels * (levels - 1)
            short = short.replace(batch_size=pairs, micro_batch=pairs if config.micro_batch else None)
        spectra = []
        for dtype, backend in ((torch.float32, "auto"), (torch.float64, "torch")):
            one = problem(dtype, small)
            if dtype is torch.float64:
                short = short.replace(precision="32-true")  # that is, of the problem
            trained = train(one, short, seed=0, ode=_drawn(one, short) if drawn else None, backend=backend)
            spectra.append(predict(trained, one, one.levels.cpu()))
        return compare([spectra[0]], [spectra[1]], ["spectra after a few steps"], limit)

    return {"run": run, "check": check, **({"drive": drive} if setting.device == "cuda" else {})}


@torch.no_grad()
def _drawn(problem: Problem, config: GeodesicConfig) -> CoupledSpectralODE:
    """A model far from its optimum: at it, gradients are rounding, and AdamW's first steps follow their signs."""
    model, generator = problem.build_model(config, 0), torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model


class _Enough(Exception):
    """Ends a training that was only to be watched for a while."""


def _train(setting: Setting, size: Size) -> Work:
    """One model; ``size.pairs`` must be every ordered pair of some number of levels."""
    levels = round(0.5 + (0.25 + size.pairs) ** 0.5)
    config = GeodesicConfig(flow="path_independent", batch_size=size.pairs, teacher=False, wavelengths_per_step=None)
    steps = 1 if setting.device == "cuda" else 3
    n = size.trajectories * steps
    return Work(
        **_training(setting, (1, levels, levels, size.wavelengths), config, steps),
        counts={"samples": size.pairs * steps, "odes": n, "gradient_steps": steps, "epochs": steps},
        operations={"special": 1.5 * 16 * 64 * n} if setting.device == "cuda" else {},
        bytes=4.0 * levels * size.wavelengths * steps,  # the pairs are made of the levels' spectra
        notes=f"geonode.training.train, every ordered pair of {levels} levels in a step; {_HOW[setting.device]}",
    )  # fmt: skip


def _ensemble(setting: Setting, size: Size) -> Work:
    """M = ``size.pairs`` models (folds × seeds) of the default recipe, ``size.wavelengths`` of 601 drawn each step."""
    models, levels, points = size.pairs, 6, 30
    config = GeodesicConfig(flow="path_independent", wavelengths_per_step=size.wavelengths)
    steps = 1 if setting.device == "cuda" else 3
    updates = models * steps
    return Work(
        **_training(setting, (models, levels, points, 601), config, steps),
        counts={"gradient_steps": updates, "samples": updates * points, "odes": updates * points * size.wavelengths},
        notes=f"{models} models, {points} points each; steps/s counts every model's step; {_HOW[setting.device]}",
    )


_HOW = {
    "cuda": "its own loop, steps recorded as a CUDA graph; time between the ends of consecutive steps",
    "cpu": "three steps a call, a fresh model's start included",
}


def _blueprint(setting: Setting, size: Size) -> Work:
    """The original recipe in the same loop: ``size.pairs`` drawn pairs a step, all of them at once."""
    half = setting.device == "cuda"
    config = GeodesicConfig.blueprint(
        precision="16-mixed" if half else "32-true", batch_size=size.pairs, micro_batch=None
    )
    steps, standards = 1, 6 if half else 2
    n = size.trajectories * steps
    stages = 4 * config.path.ode_steps
    shape, limit = (1, standards, standards, size.wavelengths), 5e-2 if half else 1e-3
    short = {"epochs": 2, "ode_steps": 6, "newton_steps": 5}
    return Work(
        **_training(setting, shape, config, steps, limit, drawn=False, levels=4, **short),
        counts={"samples": size.pairs * steps, "odes": n, "gradient_steps": steps, "epochs": steps},
        # the way back of the path alone: what shooting took differs from problem to problem
        operations=products(setting.device, "kernel", 3.0 * DOTS * n * evaluations(setting.device, stages)),
        notes=f"geonode.training.train of GeodesicConfig.blueprint: {size.pairs} pairs a step, not in micro-batches of "
        f"256 as a card of 12 GB wanted, {config.precision}, shooting, {config.path.ode_steps} RK4 steps of the "
        f"coupled ODE; {_HOW[setting.device]}",
    )  # fmt: skip


register(
    Case(
        "train-step", "training step as geonode.training takes it", _train,
        sizes([EPOCH], [EPOCH, MEGA_EPOCH, LARGEST]),
        window=lambda size: 10.5 if size.pairs >= LARGEST.pairs else 2.2,
    )
)  # fmt: skip
register(
    Case("ensemble-step", "training step of a batched ensemble", _ensemble, sizes([Size(8, 128)], [Size(64, 128)]))
)
register(
    Case(
        "blueprint-step", "the original blueprint's training step", _blueprint, sizes([Size(2, 11)], [MEGA]),
        window=lambda size: 4.0,
    )
)  # fmt: skip
