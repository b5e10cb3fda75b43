"""Batches of examples by their numbers, several drawn at once: 300 assays cost the host as much as 4800."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch

from geonode.prior.examples import QUERIES, Examples, Shape, draw_examples
from geonode.prior.features import Features, features
from geonode.prior.settings import PretrainSettings


@dataclass(frozen=True)
class Batch:
    """Examples and their features."""

    examples: Examples
    features: Features

    def double(self) -> Batch:
        """The same in float64 throughout."""
        return Batch(_double(self.examples), _double(self.features))


def _double(part: Any) -> Any:
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    return replace(part, **{name: value.double() for name, value in values.items() if value.dtype == torch.float32})


def levels_of(settings: PretrainSettings, number: int) -> int:
    """Standards in batch ``number``, by their shares."""
    levels, shares = list(settings.levels), list(settings.levels.values())
    return random.Random(settings.seed * 1_000_003 + number).choices(levels, shares)[0]


def sized(settings: PretrainSettings, levels: int) -> Shape:
    """A batch of assays with ``levels`` standards: as many as the budget of tokens holds."""
    rows = levels + 1 + QUERIES
    batch = max(4, settings.tokens // (rows * settings.wavelengths) // 4 * 4)
    return Shape(batch, levels, settings.wavelengths, settings.anchors)


def make(shape: Shape, *, seed: int, step: int, device: torch.device | str, **kind: Any) -> Batch:
    """A batch and its features, without a graph; ``kind``: families, exclude, care and departures of the assays."""
    return with_features(draw_examples(shape, seed=seed, step=step, device=device, **kind))


@torch.no_grad()
def with_features(examples: Examples) -> Batch:
    """Examples and what the network sees of them, in full precision, without a graph."""
    with torch.autocast(examples.levels.device.type, enabled=False):
        values = (examples.levels, examples.means, examples.places, examples.replicate_variance)
        return Batch(examples, features(*values))


class Feed:
    """Batches by their numbers; ``settings.chunk`` batches of one shape are drawn together and kept for later.

    Batch ``number`` is the k-th of its number of standards; it is part k modulo chunk of draw k div chunk. It depends
    on seed, lane and number alone, and a resumed run goes on with the same batches.

    Args:
        settings: of the pre-training.
        start: number of the first batch that will be asked for; the others follow in order.
        lane: batches of a step differ by it (`geonode.prior.lanes`).
        device: where they are drawn.
    """

    def __init__(self, settings: PretrainSettings, start: int, lane: int, device: torch.device | str) -> None:
        self.settings, self.device = settings, device
        self.seed = settings.seed * 10_007 + lane
        self.count = Counter(levels_of(settings, number) for number in range(start))
        self.kept: dict[int, Sequence[Examples]] = {}

    def batch(self, number: int) -> Examples:
        """The next batch, number ``number``."""
        levels = levels_of(self.settings, number)
        draw, part = divmod(self.count[levels], self.settings.chunk)
        self.count[levels] += 1
        if part == 0 or levels not in self.kept:
            self.kept[levels] = self._draw(levels, draw)
        return self.kept[levels][part]

    def _draw(self, levels: int, draw: int) -> Sequence[Examples]:
        shape = sized(self.settings, levels)
        many = replace(shape, batch=shape.batch * self.settings.chunk)
        kind = {"exclude": self.settings.exclude, **self.settings.assays}
        drawn = draw_examples(many, seed=self.seed, step=draw, device=self.device, **kind)
        return drawn.split(shape.batch)
