"""Training of the adapters: the loss of pre-training, on levels left out of real calibrations.

Of a real calibration nothing is known but what was measured, so the place asked for is the level that was left out, and
its measured spectrum is all that the loss compares with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import torch
from torch import Tensor

from geonode.adaptation.lowrank import adapters, merged, with_adapters
from geonode.adaptation.series import Series
from geonode.errors import InputError
from geonode.prior.anchors import anchors_first
from geonode.prior.examples import Examples
from geonode.prior.features import Features, Reading
from geonode.prior.loss import errors, total
from geonode.prior.network import Network, Output
from geonode.prior.reading import ANCHORS

_WARMUP = 10
_CLIP = 1.0


@dataclass(frozen=True)
class AdaptSettings:
    """Everything a tuning depends on besides weights and series; chosen on simulated instruments.

    Attributes:
        rank: of the adapters.
        steps: of the optimiser, AdamW, whose rate rises for ten steps and then falls to zero.
        lr: its highest learning rate.
        batch: levels left out that a step looks at, at most.
        wavelengths: of a series that training looks at (40 of them the anchors that all others listen to).
        seed: of what the adapters start from, of the wavelengths and of the batches' order.
    """

    rank: int = 4
    steps: int = 60
    lr: float = 5e-3
    batch: int = 12
    wavelengths: int = 48
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("rank", "steps", "batch", "wavelengths"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, but {getattr(self, name)} was given.")
        if not self.lr > 0.0:
            raise InputError(f"lr must be above zero, but {self.lr:g} was given.")

    def as_dict(self) -> dict[str, Any]:
        """For a model card."""
        return asdict(self)


@dataclass(frozen=True)
class Tuned:
    """A network after tuning.

    Attributes:
        network: with the adapters merged into its weights.
        before, after: loss over all levels left out of the series that it was tuned on.
    """

    network: Network
    before: float
    after: float


@dataclass(frozen=True)
class Lesson:
    """The levels left out of one series: what the network sees, what was measured, and its tokens so far."""

    features: Features
    examples: Examples
    tokens: Tensor

    def rows(self, chosen: Tensor) -> Lesson:
        """Those of some of the levels that were left out."""
        return Lesson(_rows(self.features, chosen), _rows(self.examples, chosen), self.tokens[chosen])


def tune(
    network: Network,
    series: Sequence[Series],
    settings: AdaptSettings | None = None,
    device: torch.device | str = "cpu",
    progress: Callable[[int, int], None] | None = None,
) -> Tuned:
    """Train adapters on ``series`` and merge them into a copy of ``network``, which stays as it is.

    Args:
        network: the weights to begin with.
        series: all are trained on; whatever judges must be left out by the caller.
        settings: None for the default ones. device: where it is trained; float64 is needed there.
        progress: called as ``progress(step, steps)``.

    Raises:
        InputError: a loss that is not finite.
    """
    settings = settings or AdaptSettings()
    adapted = with_adapters(network, settings.rank, settings.seed).to(device)
    order = torch.Generator().manual_seed(settings.seed)
    groups = _grouped([_lesson(adapted, one, settings, order, device) for one in series])
    before = _loss_of_all(adapted, groups)
    trained = adapters(adapted)
    optimiser = torch.optim.AdamW(trained, lr=settings.lr, weight_decay=0.0, betas=(0.9, 0.98))
    waiting: list[Lesson] = []
    for step in range(settings.steps):
        waiting = waiting or _shuffled(groups, settings.batch, order)
        for group in optimiser.param_groups:
            group["lr"] = settings.lr * min(1.0, (step + 1) / _WARMUP) * (1.0 - step / settings.steps)
        _loss(adapted, waiting.pop()).backward()
        torch.nn.utils.clip_grad_norm_(trained, _CLIP)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        if progress is not None:
            progress(step + 1, settings.steps)
    after = _loss_of_all(adapted, groups)
    if not after < float("inf"):
        raise InputError("The loss did not stay finite while the weights were adapted; give a smaller lr.")
    return Tuned(merged(adapted), before, after)


@torch.no_grad()
def _lesson(
    network: Network, one: Series, settings: AdaptSettings, draw: torch.Generator, device: torch.device | str
) -> Lesson:
    """Every level that is left out as one batch; some wavelengths, the anchors first, as a fit reads them."""
    width = one.means.shape[1]
    order = anchors_first(width, ANCHORS)
    anchors = min(ANCHORS, width)
    others = order[anchors:][torch.randperm(width - anchors, generator=draw)]
    columns = torch.cat([order[:anchors], others])[: max(settings.wavelengths, anchors)].to(device)
    levels, means = (torch.tensor(values, device=device) for values in (one.levels, one.means))
    kept = torch.stack([torch.from_numpy(one.kept(int(i))) for i in one.left_out]).to(device)
    held = torch.from_numpy(one.left_out).to(device)
    places, measured = levels[held][:, None], means[held][:, None][..., columns]
    missing = torch.full((width,), torch.nan, dtype=torch.float64, device=device)
    variance = torch.stack([missing if v is None else torch.tensor(v, device=device) for v in one.variances])
    features = Reading(levels[kept], means[kept], places, variance).features(columns)
    none = torch.zeros_like(held)  # chemistry and noise of real spectra have no number
    examples = Examples(
        levels[kept], means[kept][..., columns], variance[:, columns], places, measured, measured, held, none, none
    )
    tokens, n = network.embed(features), kept.shape[1]
    for block in network.all_blocks[:-1]:
        tokens = block(tokens, n, anchors)
    return Lesson(features, examples, tokens)


def _output(network: Network, lesson: Lesson) -> Output:
    """From the tokens before the last block on: where the adapters are."""
    anchors = min(ANCHORS, lesson.tokens.shape[2])
    x = network.all_blocks[-1](lesson.tokens, lesson.features.level_numbers.shape[1], anchors)
    return network.heads(lesson.features, x, x[:, :, :anchors])


def _loss(network: Network, lesson: Lesson) -> Tensor:
    # what was measured stands for the truth: there is no other, and at this one place the loss's terms agree
    return total(errors(lesson.features, _output(network, lesson), lesson.examples))


@torch.no_grad()
def _loss_of_all(network: Network, groups: Sequence[Lesson]) -> float:
    """Mean loss over the levels left out, each counting alike."""
    found = [_loss(network, group).item() * len(group.tokens) for group in groups]
    return sum(found) / sum(len(group.tokens) for group in groups)


def _grouped(lessons: Sequence[Lesson]) -> list[Lesson]:
    """Those of one shape as one."""
    alike: dict[torch.Size, list[Lesson]] = {}
    for lesson in lessons:
        alike.setdefault(lesson.tokens.shape[1:], []).append(lesson)
    return [
        Lesson(
            _joined([one.features for one in group]),
            _joined([one.examples for one in group]),
            torch.cat([one.tokens for one in group]),
        )
        for group in alike.values()
    ]


def _shuffled(groups: Sequence[Lesson], size: int, draw: torch.Generator) -> list[Lesson]:
    """All levels left out in batches of at most ``size`` of one shape each, in another order every time."""
    batches = []
    for group in groups:
        mixed = torch.randperm(len(group.tokens), generator=draw).to(group.tokens.device)
        batches += [group.rows(chosen) for chosen in mixed.split(size)]
    return [batches[int(i)] for i in torch.randperm(len(batches), generator=draw)]


def _joined(parts: Sequence[Any]) -> Any:
    """Batches of features or of examples as one."""
    kind = type(parts[0])
    return kind(*[torch.cat([getattr(part, field.name) for part in parts]) for field in fields(kind)])


def _rows(batch: Any, chosen: Tensor) -> Any:
    kind = type(batch)
    return kind(*[getattr(batch, field.name)[chosen] for field in fields(kind)])
