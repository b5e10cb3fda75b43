"""Metrics whose geodesics are known exactly: the oracles every solver is tested against.

Each class adds to the metric ``distance(a, b)``, ``log(a, b)`` (the initial velocity of the geodesic that reaches b at
t = 1) and ``exp(a, v)`` (its end). Points are [...] for D = 1 and [..., D] otherwise; distances are [...].
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from geonode.metric.base import METRICS, Chart, Metric


def _with_wavelength(value: Tensor, c: Tensor, wavelength: Tensor | None, dim: int) -> Tensor:
    """Broadcast a metric that ignores the wavelength to the batch shape it implies."""
    if wavelength is None:
        return value
    if dim == 1:
        return value.expand(torch.broadcast_shapes(value.shape, wavelength.shape))
    inner = value.shape[c.ndim - 1 :]
    return value.expand(*torch.broadcast_shapes(c.shape[:-1], wavelength.shape), *inner)


def _over_radius(r2: Tensor, function, series: tuple[float, float]) -> Tensor:
    """function(√r2)/√r2, by its series near zero: finite with finite derivatives at r = 0 (a double where)."""
    small = r2 < 1e-6
    r = torch.where(small, torch.ones_like(r2), r2).sqrt()
    return torch.where(small, 1.0 + r2 * (series[0] + series[1] * r2), function(r) / r)


@METRICS.register("euclidean")
class Euclidean(Metric):
    """g = I: geodesics are straight lines, every Christoffel symbol is zero."""

    def forward(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """Ones [...] or identities [..., D, D]."""
        self.check(c)
        if self.dim == 1:
            return _with_wavelength(torch.ones_like(c), c, wavelength, 1)
        eye = torch.eye(self.dim, dtype=c.dtype, device=c.device).expand(*c.shape[:-1], self.dim, self.dim)
        return _with_wavelength(eye, c, wavelength, self.dim)

    def value_and_derivative(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """g and zeros: nothing depends on ``c``."""
        g = self(c, wavelength)
        return g, torch.zeros_like(g) if self.dim == 1 else torch.stack([torch.zeros_like(g)] * self.dim, -3)

    def two_derivatives(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """g, zeros and zeros: nothing depends on ``c``."""
        g, dg = self.value_and_derivative(c, wavelength)
        return g, dg, torch.zeros_like(g) if self.dim == 1 else torch.stack([torch.zeros_like(dg)] * self.dim, -4)

    def distance(self, a: Tensor, b: Tensor) -> Tensor:
        """|b − a| [...]."""
        return (b - a).abs() if self.dim == 1 else torch.linalg.vector_norm(b - a, dim=-1)

    def log(self, a: Tensor, b: Tensor) -> Tensor:
        """b − a, shaped like the points."""
        return b - a

    def exp(self, a: Tensor, v: Tensor) -> Tensor:
        """a + v, shaped like the points."""
        return a + v


@METRICS.register("power_law")
class PowerLaw(Metric):
    """g = c^exponent on c > 0 (D = 1); c⁻² by default, whose geodesics are geometric interpolation.

    Arc length: s = ln c for exponent −2, else c^q/q with q = 1 + exponent/2. ``exponent`` is any number.
    """

    def __init__(self, exponent: float = -2.0) -> None:
        super().__init__(dim=1)
        self.exponent = float(exponent)

    def forward(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """c^exponent [...]."""
        return _with_wavelength(c**self.exponent, c, wavelength, 1)

    def value_and_derivative(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """g and its derivative exponent·g/c, both [...]."""
        g = c**self.exponent
        return _with_wavelength(g, c, wavelength, 1), _with_wavelength(self.exponent * g / c, c, wavelength, 1)

    def in_domain(self, c: Tensor) -> Tensor:
        """True where c > 0 and finite: bool [...]."""
        return torch.isfinite(c) & (c > 0)

    def reference(self, like: Tensor) -> Tensor:
        """The point c = 1, shaped like ``like``."""
        return torch.ones_like(like)

    @property
    def chart(self) -> Chart:
        """The arc length itself, in which the metric is one."""
        return Chart(self.arc_length, self._at_length, lambda c: c ** (0.5 * self.exponent), Euclidean(1))

    def arc_length(self, c: Tensor) -> Tensor:
        """An antiderivative s(c) of √g, shaped like ``c`` > 0."""
        q = 1.0 + 0.5 * self.exponent
        return c.log() if q == 0 else c**q / q

    def distance(self, a: Tensor, b: Tensor) -> Tensor:
        """|s(b) − s(a)| [...], s the arc length."""
        return (self.arc_length(b) - self.arc_length(a)).abs()

    def log(self, a: Tensor, b: Tensor) -> Tensor:
        """(s(b) − s(a)) / √g(a)."""
        return (self.arc_length(b) - self.arc_length(a)) * a ** (-0.5 * self.exponent)

    def exp(self, a: Tensor, v: Tensor) -> Tensor:
        """s⁻¹(s(a) + v √g(a)); NaN where the path leaves c > 0."""
        return self._at_length(self.arc_length(a) + v * a ** (0.5 * self.exponent))

    def _at_length(self, s: Tensor) -> Tensor:
        q = 1.0 + 0.5 * self.exponent
        return s.exp() if q == 0 else (q * s) ** (1.0 / q)


@METRICS.register("half_plane")
class PoincareHalfPlane(Metric):
    """g = I/y² on y > 0 (D = 2, coordinates x, y): constant curvature −1.

    Distance 2 asinh(|a − b| / 2√(y_a y_b)); log and exp through the Cayley map of the half-plane, moved so that a = i,
    to the unit disc (any text on hyperbolic geometry, e.g. Beardon, *The Geometry of Discrete Groups*, §7.2).
    """

    def __init__(self) -> None:
        super().__init__(dim=2)

    def forward(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """I/y² [..., 2, 2], y the second coordinate of ``c`` [..., 2]."""
        self.check(c)
        eye = torch.eye(2, dtype=c.dtype, device=c.device)
        return _with_wavelength(eye / c[..., 1, None, None] ** 2, c, wavelength, 2)

    def value_and_derivative(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """g and ∂g: only ∂_y = −2 I/y³ is not zero."""
        g = self(c)
        along_y = -2.0 * g / c[..., 1, None, None]
        dg = torch.stack([torch.zeros_like(g), along_y], dim=-3)
        return _with_wavelength(g, c, wavelength, 2), _with_wavelength(dg, c, wavelength, 2)

    def two_derivatives(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """g, ∂g, ∂²g: only ∂_y∂_y g = 6 I/y⁴ is not zero."""
        g, dg = self.value_and_derivative(c, wavelength)
        zero = torch.zeros_like(g)
        along_yy = 6.0 * g / c[..., 1, None, None] ** 2
        d2g = torch.stack([torch.stack([zero, zero], -3), torch.stack([zero, along_yy], -3)], -4)
        return g, dg, d2g

    def in_domain(self, c: Tensor) -> Tensor:
        """True where y > 0 and both coordinates are finite: bool [...]."""
        return torch.isfinite(c).all(-1) & (c[..., 1] > 0)

    def reference(self, like: Tensor) -> Tensor:
        """The point i = (0, 1)."""
        return torch.zeros_like(like) + torch.tensor([0.0, 1.0], dtype=like.dtype, device=like.device)

    def distance(self, a: Tensor, b: Tensor) -> Tensor:
        """Hyperbolic distance [...] of a and b [..., 2]: 2 asinh(|a − b| / 2√(y_a y_b))."""
        return 2.0 * torch.asinh(0.5 * torch.linalg.vector_norm(b - a, dim=-1) / (a[..., 1] * b[..., 1]).sqrt())

    def log(self, a: Tensor, b: Tensor) -> Tensor:
        """Initial velocity [..., 2] of the geodesic from a to b."""
        y = a[..., 1]
        p, q = (b[..., 0] - a[..., 0]) / y, b[..., 1] / y
        bottom = p * p + (q + 1.0) ** 2
        r2 = (p * p + (q - 1.0) ** 2) / bottom
        gain = 2.0 * _over_radius(r2, torch.atanh, (1.0 / 3.0, 1.0 / 5.0)) * y / bottom
        # p² + q² − 1 written so that it does not cancel at b = a
        return torch.stack([gain * 2.0 * p, gain * (p * p + (q - 1.0) * (q + 1.0))], dim=-1)

    def exp(self, a: Tensor, v: Tensor) -> Tensor:
        """End [..., 2] of the geodesic that leaves a with velocity v."""
        y = a[..., 1]
        zeta = v / y[..., None]
        gain = 0.5 * _over_radius(0.25 * zeta.square().sum(-1), torch.tanh, (-1.0 / 3.0, 2.0 / 15.0))
        # w = −i ζ tanh(d/2)/d in the disc; z = i (1 + w)/(1 − w)
        wr, wi = gain * zeta[..., 1], -gain * zeta[..., 0]
        bottom = (1.0 - wr) ** 2 + wi**2
        return torch.stack([a[..., 0] - y * 2.0 * wi / bottom, y * (1.0 - wr * wr - wi * wi) / bottom], dim=-1)


@METRICS.register("sphere")
class Sphere(Metric):
    """The unit sphere in (colatitude θ, longitude φ): g = diag(1, sin²θ) on 0 < θ < π (D = 2).

    Distances, log and exp are those of the sphere in ℝ³. The longitude of ``exp`` is continued from the start, so a
    geodesic that turns by less than π in longitude ends where the coordinates do.
    """

    def __init__(self) -> None:
        super().__init__(dim=2)

    def forward(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """diag(1, sin²θ) [..., 2, 2]."""
        self.check(c)
        sine = c[..., 0].sin()
        return _with_wavelength(torch.diag_embed(torch.stack([torch.ones_like(sine), sine**2], -1)), c, wavelength, 2)

    def value_and_derivative(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """g and ∂g: only ∂_θ g_φφ = sin 2θ is not zero."""
        slope = (2.0 * c[..., 0]).sin()
        zero = torch.zeros_like(slope)
        along = torch.diag_embed(torch.stack([zero, slope], -1))
        dg = torch.stack([along, torch.zeros_like(along)], dim=-3)
        return self(c, wavelength), _with_wavelength(dg, c, wavelength, 2)

    def two_derivatives(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """g, ∂g, ∂²g: only ∂_θ∂_θ g_φφ = 2 cos 2θ is not zero."""
        g, dg = self.value_and_derivative(c, wavelength)
        bend = 2.0 * (2.0 * c[..., 0]).cos()
        along = _with_wavelength(torch.diag_embed(torch.stack([torch.zeros_like(bend), bend], -1)), c, wavelength, 2)
        zero = torch.zeros_like(g)
        return g, dg, torch.stack([torch.stack([along, zero], -3), torch.stack([zero, zero], -3)], -4)

    def in_domain(self, c: Tensor) -> Tensor:
        """True where 0 < θ < π and both coordinates are finite: bool [...]."""
        return torch.isfinite(c).all(-1) & (c[..., 0] > 0) & (c[..., 0] < math.pi)

    def reference(self, like: Tensor) -> Tensor:
        """A point of the equator."""
        return torch.zeros_like(like) + torch.tensor([0.5 * math.pi, 0.0], dtype=like.dtype, device=like.device)

    def distance(self, a: Tensor, b: Tensor) -> Tensor:
        """Angle [...] between the points a and b [..., 2], by atan2: accurate for near and for opposite points."""
        na, nb = self._embed(a), self._embed(b)
        return torch.atan2(torch.linalg.vector_norm(torch.linalg.cross(na, nb), dim=-1), (na * nb).sum(-1))

    def log(self, a: Tensor, b: Tensor) -> Tensor:
        """Initial velocity (θ̇, φ̇) [..., 2] of the shorter great circle from a to b."""
        na, nb = self._embed(a), self._embed(b)
        e_theta, e_phi = self._frame(a)
        tangent = torch.stack([(nb * e_theta).sum(-1), (nb * e_phi).sum(-1)], dim=-1)  # sin ω times the direction
        s2 = tangent.square().sum(-1)
        cosine = (na * nb).sum(-1)
        near = (s2 < 1e-8) & (cosine > 0)
        sine = torch.where(near, torch.ones_like(s2), s2).sqrt()
        gain = torch.where(near, 1.0 + s2 / 6.0, torch.atan2(sine, cosine) / sine)
        return torch.stack([gain * tangent[..., 0], gain * tangent[..., 1] / a[..., 0].sin()], dim=-1)

    def exp(self, a: Tensor, v: Tensor) -> Tensor:
        """End (θ, φ) [..., 2] of the great circle that leaves a with velocity v."""
        e_theta, e_phi = self._frame(a)
        ambient = v[..., :1] * e_theta + (v[..., 1] * a[..., 0].sin())[..., None] * e_phi
        angle2 = ambient.square().sum(-1, keepdim=True)
        sine = _over_radius(angle2, torch.sin, (-1.0 / 6.0, 1.0 / 120.0))
        small = angle2 < 1e-6
        cosine = torch.where(small, 1.0 - angle2 * (0.5 - angle2 / 24.0), torch.where(small, 1.0, angle2).sqrt().cos())
        point = cosine * self._embed(a) + sine * ambient
        x, y, z = point.unbind(-1)
        theta = torch.atan2((x * x + y * y).sqrt(), z)
        turn = torch.atan2(y * a[..., 1].cos() - x * a[..., 1].sin(), x * a[..., 1].cos() + y * a[..., 1].sin())
        return torch.stack([theta, a[..., 1] + turn], dim=-1)

    @staticmethod
    def _embed(c: Tensor) -> Tensor:
        theta, phi = c.unbind(-1)
        return torch.stack([theta.sin() * phi.cos(), theta.sin() * phi.sin(), theta.cos()], dim=-1)

    @staticmethod
    def _frame(c: Tensor) -> tuple[Tensor, Tensor]:
        theta, phi = c.unbind(-1)
        e_theta = torch.stack([theta.cos() * phi.cos(), theta.cos() * phi.sin(), -theta.sin()], dim=-1)
        return e_theta, torch.stack([-phi.sin(), phi.cos(), torch.zeros_like(phi)], dim=-1)
