"""Flow networks: how absorbance changes along a geodesic. One class a kind; M stacked models in each.

`SpectralFlow`      h(ŝ, λ) or h(ŝ, u̇, λ): multiplied by dŝ/dt, so a path that does not move changes nothing.
`GradientFlow`      F = vⁱ ∂ᵢH(ŝ, λ) for several analytes: path-independent, zero for v = 0.
`FreeFlow`          F(c, v, λ): the original 11 → 16 → 1 network, with no such law.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from geonode.errors import InputError
from geonode.flow.base import FLOWS
from geonode_kernels.flow_quadrature import flow_quadrature


class FlowCoefficients(NamedTuple):
    """What a flow needs at each wavelength: ω [M, H], β [M, W, H], a [M, W, H], a₀ [M, W], ν [M, H] or None."""

    omega: Tensor
    beta: Tensor
    a: Tensor
    a0: Tensor
    nu: Tensor | None


def _aligned(value: Tensor) -> Tensor:
    """A float64 copy at the start of its own memory: vectorised sums round by alignment, and a solve amplifies that."""
    return value.detach().to(torch.float64, copy=True).contiguous()


def _coordinates(spectra: Tensor, basis: Tensor) -> Tensor:
    """Least-squares coordinates [P, E] of spectra [P, W] in the columns of ``basis`` [W, E].

    By normal equations of columns scaled to unit length, which are far from dependent: LAPACK's least squares rounds
    by where its workspace lies, and a training that starts at an optimum amplifies the last bit to 1e-5 absorbance.
    """
    length = basis.square().sum(0).sqrt()
    unit = basis / length
    return torch.linalg.solve(unit.mT @ unit, unit.mT @ spectra.mT).mT / length


class _Draws:
    """Initial parameters [M, ...]: model m of a stack seeded with s starts as a single model seeded with s + m."""

    def __init__(self, models: int, seed: int) -> None:
        self._generators = [torch.Generator().manual_seed(seed + m) for m in range(models)]

    def normal(self, *shape: int, scale: float = 1.0) -> nn.Parameter:
        rows = [torch.randn(shape, generator=g, dtype=torch.float64) for g in self._generators]
        return nn.Parameter((scale * torch.stack(rows)).to(torch.get_default_dtype()))

    def uniform(self, *shape: int, scale: float = 1.0) -> nn.Parameter:
        rows = [torch.rand(shape, generator=g, dtype=torch.float64) for g in self._generators]
        return nn.Parameter((scale * (2.0 * torch.stack(rows) - 1.0)).to(torch.get_default_dtype()))


class _EmbeddedFlow(nn.Module):
    """A wavelength embedding and the linear maps from it to β and a: shared by every flow of tanh units."""

    def __init__(self, wavelengths: int, hidden: int, embedding: int, models: int, seed: int) -> None:
        super().__init__()
        self.models, self.wavelengths, self.hidden = models, wavelengths, hidden
        self._draws = _Draws(models, seed)
        self.embedding = self._draws.normal(wavelengths, embedding)
        self.beta_weight = self._draws.normal(embedding, hidden, scale=0.1 / math.sqrt(embedding))
        self.beta_bias = self._draws.uniform(hidden, scale=2.0)
        self.a_weight = self._draws.normal(embedding, hidden, scale=0.1 / math.sqrt(embedding * hidden))

    @torch.no_grad()
    def set_embedding(self, spectra: Tensor | Sequence[Tensor]) -> None:
        """Start the embedding from the data: leading right singular vectors of ``spectra`` M × [P, W], unit variance.

        Wavelengths that respond alike then start alike. A rank below the embedding's width leaves the rest random.
        Model by model, so that a model starts to the bit as it would alone.
        """
        self.embedding.mul_(0.1)
        for embedding, rows in zip(self.embedding, map(_aligned, spectra), strict=True):
            rank = min(embedding.shape[1], len(rows) - 1, self.wavelengths)
            _, values, vectors = torch.linalg.svd(rows - rows.mean(0), full_matrices=False)
            relative = values[:rank] / values[0].clamp_min(torch.finfo(torch.float64).tiny)
            start = vectors[:rank].mT * math.sqrt(self.wavelengths) * relative.sqrt()  # leading ones are louder
            # directions of no variance are rounding noise; they stay random, from the seed
            embedding[:, :rank] = torch.where(relative > 1e-6, start.to(embedding), embedding[:, :rank])

    def _at_wavelengths(self, index: Tensor | None) -> tuple[Tensor, Tensor]:
        """(β, a) [M, W, H] for all wavelengths or those of ``index``: the only matrix products, hence under AMP."""
        embedding = self.embedding if index is None else self.embedding[:, index]
        beta = (embedding @ self.beta_weight).to(self.beta_bias.dtype) + self.beta_bias[:, None]
        a = (embedding @ self.a_weight).to(self.beta_bias.dtype)
        return beta, a


@FLOWS.register("path_independent")
class SpectralFlow(_EmbeddedFlow):
    """dA/dt = (dŝ/dt)·h with  h(ŝ, λ) = Σⱼ a_j(λ) tanh(ω_j ŝ + ν_j u̇ + β_j(λ)) + a₀(λ).

    ``kind="path_independent"`` (ν = 0, the default) makes the spectrum a function of concentration alone;
    ``kind="velocity"`` lets h see the velocity u̇ as well.

    Shapes: ŝ, u̇ [M, B, W] → h [M, B, W]; ``index`` [K] picks wavelengths.

    Args:
        wavelengths: W, their number.
        hidden: H, tanh units.
        embedding: E, numbers that describe a wavelength, from which β, a and a₀ are made.
        kind: see above.
        models: M.
        seed: of the initial weights; model m starts from ``seed`` + m.

    Raises:
        InputError: an unknown kind.
    """

    def __init__(
        self,
        wavelengths: int,
        hidden: int = 64,
        embedding: int = 8,
        kind: str = "path_independent",
        models: int = 1,
        seed: int = 0,
    ) -> None:
        super().__init__(wavelengths, hidden, embedding, models, seed)
        if kind not in ("path_independent", "velocity"):
            raise InputError(f"kind={kind!r} is not a spectral flow; choose path_independent or velocity.")
        self.kind = kind
        self.omega = self._draws.normal(hidden, scale=2.0)
        self.nu = self._draws.normal(hidden, scale=0.1) if kind == "velocity" else None
        self.a0_weight = nn.Parameter(torch.zeros(models, embedding))

    @torch.no_grad()
    def solve_output(self, s_hat: Tensor, spectra: Tensor, weight: Tensor, ridge: float = 1e-6) -> None:
        """Start a and a₀ at their weighted least-squares optimum for fixed ω and β common to all wavelengths.

        The flow is linear in its output layer, so the best start is one small solve per model: with features
        ψ_j(ŝ) = ∫ tanh(ω_j ŝ + b_j) dŝ = ln cosh(ω_j ŝ + b_j)/ω_j and spectra projected on the embedding. ``ridge`` is
        relative to the features' mean square; the linear feature is not penalised, so a straight line stays one.

        s_hat [M, P], spectra [M, P, W], weight [M, P].
        """
        self.beta_weight.zero_()
        for m in range(self.models):
            solution = self._best_output(m, _aligned(s_hat[m]), _aligned(spectra[m]), _aligned(weight[m]), ridge)
            self.a_weight[m] = solution[:-1].mT
            self.a0_weight[m] = solution[-1]

    def _best_output(self, m: int, s_hat: Tensor, spectra: Tensor, weight: Tensor, ridge: float) -> Tensor:
        """Output weights [H + 1, E] of model m (the last row is the linear feature's)."""
        omega, bias = _aligned(self.omega[m]), _aligned(self.beta_bias[m])
        share = (weight / weight.sum())[:, None]
        inside = (s_hat[:, None] * omega + bias).abs()
        features = torch.cat([(inside + torch.nn.functional.softplus(-2.0 * inside)) / omega, s_hat[:, None]], 1)
        features = features - (share * features).sum(0)
        target = spectra - (share * spectra).sum(0)
        projected = _coordinates(target, _aligned(self.embedding[m]))
        normal = features.mT @ (share * features)
        penalty = torch.full_like(normal[0], ridge) * normal.diagonal()[:-1].mean()
        penalty[-1] *= 1e-6
        return torch.linalg.solve(normal + penalty.diag(), features.mT @ (share * projected))

    def coefficients(self, index: Tensor | None = None) -> FlowCoefficients:
        """The per-wavelength coefficients, formed once per step and shared by every pair and node; ``index`` as for the
        class.
        """
        beta, a = self._at_wavelengths(index)
        embedding = self.embedding if index is None else self.embedding[:, index]
        a0 = (embedding @ self.a0_weight[..., None]).squeeze(-1).to(beta.dtype)
        return FlowCoefficients(self.omega, beta, a, a0, self.nu)

    def forward(self, s_hat: Tensor, index: Tensor | None = None, velocity: Tensor | None = None) -> Tensor:
        """h at ``s_hat`` ŝ [M, B, W] (and u̇ ``velocity`` [M, B, W] for ``kind="velocity"``) → [M, B, W].

        ``index`` [K] picks wavelengths; None takes all of them.

        Raises:
            InputError: ``kind="velocity"`` without ``velocity``.
        """
        omega, beta, a, a0, nu = self.coefficients(index)
        inside = s_hat[..., None] * omega[:, None, None] + beta[:, None]
        if nu is not None:
            if velocity is None:
                raise InputError("kind='velocity' needs the velocity at every point; pass velocity=.")
            inside = inside + velocity[..., None] * nu[:, None, None]
        return (torch.tanh(inside) * a[:, None]).sum(-1) + a0[:, None]

    def integral(self, s_start: Tensor, s_end: Tensor, index: Tensor | None = None, nodes: int = 16) -> Tensor:
        """∫ h dŝ from ``s_start`` to ``s_end`` [M, B, W]: zero where both are equal. By ``nodes`` Gauss–Legendre nodes.

        ``index`` [K] picks wavelengths; None takes all of them.

        Raises:
            InputError: ``kind="velocity"``, whose integral depends on the path.
        """
        if self.nu is not None:
            raise InputError("kind='velocity' depends on the path; integrate it with CoupledSpectralODE.")
        c = self.coefficients(index)
        return flow_quadrature(s_start, s_end, c.omega, c.beta, c.a, c.a0, nodes=nodes)


@FLOWS.register("gradient")
class GradientFlow(_EmbeddedFlow):
    """F = vⁱ ∂ᵢH(ŝ, λ) for D analytes, H = Σⱼ a_j(λ) tanh(ω_j·ŝ + β_j(λ)) + a₀(λ)·ŝ.

    ŝ [M, B, D] are the analytes' warp coordinates. The line integral of a gradient depends on the end points alone, so
    the spectrum is a function of the concentrations.

    Args:
        wavelengths: W, their number.
        dim: D.
        hidden, embedding: tanh units, and numbers that describe a wavelength.
        models: M. seed: of the initial weights.
    """

    def __init__(
        self, wavelengths: int, dim: int, hidden: int = 64, embedding: int = 8, models: int = 1, seed: int = 0
    ) -> None:
        super().__init__(wavelengths, hidden, embedding, models, seed)
        self.dim = dim
        self.omega = self._draws.normal(hidden, dim, scale=2.0 / math.sqrt(dim))
        self.a0_weight = nn.Parameter(torch.zeros(models, embedding, dim))

    def potential(self, s_hat: Tensor, index: Tensor | None = None) -> Tensor:
        """H at ``s_hat`` ŝ [M, B, D] → [M, B, W]; ``index`` [K] picks wavelengths, None all."""
        beta, a = self._at_wavelengths(index)
        embedding = self.embedding if index is None else self.embedding[:, index]
        inside = (s_hat @ self.omega.mT)[:, :, None] + beta[:, None]
        linear = s_hat @ (embedding @ self.a0_weight).mT
        return (torch.tanh(inside) * a[:, None]).sum(-1) + linear

    def forward(self, s_hat: Tensor, velocity: Tensor, index: Tensor | None = None) -> Tensor:
        """F at ``s_hat`` ŝ [M, B, D] or [M, B, W, D] with velocity dŝ/dt of the same shape → [M, B, W].

        ``index`` [K] picks wavelengths; None takes all of them.
        """
        if s_hat.ndim == 3:
            s_hat, velocity = s_hat[:, :, None], velocity[:, :, None]
        beta, a = self._at_wavelengths(index)
        embedding = self.embedding if index is None else self.embedding[:, index]
        rate = self.omega.mT[:, None]  # [M, 1, D, H]
        squash = torch.tanh(s_hat @ rate + beta[:, None])
        along = velocity @ rate
        linear = ((embedding @ self.a0_weight)[:, None] * velocity).sum(-1)
        return (a[:, None] * (1.0 - squash.square()) * along).sum(-1) + linear


@FLOWS.register("velocity")
class VelocityFlow(SpectralFlow):
    """A `SpectralFlow` that sees the velocity as well; arguments as there."""

    def __init__(self, wavelengths: int, hidden: int = 64, embedding: int = 8, models: int = 1, seed: int = 0) -> None:
        super().__init__(wavelengths, hidden, embedding, "velocity", models, seed)


@FLOWS.register("free")
class FreeFlow(nn.Module):
    """F(c, v, λ): (concentration, velocity, wavelength, 8-wide embedding) → hidden → 1, tanh. The original network.

    Nothing forces F(c, 0, λ) = 0, so a zero-length path may change the spectrum; kept as the original recipe.

    Args:
        wavelengths: [W], scaled to [−1, 1].
        hidden, embedding: tanh units, and numbers that describe a wavelength.
        models: M. seed: of the initial weights.
    """

    wavelength: Tensor

    def __init__(
        self, wavelengths: Tensor, hidden: int = 16, embedding: int = 8, models: int = 1, seed: int = 0
    ) -> None:
        super().__init__()
        self.register_buffer("wavelength", wavelengths)
        draws = _Draws(models, seed)
        width = 3 + embedding
        self.embedding = draws.normal(len(wavelengths), embedding)
        self.weight1 = draws.normal(width, hidden, scale=1.0 / math.sqrt(width))
        self.bias1 = nn.Parameter(torch.zeros(models, hidden))
        self.weight2 = draws.normal(hidden, scale=1.0 / math.sqrt(hidden))
        self.bias2 = nn.Parameter(torch.zeros(models))

    def set_embedding(self, spectra: Tensor | Sequence[Tensor]) -> None:
        """The original starts from a random embedding: ``spectra`` change nothing."""

    def forward(self, position: Tensor, velocity: Tensor, index: Tensor | None = None) -> Tensor:
        """F at position and velocity [M, B, W] → [M, B, W]; ``index`` [K] picks wavelengths, None all."""
        wavelength, embedding = self.wavelength, self.embedding
        if index is not None:
            wavelength, embedding = wavelength[index], embedding[:, index]
        fixed = wavelength[:, None] * self.weight1[:, None, 2] + (embedding @ self.weight1[:, 3:]).to(self.bias1.dtype)
        inside = (
            position[..., None] * self.weight1[:, None, None, 0] + velocity[..., None] * self.weight1[:, None, None, 1]
        )
        hidden = torch.tanh(inside + (fixed + self.bias1[:, None])[:, None])
        return (hidden * self.weight2[:, None, None]).sum(-1) + self.bias2[:, None, None]
