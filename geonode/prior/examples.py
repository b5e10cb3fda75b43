"""From simulated assays to what the network is trained on: one level taken out, further places asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from geonode.corpus import Assays, draw
from geonode.corpus.draw import CARE
from geonode.prior.anchors import anchors_first

QUERIES = 4
"""Places asked for beside the level that is taken out."""
_EDGE = 0.25  # how often the lowest level is taken out, and how often the highest


@dataclass(frozen=True)
class Shape:
    """Shape of a batch: assays, standards left in place, wavelengths, and how many of those are anchors."""

    batch: int
    levels: int
    wavelengths: int
    anchors: int


@dataclass(frozen=True)
class Examples:
    """A batch of assays with one level taken out, and what was measured and is true at the places asked for.

    Place 0 is the level taken out; the others lie anywhere. Wavelengths are reordered: the anchors come first.

    Attributes:
        levels: ``[B, n]`` ascending. means: ``[B, n, W]``. replicate_variance: ``[B, W]``, NaN where there are none.
        places: ``[B, P]``. measured, truth: ``[B, P, W]``. held: ``[B]`` which level was taken out.
        family, noise: ``[B]`` kinds of chemistry and of noise, as the corpus numbers them.
    """

    levels: Tensor
    means: Tensor
    replicate_variance: Tensor
    places: Tensor
    measured: Tensor
    truth: Tensor
    held: Tensor
    family: Tensor
    noise: Tensor

    def split(self, size: int) -> list[Examples]:
        """Cut into batches of ``size`` assays (views)."""
        parts = [getattr(self, field.name).split(size) for field in fields(self)]
        return [Examples(*part) for part in zip(*parts, strict=True)]


def draw_examples(
    shape: Shape,
    *,
    seed: int,
    step: int = 0,
    device: torch.device | str = "cpu",
    families: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    care: tuple[float, float] = CARE,
    departures: float = 0.0,
) -> Examples:
    """A batch that depends on ``seed``, ``step`` and the shape alone; what else is given, the corpus takes."""
    assays = draw(
        shape.batch,
        shape.levels + 1,
        shape.wavelengths,
        QUERIES,
        seed=seed,
        step=step,
        device=device,
        families=families,
        exclude=exclude,
        care=care,
        departures=departures,
        dtype=torch.float32,
    )
    generator = torch.Generator(device).manual_seed((seed * 1_000_003 + step) % (2**63 - 1) ^ 0x5EED)
    chance = torch.rand(shape.batch, generator=generator, device=device)
    # Rescaled so that what is left of the unit interval picks an interior level.
    interior = 1 + ((chance - 2 * _EDGE) / (1 - 2 * _EDGE) * (shape.levels - 1)).long().clamp(0, shape.levels - 2)
    held = torch.where(chance < _EDGE, 0, torch.where(chance < 2 * _EDGE, shape.levels, interior))
    return take_out(assays, held, shape.anchors)


def take_out(assays: Assays, held: Tensor, anchors: int) -> Examples:
    """The assays without level ``held [B]``, which becomes the first of the places asked for."""
    n = assays.concentration.shape[1] - 1
    kept = torch.arange(n, device=held.device).expand(len(held), n)
    kept = kept + (kept >= held[:, None])
    order = anchors_first(assays.spectra.shape[-1], anchors, held.device)
    one = held[:, None]

    def rows(values: Tensor, index: Tensor) -> Tensor:
        return values[..., order].gather(1, index[..., None].expand(-1, -1, len(order)))

    return Examples(
        levels=assays.concentration.gather(1, kept),
        means=rows(assays.spectra, kept),
        replicate_variance=_pooled(assays, kept)[..., order],
        places=torch.cat([assays.concentration.gather(1, one), assays.query_concentration], 1),
        measured=torch.cat([rows(assays.spectra, one), assays.query_spectra[..., order]], 1),
        truth=torch.cat([rows(assays.truth, one), assays.query_truth[..., order]], 1),
        held=held,
        family=assays.family,
        noise=assays.noise,
    )


def _pooled(assays: Assays, kept: Tensor) -> Tensor:
    """Variance of a replicate about its level, pooled over the kept levels: ``[B, W]``; NaN without repeats."""
    freedom = (assays.count.gather(1, kept) - 1).to(assays.spectra.dtype)[..., None]
    index = kept[..., None].expand(-1, -1, assays.spectra.shape[-1])
    squares = (freedom * assays.replicate_variance.gather(1, index)).sum(1)
    total = freedom.sum(1)
    return torch.where(total > 0.0, squares / total.clamp_min(1.0), torch.nan)
