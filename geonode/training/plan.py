"""Where a training fits and how long it takes, from a few small steps measured here.

Memory of a step is proportional to models, and linear in wavelengths and pairs. So one model's step is run here: over
all its wavelengths where they are few; else over a quarter and a half of them, and the straight line through the two is
followed. Shooting is linear in pieces: beyond a number of paths their steps are computed again backwards, so that less
is kept, and both widths lie on the side of the whole. On a CPU a step is plain torch: on a GPU the kernels keep less
(by far where the flow sees the velocity), and what a CPU foretells of one is an upper bound. Time is that of whole
training steps as they are taken here: on a GPU of the whole stack, captured.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from geonode.calibration import GeodesicGP
from geonode.config import GeodesicConfig
from geonode.data import SpectralDataset
from geonode.geodesic.ivp import fewest_rebuilt
from geonode.threads import threads_for
from geonode.training.batches import BatchSource, step_counts
from geonode.training.chunks import chunk_size, side_by_side, step_size
from geonode.training.control import is_evaluation
from geonode.training.loss import losses, parameter_groups
from geonode.training.memory import workspace_bytes
from geonode.training.precision import dtype_of
from geonode.training.problem import Problem, build_problem, fit_gp
from geonode.training.steps import StackSteps, use_captured

GIB = 2**30
DEVICES = {
    "laptop with MPS, 16 GB": 16 * 10**9,
    "T4, 16 GB": 15 * GIB,
    "A100, 40 GB": 40 * 10**9,
    "A100, 80 GB": 80 * 10**9,
    "H100, 80 GB": 80 * 10**9,
}
USABLE = 0.85
"""Share of a device's memory that tensors may take: the rest is the driver's, the library's, and fragmentation."""
_FEW = 256  # wavelengths that are measured at once
_SLOW = 10.0  # seconds of steps on a CPU that are not repeated


@dataclass(frozen=True)
class Plan:
    """Bytes per part, seconds, and what fits.

    Attributes:
        weights, gradients, optimizer, data, activations, solver: bytes, all models of the stack together; activations
            are everything a step holds at its peak with the closed-form path, solver what the configured one adds.
        step_seconds: of one optimiser step's micro-batch here. total_seconds: of the whole training here.
        steps: micro-batches in all. stacked: models trained at a time here. micro_batch: pairs in one (all: every
            ordered pair). bytes_per_pair: of activations and solver; 0 where all pairs are differences of potentials.
        library: bytes that the device's libraries hold, whatever the model's size.
    """

    weights: int
    gradients: int
    optimizer: int
    data: int
    activations: int
    solver: int
    step_seconds: float
    total_seconds: float
    steps: int
    models: int
    stacked: int
    micro_batch: int
    bytes_per_pair: float
    library: int = 0

    @property
    def total(self) -> int:
        """Bytes with the whole stack at once, as on a GPU."""
        return self.fixed + self.activations + self.solver

    @property
    def fixed(self) -> int:
        """Bytes that no smaller micro-batch saves."""
        return self.weights + self.gradients + self.optimizer + self.data + self.library

    def fits(self, capacity: float) -> bool:
        """Whether the whole stack trains in ``capacity`` bytes."""
        return self.total <= USABLE * capacity

    def largest_micro_batch(self, capacity: float) -> int | None:
        """Pairs per micro-batch that fit; None where a step always takes every pair."""
        if not self.bytes_per_pair:
            return None
        return max(0, int((USABLE * capacity - self.fixed) / self.bytes_per_pair))

    def largest_stack(self, capacity: float) -> int:
        """Models (folds × seeds) that fit as one batch."""
        return max(0, int((USABLE * capacity - self.library) / ((self.total - self.library) / self.models)))


def plan(
    config: GeodesicConfig, dataset: SpectralDataset, models: int | None = None, device: torch.device | str = "cpu"
) -> Plan:
    """Measure small steps on ``device`` and say what the training of ``dataset`` takes.

    Args:
        models: stacked models; None for ``config.training.members``.

    Raises:
        InputError: several analytes, or fewer than three levels.
    """
    device = torch.device(device)
    models = models or config.training.members
    gp = fit_gp(dataset.require_levels(3))
    width = min(config.training.wavelengths_per_step or dataset.shape[1], dataset.shape[1])
    dtype = dtype_of(config)
    problem = build_problem([gp], dataset.wavelengths, config).to(device, dtype)
    groups = parameter_groups(problem.build_model(config, 0), config.training)
    parameters = sum(p.numel() for group in groups for p in group["params"])
    weights = models * parameters * problem.target.element_size()
    tensors = [v for k, v in vars(problem).items() if isinstance(v, torch.Tensor) and k != "wavelengths"]
    data = models * sum(v.numel() * v.element_size() for v in tensors)
    stacked = chunk_size(problem, config, models)
    steps, _, micro, _ = step_counts(len(dataset.levels), config)
    low, high = _widths(config, width, micro * (2 if config.training.teacher else 1))
    peaks = [measured_step(config, gp, dataset, k, 1, device) for k in sorted({low, high})]
    whole = models * _line(low, high, peaks[0], peaks[-1], width)
    solver = 0.0
    if not config.closed_form:
        plain = config.replace(solver="quadrature", path="arc_length", flow="velocity", warp=True)
        direct = [measured_step(plain, gp, dataset, k, 1, device) for k in sorted({low, high})]
        solver = max(0.0, whole - models * _line(low, high, direct[0], direct[-1], width))
    fewer = config.replace(wavelengths_per_step=high)  # a slow step over many wavelengths is foretold from half of them

    def seconds(size: int, at_once: int) -> tuple[float, float]:
        timed = build_problem([gp] * size, dataset.wavelengths, config).to(device, dtype)
        rate = measured_side_by_side(timed, fewer, at_once)
        step_seconds = rate.step * width / high
        evaluations = sum(is_evaluation(epoch, config.training.epochs) for epoch in range(config.training.epochs))
        whole = rate.begin + step_seconds * steps * config.training.epochs + rate.evaluation * (1 + evaluations)
        return step_seconds, whole

    step_seconds, total_seconds = _in_rounds(seconds, models, stacked, device)
    return Plan(
        weights=weights,
        gradients=weights,
        optimizer=2 * weights,
        data=data,
        activations=int(whole - solver),
        solver=int(solver),
        step_seconds=step_seconds,
        total_seconds=total_seconds,
        steps=steps * config.training.epochs,
        models=models,
        stacked=stacked,
        micro_batch=micro,
        bytes_per_pair=0.0 if config.all_pairs else whole / micro,
        library=workspace_bytes(device),
    )


def _in_rounds(
    seconds: Callable[[int, int], tuple[float, float]], models: int, stacked: int, device: torch.device
) -> tuple[float, float]:
    """Seconds of one step and of the whole, in rounds of as many stacks as are trained at once. In the last there may
    be fewer, which have more of the machine each, or only the models that are left over.

    ``seconds(size, at_once)``: of a step, and of the training, of ``at_once`` stacks of ``size`` models.
    """
    threads = torch.get_num_threads() if device.type == "cpu" else 1
    full, rest = divmod(models, stacked)
    rounds, beside = divmod(full, threads)
    last = beside + (rest > 0)
    step, whole = seconds(stacked, threads if rounds else last)
    if not rounds:
        return step, whole
    if not last:
        return step, rounds * whole
    same = beside > 0 and last == threads
    return step, rounds * whole + (whole if same else seconds(stacked if beside else rest, last)[1])


def _widths(config: GeodesicConfig, width: int, pairs: int) -> tuple[int, int]:
    """Two numbers of wavelengths between which memory is the straight line that leads to ``width``."""
    if width <= _FEW:
        return width, width
    low, high = width // 4, width // 2
    if config.path.name == "shooting":
        fewest = -(-fewest_rebuilt(config.path.ode_steps) // pairs)
        if low < fewest <= width:
            low, high = fewest, max(high, min(width, fewest + fewest // 4))
    return low, high


def measured_step(
    config: GeodesicConfig,
    gp: GeodesicGP,
    dataset: SpectralDataset,
    width: int,
    models: int,
    device: torch.device | str,
) -> float:
    """Bytes of one forward and backward pass over ``width`` wavelengths: the peak beyond what stood before."""
    columns = np.unique(np.linspace(0, dataset.shape[1] - 1, width).round().astype(int))
    config = config.replace(wavelengths_per_step=None)
    dtype = dtype_of(config)
    wavelengths = dataset.wavelengths[columns]
    problem = build_problem([gp.select_wavelengths(columns)] * models, wavelengths, config).to(device, dtype)
    ode = problem.build_model(config, 0)
    batch = BatchSource(problem, ode.table, config).batch(0, 0)
    weights = config.loss.at(1.0)
    cuda = torch.device(device).type == "cuda"

    def step() -> None:
        losses(ode, batch, weights)["total"].sum().backward()

    step()  # warms up
    ode.zero_grad(set_to_none=True)
    own = models * sum(p[0].numel() * p.element_size() for p in ode.parameters() if p.requires_grad)
    if cuda:
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        step()
        return float(torch.cuda.max_memory_allocated(device) - before - own)
    return float(peak_allocated(step) - own)


class Rate(NamedTuple):
    """Seconds that a training takes to begin, of one step, and of one evaluation of the data loss."""

    begin: float
    step: float
    evaluation: float


def measured_side_by_side(problem: Problem, config: GeodesicConfig, stacks: int) -> Rate:
    """`measured_rate` of as many stacks as a CPU trains at once, a thread each: they share its memory, and Python. One
    alone has the threads that its step is worth, as in a training."""
    if stacks == 1:
        with threads_for(step_size(problem, problem.models)):
            return measured_rate(problem, config)
    with side_by_side(stacks) as each:
        found = each(lambda _: measured_rate(problem, config), range(stacks))
    return Rate(*(float(seconds) for seconds in np.mean(found, 0)))


def measured_rate(problem: Problem, config: GeodesicConfig) -> Rate:
    """Seconds of a training's beginning (models, and on a GPU the recording of its step: of the second time, for the
    first also compiles kernels), of one step (draw, loss, gradients, update) as `geonode.training.train` takes it, and
    of one evaluation. The step's is the median of some groups; of one, where it is so slow that warming up is nothing
    beside it."""
    cuda = problem.target.is_cuda
    wait = torch.cuda.synchronize if cuda else lambda: None

    def begin() -> StackSteps:
        ode = problem.build_model(config, 0)
        source = BatchSource(problem, ode.table, config)
        steps = StackSteps(ode, source, config, use_captured("auto", source, ode))
        if cuda:
            steps.take(0, 0)
            steps.evaluate()
        wait()
        return steps

    def evaluation(steps: StackSteps) -> float:
        start = time.perf_counter()
        steps.evaluate()
        wait()
        return time.perf_counter() - start

    if cuda:
        begin()
    start = time.perf_counter()
    steps = begin()
    to_begin = time.perf_counter() - start
    source = steps.source
    group = max(source.accumulate, 20 if cuda else 1)
    group = min(group, source.steps_per_epoch) if source.accumulate > 1 else group
    seconds: list[float] = []
    # the first two warm up; a GPU's steps are short, and a host that is disturbed for a moment would count for much
    while len(seconds) < 3 or (group * sum(seconds) < 2.0 and (len(seconds) < 11 or (cuda and len(seconds) < 51))):
        wait()
        start = time.perf_counter()
        epoch = len(seconds) % config.training.epochs
        for number in range(group):
            steps.take(epoch, number % source.steps_per_epoch)
            if (number + 1) % source.steps_per_epoch == 0:
                steps.control.end_epoch(epoch, source.updates_per_epoch)
        wait()
        seconds.append((time.perf_counter() - start) / group)
        if not cuda and seconds[0] * group > _SLOW:
            return Rate(to_begin, seconds[0], evaluation(steps))
    return Rate(to_begin, float(np.median(seconds[2:])), evaluation(steps))


def peak_allocated(action: object) -> int:
    """Most bytes that torch's CPU allocator held at once while ``action()`` ran, beyond what it held before."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        action()  # type: ignore[operator]
    events: list[Any] = profiler.profiler.kineto_results.events()  # pyright: ignore
    changes = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
    return int(max(np.cumsum([size for _, size in changes]), default=0))


def _line(x0: int, x1: int, y0: float, y1: float, x: int) -> float:
    """The value at ``x`` of the straight line through two points (their mean where they are one)."""
    return 0.5 * (y0 + y1) if x0 == x1 else y0 + (y1 - y0) * (x - x0) / (x1 - x0)
