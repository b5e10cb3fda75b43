"""Axial attention over an assay: along the standards at each wavelength, along the wavelengths at each concentration.

Rows are the n standards, then the P places asked for; columns are wavelengths. Every row listens to the standards
(never to other places), every column to the anchor wavelengths (never to other columns), so what is predicted at one
place and wavelength does not depend on which others are asked for beside it, and work and memory grow linearly.

The heads are zero-initialised. The prediction then is the reference, the evidence-averaged geodesic Gaussian process:

    A = reference + scale · [ Σ_g (w_g − e_g) D_g + γ Σ_s x_s D_s + 2 a tanh(r) ]

with D the differences of the candidates from the reference, e the evidence of the GP's groups, w = softmax(τ log e + o)
what the network makes of it (o = 0 and τ = 1 at the start), x likewise over the simple methods, γ how far to go over to
those (0 at the start), r a residual (0 at the start) bounded by how far candidates disagree.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from geonode.prior.candidates import GROUPS
from geonode.prior.features import (
    ASSAY_VALUES,
    LEVEL_VALUES,
    PLACE_NUMBERS,
    PLACE_VALUES,
    WAVELENGTH_VALUES,
    Features,
)
from geonode.prior.metric import PiecewiseMetric
from geonode.prior.simple import SIMPLE


@dataclass(frozen=True)
class NetworkSize:
    """Width of a token, number of blocks, attention heads, and width of a block's inner layer in token widths."""

    width: int = 128
    blocks: int = 5
    heads: int = 4
    expansion: int = 2

    def as_dict(self) -> dict[str, Any]:
        """For a model card."""
        return asdict(self)


@dataclass(frozen=True)
class Output:
    """What the network says of a batch of assays.

    Attributes:
        change: ``[B, P, W]`` what is added to the reference, in scales of the assay.
        metric: ln g at the standards and beyond the ends. sigma, tau: ``[B, 1, W]`` scale of the bridge along arc
            length and of the scatter of a spectrum, both in scales of the assay. dof: ``[B, 1, 1]`` of the Student t.
        weights: ``[B, G, P, W]`` weights of the GP's groups (for reports).
    """

    change: Tensor
    metric: PiecewiseMetric
    sigma: Tensor
    tau: Tensor
    dof: Tensor
    weights: Tensor

    def mean(self, f: Features) -> Tensor:
        """Predicted spectra ``[B, P, W]``, float64, signal units."""
        return f.reference + f.scale * self.change.double()

    def variance(self, coordinate: Tensor) -> Tensor:
        """Squared scale of the predictive Student t ``[B, P, W]`` at base coordinates ``[B, P]``, in scales²."""
        return self.sigma.square() * self.metric.doubt(coordinate) + self.tau.square()


class Block(nn.Module):
    """One round of attention along both axes and a feed-forward layer."""

    def __init__(self, size: NetworkSize) -> None:
        super().__init__()
        d = size.width
        self.heads = size.heads
        self.norm_levels, self.norm_wavelengths, self.norm_inner = (nn.LayerNorm(d) for _ in range(3))
        self.level_query, self.level_pair, self.level_out = nn.Linear(d, d), nn.Linear(d, 2 * d), nn.Linear(d, d)
        self.wave_query, self.wave_pair, self.wave_out = nn.Linear(d, d), nn.Linear(d, 2 * d), nn.Linear(d, d)
        self.inner = nn.Sequential(
            nn.Linear(d, size.expansion * d), nn.GELU(approximate="tanh"), nn.Linear(size.expansion * d, d)
        )

    def forward(self, x: Tensor, levels: int, anchors: int) -> Tensor:
        """``x [B, R, W, d]`` moved on; the anchors are its first columns, the standards its first rows."""
        x = self.along_levels(x, levels)
        return self.along_wavelengths(x, self.pairs(x[:, :, :anchors]))

    def along_levels(self, x: Tensor, levels: int) -> Tensor:
        """Every row listens to the standards, wavelength by wavelength."""
        normed = self.norm_levels(x)
        key, value = self.level_pair(normed[:, :levels]).chunk(2, -1)
        return x + self.level_out(_attend_rows(self.level_query(normed), key, value, self.heads))

    def pairs(self, anchors: Tensor) -> Tensor:
        """Keys and values of the anchor wavelengths ``[B, R, K, d]`` after :meth:`along_levels`, ``[B, R, K, 2d]``."""
        return self.wave_pair(self.norm_wavelengths(anchors))

    def along_wavelengths(self, x: Tensor, pairs: Tensor) -> Tensor:
        """Every column listens to the anchors, row by row; then the feed-forward layer."""
        key, value = pairs.chunk(2, -1)
        x = x + self.wave_out(_attend(self.wave_query(self.norm_wavelengths(x)), key, value, self.heads))
        return x + self.inner(self.norm_inner(x))


def _attend(query: Tensor, key: Tensor, value: Tensor, heads: int) -> Tensor:
    """Attention along the last but one axis of ``[B, S, L, d]``."""
    q, k, v = (part.flatten(0, 1).unflatten(-1, (heads, -1)).transpose(1, 2) for part in (query, key, value))
    found = functional.scaled_dot_product_attention(q, k, v)
    return found.transpose(1, 2).flatten(-2).unflatten(0, query.shape[:2])


def _attend_rows(query: Tensor, key: Tensor, value: Tensor, heads: int) -> Tensor:
    """Attention along axis 1 of ``[B, R, W, d]``: to the few standards ``key``, ``value [B, n, W, d]``.

    Compiled, it is written out as sums that the compiler fuses: without copies to bring the rows together, and without
    tiles of 128 of which a handful of standards would fill a twentieth.
    """
    if not torch.compiler.is_compiling():
        found = _attend(query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2), heads)
        return found.transpose(1, 2)
    query, key, value = (part.unflatten(-1, (heads, -1)) for part in (query, key, value))  # [B, R, W, h, e]
    scores = _single(query[:, :, None] * key[:, None]).sum(-1) * query.shape[-1] ** -0.5  # [B, R, n, W, h]
    shares = torch.softmax(scores, 2).to(value.dtype)
    return _single(shares[..., None] * value[:, None]).sum(2).to(value.dtype).flatten(-2)


def _single(x: Tensor) -> Tensor:
    """At least single precision: what was computed in half, widened; float64 stays."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


class Network(nn.Module):
    """The whole network; see the module's text for the equation of its prediction."""

    size: NetworkSize

    def __init__(self, size: NetworkSize | None = None) -> None:
        super().__init__()
        self.size = size or NetworkSize()
        d = self.size.width
        self.assay = nn.Sequential(nn.Linear(ASSAY_VALUES, d), nn.GELU(approximate="tanh"), nn.Linear(d, d))
        self.wavelength = nn.Linear(WAVELENGTH_VALUES, d)
        self.level = nn.Linear(LEVEL_VALUES, d)
        self.place = nn.Linear(PLACE_VALUES, d)
        self.level_position = nn.Linear(PLACE_NUMBERS, d)
        self.place_position = nn.Linear(PLACE_NUMBERS + GROUPS + SIMPLE, d)
        self.blocks = nn.ModuleList([Block(self.size) for _ in range(self.size.blocks)])
        self.norm_place, self.norm_level = nn.LayerNorm(d), nn.LayerNorm(d)
        candidates = GROUPS + SIMPLE
        self.own, self.shared = nn.Linear(d, candidates + 6), nn.Linear(d, candidates + 5)
        self.metric, self.scales = nn.Linear(d, 3), nn.Linear(d, 3)
        for head in (self.own, self.shared, self.metric, self.scales):
            nn.init.zeros_(head.weight)
            nn.init.zeros_(head.bias)

    @property
    def all_blocks(self) -> list[Block]:
        """The blocks in their order."""
        return cast("list[Block]", list(self.blocks))

    def embed(self, f: Features) -> Tensor:
        """Tokens ``[B, n + P, W, d]`` of standards and places."""
        common = (self.assay(f.assay_values)[:, None] + self.wavelength(f.wavelength_values))[:, None]
        levels = self.level(f.level_values) + self.level_position(f.level_numbers)[:, :, None]
        where = torch.cat([f.place_numbers, f.nearby.mT], -1)
        places = self.place(f.place_values) + self.place_position(where)[:, :, None]
        return torch.cat([levels + common, places + common], 1)

    def forward(self, f: Features, anchors: int) -> Output:
        """Where the anchor wavelengths are the first ``anchors`` columns of the features."""
        n = f.level_numbers.shape[1]
        x = self.embed(f)
        for block in self.blocks:
            x = block(x, n, anchors)
        return self.heads(f, x, x[:, :, :anchors])

    def heads(self, f: Features, x: Tensor, known: Tensor) -> Output:
        """From the last tokens ``x [B, n + P, W, d]`` and those at the anchors."""
        n = f.level_numbers.shape[1]
        places = self.norm_place(x[:, n:])
        gate = _single(self.shared(self.norm_place(known[:, n:]).mean(2, keepdim=True)))
        own = _single(self.own(places))  # [B, P, W, C + 4]
        logits = (own[..., :-6] + gate[..., :-5]).permute(0, 3, 1, 2)  # [B, C, P, W]
        heat, heat_simple, near, near_simple, turn = (own[..., -6:-1] + gate[..., -5:]).unbind(-1)
        evidence = f.log_evidence[:, :, None, None]
        nearby = f.nearby[..., None]
        logits = logits - 3.0 * nearby * torch.cat([_split(near, GROUPS), _split(near_simple, SIMPLE)], 1)
        weights = torch.softmax(evidence * _temperature(heat)[:, None] + logits[:, :GROUPS], 1)
        simple = f.simple_evidence[:, :, None, None] * 0.5 * _temperature(heat_simple)[:, None]
        simple_weights = torch.softmax(simple + logits[:, GROUPS:], 1)
        grouped, plain = f.differences[:, :GROUPS], f.differences[:, GROUPS:]
        change = ((weights - evidence.exp()) * grouped).sum(1)
        toward = (simple_weights * plain).sum(1) - change
        change = change + torch.tanh(turn) * toward
        disagree = (weights.detach() * grouped.square()).sum(1) + (simple_weights.detach() * plain.square()).sum(1)
        reach = (disagree + 1e-12).sqrt() + 0.3 * f.residual[:, None]
        change = change + 2.0 * reach * torch.tanh(own[..., -1])
        return Output(change, *self._uncertainty(f, x[:, :n], known[:, :n]), weights)

    def _uncertainty(
        self, f: Features, levels: Tensor, known: Tensor
    ) -> tuple[PiecewiseMetric, Tensor, Tensor, Tensor]:
        normed = self.norm_level(levels)
        m = 3.0 * torch.tanh(_single(self.metric(normed)) / 3.0)  # [B, n, W, 3]
        log_metric = torch.cat([m[:, :1, :, 1], m[..., 0], m[:, -1:, :, 2]], 1)
        scales = _single(self.scales(normed.mean(1)))  # [B, W, 3]
        of_assay = _single(self.scales(self.norm_level(known).mean((1, 2))))
        size = f.residual * torch.exp(5.0 * torch.tanh(scales[..., 0] / 5.0))
        scatter = 0.3 * f.residual * torch.exp(5.0 * torch.tanh(scales[..., 1] / 5.0))
        dof = 2.0 + functional.softplus(2.0 + 2.0 * of_assay[:, None, 2:])
        metric = PiecewiseMetric.at_standards(f.standards, log_metric)
        return metric, 2.0 * size[:, None], scatter[:, None], dof.clamp_max(60.0)


def _split(factor: Tensor, count: int) -> Tensor:
    """A bounded factor ``[B, P, W]`` for each of ``count`` candidates, ``[B, count, P, W]`` (a view)."""
    return (2.0 * torch.tanh(factor))[:, None].expand(-1, count, -1, -1)


def _temperature(x: Tensor) -> Tensor:
    """1 at 0, between e⁻⁴ and e²."""
    return torch.exp(torch.where(x < 0.0, 4.0 * torch.tanh(x / 4.0), 2.0 * torch.tanh(x / 2.0)))
