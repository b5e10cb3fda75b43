"""Batches with their features, several at once: drawing 300 assays costs the host as much as drawing 2400."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from geonode.prior.examples import QUERIES, Examples, Shape, draw_examples
from geonode.prior.features import Features, features
from geonode.prior.settings import PretrainSettings


@dataclass(frozen=True)
class Batch:
    """Examples and their features."""

    examples: Examples
    features: Features

    def tensors(self) -> list[Tensor]:
        """All of them, in a fixed order."""
        return [getattr(part, field.name) for part in (self.examples, self.features) for field in fields(part)]

    def map(self, function: Callable[[Tensor], Tensor]) -> Batch:
        """The batch with ``function`` of every tensor in its place."""
        changed = [
            type(part)(**{field.name: function(getattr(part, field.name)) for field in fields(part)})
            for part in (self.examples, self.features)
        ]
        return Batch(*changed)


def levels_of(settings: PretrainSettings, number: int) -> int:
    """Standards in batch ``number``, by their shares."""
    levels, shares = list(settings.levels), list(settings.levels.values())
    return random.Random(settings.seed * 1_000_003 + number).choices(levels, shares)[0]


def sized(settings: PretrainSettings, levels: int) -> Shape:
    """A batch of assays with ``levels`` standards: as many as the budget of tokens holds."""
    rows = levels + 1 + QUERIES
    batch = max(4, settings.tokens // (rows * settings.wavelengths) // 4 * 4)
    return Shape(batch, levels, settings.wavelengths, settings.anchors)


def make(shape: Shape, *, seed: int, step: int, device: torch.device | str, families=None, exclude=()) -> Batch:
    """A batch and its features, without a graph."""
    examples = draw_examples(shape, seed=seed, step=step, device=device, families=families, exclude=exclude)
    with torch.no_grad(), torch.autocast(torch.device(device).type, enabled=False):
        return Batch(examples, features(examples.levels, examples.means, examples.places, examples.replicate_variance))


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
        self.kept: dict[int, Sequence[Batch]] = {}

    def batch(self, number: int) -> Batch:
        """The next batch, number ``number``."""
        levels = levels_of(self.settings, number)
        draw, part = divmod(self.count[levels], self.settings.chunk)
        self.count[levels] += 1
        if part == 0 or levels not in self.kept:
            self.kept[levels] = self._draw(levels, draw)
        return self.kept[levels][part]

    def _draw(self, levels: int, draw: int) -> list[Batch]:
        shape = sized(self.settings, levels)
        many = replace(shape, batch=shape.batch * self.settings.chunk)
        batch = make(many, seed=self.seed, step=draw, device=self.device, exclude=self.settings.exclude)
        pairs = zip(batch.examples.split(shape.batch), batch.features.split(shape.batch), strict=True)
        return [Batch(*pair) for pair in pairs]
