"""A learned embedding φ of the concentrations of D analytes, and the batch of them that a fit optimises.

In the analytes' warp coordinates x ∈ ℝᴰ (one closed-form warp each, [−1, 1] on the calibrated range)

    φ(x) = (x₁/ℓ₁, …, x_D/ℓ_D, 0) + ε V tanh(U x + b)        φ ∈ ℝᴰ⁺¹

so that a kernel of ‖φ − φ′‖ is positive definite, which a kernel of geodesic distance is not on a curved manifold, and
the metric g = JᵀJ has curvature: the extra coordinate lets the plane bend. The network is the interaction: where one
analyte changes how strongly the other responds, lengths along one depend on the other.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from geonode.metric import Metric

INTERACTION_SCALE = 0.3  # ε: prior standard deviation of the interaction relative to a correlation length
_START_LENGTH = 1.2
_MIDDLES = {"log_lengths": math.log(_START_LENGTH), "log_eta": math.log(1e-3)}
"""Of the priors whose middle is not zero."""
_PRIORS: dict[str, tuple[float, int | None]] = {
    "logits": (2.0, 2),
    "log_lengths": (1.0, 2),
    "log_linear": (2.0, 2),
    "u": (math.sqrt(2.0), 3),
    "b": (1.0, None),
    "v": (1.0, 2),
}
"""Standard deviations of the priors, and the axis of the analytes; ln η is left out, for the data always decide it."""
FLOOR = 0.1  # added to the metric: no stretch of [−1, 1] is shorter than 2√0.1 correlation lengths


class EnsembleEmbedding(nn.Module):
    """Embeddings of S starts side by side, scaled so that g = JᵀJ is the starts' mean metric: x [..., D] → [..., K].

    Each start gives its φ and √a_d x_d, the features of the kernel's linear part: where the spectrum is all but a
    straight line in x, φ alone would call far points near. One network: A x + V tanh(U x + b), A [K, D], U [S·H, D],
    V [K, S·H], K = S (2D + 1).
    """

    straight: Tensor
    u: Tensor
    b: Tensor
    v: Tensor

    def __init__(self, log_lengths: Tensor, log_linear: Tensor, u: Tensor, b: Tensor, v: Tensor) -> None:
        """``log_lengths``, ``log_linear`` (ln a) [S, D], ``u`` [S, H, D], ``b`` [S, H], ``v`` [S, D + 1, H]."""
        super().__init__()
        starts, dim = log_lengths.shape
        lengths, linear = torch.diag_embed((-log_lengths).exp()), torch.diag_embed((0.5 * log_linear).exp())
        straight = torch.cat([lengths, torch.zeros_like(lengths[:, :1]), linear], 1)
        bend = torch.cat([INTERACTION_SCALE * v, torch.zeros(starts, dim, v.shape[2], dtype=v.dtype)], 1)
        scale = 1.0 / math.sqrt(starts)
        self.register_buffer("straight", scale * straight.flatten(0, 1))
        self.register_buffer("u", u.flatten(0, 1).clone())
        self.register_buffer("b", b.flatten().clone())
        self.register_buffer("v", scale * torch.block_diag(*bend))

    def forward(self, x: Tensor) -> Tensor:
        """A x + V tanh(U x + b) [..., K] at warp coordinates ``x`` [..., D]."""
        return x @ self.straight.to(x).mT + torch.tanh(x @ self.u.to(x).mT + self.b.to(x)) @ self.v.to(x).mT


class EmbeddingMetric(Metric):
    """g = JᵀJ + floor·I of an `EnsembleEmbedding`, in correlation lengths, with its derivatives in closed form.

    The floor (the embedding (φ, √floor x)) bounds the curvature where the spectra do not respond: without it g all but
    vanishes there, geodesics meet conjugate points and a quarter of the simulated sensor's pairs cannot be shot.

    The same as ``PullbackMetric(embedding, dim, floor=floor)``, at a fraction of the cost: shooting asks for g, ∂g and
    ∂²g at every stage of every step, and nested forward mode pays for each third derivative of φ separately.
    """

    def __init__(self, embedding: EnsembleEmbedding, floor: float = FLOOR) -> None:
        super().__init__(dim=embedding.straight.shape[1])
        self.embedding, self.floor = embedding, float(floor)

    def forward(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """g [..., D, D]."""
        (jacobian,) = self._derivatives(c, 1)
        return self._expand(self._gram(jacobian), c, wavelength, 2)

    def value_and_derivative(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """g and ∂_k g_ij = φ_ki·φ_j + φ_i·φ_kj."""
        first, second = self._derivatives(c, 2)
        half = torch.einsum("...qki,...qj->...kij", second, first)
        return (
            self._expand(self._gram(first), c, wavelength, 2),
            self._expand(half + half.mT, c, wavelength, 3),
        )

    def two_derivatives(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """g, ∂g and ∂_l ∂_k g_ij = φ_lki·φ_j + φ_ki·φ_lj + (i ↔ j)."""
        first, second, third = self._derivatives(c, 3)
        half = torch.einsum("...qki,...qj->...kij", second, first)
        bend = torch.einsum("...qlki,...qj->...lkij", third, first)
        bend = bend + torch.einsum("...qki,...qlj->...lkij", second, second)
        return (
            self._expand(self._gram(first), c, wavelength, 2),
            self._expand(half + half.mT, c, wavelength, 3),
            self._expand(bend + bend.mT, c, wavelength, 4),
        )

    def _derivatives(self, c: Tensor, order: int) -> list[Tensor]:
        """Partial derivatives of φ up to ``order``: [..., K, D], [..., K, D, D], [..., K, D, D, D]."""
        self.check(c)
        e = self.embedding
        u, v = e.u.to(c), e.v.to(c)
        t = torch.tanh(c @ u.mT + e.b.to(c))
        slope = 1.0 - t * t
        gains = [slope, -2.0 * t * slope, slope * (6.0 * t * t - 2.0)]  # tanh′, tanh″, tanh‴
        outer = u
        found = []
        for k in range(order):
            if k:
                outer = outer.unsqueeze(-1) * u.reshape(len(u), *([1] * k), -1)
            # v ⊗ u ⊗ … first, which no point enters: what is multiplied at every point is then [H] by [H, K Dᵏ⁺¹]
            weights = (v.mT[:, :, None] * outer.flatten(1)[:, None]).flatten(1)
            part = (gains[k] @ weights).unflatten(-1, (len(v), *(self.dim,) * (k + 1)))
            found.append(part + e.straight.to(c) if k == 0 else part)
        return found

    def _gram(self, jacobian: Tensor) -> Tensor:
        return jacobian.mT @ jacobian + self.floor * torch.eye(self.dim, dtype=jacobian.dtype, device=jacobian.device)

    def _expand(self, value: Tensor, c: Tensor, wavelength: Tensor | None, axes: int) -> Tensor:
        if wavelength is None:
            return value
        batch = torch.broadcast_shapes(c.shape[:-1], wavelength.shape)
        return value.expand(*batch, *value.shape[-axes:])


def embed(x: Tensor, inverse_lengths: Tensor, u: Tensor, b: Tensor, v: Tensor) -> Tensor:
    """φ at x [..., n, D] (broadcast against the leading axes of the parameters) → [..., n, D + 1]."""
    bend = INTERACTION_SCALE * torch.tanh(x @ u.mT + b.unsqueeze(-2)) @ v.mT
    straight = x * inverse_lengths.unsqueeze(-2)
    return torch.cat([straight + bend[..., :-1], bend[..., -1:]], -1)


class Surfaces(nn.Module):
    """Parameters of F training sets × S starts: warps shared by the starts of a set, everything else its own.

    ``logits [F, 13, D]``; ``log_lengths [F, S, D]``; ``log_linear [F, S, D]`` (shares of the linear part);
    ``log_eta [F, S]``; ``u [F, S, H, D]``, ``b [F, S, H]``, ``v [F, S, D + 1, H]``. All float64. The starts of every
    set are the same, so that a set is fitted alone as it is in a batch.
    """

    def __init__(self, sets: int, starts: int, hidden: int, dim: int, warps: int, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        f64 = torch.float64

        def same(value: Tensor) -> nn.Parameter:
            return nn.Parameter(value.expand(sets, *value.shape).clone())

        self.logits = same(torch.zeros(warps, dim, dtype=f64))
        self.log_lengths = same(torch.full((starts, dim), math.log(_START_LENGTH), dtype=f64))
        self.log_linear = same(torch.zeros(starts, dim, dtype=f64))
        self.log_eta = same(torch.full((starts,), math.log(1e-3), dtype=f64))
        self.u = same(torch.randn(starts, hidden, dim, generator=generator, dtype=f64))
        self.b = same(2.0 * torch.rand(starts, hidden, generator=generator, dtype=f64) - 1.0)
        self.anchors: dict[str, Tensor] = {}
        self.v = same(0.1 * torch.randn(starts, dim + 1, hidden, generator=generator, dtype=f64))

    def scatter(self, seed: int) -> None:
        """Draw every set's start from the prior, and hold the set to its own start in place of the prior's middle.

        Where the data decide, all sets then come to agree; where they do not, sets stay as far apart as the prior is
        wide (randomised maximum a posteriori; Pearce, Leibfried and Brintrup, AISTATS 2020). Sets 2k and 2k + 1 differ
        in the order of the analytes alone, so that all of them together have none.
        """
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, (deviation, axis) in _PRIORS.items():
                value = getattr(self, name)
                draws = torch.randn(len(value) // 2, *value.shape[1:], generator=generator, dtype=value.dtype)
                value += deviation * draws.repeat_interleave(2, 0) - (value if name in ("u", "b", "v") else 0.0)
                if axis is not None:
                    dim = self.logits.shape[2]
                    exchanged = torch.arange(value.shape[axis])
                    exchanged[:dim] = exchanged[:dim].flip(0)
                    value[1::2] = value[1::2].index_select(axis, exchanged)
                self.anchors[name] = value.detach().clone()

    def coordinates(self, warped: Tensor) -> Tensor:
        """x [F, n, D] from every warp's value ``[F, 13, n, D]``."""
        return (torch.softmax(self.logits, 1)[:, :, None] * warped).sum(1)

    def kernel(self, x: Tensor, y: Tensor) -> Tensor:
        """Π_d (1 + a_d x_d y_d) + exp(−½ ‖φ(x) − φ(y)‖²) between x [F, a, D] and y [F, b, D]: [F, S, a, b]."""
        left, right = (embed(z[:, None], (-self.log_lengths).exp(), self.u, self.b, self.v) for z in (x, y))
        # one dimension after the other: sums and products along so short an axis take longer than all the rest
        squared, product = x.new_zeros(()), x.new_ones(())
        for one, other in zip(left.unbind(-1), right.unbind(-1), strict=True):
            squared = squared + (one[..., :, None] - other[..., None, :]).square()
        for share, one, other in zip(self.log_linear.exp().unbind(-1), x.unbind(-1), y.unbind(-1), strict=True):
            product = product * (1.0 + share[..., None, None] * one[:, None, :, None] * other[:, None, None, :])
        return product + torch.exp(-0.5 * squared)

    def prior_variance(self, x: Tensor) -> Tensor:
        """k(x, x) [F, S, n]."""
        return (1.0 + self.log_linear.exp()[..., None, :] * x[:, None].square()).prod(-1) + 1.0

    def log_prior(self) -> Tensor:
        """Log density of the parameters [F], averaged over starts, up to a constant: wide normals around the start."""
        off = {name: value - self.anchors.get(name, _MIDDLES.get(name, 0.0)) for name, value in self.named_parameters()}
        per_start = (
            off["log_lengths"].square().sum(-1)
            + 0.25 * off["log_linear"].square().sum(-1)
            + 0.25 * off["log_eta"].square()
            + off["v"].square().sum((-1, -2))
            + 0.5 * off["u"].square().sum((-1, -2))
            + off["b"].square().sum(-1)
        )
        return -0.5 * per_start.mean(1) - 0.125 * off["logits"].square().sum((1, 2))
