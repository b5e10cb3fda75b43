"""Axial attention over an assay: along the standards at each wavelength, along the wavelengths at each concentration.

Rows are the n standards, then the P places asked for; columns are wavelengths. Every row listens to the standards (never
to other places), every column to the anchor wavelengths (never to other columns), so what is predicted at one place and
wavelength does not depend on which others are asked for beside it, and work and memory grow linearly with both.

The heads are zero-initialised. The prediction then is the reference, the evidence-averaged geodesic Gaussian process:

    A = reference + scale · [ Σ_g (w_g − e_g) D_g + γ Σ_s x_s D_s + 2 a tanh(r) ]

with D the differences of the candidates from the reference, e the evidence of the GP's groups, w = softmax(τ log e + o)
what the network makes of it (o = 0 and τ = 1 at the start), x likewise over the simple methods, γ how far to go over to
those (0 at the start), r a residual (0 at the start) bounded by how far candidates disagree.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

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
        metric: ln g at the standards and beyond the ends. sigma, tau: ``[B, 1, W]`` scale of the bridge along arc length
            and of the scatter of a spectrum, both in scales of the assay. dof: ``[B, 1, 1]`` of the Student t.
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

    def forward(self, x: Tensor, anchors: Tensor, levels: int) -> tuple[Tensor, Tensor]:
        """``x [B, R, W, d]`` and the same rows at the anchor wavelengths ``anchors [B, R, K, d]``, both moved on.

        ``anchors`` may be ``x`` itself, cut to its leading columns by the caller; see :meth:`Network.forward`.
        """
        x = x + self._along_levels(x, levels)
        anchors = anchors + self._along_levels(anchors, levels)
        known = self.norm_wavelengths(anchors)
        pair = self.wave_pair(known)
        x = x + self._along_wavelengths(self.norm_wavelengths(x), pair)
        anchors = anchors + self._along_wavelengths(known, pair)
        return x + self.inner(self.norm_inner(x)), anchors + self.inner(self.norm_inner(anchors))

    def alone(self, x: Tensor, levels: int, anchors: int) -> Tensor:
        """The same where the anchors are the first columns of ``x``."""
        x = x + self._along_levels(x, levels)
        known = self.norm_wavelengths(x)
        x = x + self._along_wavelengths(known, self.wave_pair(known[:, :, :anchors]))
        return x + self.inner(self.norm_inner(x))

    def _along_levels(self, x: Tensor, levels: int) -> Tensor:
        normed = self.norm_levels(x)
        key, value = self.level_pair(normed[:, :levels]).chunk(2, -1)
        found = _attend(*(part.transpose(1, 2) for part in (self.level_query(normed), key, value)), self.heads)
        return self.level_out(found.transpose(1, 2))

    def _along_wavelengths(self, normed: Tensor, pair: Tensor) -> Tensor:
        key, value = pair.chunk(2, -1)
        return self.wave_out(_attend(self.wave_query(normed), key, value, self.heads))


def _attend(query: Tensor, key: Tensor, value: Tensor, heads: int) -> Tensor:
    """Attention along the last but one axis of ``[B, S, L, d]``."""
    split = [part.flatten(0, 1).unflatten(-1, (heads, -1)).transpose(1, 2) for part in (query, key, value)]
    found = functional.scaled_dot_product_attention(*split)
    return found.transpose(1, 2).flatten(-2).unflatten(0, query.shape[:2])


class Network(nn.Module):
    """The whole network; see the module's text for the equation of its prediction."""

    def __init__(self, size: NetworkSize | None = None) -> None:
        super().__init__()
        self.size = size or NetworkSize()
        d = self.size.width
        self.assay = nn.Sequential(nn.Linear(ASSAY_VALUES, d), nn.GELU(approximate="tanh"), nn.Linear(d, d))
        self.wavelength = nn.Linear(WAVELENGTH_VALUES, d)
        self.level = nn.Linear(LEVEL_VALUES, d)
        self.place = nn.Linear(PLACE_VALUES, d)
        self.level_position = nn.Linear(PLACE_NUMBERS, d)
        self.place_position = nn.Linear(PLACE_NUMBERS, d)
        self.blocks = nn.ModuleList([Block(self.size) for _ in range(self.size.blocks)])
        self.norm_place, self.norm_level = nn.LayerNorm(d), nn.LayerNorm(d)
        candidates = GROUPS + SIMPLE
        self.own, self.shared = nn.Linear(d, candidates + 4), nn.Linear(d, candidates + 3)
        self.metric, self.scales = nn.Linear(d, 3), nn.Linear(d, 3)
        for head in (self.own, self.shared, self.metric, self.scales):
            nn.init.zeros_(head.weight)
            nn.init.zeros_(head.bias)

    def embed(self, f: Features) -> Tensor:
        """Tokens ``[B, n + P, W, d]`` of standards and places."""
        common = (self.assay(f.assay_values)[:, None] + self.wavelength(f.wavelength_values))[:, None]
        levels = self.level(f.level_values) + self.level_position(f.level_numbers)[:, :, None]
        places = self.place(f.place_values) + self.place_position(f.place_numbers)[:, :, None]
        return torch.cat([levels + common, places + common], 1)

    def forward(self, f: Features, anchors: int) -> Output:
        """Where the anchor wavelengths are the first ``anchors`` columns of the features."""
        n = f.level_numbers.shape[1]
        x = self.embed(f)
        for block in self.blocks:
            x = block.alone(x, n, anchors)
        return self.heads(f, x, x[:, :, :anchors])

    def heads(self, f: Features, x: Tensor, known: Tensor) -> Output:
        """From the last tokens ``x [B, n + P, W, d]`` and those at the anchors."""
        n = f.level_numbers.shape[1]
        places = self.norm_place(x[:, n:])
        gate = self.shared(self.norm_place(known[:, n:]).mean(2, keepdim=True)).float()
        own = self.own(places).float()  # [B, P, W, C + 4]
        logits = (own[..., :-4] + gate[..., :-3]).permute(0, 3, 1, 2)  # [B, C, P, W]
        heat, heat_simple, turn, residual = own[..., -4:].unbind(-1)
        shared = gate[..., -3:].unbind(-1)
        evidence = f.log_evidence[:, :, None, None]
        weights = torch.softmax(evidence * _temperature(heat + shared[0])[:, None] + logits[:, :GROUPS], 1)
        simple = f.simple_evidence[:, :, None, None] * 0.5 * _temperature(heat_simple + shared[1])[:, None]
        simple_weights = torch.softmax(simple + logits[:, GROUPS:], 1)
        grouped, plain = f.differences[:, :GROUPS], f.differences[:, GROUPS:]
        change = ((weights - evidence.exp()) * grouped).sum(1)
        toward = (simple_weights * plain).sum(1) - change
        change = change + torch.tanh(turn + shared[2]) * toward
        disagree = (weights.detach() * grouped.square()).sum(1) + (simple_weights.detach() * plain.square()).sum(1)
        reach = (disagree + 1e-12).sqrt() + 0.3 * f.residual[:, None]
        change = change + 2.0 * reach * torch.tanh(residual)
        return Output(change, *self._uncertainty(f, x[:, :n], known[:, :n]), weights)

    def _uncertainty(self, f: Features, levels: Tensor, known: Tensor) -> tuple[PiecewiseMetric, Tensor, Tensor, Tensor]:
        normed = self.norm_level(levels)
        m = 3.0 * torch.tanh(self.metric(normed).float() / 3.0)  # [B, n, W, 3]
        log_metric = torch.cat([m[:, :1, :, 1], m[..., 0], m[:, -1:, :, 2]], 1)
        scales = self.scales(normed.mean(1)).float()  # [B, W, 3]
        of_assay = self.scales(self.norm_level(known).mean((1, 2))).float()
        size = f.residual * torch.exp(5.0 * torch.tanh(scales[..., 0] / 5.0))
        scatter = 0.3 * f.residual * torch.exp(5.0 * torch.tanh(scales[..., 1] / 5.0))
        dof = 2.0 + functional.softplus(2.0 + 2.0 * of_assay[:, None, 2:])
        metric = PiecewiseMetric.at_standards(f.standards, log_metric)
        return metric, 2.0 * size[:, None], scatter[:, None], dof.clamp_max(60.0)


def _temperature(x: Tensor) -> Tensor:
    """1 at 0, between e⁻⁴ and e²."""
    return torch.exp(torch.where(x < 0.0, 4.0 * torch.tanh(x / 4.0), 2.0 * torch.tanh(x / 2.0)))
