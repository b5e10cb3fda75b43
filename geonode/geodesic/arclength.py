"""Geodesics for D = 1 in closed form: one quadrature, no shooting.

On a line every metric is flat. With arc length s(c) = ∫√g dc and L = s(b) − s(a), the geodesic from a to b is
c(t) = s⁻¹((1 − t) s(a) + t s(b)), so that ċ(0) = L/√g(a) and ċ = L/√g(c) anywhere (docs/design.md §3). √g is sampled
at Chebyshev points over the ends asked for and its interpolant integrated; nothing is evaluated outside them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from geonode.errors import InputError
from geonode.geodesic.chebyshev import (
    chebyshev_nodes,
    integral_of_series,
    integration_matrix,
    series_from_values,
)
from geonode.geodesic.ivp import check_problem, default_tolerance, inside_transform
from geonode.geodesic.solution import GeodesicSolution, Status
from geonode.metric.base import Chart, Metric
from geonode.metric.on_kernels import on_kernels
from geonode_kernels import metric_density
from geonode_kernels.arc_length.reference import clenshaw, invert
from geonode_kernels.paths import allowed_residual, status_of

__all__ = ["arc_length_geodesic", "chebyshev_nodes", "integration_matrix"]

_NEWTON_STEPS = 6  # inside one cell of the table, where the arc length is nearly straight
_MARGIN = 1e-3  # half width, relative to the point, of the table of problems that all sit at one point


def arc_length_geodesic(
    metric: Metric,
    start: Tensor,
    end: Tensor,
    wavelength: Tensor | None = None,
    nodes: int = 64,
    shared: bool | None = None,
    tolerance: float | None = None,
    throw: bool = False,
) -> GeodesicSolution:
    """Geodesics from ``start`` to ``end`` of a scalar metric, in closed form.

    The integral is taken in ``metric.chart`` where the metric names one, else in c itself. Float64 inside, the dtype
    of ``start`` outside.

    Args:
        metric: a ``Metric`` with dim = 1.
        start, end: [...] ([..., 1] also accepted beside a wavelength [...]); user units.
        wavelength: [...], broadcast; None for metrics that use none.
        nodes: Chebyshev points of each table, T. The error falls geometrically with T where the metric is smooth.
        shared: True: problems of one wavelength share one table over all their ends, and no value is looked at. False:
            every problem has its own, for T evaluations of the metric each. None: shared, then a second try with
            tables of their own for problems that fail, so that none fails for what its neighbours ask; under
            torch.func transforms, where no value can be looked at, as True.
        tolerance: largest estimated miss of the end, relative to |end − start|, that counts as converged; None for
            1e-8 in float64 and 1e-4 in float32. The metric at both ends may differ from the table by 100 times that.
        throw: raise SolverError instead of returning a failure.

    Returns:
        ``initial_velocity`` and ``at(t)`` are differentiable to second order in start, end, wavelength and every
        parameter of the metric. ``energy_drift`` compares the metric itself at both ends with the speed of the path
        there; ``residual`` is the error of the arc length which that implies, as a distance from ``end``.
        MAX_ITERATIONS asks for more nodes. Problems that fail carry no gradient.

    Raises:
        InputError: a metric with D ≥ 2, arguments that do not fit together, or fewer than 8 nodes.
        SolverError: a problem failed and ``throw`` is set.
    """
    if metric.dim != 1:
        raise InputError(
            f"The closed form exists for one analyte; this metric has {metric.dim} coordinates: use shoot."
        )
    if nodes < 8:
        raise InputError(f"nodes must be at least 8, got {nodes}.")
    unit, (start, end) = check_problem(metric, wavelength, start=start, end=end)
    if tolerance is None:
        tolerance = max(1e-8, default_tolerance(metric, start.dtype, start.device.type))
    solution = _solve(metric, start, end, wavelength, nodes, shared is not False, tolerance)
    if shared is None:
        solution = _second_try(metric, solution, nodes, tolerance)
    if unit:
        path = solution.position
        solution = replace(
            solution,
            start=solution.start.unsqueeze(-1),
            end=solution.end.unsqueeze(-1),
            initial_velocity=solution.initial_velocity.unsqueeze(-1),
            position=lambda t: path(t).unsqueeze(-1),
        )
    return solution.throw() if throw else solution


def _solve(
    metric: Metric,
    start: Tensor,
    end: Tensor,
    wavelength: Tensor | None,
    nodes: int,
    shared: bool,
    tolerance: float,
) -> GeodesicSolution:
    """All problems from one set of tables."""
    problems = _Problems(metric, start, end, wavelength, shared)
    error = _probe(problems, nodes, tolerance, start.dtype)
    good = error.status == Status.CONVERGED

    # Failed problems are replaced at their input: masking their output would leave NaN in every weight's gradient.
    table = problems.table(nodes, problems.layout.any(good))
    middle = problems.layout.spread(table.middle)
    a, b = (torch.where(good, u, middle) for u in (problems.a, problems.b))
    ends = table.arc_length(torch.stack([a, b]))
    length = ends[1] - ends[0]
    speed = problems.density(torch.where(good, a, problems.harmless), problems.layout.problem_wavelength(good))
    velocity = torch.where(good, length / (speed * problems.slope(good)), error.velocity).to(start.dtype)

    def position(t: Tensor) -> Tensor:
        place = t.double().reshape(-1, *([1] * length.ndim))
        u = table.inverse(ends[0] + place * length)
        return torch.where(good, problems.back(u), torch.nan).to(start.dtype)

    batch = error.status.shape
    return GeodesicSolution(
        start=start.expand(batch),
        end=end.expand(batch),
        initial_velocity=velocity,
        status=error.status,
        residual=error.residual,
        iterations=torch.zeros_like(error.status),
        energy_drift=error.drift,
        position=position,
        wavelength=wavelength,
    )


def _second_try(metric: Metric, first: GeodesicSolution, nodes: int, tolerance: float) -> GeodesicSolution:
    """``first`` with the problems that failed for the sake of their neighbours solved again by themselves.

    A shared table is too coarse, or not finite, as a whole: one far end, or one beyond a pole, spoils it for all.
    """
    wl = first.wavelength
    inputs = [first.start, first.end, *([] if wl is None else [wl])]
    if any(inside_transform(x) for x in inputs):
        return first
    again = (first.status == Status.MAX_ITERATIONS) | (first.status == Status.NOT_FINITE)
    for x in inputs:
        again = again & torch.isfinite(x)
    if not bool(again.any()):
        return first
    batch = again.shape
    # A stack of models needs its leading axis and is tried again as a whole; else the few that failed are.
    index = slice(None) if metric.models is not None else again.reshape(-1).nonzero()[:, 0]

    def few(x: Tensor) -> Tensor:
        return x.expand(batch) if isinstance(index, slice) else x.expand(batch).reshape(-1)[index]

    own = _solve(metric, few(first.start), few(first.end), None if wl is None else few(wl), nodes, False, tolerance)

    def merge(old: Tensor, new: Tensor) -> Tensor:
        if isinstance(index, slice):
            return torch.where(again, new, old)
        lead = old.shape[: old.ndim - len(batch)]
        return old.reshape(*lead, -1).index_copy(-1, index, new).reshape(old.shape)

    names = ("initial_velocity", "status", "residual", "energy_drift")
    merged = {name: merge(getattr(first, name), getattr(own, name)) for name in names}
    return replace(first, **merged, position=lambda t: merge(first.position(t), own.position(t)))


@dataclass(frozen=True)
class _Layout:
    """Which problems share a table: those along ``axes`` of the batch, or those with one entry of ``index``."""

    batch: torch.Size
    axes: tuple[int, ...]
    wavelength: Tensor | None  # one per table, shaped like the tables [*group]
    index: Tensor | None = None  # [N], problem (flattened) → table; the tables are then [G]

    def lowest(self, x: Tensor) -> Tensor:
        """Smallest entry [*group] of ``x`` [*batch] in each table."""
        if self.index is None:
            return x.amin(self.axes, keepdim=True) if self.axes else x
        count = 0 if self.wavelength is None else len(self.wavelength)
        return x.new_full((count,), torch.inf).scatter_reduce(0, self.index, x.reshape(-1), "amin")

    def any(self, flag: Tensor) -> Tensor:
        """True [*group] where a problem of the table has the flag [*batch]."""
        return self.lowest((~flag).double()) < 0.5

    def spread(self, x: Tensor) -> Tensor:
        """``x`` [..., *group] so that it broadcasts against [*batch]."""
        if self.index is None:
            return x
        return x[..., self.index].reshape(*x.shape[:-1], *self.batch)

    def problem_wavelength(self, good: Tensor) -> Tensor | None:
        """Each problem's wavelength [*batch], zero for those that are not good."""
        if self.wavelength is None:
            return None
        return torch.where(good, self.spread(self.wavelength), 0.0)


def _layout(metric: Metric, batch: torch.Size, wavelength: Tensor | None, shared: bool) -> _Layout:
    """Share along the axes the wavelength does not vary on, or failing that by its value.

    The leading axis of a stack of models is never shared. Wavelengths that carry a derivative are told apart by axis
    only, because equal values may still have different tangents.
    """
    first = 0 if metric.models is None else 1
    if wavelength is None:
        axes = tuple(range(first, len(batch))) if shared else ()
        return _Layout(batch, axes, None)
    padded = wavelength.reshape([1] * (len(batch) - wavelength.ndim) + list(wavelength.shape))
    constant = not (wavelength.requires_grad or inside_transform(wavelength))
    if constant and shared:  # an expanded axis holds one value
        for axis, stride in enumerate(padded.stride()):
            padded = padded.narrow(axis, 0, 1) if stride == 0 else padded
    axes = tuple(i for i in range(first, len(batch)) if padded.shape[i] == 1) if shared else ()
    group = [1 if i in axes else size for i, size in enumerate(batch)]
    padded = padded.expand(group)
    if constant and shared and not axes and first == 0 and wavelength.device.type == "cpu":
        values, index = torch.unique(padded, return_inverse=True)
        if 2 * len(values) <= padded.numel():
            return _Layout(batch, (), values, index.reshape(-1))
    return _Layout(batch, axes, padded)


class _Problems:
    """The problems in the coordinate of integration, with a place for those whose input cannot be used."""

    def __init__(self, metric: Metric, start: Tensor, end: Tensor, wavelength: Tensor | None, shared: bool) -> None:
        self.metric, self.dtype = metric, start.dtype
        self.chart: Chart | None = metric.chart
        shapes = [start.shape, end.shape, *([] if wavelength is None else [wavelength.shape])]
        batch = torch.broadcast_shapes(*shapes)
        start, end = (c.double().expand(batch) for c in (start, end))
        finite = torch.isfinite(start) & torch.isfinite(end)
        if wavelength is not None:
            known = torch.isfinite(wavelength)
            finite, wavelength = finite & known, torch.where(known, wavelength, 0.0).double()
        self.finite, self.inside = finite, metric.in_domain(start) & metric.in_domain(end)
        usable = self.finite & self.inside
        reference = metric.reference(start.detach())
        self.start, self.end = torch.where(usable, start, reference), torch.where(usable, end, reference)
        self.layout = _layout(metric, batch, wavelength, shared)
        to = (lambda c: c) if self.chart is None else self.chart.to
        self.a, self.b, self.harmless = to(self.start), to(self.end), to(reference).detach()
        # The range of each table; detached, because the integral does not depend on where it is sampled.
        a, b = self.a.detach(), self.b.detach()
        low = self.layout.lowest(torch.where(usable, torch.minimum(a, b), torch.inf))
        high = -self.layout.lowest(torch.where(usable, -torch.maximum(a, b), torch.inf))
        empty = torch.isinf(low)
        elsewhere = self.layout.lowest(self.harmless)
        self.low, self.high = torch.where(empty, elsewhere, low), torch.where(empty, elsewhere, high)

    def density(self, u: Tensor, wavelength: Tensor | None) -> Tensor:
        """√g̃ at ``u`` [*batch] in the coordinate of integration; by a kernel where the problems came in float32."""
        metric = self.metric if self.chart is None else self.chart.metric
        asked = u.to(self.dtype)
        known = None if wavelength is None else wavelength.to(self.dtype)
        network = on_kernels("metric_density", metric, known, asked)
        if network is None or known is None:
            return metric(u, wavelength).double().sqrt()
        density = metric_density(*network.flat(asked, known), *network.weights.tensors, **network.settings)  # type: ignore[arg-type]
        return network.back(density).double()

    def slope(self, good: Tensor) -> Tensor | float:
        """du/dc at the start [*batch]."""
        if self.chart is None:
            return 1.0
        return self.chart.slope(torch.where(good, self.start, self.metric.reference(self.start.detach())))

    def back(self, u: Tensor) -> Tensor:
        """Concentrations [P, *batch] at ``u`` [P, *batch]."""
        if self.chart is None:
            return u
        return self._with_models_first(self.chart.back, u)

    def table(self, nodes: int, sound: Tensor | None = None) -> _Table:
        """√g̃ at the nodes of every table; tables that are not ``sound`` [*group] are sampled where the metric is."""
        low, high, wavelength = self.low, self.high, self.layout.wavelength
        if sound is not None:
            elsewhere = self.layout.lowest(self.harmless)
            low, high = torch.where(sound, low, elsewhere), torch.where(sound, high, elsewhere)
            wavelength = None if wavelength is None else torch.where(sound, wavelength, 0.0)
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        scale = torch.where(middle == 0, 1.0, middle.abs())
        half = torch.where(half > 0, half, _MARGIN * scale)
        x = chebyshev_nodes(nodes, device=low.device).reshape(-1, *([1] * low.ndim))
        points = middle + half * x
        rows = self._with_models_first(
            lambda u: self.density(u, wavelength if self.metric.models is None else _under(wavelength)), points
        )
        series = torch.tensordot(series_from_values(nodes, low.device), rows, 1)
        integral = half * torch.tensordot(integral_of_series(nodes, low.device), series, 1)
        return _Table(points, middle, half, rows, series, integral, self.layout.spread)

    def _with_models_first(self, function: Callable[[Tensor], Tensor], u: Tensor) -> Tensor:
        """``function`` of [P, *group], handing a stack of models [M, P, ...]."""
        if self.metric.models is None:
            return function(u)
        return function(u.movedim(0, 1)).movedim(1, 0)


def _under(wavelength: Tensor | None) -> Tensor | None:
    return None if wavelength is None else wavelength.unsqueeze(1)


@dataclass(frozen=True)
class _Table:
    """√g̃ sampled at Chebyshev points [T, *group], and the Chebyshev series of √g̃ and of its integral."""

    points: Tensor
    middle: Tensor
    half: Tensor
    values: Tensor
    series: Tensor  # [T, *group]
    integral: Tensor  # [T + 1, *group]
    spread: Callable[[Tensor], Tensor]

    def _x(self, u: Tensor) -> Tensor:
        return (u - self.spread(self.middle)) / self.spread(self.half)

    def arc_length(self, u: Tensor) -> Tensor:
        """∫√g̃ up to ``u`` [..., *batch], from an arbitrary origin of each table."""
        return clenshaw(self.spread(self.integral), self._x(u))

    def density(self, u: Tensor) -> Tensor:
        """The interpolant of √g̃ at ``u`` [..., *batch]."""
        return clenshaw(self.spread(self.series), self._x(u))

    def inverse(self, target: Tensor) -> Tensor:
        """u [P, *batch] with arc length ``target``: a root without graph, then two Newton steps that carry it."""
        u = self._root(target.detach())
        for _ in range(2):
            u = u - (self.arc_length(u) - target) / self.density(u)
        return u

    @torch.no_grad()
    def _root(self, target: Tensor) -> Tensor:
        low, high = self.middle - self.half, self.middle + self.half
        places = torch.cat([low[None], self.points, high[None]])
        lengths = clenshaw(self.integral, (places - self.middle) / self.half)
        table = self.spread(places)[:, None], self.spread(lengths)[:, None]
        return invert(target, *table, self.arc_length, self.density, _NEWTON_STEPS)


@dataclass(frozen=True)
class _Error:
    status: Tensor
    residual: Tensor
    drift: Tensor
    velocity: Tensor


@torch.no_grad()
def _probe(problems: _Problems, nodes: int, tolerance: float, dtype: torch.dtype) -> _Error:
    """Status and errors from a first pass without a graph, so that a failure can be replaced at its input.

    The interpolant of √g is compared with √g at every end, among them both edges of each table, where its error
    ε T_T(x) is largest; integrated, that error shrinks by the oscillations of T_T, to at most about ε·half/T an end.
    """
    layout, a, b = problems.layout, problems.a, problems.b
    table = problems.table(nodes)
    usable = problems.finite & problems.inside
    wavelength = layout.problem_wavelength(torch.ones_like(problems.finite))
    at_start, at_end = (problems.density(u, wavelength) for u in (a, b))
    both = torch.stack([a, b])  # at once: on a GPU a series is as long as its launches are many
    (told_start, told_end), lengths = table.density(both), table.arc_length(both)
    wrong = torch.maximum((at_start - told_start).abs(), (at_end - told_end).abs())
    worst = -layout.lowest(-torch.where(usable & torch.isfinite(wrong), wrong, 0.0))
    miss = torch.minimum(layout.spread(4.0 * table.half * worst / nodes), layout.spread(worst) * (b - a).abs())
    drifts = [((there / told) ** 2 - 1.0).abs() for there, told in ((at_start, told_start), (at_end, told_end))]
    drift = torch.maximum(*drifts)
    velocity = (lengths[1] - lengths[0]) / at_start
    residual = miss / at_end
    if problems.chart is not None:
        velocity = velocity / problems.chart.slope(problems.start)
        residual = residual / problems.chart.slope(problems.end)

    sound = layout.spread((torch.isfinite(table.values) & (table.values > 0)).all(0))
    solved = sound & torch.isfinite(residual + drift + velocity)
    allowed = allowed_residual(1, problems.start, problems.end, tolerance, dtype)
    status = status_of(
        problems.finite, problems.inside, solved | ~usable, (residual <= allowed) & (drift <= 100.0 * tolerance)
    )
    residual, drift, velocity = (torch.where(usable, x, torch.nan).to(dtype) for x in (residual, drift, velocity))
    return _Error(status, residual, drift, velocity)
