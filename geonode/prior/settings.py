"""Settings of a pre-training."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from geonode.corpus.draw import CARE, check_care, check_departures
from geonode.errors import InputError
from geonode.prior.network import NetworkSize

LEVELS = {3: 0.15, 4: 0.18, 5: 0.19, 6: 0.12, 8: 0.16, 10: 0.12, 14: 0.05, 22: 0.03}
"""Standards left in place → how often a batch has so many."""
LEFT_OUT = ("competitive", "kinetic", "redox")
"""Families of chemistry that the command leaves out of training, to judge by."""


@dataclass(frozen=True)
class PretrainSettings:
    """Everything a pre-training depends on.

    Attributes:
        steps: optimiser steps in all. warmup: steps of rising learning rate. decay: steps at the end in which it falls
            to zero (as 1 − √share); between the two it is constant, so a run can go on from before its decay.
        lr, weight_decay, clip: of the optimiser, AdamW.
        ema: decay of the averaged weights, which are what is shipped.
        tokens: (standards + places) × wavelengths of a batch; sets how many assays a batch of each shape holds.
        wavelengths, anchors: of a training assay. levels: standards left in place → share of the batches.
        chunk: how many batches of one shape are drawn together (memory against time of the host).
        accumulate: batches of a step, which processes share out (`geonode.prior.lanes`). exclude: families of chemistry
            left out (and validated on).
        care: median and logarithmic standard deviation of the laboratories' factor on errors, as the corpus takes it.
        departures: share of the assays that depart from the law of their chemistry, as the corpus takes it.
        likelihood: weight of the negative log likelihood in the loss.
        precision: as Lightning names it ("32", "bf16-mixed", …); None chooses by the device.
        seed: of the initial weights and, with lane and step, of every batch.
    """

    steps: int = 20_000
    warmup: int = 500
    decay: int = 5_000
    lr: float = 1e-3
    weight_decay: float = 0.02
    clip: float = 1.0
    ema: float = 0.999
    tokens: int = 196_608
    wavelengths: int = 48
    anchors: int = 40
    levels: dict[int, float] = field(default_factory=lambda: dict(LEVELS))
    chunk: int = 16
    accumulate: int = 1
    exclude: tuple[str, ...] = ()
    care: tuple[float, float] = CARE
    departures: float = 0.0
    likelihood: float = 0.2
    precision: str | None = None
    validate_every: int = 1_000
    validation_batches: int = 8
    size: NetworkSize = field(default_factory=NetworkSize)
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("steps", "tokens", "wavelengths", "anchors", "accumulate", "chunk", "validate_every"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, but {getattr(self, name)} was given.")
        if self.warmup < 0 or self.decay < 0 or self.warmup + self.decay > self.steps:
            raise InputError(
                f"warm-up ({self.warmup}) and decay ({self.decay}) must fit into the {self.steps} steps; give more "
                "steps or shorten them."
            )
        if not 0.0 <= self.ema < 1.0:
            raise InputError(f"ema must lie between 0 and 1, but {self.ema} was given.")
        check_care(self.care)
        check_departures(self.departures)
        if not self.levels or min(self.levels) < 2 or min(self.levels.values()) <= 0.0:
            raise InputError("levels must map numbers of standards (2 or more) to shares above zero.")

    @property
    def assays(self) -> dict[str, Any]:
        """What the corpus draws by, whatever the family."""
        return {"care": self.care, "departures": self.departures}

    def learning_rate(self, step: int) -> float:
        """Factor of ``lr`` at ``step``."""
        if step < self.warmup:
            return (step + 1) / self.warmup
        left = self.steps - step
        if left < self.decay:
            return 1.0 - (1.0 - max(left, 0) / self.decay) ** 0.5
        return 1.0

    def with_changes(self, **changes: Any) -> PretrainSettings:
        """A copy with other values; warm-up and decay shrink where fewer steps leave them no room.

        Args:
            changes: values by name.

        Raises:
            InputError: a value out of range.
        """
        if "steps" in changes:
            steps = changes["steps"]
            changes = {"warmup": min(self.warmup, steps // 10), "decay": min(self.decay, steps // 4), **changes}
        return replace(self, **changes)

    def resized(self, width: int | None, blocks: int | None) -> PretrainSettings:
        """A copy with a network of another ``width`` and number of ``blocks``; None keeps them.

        Raises:
            InputError: a width that the heads do not divide.
        """
        size = replace(self.size, width=width or self.size.width, blocks=blocks or self.size.blocks)
        if size.width % size.heads:
            raise InputError(f"The network's width must be a multiple of its {size.heads} heads, but is {size.width}.")
        return replace(self, size=size)

    def as_dict(self) -> dict[str, Any]:
        """For a model card and a checkpoint."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> PretrainSettings:
        """The inverse of `as_dict`, also of ``values`` that went through JSON."""
        whole = {
            "levels": {int(n): share for n, share in values["levels"].items()},
            "exclude": tuple(values["exclude"]),
            "care": tuple(values["care"]),
            "size": NetworkSize(**values["size"]),
        }
        return cls(**{**values, **whole})


def cpu_settings() -> PretrainSettings:
    """A small network on small assays: two cores see it learn within a minute."""
    return PretrainSettings(
        warmup=50,
        tokens=16 * 12 * 24,
        wavelengths=24,
        anchors=20,
        levels={3: 1.0, 4: 1.0, 5: 1.0, 6: 1.0, 8: 1.0},
        chunk=1,
        ema=0.99,
        validate_every=200,
        validation_batches=5,
        size=NetworkSize(width=48, blocks=2),
    )
