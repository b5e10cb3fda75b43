"""Christoffel symbols Γᵏᵢⱼ = ½ gᵏˡ(∂ᵢ gₗⱼ + ∂ⱼ gₗᵢ − ∂ₗ gᵢⱼ), three ways; for D = 1 that is Γ = ½ g⁻¹ ∂g/∂c.

A rule is an object ``rule(metric, c, wavelength) → Γ``. To add one, subclass ``ChristoffelRule`` and register the class
in ``RULES``; ``christoffel`` and every solver then accept its name, or an instance of it. In float32 on a CUDA device
the rules of a network's metric of one analyte go through `geonode_kernels`, both ways.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from geonode.errors import InputError
from geonode.metric.base import Metric, drop_unit_axis, small_inverse
from geonode.metric.on_kernels import on_kernels
from geonode.registry import Registry
from geonode_kernels import christoffel_fd, christoffel_grid, metric_christoffel
from geonode_kernels.elementwise.reference import parabola

RULES: Registry[type[ChristoffelRule]] = Registry("Christoffel method")


class ChristoffelRule:
    """Base of the rules. Shapes: D = 1 ``c [...]`` → ``Γ [...]``; D ≥ 2 ``c [..., D]`` → ``Γ[..., k, i, j]``.

    Attributes:
        exact: whether Γ is that of the metric's own derivative, which the kernels that integrate a whole path hold.
    """

    exact: bool = False

    def __call__(self, metric: Metric, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """Γ at ``c``."""
        raise NotImplementedError

    @classmethod
    def named(cls, metric: Metric, options: dict[str, Any], *reached: Tensor) -> ChristoffelRule:
        """The rule as its name asks for it.

        Args:
            metric: that the rule will be used for.
            options: arguments of the class.
            reached: points that the rule will be asked about; the default does not look at them.
        """
        return cls(**options)

    def acceleration(self, metric: Metric, c: Tensor, v: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """The geodesic equation's right-hand side, c̈ᵏ = −Γᵏᵢⱼ vⁱ vʲ, shaped like ``v``.

        Args:
            metric: of dimension D.
            c, v: position and velocity [...] (D = 1) or [..., D].
            wavelength: [...], or None where the metric does not use it.
        """
        gamma = self(metric, c, wavelength)
        if metric.dim == 1:
            return -gamma * v * v
        return -(gamma * v[..., None, :, None] * v[..., None, None, :]).sum((-2, -1))

    def linearised(
        self, metric: Metric, c: Tensor, v: Tensor, wavelength: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Acceleration [..., D] and its derivatives by c and by v, each [..., k, i]: the variational equation (D ≥ 2).

        Arguments as for `acceleration`. The default takes forward-mode tangents of it, one per coordinate of c and of
        v.
        """
        axes = [torch.zeros_like(c) + axis for axis in torch.eye(metric.dim, dtype=c.dtype, device=c.device)]
        still = torch.zeros_like(c)
        tangents = [(axis, still) for axis in axes] + [(still, axis) for axis in axes]
        point = (c, torch.zeros_like(c) + v)
        pairs = [
            torch.func.jvp(lambda x, w: self.acceleration(metric, x, w, wavelength), point, tangent)[:2]
            for tangent in tangents
        ]
        by_c, by_v = ([column for _, column in part] for part in (pairs[: metric.dim], pairs[metric.dim :]))
        return pairs[0][0], torch.stack(by_c, -1), torch.stack(by_v, -1)


def symbols(g: Tensor, dg: Tensor, dim: int) -> Tensor:
    """Γ from a metric and its derivative ``dg[..., k, i, j] = ∂_k g_ij``."""
    if dim == 1:
        return 0.5 * dg / g
    # lowered[l, i, j] = ½ (∂_i g_lj + ∂_j g_li − ∂_l g_ij)
    first = dg.transpose(-3, -2)
    lowered = 0.5 * (first + first.transpose(-2, -1) - dg)
    return (small_inverse(g)[..., :, :, None, None] * lowered[..., None, :, :, :]).sum(-3)


@RULES.register("exact")
class Exact(ChristoffelRule):
    """From ``metric.value_and_derivative``: analytic for networks, forward-mode for metrics that give only g."""

    exact = True

    def __call__(self, metric: Metric, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """Γ at ``c``; differentiable to any order."""
        fused = value_and_christoffel(metric, c, wavelength)
        if fused is not None:
            return fused[1]
        return symbols(*metric.value_and_derivative(c, wavelength), metric.dim)

    def acceleration(self, metric: Metric, c: Tensor, v: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """−Γ(v, v) without forming Γ: g c̈ = ½ ∂g(v, v) − (v·∂)g v."""
        if metric.dim == 1:
            return -self(metric, c, wavelength) * v * v
        g, dg = metric.value_and_derivative(c, wavelength)
        along = (dg * v[..., :, None, None] * v[..., None, None, :]).sum((-3, -1))
        across = (dg * v[..., None, :, None] * v[..., None, None, :]).sum((-2, -1))
        return (small_inverse(g) * (0.5 * across - along)[..., None, :]).sum(-1)

    def linearised(
        self, metric: Metric, c: Tensor, v: Tensor, wavelength: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """From ∂²g: with p = g c̈ = ½ ∂g(v, v) − (v·∂)g v, g ∂c̈/∂v = ∂p/∂v and g ∂_m c̈ = ∂_m p − (∂_m g) c̈."""
        g, dg, d2g = metric.two_derivatives(c, wavelength)
        inverse = small_inverse(g)
        w = (dg * v[..., None, None, :]).sum(-1)  # w[k, l] = ∂_k g_lj vʲ
        along = (w * v[..., :, None]).sum(-2)
        across = (w * v[..., None, :]).sum(-1)
        acceleration = (inverse * (0.5 * across - along)[..., None, :]).sum(-1)
        by_v = w - w.mT - (dg * v[..., :, None, None]).sum(-3)
        q = (d2g * v[..., None, None, None, :]).sum(-1)  # q[m, k, l] = ∂_m ∂_k g_lj vʲ
        by_c = 0.5 * (q * v[..., None, None, :]).sum(-1) - (q * v[..., None, :, None]).sum(-2)
        by_c = by_c - (dg * acceleration[..., None, None, :]).sum(-1)
        return acceleration, matmul(inverse, by_c.mT), matmul(inverse, by_v)


def value_and_christoffel(metric: Metric, c: Tensor, wavelength: Tensor | None) -> tuple[Tensor, Tensor] | None:
    """g and Γ [...] by the kernel that gives both (D = 1); None where plain torch has to do it.

    Args:
        metric: asked for what the kernels need.
        c: [...], or any other shape that broadcasts against the wavelength.
        wavelength: [...], or None.
    """
    network = on_kernels("metric_christoffel", metric, wavelength, c)
    if network is None or wavelength is None:
        return None
    g, _, gamma = metric_christoffel(*network.flat(c, wavelength), *network.weights.tensors, **network.settings)  # type: ignore[arg-type]
    return network.back(g), network.back(gamma)


def matmul(left: Tensor, right: Tensor) -> Tensor:
    """Product of small matrices as a sum, which autocast leaves alone."""
    return (left.unsqueeze(-1) * right.unsqueeze(-3)).sum(-2)


@RULES.register("finite_difference")
class FiniteDifference(ChristoffelRule):
    """Central differences of g on the stencil [c − ε, c, c + ε], all points of all axes in one evaluation.

    ε is a fraction of the concentration range; near an end of the range the stencil is shifted inside and the
    derivative of its parabola taken at c, so the error stays O(ε²) and the metric is not asked outside.

    Args:
        epsilon: step as a fraction of the range; None for 1e-5 in float64 and 5e-3 in float32 (about the cube root of
            the rounding error, where truncation and rounding balance).
        low, high: the concentration range, the same for every axis.

    Raises:
        InputError: an empty range, or a step that is not in (0, 0.5).
    """

    def __init__(self, epsilon: float | None = None, low: float = 0.0, high: float = 1.0) -> None:
        if not low < high:
            raise InputError(f"The concentration range must satisfy low < high, got [{low:g}, {high:g}].")
        if epsilon is not None and not 0.0 < epsilon < 0.5:
            raise InputError(f"epsilon is a fraction of the range, in (0, 0.5); got {epsilon:g}.")
        self.epsilon, self.low, self.high = epsilon, float(low), float(high)

    def __call__(self, metric: Metric, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """Γ at ``c``, with an error of O(ε²)."""
        fraction = self.epsilon if self.epsilon is not None else (1e-5 if c.dtype == torch.float64 else 5e-3)
        step = fraction * (self.high - self.low)
        inside = (c >= self.low) & (c <= self.high)
        middle = torch.where(inside, c.clamp(self.low + step, self.high - step), c)
        wl = None if wavelength is None else wavelength.unsqueeze(-1)
        if metric.dim == 1:
            offsets = torch.arange(-1, 2, dtype=c.dtype, device=c.device) * step
            points = middle.unsqueeze(-1) + offsets
            fused = value_and_christoffel(metric, points, wl)
            below, centre, above = (metric(points, wl) if fused is None else fused[0]).unbind(-1)
            return christoffel_fd(below, centre, above, (c - middle).expand(centre.shape), step)
        # Per axis k: c itself moved to the middle of that axis' stencil, then ± a step along it.
        axes = torch.eye(metric.dim, dtype=c.dtype, device=c.device)
        centred = c.unsqueeze(-2) + (middle - c).unsqueeze(-1) * axes
        points = torch.cat([c.unsqueeze(-2), centred - step * axes, centred, centred + step * axes], dim=-2)
        value = metric(points, wl)
        below, centre, above = value[..., 1:, :, :].unflatten(-3, (3, metric.dim)).unbind(-4)
        _, dg = parabola(below, centre, above, (c - middle)[..., None, None], step)
        return symbols(value[..., 0, :, :], dg, metric.dim)


@dataclass(frozen=True)
class InterpolationError:
    """How far a table of Γ is from the exact symbols: largest and root-mean-square difference, and the rms of Γ."""

    maximum: float
    rms: float
    scale: float


@RULES.register("grid")
class Grid(ChristoffelRule):
    """A table of exact Γ over (c, λ), read by bilinear interpolation (D = 1).

    Outside the table the result is NaN, which solvers report as a status: a table is never extrapolated. Named instead
    of made, by a solver, it covers the concentrations and wavelengths that the solver is given, and half as much again
    on either side.

    Args:
        metric: the scalar metric to tabulate; of a stack of models each has its table.
        low, high: range of c.
        wavelength_low, wavelength_high: range of the (normalised) wavelength; None for metrics that use none.
        shape: points along c and along λ.
        dtype: of the table.
        graph: keep the table's graph, so that Γ has gradients by the metric's parameters: for training a metric, not
            for prediction with a fixed one.

    Attributes:
        table: [..., C, L], with the leading axis M of a stack.

    Raises:
        InputError: a metric with D ≥ 2, an empty range, or fewer than two points along an axis.
    """

    def __init__(
        self,
        metric: Metric,
        low: float = 0.0,
        high: float = 1.0,
        wavelength_low: float | None = 0.0,
        wavelength_high: float | None = 1.0,
        shape: tuple[int, int] = (2000, 601),
        dtype: torch.dtype = torch.float64,
        graph: bool = False,
    ) -> None:
        if metric.dim != 1:
            raise InputError(f"A Christoffel table exists for one analyte only; this metric has {metric.dim}.")
        if not low < high or min(shape) < 2:
            raise InputError(f"A table needs low < high and at least 2 points an axis; got [{low}, {high}], {shape}.")
        device = next((p.device for p in metric.parameters()), None)
        self.metric = metric
        self._ends = (float(low), float(high)), (0.0, 1.0)  # numbers: to read them off a device would be to wait for it
        self.c = torch.linspace(low, high, shape[0], dtype=dtype, device=device)
        self.wavelengths = None
        if wavelength_low is not None and wavelength_high is not None:
            if not wavelength_low < wavelength_high:
                raise InputError(f"The wavelength range must not be empty, got [{wavelength_low}, {wavelength_high}].")
            self.wavelengths = torch.linspace(wavelength_low, wavelength_high, shape[1], dtype=dtype, device=device)
            self._ends = self._ends[0], (float(wavelength_low), float(wavelength_high))
        with torch.set_grad_enabled(graph and torch.is_grad_enabled()):
            self.table = torch.cat([self._exact(part) for part in self.c.split(128)], -2)

    @classmethod
    def named(cls, metric: Metric, options: dict[str, Any], *reached: Tensor) -> ChristoffelRule:
        """See `ChristoffelRule.named`.

        Args:
            metric: to tabulate.
            options: arguments of the class.
            reached: concentrations, and last the wavelength (empty where none is used); none at all for the defaults.
        """
        if not reached:
            return cls(metric, **options)
        *points, wavelength = reached
        if any(torch.is_grad_enabled() and p.requires_grad for p in metric.parameters()):
            options = {"graph": True, **options}
        low, high = _range(points)
        options = {"low": low, "high": high, "dtype": points[0].dtype, "shape": (257, 129), **options}
        ends = _range([wavelength]) if wavelength.numel() else (None, None)
        return cls(metric, **{"wavelength_low": ends[0], "wavelength_high": ends[1], **options})

    def _exact(self, c: Tensor) -> Tensor:
        """Γ at the nodes of some rows [..., c, L]; a column of its own where no wavelength is used."""
        models = () if self.metric.models is None else (self.metric.models,)
        columns = 1 if self.wavelengths is None else len(self.wavelengths)
        points = c[:, None].expand(*models, len(c), columns)
        return Exact()(self.metric, points, None if self.wavelengths is None else self.wavelengths.expand(points.shape))

    def __call__(self, metric: Metric, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """Γ read from the table; ``metric`` must be the one tabulated."""
        if metric is not self.metric:
            raise InputError("This table of Christoffel symbols belongs to another metric; build one for this metric.")
        table = self.table.to(c.dtype)
        if self.wavelengths is None:
            wavelength = torch.zeros((), dtype=c.dtype, device=c.device)
            table = table.expand(*table.shape[:-1], 2)
        elif wavelength is None:
            raise InputError("This table depends on the wavelength; pass wavelength=, normalised to order one.")
        shape = torch.broadcast_shapes(c.shape, wavelength.shape)
        models = metric.models or 1
        at, line = (x.to(c.dtype).expand(shape).reshape(models, -1) for x in (c, wavelength))
        table = table.expand(models, *table.shape[-2:])
        return christoffel_grid(table, at, line, *self._ends).reshape(shape)

    def interpolation_error(self) -> InterpolationError:
        """Compare with the exact symbols at the centre of every cell, where bilinear interpolation errs most."""
        c = 0.5 * (self.c[1:] + self.c[:-1])
        wl = None if self.wavelengths is None else 0.5 * (self.wavelengths[1:] + self.wavelengths[:-1])
        worst, squares, scale, count = 0.0, 0.0, 0.0, 0
        with torch.no_grad():
            for part in c.split(128):
                points = part[:, None].expand(*self.table.shape[:-2], len(part), 1 if wl is None else len(wl))
                exact = Exact()(self.metric, points, None if wl is None else wl.expand(points.shape))
                error = self(self.metric, points, wl) - exact
                worst = max(worst, error.abs().max().item())
                squares, scale = squares + error.square().sum().item(), scale + exact.square().sum().item()
                count += error.numel()
        return InterpolationError(worst, (squares / count) ** 0.5, (scale / count) ** 0.5)


def _range(points: list[Tensor]) -> tuple[float, float]:
    """From the least to the largest value, and half as far again on either side.

    Raises:
        InputError: there is no finite value, or none can be looked at.
    """
    try:
        values = torch.cat([p.detach().reshape(-1).double() for p in points]).cpu().numpy()  # waits for a device once
        values = values[np.isfinite(values)]
        low, high = float(values.min()), float(values.max())
    except (RuntimeError, ValueError):
        raise InputError(
            "A table of Christoffel symbols is made for the values asked for, and here none can be looked at; make a "
            "geonode.christoffel.Grid before and pass it as christoffel=."
        ) from None
    margin = 0.5 * (high - low) or 0.5 * (abs(high) or 1.0)
    return low - margin, high + margin


def make_rule(method: str | ChristoffelRule, metric: Metric, *reached: Tensor, **options: Any) -> ChristoffelRule:
    """The rule named ``method``, or ``method`` itself if it is one already.

    Args:
        method: a name in RULES, or a rule.
        metric: that it will be used for.
        reached: points that it will be asked about, and last the wavelength (empty for none); see `Grid`.
        options: arguments of the rule.

    Raises:
        InputError: an unknown name, or options that the rule does not have.
    """
    if not isinstance(method, str):
        return method
    rule = RULES[method]
    try:
        return rule.named(metric, options, *reached)
    except TypeError as error:
        raise InputError(f"Christoffel method {method!r}: {error}.") from None


def christoffel(
    metric: Metric,
    c: Tensor,
    wavelength: Tensor | None = None,
    method: str | ChristoffelRule = "exact",
    **options,
) -> Tensor:
    """Christoffel symbols of ``metric`` at ``c``.

    Args:
        metric: a ``Metric``.
        c: concentrations [...] (D = 1; [..., 1] also accepted beside a wavelength [...]) or [..., D].
        wavelength: [...], broadcast against ``c``; None for metrics that use none.
        method: "exact" (default), "finite_difference" (options epsilon, low, high), "grid" (options low, high,
            wavelength_low, wavelength_high, shape; builds the table anew: keep a ``Grid`` to use it twice), or a rule.

    Returns:
        D = 1: Γ [...], in 1/concentration. D ≥ 2: ``Γ[..., k, i, j]`` = Γᵏᵢⱼ.

    Raises:
        InputError: an unknown method or option, or a concentration without the D coordinates.
    """
    metric.check(c)
    unit, (c,) = drop_unit_axis(metric, wavelength, c)
    gamma = make_rule(method, metric, **options)(metric, c, wavelength)
    return gamma[..., None, None, None] if unit else gamma
