"""Closed-form warps of the concentration axis and the metric that mixes them.

A warp φ is a monotone function of the scaled concentration x = (c − c₀)/(c_max − c₀). The family is the dictionary of
the geodesic Gaussian process (docs/design.md §6): x; x^½; x²; x/(x+κ); log(1+x/κ). Below and above the calibrated
range the formulas go on as they are, with three changes that keep every warp finite, strictly increasing and
differentiable, so that a metric can be made of any mixture:

* x^½ → x (x² + δ⁴)^(−¼), δ = 0.01: odd, smooth, slope 1/δ at zero instead of infinity; relative change below 3e-5
  from x = 0.01 on.
* x² → x √(x²+δ²) + δ² asinh(x/δ), δ = 0.001: odd, smooth, slope 2δ at zero instead of zero; changes x² by < 1e-5.
* the κ warps are held at x = −κ/2 (half way to their pole), continuing with a slope of 1e-3 of their span.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from geonode.errors import InputError
from geonode.metric.base import METRICS, Chart, Metric

Kind = Literal["identity", "sqrt", "square", "saturation", "logarithm"]

SATURATION_KAPPAS = (0.03, 0.1, 0.3, 1.0, 3.0)
LOGARITHM_KAPPAS = (0.003, 0.01, 0.03, 0.1, 0.3)

_SQRT_DELTA4 = 0.01**4
_SQUARE_DELTA = 1e-3
_HELD_SLOPE = 1e-3  # of the warp's span over [0, 1]: flat in practice, yet invertible


def _sqrt(x: Tensor, order: int) -> Tensor:
    r = x * x + _SQRT_DELTA4
    if order == 0:
        return x * r**-0.25
    if order == 1:
        return (0.5 * x * x + _SQRT_DELTA4) * r**-1.25
    return -x * (0.25 * x * x + 1.5 * _SQRT_DELTA4) * r**-2.25


def _square(x: Tensor, order: int) -> Tensor:
    r = torch.sqrt(x * x + _SQUARE_DELTA**2)
    if order == 0:
        return x * r + _SQUARE_DELTA**2 * torch.asinh(x / _SQUARE_DELTA)
    return 2.0 * r if order == 1 else 2.0 * x / r


def _saturation(x: Tensor, kappa: Tensor | float, order: int) -> Tensor:
    y = x + kappa
    if order == 0:
        return x / y
    return kappa / (y * y) if order == 1 else -2.0 * kappa / (y * y * y)


def _logarithm(x: Tensor, kappa: Tensor | float, order: int) -> Tensor:
    if order == 0:
        return torch.log1p(x / kappa)
    y = x + kappa
    return 1.0 / y if order == 1 else -1.0 / (y * y)


def _held(formula, x: Tensor, kappa: Tensor, order: int) -> Tensor:
    """A κ warp held below −κ/2. The formula is evaluated at the clamped point: no pole is ever met, nor its NaN."""
    held = -0.5 * kappa
    inside = torch.where(x >= held, x, held)
    one = torch.ones((), dtype=x.dtype, device=x.device)
    slope = _HELD_SLOPE * formula(one, kappa, 0)
    if order == 0:
        return formula(inside, kappa, 0) + slope * (x - inside)
    outside = slope if order == 1 else torch.zeros_like(slope)
    return torch.where(x >= held, formula(inside, kappa, order), outside)


def _column(numbers: tuple[float, ...], like: Tensor) -> Tensor:
    """Constants [len, 1, …, 1] to stack in front of ``like``; filled on the device, so CUDA graphs can capture it."""
    if like.device.type == "cpu":  # one call in place of six: small calibrations spend a twentieth of their time here
        return torch.tensor(numbers, dtype=like.dtype).reshape(-1, *([1] * like.ndim))
    column = torch.cat([torch.full((1,), number, dtype=like.dtype, device=like.device) for number in numbers])
    return column.reshape(-1, *([1] * like.ndim))


@dataclass(frozen=True)
class Warp:
    """One warp φ of the scaled concentration; ``kappa`` is None for the powers.

    ``value``, ``derivative`` and ``second_derivative`` map a tensor of any shape and float dtype to the same shape and
    are differentiable to any order.
    """

    kind: Kind
    kappa: float | None = None

    @property
    def name(self) -> str:
        """A short unique label, such as ``logarithm(0.03)``."""
        return self.kind if self.kappa is None else f"{self.kind}({self.kappa:g})"

    def value(self, x: Tensor) -> Tensor:
        """φ(x), shaped like ``x``, the scaled concentration."""
        return self._evaluate(x, 0)

    def derivative(self, x: Tensor) -> Tensor:
        """φ′(x) > 0, shaped like ``x``."""
        return self._evaluate(x, 1)

    def second_derivative(self, x: Tensor) -> Tensor:
        """φ″(x), shaped like ``x``."""
        return self._evaluate(x, 2)

    def _evaluate(self, x: Tensor, order: int) -> Tensor:
        if self.kind == "identity":
            return (x.clone(), torch.ones_like(x), torch.zeros_like(x))[order]
        if self.kind == "sqrt":
            return _sqrt(x, order)
        if self.kind == "square":
            return _square(x, order)
        kappa = _column((self.kappa or 1.0,), x).reshape(())
        return _held(_saturation if self.kind == "saturation" else _logarithm, x, kappa, order)


WARPS: tuple[Warp, ...] = (
    Warp("identity"),
    Warp("sqrt"),
    Warp("square"),
    *(Warp("saturation", kappa) for kappa in SATURATION_KAPPAS),
    *(Warp("logarithm", kappa) for kappa in LOGARITHM_KAPPAS),
)


def warp_values(x: Tensor, order: int = 0) -> Tensor:
    """All warps of WARPS, or their first or second derivative: ``x [...]`` → ``[13, ...]``, in the order of WARPS."""
    saturation, logarithm = _column(SATURATION_KAPPAS, x), _column(LOGARITHM_KAPPAS, x)
    powers = torch.stack([warp._evaluate(x, order) for warp in WARPS[:3]])
    return torch.cat([powers, _held(_saturation, x, saturation, order), _held(_logarithm, x, logarithm, order)])


def scaled_warps(u: Tensor, u_min: Tensor | float, u_max: Tensor | float) -> Tensor:
    """Every warp scaled to [−1, 1] on the calibrated range: ``u [...]`` → ``[13, ...]``, in the order of WARPS.

    ``u`` is the scaled concentration (c − c₀)/(c_max − c₀); ``u_min`` and ``u_max`` are the calibrated range in the
    same scale (numbers, or tensors that broadcast against ``u``). Outside the range the values go beyond ±1.
    """
    return scaled_between(u, *warp_ends(u, u_min, u_max))


def scaled_between(u: Tensor, low: Tensor, span: Tensor) -> Tensor:
    """The same with the ends of :func:`warp_ends`, for who asks of one range many times."""
    return 2.0 * (warp_values(u) - low) / span - 1.0


def warp_ends(x: Tensor, x_min: Tensor | float, x_max: Tensor | float) -> tuple[Tensor, Tensor]:
    """φ(x_min) and φ(x_max) − φ(x_min), shaped to broadcast against ``warp_values(x)``."""
    ends = [
        end.to(x) if isinstance(end, Tensor) else torch.full((), end, dtype=x.dtype, device=x.device)
        for end in (x_min, x_max)
    ]
    both = torch.stack(torch.broadcast_tensors(*ends))
    low, high = warp_values(both.reshape(2, *[1] * (x.ndim - both.ndim + 1), *both.shape[1:])).unbind(1)
    return low, high - low


# Scaled concentrations for which a coordinate can be mapped back: eight calibrated ranges to either side of c₀.
_REACH = 8.0
_INVERSE_CELLS = 256
_NEWTON_STEPS = 8


@METRICS.register("warp")
class WarpMetric(Metric):
    """√g(c) = Σ_k w_k dφ̂_k/dc: a mixture of the scaled warps, with closed-form arc length (D = 1).

    Each φ̂_k runs from −1 at ``c_min`` to 1 at ``c_max``, so the arc length over the calibrated range is exactly 2
    whatever the weights, and ``scaled(c) = arc_length(c) − 1``. Weights are a softmax of ``logits`` [13] or [M, 13];
    with a model axis, inputs carry a leading axis M as well and ``c0``, ``c_min``, ``c_max`` may be [M].

    Args:
        logits: unnormalised log weights over WARPS; None for equal weights. A trainable parameter.
        c0, c_min, c_max: origin and ends of the calibrated range, user units. The defaults suit concentrations that
            are normalised to [0, 1].
        trainable: False registers the logits as a buffer.

    Raises:
        InputError: the range is empty or not finite, c₀ lies above c_min, or the number of weights is not 13.
    """

    logits: Tensor
    c0: Tensor
    c_min: Tensor
    c_max: Tensor

    def __init__(
        self,
        logits: Tensor | None = None,
        c0: Tensor | float = 0.0,
        c_min: Tensor | float | None = None,
        c_max: Tensor | float = 1.0,
        trainable: bool = True,
    ) -> None:
        super().__init__(dim=1)
        logits = torch.zeros(len(WARPS)) if logits is None else torch.as_tensor(logits)
        if logits.ndim not in (1, 2) or logits.shape[-1] != len(WARPS):
            raise InputError(f"logits must have shape [{len(WARPS)}] or [M, {len(WARPS)}], got {tuple(logits.shape)}.")
        logits = logits.detach().to(torch.float64).clone()
        self.models = logits.shape[0] if logits.ndim == 2 else None
        if trainable:
            self.logits = nn.Parameter(logits)
        else:
            self.register_buffer("logits", logits)
        c_min = c0 if c_min is None else c_min
        for name, value in (("c0", c0), ("c_min", c_min), ("c_max", c_max)):
            value = torch.as_tensor(value, dtype=torch.float64).detach().clone()
            if not torch.isfinite(value).all() or (value.ndim and value.shape != logits.shape[:-1]):
                raise InputError(f"{name} must be a finite number (or one per model), got {value.tolist()}.")
            self.register_buffer(name, value)
        if not bool(((self.c0 <= self.c_min) & (self.c_min < self.c_max)).all()):
            raise InputError(
                f"The calibrated range must satisfy c0 ≤ c_min < c_max, got c0 = {self.c0.tolist()}, "
                f"c_min = {self.c_min.tolist()}, c_max = {self.c_max.tolist()}."
            )

    @classmethod
    def from_weights(
        cls,
        weights: Tensor,
        c0: Tensor | float = 0.0,
        c_min: Tensor | float | None = None,
        c_max: Tensor | float = 1.0,
        trainable: bool = True,
    ) -> WarpMetric:
        """The metric whose weights over WARPS are ``weights`` [13] or [M, 13] (≥ 0, normalised here).

        ``c0``, ``c_min``, ``c_max`` and ``trainable`` are those of the constructor.

        Raises:
            InputError: a weight is negative or not finite, all of them are zero, or what the constructor refuses.
        """
        weights = torch.as_tensor(weights, dtype=torch.float64).detach()
        if not torch.isfinite(weights).all() or (weights < 0).any() or (weights.sum(-1) <= 0).any():
            raise InputError("Warp weights must be finite, not negative and not all zero; give one weight per warp.")
        # A weight of exactly zero would need a logit of −∞; 1e-30 is zero in float64 arithmetic and keeps a gradient.
        weights = (weights / weights.sum(-1, keepdim=True)).clamp_min(1e-30)
        return cls(weights.log(), c0=c0, c_min=c_min, c_max=c_max, trainable=trainable)

    @property
    def weights(self) -> Tensor:
        """Weights over WARPS on the simplex, [13] or [M, 13], float64."""
        return torch.softmax(self.logits.double(), dim=-1)

    @property
    def chart(self) -> Chart:
        """The warp coordinate, in which this metric is constant."""
        return Chart(self.scaled, self.from_scaled, self.scaled_derivative, _Unit())

    def in_domain(self, c: Tensor) -> Tensor:
        """True within eight calibrated ranges of c₀, where coordinates can be mapped back."""
        return self._normalise(c).abs() <= _REACH

    def reference(self, like: Tensor) -> Tensor:
        """The top of the calibrated range."""
        return torch.zeros_like(like) + self._per_model(self.c_max, like.ndim).to(like.dtype)

    def forward(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """g(c) [...] in 1/(user unit)²; the wavelength does not enter."""
        return self._finish(self._mixture(self._normalise(c), 1).square(), c, wavelength)

    def value_and_derivative(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """g and ∂g/∂c, both [...], from the closed forms."""
        x = self._normalise(c)
        speed, slope = self._mixture(x, 1), self._mixture(x, 2)
        return self._finish(speed.square(), c, wavelength), self._finish(2.0 * speed * slope, c, wavelength)

    def arc_length(self, c: Tensor) -> Tensor:
        """Signed length of [c_min, c]: ``c [...]`` → ``[...]``; 2 at c_max. Float64 inside, dtype of ``c`` out."""
        return (self._mixture(self._normalise(c), 0) + 1.0).to(_float_of(c))

    def inverse_arc_length(self, s: Tensor) -> Tensor:
        """The concentration at signed length ``s`` from c_min; the inverse of ``arc_length``, differentiable.

        NaN where no concentration within eight calibrated ranges of c₀ has that length (saturating warps end).
        """
        return self._inverse(s.double() - 1.0).to(_float_of(s))

    def scaled(self, c: Tensor) -> Tensor:
        """The warp coordinate u of ``c`` (user units): −1 at c_min, 1 at c_max, beyond ±1 outside."""
        return self._mixture(self._normalise(c), 0).to(_float_of(c))

    def scaled_derivative(self, c: Tensor) -> Tensor:
        """du/dc = √g(c), in 1/(user unit): converts velocities between the coordinates."""
        return self._mixture(self._normalise(c), 1).to(_float_of(c))

    def from_scaled(self, u: Tensor) -> Tensor:
        """The concentration (user units) whose warp coordinate is ``u``; see ``inverse_arc_length``."""
        return self._inverse(u.double()).to(_float_of(u))

    def _per_model(self, value: Tensor, ndim: int) -> Tensor:
        """A per-model value [M] shaped to broadcast against inputs [M, ...] of ``ndim`` axes."""
        return value if value.ndim == 0 else value.reshape(-1, *([1] * (ndim - 1)))

    def _normalise(self, c: Tensor) -> Tensor:
        if self.models is not None and (c.ndim == 0 or c.shape[0] not in (1, self.models)):
            raise InputError(f"This metric holds {self.models} models; give concentrations [M, ...], not {c.shape}.")
        c0, c_max = self._per_model(self.c0, c.ndim), self._per_model(self.c_max, c.ndim)
        return (c.double() - c0) / (c_max - c0)

    def _mixture(self, x: Tensor, order: int) -> Tensor:
        """Σ_k w_k φ̂_k(x) (order 0), or its first or second derivative by concentration in user units."""
        c0, c_min, c_max = (self._per_model(v, x.ndim) for v in (self.c0, self.c_min, self.c_max))
        scale = 1.0 / (c_max - c0)
        low, span = warp_ends(x, (c_min - c0) * scale, torch.ones_like(c_min))
        weights = self.weights
        weights = weights.reshape(-1, *([1] * x.ndim)) if weights.ndim == 1 else self._columns(weights, x.ndim)
        if order == 0:
            return (weights * (2.0 * (warp_values(x) - low) / span - 1.0)).sum(0)
        return (weights * (2.0 * scale**order) / span * warp_values(x, order)).sum(0)

    def _columns(self, weights: Tensor, ndim: int) -> Tensor:
        return weights.mT.reshape(len(WARPS), -1, *([1] * (ndim - 1)))

    def _finish(self, value: Tensor, c: Tensor, wavelength: Tensor | None) -> Tensor:
        if wavelength is not None:
            value = value.expand(torch.broadcast_shapes(c.shape, wavelength.shape))
        return value.to(_float_of(c))

    def _inverse(self, u: Tensor) -> Tensor:
        """Solve mixture(x) = u: bracket from a graded table, safeguarded Newton, two attached steps for derivatives.

        The root is found without a graph; the two last Newton steps carry it, which is exact to second order in every
        input (the first alone would lose the second derivative).
        """
        x, reachable = self._root(u.detach())
        c0, c_max = self._per_model(self.c0, u.ndim), self._per_model(self.c_max, u.ndim)
        target = torch.where(reachable, u, self._mixture(x, 0).detach())
        for _ in range(2):
            x = x - (self._mixture(x, 0) - target) / (self._mixture(x, 1) * (c_max - c0))
        return torch.where(reachable, c0 + (c_max - c0) * x, torch.nan)

    @torch.no_grad()
    def _root(self, u: Tensor) -> tuple[Tensor, Tensor]:
        # Graded so that neighbouring cells differ by about a tenth: Newton then needs a handful of steps at any κ.
        edge = 1e-5
        cells = torch.linspace(-1.0, 1.0, _INVERSE_CELLS + 1, dtype=u.dtype, device=u.device)
        grid = edge * torch.sinh(cells * math.asinh(_REACH / edge))
        if self.models is None:
            table, flat = self._mixture(grid, 0), u.reshape(-1)
        else:
            table, flat = self._mixture(grid.expand(self.models, -1), 0), u.reshape(u.shape[0], -1)
            flat = flat.expand(self.models, -1)
        cell = torch.searchsorted(table.contiguous(), flat.contiguous(), right=True).clamp(1, _INVERSE_CELLS)
        shape = u.shape if self.models is None else (self.models, *u.shape[1:])
        low, high = grid[cell - 1].reshape(shape), grid[cell].reshape(shape)
        ends = table[..., :1], table[..., -1:]
        reachable = ((flat >= ends[0]) & (flat <= ends[1])).reshape(shape)
        scale = self._per_model(self.c_max - self.c0, u.ndim)
        x = 0.5 * (low + high)
        for _ in range(_NEWTON_STEPS):
            excess = self._mixture(x, 0) - u
            low, high = torch.where(excess < 0, x, low), torch.where(excess < 0, high, x)
            newton = x - excess / (self._mixture(x, 1) * scale)
            x = torch.where((newton >= low) & (newton <= high), newton, 0.5 * (low + high))
        return x, reachable


class _Unit(Metric):
    """g = 1 in one dimension."""

    def forward(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        g = torch.ones_like(c)
        return g if wavelength is None else g.expand(torch.broadcast_shapes(c.shape, wavelength.shape))

    def value_and_derivative(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        g = self(c, wavelength)
        return g, torch.zeros_like(g)


def _float_of(x: Tensor) -> torch.dtype:
    return x.dtype if x.dtype.is_floating_point else torch.float64
