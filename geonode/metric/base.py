"""The metric contract: what Christoffel symbols, geodesics and flows may ask of a Riemannian metric.

Shapes. D = 1: ``c [...]`` and ``wavelength [...]`` broadcast against each other, ``g [...]``. D ≥ 2: ``c [..., D]``,
``wavelength [...]``, ``g [..., D, D]``. The wavelength is a parameter, never a coordinate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from geonode.errors import InputError
from geonode_kernels import MetricWeights


@dataclass(frozen=True)
class Chart:
    """A coordinate u(c) in which a D = 1 metric is smooth: the closed form integrates there.

    ``to(c)`` → u, ``back(u)`` → c, ``slope(c)`` → du/dc, and ``metric``, the same geometry in u: g = slope² g̃(u).
    """

    to: Callable[[Tensor], Tensor]
    back: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]
    metric: Metric


class Metric(nn.Module):
    """A Riemannian metric g_λ(c) on concentration space; subclasses implement ``forward`` and set ``dim``.

    ``value_and_derivative`` has a forward-mode default, so a new metric needs only its formula; classes on hot or
    exported paths override it with the analytic derivative.

    Args:
        dim: D, the number of analytes.

    Raises:
        InputError: ``dim`` below one.
    """

    chart: Chart | None = None  # D = 1 metrics may name a coordinate in which they are smooth
    models: int | None = None  # M of a stack whose inputs lead with the model axis; None: any batch shape

    def __init__(self, dim: int = 1) -> None:
        super().__init__()
        if dim < 1:
            raise InputError(f"dim must be at least 1, got {dim}; give the number of analytes.")
        self.dim = int(dim)

    def forward(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """The metric g at a point, in (unit of length / unit of c)²; each subclass gives its formula.

        Args:
            c: concentrations [...] (D = 1) or [..., D].
            wavelength: [...], broadcast against ``c`` without its axis D; None where the metric does not use it.

        Returns:
            g [...] (D = 1) or [..., D, D], symmetric positive definite.
        """
        raise NotImplementedError

    def value_and_derivative(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """g and its concentration derivative ``dg`` [...] (D = 1) or ``dg[..., k, i, j] = ∂_k g_ij``.

        Differentiable to any order; ``c`` and ``wavelength`` as for `forward`. The default carries one forward-mode
        tangent per coordinate.

        Raises:
            InputError: the last axis of ``c`` is not the D coordinates.
        """
        if self.dim == 1:
            return tangent_of(lambda x: self(x, wavelength), c, torch.ones_like(c))
        self.check(c)
        axes = torch.eye(self.dim, dtype=c.dtype, device=c.device)
        pairs = [tangent_of(lambda x: self(x, wavelength), c, axis.expand_as(c)) for axis in axes]
        return pairs[0][0], torch.stack([derivative for _, derivative in pairs], dim=-3)

    def two_derivatives(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """g, ``dg[..., k, i, j]`` and ``d2g[..., l, k, i, j] = ∂_l ∂_k g_ij`` (D = 1: all [...]), for Jacobi fields.

        ``c`` and ``wavelength`` as for `forward`. The default takes forward-mode tangents of ``value_and_derivative``;
        they cost far more than the formula, so metrics that are shot with often should give it.

        Raises:
            InputError: the last axis of ``c`` is not the D coordinates.
        """
        if self.dim == 1:
            tangents = [torch.ones_like(c)]
        else:
            self.check(c)
            tangents = [torch.zeros_like(c) + axis for axis in torch.eye(self.dim, dtype=c.dtype, device=c.device)]
        pairs = [tangent_of(lambda x: self.value_and_derivative(x, wavelength), c, tangent) for tangent in tangents]
        g, dg = pairs[0][0]
        parts = [part for _, (_, part) in pairs]
        return g, dg, parts[0] if self.dim == 1 else torch.stack(parts, dim=-4)

    def in_domain(self, c: Tensor) -> Tensor:
        """True where ``c`` is a point of the manifold: bool [...] (without the axis D). Default: every finite point."""
        finite = torch.isfinite(c)
        return finite if self.dim == 1 else finite.all(-1)

    def reference(self, like: Tensor) -> Tensor:
        """A harmless point of the manifold, shaped like ``like``: it stands in for inputs that cannot be solved."""
        return torch.zeros_like(like)

    def energy(self, c: Tensor, v: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """g(v, v) [...]: conserved along geodesics; its square root is the length of a path over t ∈ [0, 1].

        ``c`` and ``wavelength`` as for `forward`; the velocity ``v`` = dc/dt is shaped like ``c``.
        """
        g = self(c, wavelength)
        return g * v * v if self.dim == 1 else (v.unsqueeze(-1) * g * v.unsqueeze(-2)).sum((-2, -1))

    def kernel_weights(self) -> MetricWeights | str:
        """What the fused kernels need of this metric to stand in for it, or in words why they cannot."""
        return f"{type(self).__name__} is not a network that the kernels know"

    def check(self, c: Tensor) -> None:
        """Raise InputError unless the last axis of ``c`` is the D coordinates (D ≥ 2)."""
        if self.dim > 1 and (c.ndim == 0 or c.shape[-1] != self.dim):
            raise InputError(
                f"{type(self).__name__} has {self.dim} coordinates but the concentration has shape {tuple(c.shape)}; "
                f"give an array whose last axis is {self.dim}."
            )


def overridden(instance: object, owner: type, *names: str) -> str | None:
    """Which of ``owner``'s methods the class of ``instance`` replaces, in words; None for none.

    Kernels hold ``owner``'s formulas, so that they must not stand in for a subclass that computes something else.
    """
    other = [name for name in names if getattr(type(instance), name) is not getattr(owner, name)]
    return f"{type(instance).__name__} computes {' and '.join(other)} in its own way" if other else None


def tangent_of(function: Callable[[Tensor], Any], c: Tensor, tangent: Tensor) -> tuple[Any, Any]:
    """``function(c)`` and its derivative in the direction ``tangent``, by forward mode."""
    value, derivative = torch.func.jvp(function, (c,), (tangent,))[:2]
    return value, derivative


def drop_unit_axis(metric: Metric, wavelength: Tensor | None, *points: Tensor) -> tuple[bool, tuple[Tensor, ...]]:
    """Let D = 1 points [..., 1] stand for [...], as they do for D ≥ 2, where the wavelength [...] says so.

    An axis is a coordinate axis only if it has size one and the wavelength has exactly the shape before it; otherwise
    ``[B, 1]`` against ``[W]`` is ordinary broadcasting. Returns whether the axis was dropped, and the points.
    """
    if metric.dim > 1 or wavelength is None:
        return False, points
    unit = all(p.ndim == wavelength.ndim + 1 and p.shape == (*wavelength.shape, 1) for p in points)
    return unit, tuple(p.squeeze(-1) for p in points) if unit else points


def small_inverse(matrix: Tensor) -> Tensor:
    """Inverse of [..., D, D] by cofactors up to D = 3: elementwise, so it never raises, autocasts or synchronises.

    A singular matrix gives non-finite entries. Larger D goes through ``torch.linalg.inv_ex``.
    """
    size = matrix.shape[-1]
    if size == 1:
        return 1.0 / matrix
    if size == 2:
        (a, b), (c, d) = (row.unbind(-1) for row in matrix.unbind(-2))
        adjugate = torch.stack([torch.stack([d, -b], -1), torch.stack([-c, a], -1)], -2)
        return adjugate / (a * d - b * c)[..., None, None]
    if size == 3:
        r0, r1, r2 = matrix.unbind(-2)
        columns = [torch.linalg.cross(r1, r2), torch.linalg.cross(r2, r0), torch.linalg.cross(r0, r1)]
        return torch.stack(columns, -1) / (r0 * columns[0]).sum(-1)[..., None, None]
    return torch.linalg.inv_ex(matrix)[0]
