"""`LossConfig`: the weights of the loss terms."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from geonode.settings import check_kind, check_minimum
from geonode.training.terms.base import LOSSES


@dataclass(frozen=True, init=False)
class LossConfig:
    """Weights of the loss terms by name. The reconstruction's is the unit; the rest are relative to it.

    Args:
        weights: by the names of registered terms; a term that is not named has its own default weight.
        ramp: the fraction of the training over which the regularisers grow linearly from 0 to their weight, so that
            the data speak first.
        terms: weights as keywords, ``LossConfig(smoothness=1e-4)``; they go before ``weights``.

    Raises:
        InputError: a term that is not registered, or a weight that is no number or negative.
    """

    component: ClassVar[str] = "loss"

    weights: Mapping[str, float] = dataclasses.field(hash=False)
    ramp: float = 0.2

    def __init__(self, weights: Mapping[str, float] | None = None, ramp: float = 0.2, **terms: float) -> None:
        if weights is not None:
            check_kind("loss.weights", weights, "Mapping")
        given = {**(weights or {}), **terms}
        check_kind("loss.ramp", ramp, "float")
        for name, value in given.items():
            LOSSES.check(name, "loss term")
            check_kind(f"loss.{name}", value, "float")
            check_minimum(f"loss.{name}", value, 0.0)
        complete = {name: float(given.get(name, term.weight)) for name, term in LOSSES.items()}
        object.__setattr__(self, "weights", complete)
        object.__setattr__(self, "ramp", ramp)

    def replace(self, **changes: Any) -> LossConfig:
        """A copy with some weights changed: ``changes`` are those of the constructor, over the present ones."""
        weights = {**self.weights, **changes.pop("weights", {})}
        return LossConfig(weights, **{"ramp": self.ramp, **changes})

    def at(self, progress: float) -> dict[str, float]:
        """Weights at ``progress`` ∈ [0, 1] of the training."""
        scale = 1.0 if self.ramp <= 0 else min(1.0, progress / self.ramp)
        return {name: weight * (scale if LOSSES[name].ramped else 1.0) for name, weight in self.weights.items()}
