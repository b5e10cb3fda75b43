"""What flows of tanh units share: seeded draws, and a wavelength embedding from which their coefficients are made."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from geonode.flow.base import Flow


def aligned(value: Tensor) -> Tensor:
    """A float64 copy at the start of its own memory: vectorised sums round by alignment, and a solve amplifies that."""
    return value.detach().to(torch.float64, copy=True).contiguous()


def coordinates_in(spectra: Tensor, basis: Tensor) -> Tensor:
    """Least-squares coordinates [P, E] of spectra [P, W] in the columns of ``basis`` [W, E].

    By normal equations of columns scaled to unit length, which are far from dependent: LAPACK's least squares rounds
    by where its workspace lies, and a training that starts at an optimum amplifies the last bit to 1e-5 absorbance.
    """
    length = basis.square().sum(0).sqrt()
    unit = basis / length
    return torch.linalg.solve(unit.mT @ unit, unit.mT @ spectra.mT).mT / length


class Draws:
    """Initial parameters [M, ...]: model m of a stack seeded with s starts as a single model seeded with s + m."""

    def __init__(self, models: int, seed: int) -> None:
        self._generators = [torch.Generator().manual_seed(seed + m) for m in range(models)]

    def normal(self, *shape: int, scale: float = 1.0) -> nn.Parameter:
        rows = [torch.randn(shape, generator=g, dtype=torch.float64) for g in self._generators]
        return nn.Parameter((scale * torch.stack(rows)).to(torch.get_default_dtype()))

    def uniform(self, *shape: int, scale: float = 1.0) -> nn.Parameter:
        rows = [torch.rand(shape, generator=g, dtype=torch.float64) for g in self._generators]
        return nn.Parameter((scale * (2.0 * torch.stack(rows) - 1.0)).to(torch.get_default_dtype()))


class EmbeddedFlow(Flow):
    """A wavelength embedding and the linear maps from it to β and a: shared by every flow of tanh units."""

    def __init__(self, wavelengths: int, hidden: int, embedding: int, models: int, seed: int) -> None:
        super().__init__()
        self.models, self.wavelengths, self.hidden = models, wavelengths, hidden
        self._draws = Draws(models, seed)
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
        for embedding, rows in zip(self.embedding, map(aligned, spectra), strict=True):
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
