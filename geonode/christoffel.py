"""Christoffel symbols Γᵏᵢⱼ = ½ gᵏˡ(∂ᵢ gₗⱼ + ∂ⱼ gₗᵢ − ∂ₗ gᵢⱼ), three ways; for D = 1 that is Γ = ½ g⁻¹ ∂g/∂c.

A rule is an object ``rule(metric, c, wavelength) → Γ``. To add one, subclass ``ChristoffelRule`` and put the class into
``RULES``; ``christoffel`` and every solver then accept its name, or an instance of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from geonode.errors import InputError
from geonode.metric.base import Metric, drop_unit_axis, small_inverse


class ChristoffelRule:
    """Base of the rules. Shapes: D = 1 ``c [...]`` → ``Γ [...]``; D ≥ 2 ``c [..., D]`` → ``Γ[..., k, i, j]``.

    Attributes:
        refusal: why the kernels that integrate a whole path cannot stand in for this rule; None where they hold it.
    """

    refusal: str | None = "the kernels that integrate paths hold the exact symbols, and another rule was asked for"

    def __call__(self, metric: Metric, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """Γ at ``c``."""
        raise NotImplementedError

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


class Exact(ChristoffelRule):
    """From ``metric.value_and_derivative``: analytic for networks, forward-mode for metrics that give only g."""

    refusal = None

    def __call__(self, metric: Metric, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """Γ at ``c``; differentiable to any order."""
        return symbols(*metric.value_and_derivative(c, wavelength), metric.dim)

    def acceleration(self, metric: Metric, c: Tensor, v: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """−Γ(v, v) without forming Γ: g c̈ = ½ ∂g(v, v) − (v·∂)g v."""
        g, dg = metric.value_and_derivative(c, wavelength)
        if metric.dim == 1:
            return -0.5 * (dg / g) * v * v
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


def matmul(left: Tensor, right: Tensor) -> Tensor:
    """Product of small matrices as a sum, which autocast leaves alone."""
    return (left.unsqueeze(-1) * right.unsqueeze(-3)).sum(-2)


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
            below, centre, above = metric(middle.unsqueeze(-1) + offsets, wl).unbind(-1)
            return symbols(*self._parabola(below, centre, above, c - middle, step), 1)
        # Per axis k: c itself moved to the middle of that axis' stencil, then ± a step along it.
        axes = torch.eye(metric.dim, dtype=c.dtype, device=c.device)
        centred = c.unsqueeze(-2) + (middle - c).unsqueeze(-1) * axes
        points = torch.cat([c.unsqueeze(-2), centred - step * axes, centred, centred + step * axes], dim=-2)
        value = metric(points, wl)
        below, centre, above = value[..., 1:, :, :].unflatten(-3, (3, metric.dim)).unbind(-4)
        _, dg = self._parabola(below, centre, above, (c - middle)[..., None, None], step)
        return symbols(value[..., 0, :, :], dg, metric.dim)

    @staticmethod
    def _parabola(below: Tensor, centre: Tensor, above: Tensor, shift: Tensor, step: float) -> tuple[Tensor, Tensor]:
        slope, curvature = (above - below) / (2.0 * step), (above - 2.0 * centre + below) / step**2
        return centre + shift * (slope + 0.5 * shift * curvature), slope + shift * curvature


@dataclass(frozen=True)
class InterpolationError:
    """How far a table of Γ is from the exact symbols: largest and root-mean-square difference, and the rms of Γ."""

    maximum: float
    rms: float
    scale: float


class Grid(ChristoffelRule):
    """A table of exact Γ over (c, λ), read by bilinear interpolation (D = 1).

    Outside the table the result is NaN, which solvers report as a status: a table is never extrapolated. The table
    holds no graph: it is for prediction with a fixed metric, not for training one.

    Args:
        metric: the scalar metric to tabulate.
        low, high: range of c.
        wavelength_low, wavelength_high: range of the (normalised) wavelength; None for metrics that use none.
        shape: points along c and along λ.
        dtype: of the table.

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
    ) -> None:
        if metric.dim != 1:
            raise InputError(f"A Christoffel table exists for one analyte only; this metric has {metric.dim}.")
        if not low < high or min(shape) < 2:
            raise InputError(f"A table needs low < high and at least 2 points an axis; got [{low}, {high}], {shape}.")
        device = next((p.device for p in metric.parameters()), None)
        self.metric = metric
        self.c = torch.linspace(low, high, shape[0], dtype=dtype, device=device)
        self.wavelengths = None
        if wavelength_low is not None and wavelength_high is not None:
            if not wavelength_low < wavelength_high:
                raise InputError(f"The wavelength range must not be empty, got [{wavelength_low}, {wavelength_high}].")
            self.wavelengths = torch.linspace(wavelength_low, wavelength_high, shape[1], dtype=dtype, device=device)
        with torch.no_grad():
            rows = [Exact()(metric, part[:, None], self.wavelengths) for part in self.c.split(128)]
        self.table = torch.cat(rows)

    def __call__(self, metric: Metric, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """Γ read from the table; ``metric`` must be the one tabulated."""
        if metric is not self.metric:
            raise InputError("This table of Christoffel symbols belongs to another metric; build one for this metric.")
        row, x, inside = self._locate(c, self.c)
        table = self.table.to(c.dtype)
        if self.wavelengths is None:
            gamma = torch.lerp(table[row, 0], table[row + 1, 0], x)
            return torch.where(inside, gamma, torch.nan)
        if wavelength is None:
            raise InputError("This table depends on the wavelength; pass wavelength=, normalised to order one.")
        column, y, covered = self._locate(wavelength, self.wavelengths)
        shape = torch.broadcast_shapes(c.shape, wavelength.shape)
        row, x, column, y = row.expand(shape), x.expand(shape), column.expand(shape), y.to(c.dtype).expand(shape)
        low = torch.lerp(table[row, column], table[row, column + 1], y)
        high = torch.lerp(table[row + 1, column], table[row + 1, column + 1], y)
        return torch.where(inside & covered, torch.lerp(low, high, x), torch.nan)

    def interpolation_error(self) -> InterpolationError:
        """Compare with the exact symbols at the centre of every cell, where bilinear interpolation errs most."""
        c = 0.5 * (self.c[1:] + self.c[:-1])
        wl = None if self.wavelengths is None else 0.5 * (self.wavelengths[1:] + self.wavelengths[:-1])
        worst, squares, scale, count = 0.0, 0.0, 0.0, 0
        with torch.no_grad():
            for part in c.split(128):
                exact = Exact()(self.metric, part[:, None], wl)
                error = self(self.metric, part[:, None].expand_as(exact), wl) - exact
                worst = max(worst, error.abs().max().item())
                squares, scale = squares + error.square().sum().item(), scale + exact.square().sum().item()
                count += error.numel()
        return InterpolationError(worst, (squares / count) ** 0.5, (scale / count) ** 0.5)

    @staticmethod
    def _locate(x: Tensor, grid: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Cell index, fraction within it, and whether ``x`` is on the grid at all."""
        cells = len(grid) - 1
        place = (x - grid[0].to(x.dtype)) * (cells / (grid[-1] - grid[0])).to(x.dtype)
        inside = (place >= -1e-6) & (place <= cells + 1e-6)
        place = torch.where(inside, place, torch.zeros_like(place))
        cell = place.detach().floor().clamp(0, cells - 1)
        return cell.long(), place - cell, inside


RULES: dict[str, type[ChristoffelRule]] = {"exact": Exact, "finite_difference": FiniteDifference, "grid": Grid}


def make_rule(method: str | ChristoffelRule, metric: Metric, **options) -> ChristoffelRule:
    """The rule named ``method``, or ``method`` itself if it is one already.

    Raises:
        InputError: an unknown name, or options that the rule does not have.
    """
    if isinstance(method, ChristoffelRule):
        return method
    if method not in RULES:
        raise InputError(f"Unknown Christoffel method {method!r}; choose one of {', '.join(RULES)}.")
    rule = RULES[method]
    try:
        return rule(metric, **options) if issubclass(rule, Grid) else rule(**options)
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
