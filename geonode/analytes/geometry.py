"""What a two-dimensional metric looks like: curvature, and geodesics between every pair of points."""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.christoffel import christoffel
from geonode.errors import InputError
from geonode.geodesic import GeodesicSolution, shoot
from geonode.metric import Metric
from geonode.metric.base import tangent_of


def gauss_curvature(metric: Metric, x: Tensor) -> Tensor:
    """Gaussian curvature K [...] of a two-dimensional metric at ``x`` [..., 2], by forward-mode derivatives of Γ.

    K = R₁₂₁₂/det g with Rᵏ_{lij} = ∂ᵢΓᵏⱼₗ − ∂ⱼΓᵏᵢₗ + ΓᵏᵢₘΓᵐⱼₗ − ΓᵏⱼₘΓᵐᵢₗ (do Carmo 1992, ch. 4).

    Raises:
        InputError: a metric of another dimension.
    """
    if metric.dim != 2:
        raise InputError(f"Gaussian curvature belongs to two analytes, but this metric has {metric.dim}.")
    axes = torch.eye(2, dtype=x.dtype, device=x.device)
    pairs = [tangent_of(lambda c: christoffel(metric, c), x, axis.expand_as(x)) for axis in axes]
    gamma, (along_0, along_1) = pairs[0][0], (derivative for _, derivative in pairs)
    # Rᵏ₁₀₁ (l = 1, i = 0, j = 1), lowered with g₀ₖ
    quadratic = torch.einsum("...km,...m->...k", gamma[..., 0, :], gamma[..., :, 1, 1]) - torch.einsum(
        "...km,...m->...k", gamma[..., 1, :], gamma[..., :, 0, 1]
    )
    riemann = along_0[..., :, 1, 1] - along_1[..., :, 0, 1] + quadratic
    g = metric(x)
    return (g[..., 0, :] * riemann).sum(-1) / torch.linalg.det(g)


def all_pairs(metric: Metric, points: Tensor, **options: object) -> tuple[Tensor, GeodesicSolution]:
    """Geodesics between all n (n − 1)/2 pairs of ``points`` [n, D] by shooting: pair indices [P, 2] and the solution.

    ``metric`` has dimension D; ``options`` go to `geonode.geodesic.shoot`, whose errors these are; look at ``status``
    of the solution before using it.
    """
    pairs = torch.combinations(torch.arange(len(points)), 2)
    return pairs, shoot(metric, points[pairs[:, 0]], points[pairs[:, 1]], **options)  # pyright: ignore[reportArgumentType]
