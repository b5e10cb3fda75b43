"""Training of the posterior: cross-entropy of simulated unknowns' true concentrations.

    python -m geonode.calibration.posterior.training weights/ --batches 500 --epochs 4

makes the weights that ship again: the examples are a function of the seed, and so is everything that follows.
"""

from __future__ import annotations

import argparse
import copy
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from geonode.calibration.posterior.cells import CELLS
from geonode.calibration.posterior.examples import LEFT_OUT, Examples, examples
from geonode.calibration.posterior.network import NONE, PosteriorNetwork
from geonode.corpus import UNKNOWNS

HELD_OUT_FAMILIES = ("competitive", "kinetic", "redox")


@dataclass(frozen=True)
class PosteriorSettings:
    """How the posterior is trained.

    Attributes:
        batches: of simulated assays (:func:`~geonode.calibration.posterior.examples.examples`). epochs: over them.
        seed: of the assays, the network and the order. exclude: families kept for validation.
        batch: unknowns of a step. lr: largest learning rate (warm-up, then a cosine to zero). decay: of the weights.
        strange: weight of the loss of what the standards do not hold.
    """

    batches: int = 500
    epochs: int = 4
    seed: int = 0
    exclude: tuple[str, ...] = HELD_OUT_FAMILIES
    batch: int = 256
    lr: float = 2e-3
    decay: float = 0.01
    strange: float = 0.1


def losses(network: PosteriorNetwork, batch: Examples) -> tuple[Tensor, Tensor]:
    """Cross-entropy of the truth ``[E]``, and of whether the spectrum holds something strange ``[E]``."""
    outcome = network(batch.values.float(), batch.whole, batch.base, batch.odd, batch.even.float())
    surprise = -outcome.logs.gather(1, batch.label[:, None])[:, 0]
    strange = (batch.kind >= UNKNOWNS.index("interferent")) & (batch.kind != LEFT_OUT)
    return surprise, torch.nn.functional.binary_cross_entropy_with_logits(
        outcome.strange, strange.float(), reduction="none"
    )


def train(
    data: Examples,
    settings: PosteriorSettings,
    validation: dict[str, Examples] | None = None,
    report: Callable[[dict[str, Any]], None] | None = None,
    max_seconds: float = math.inf,
) -> tuple[PosteriorNetwork, list[dict[str, Any]]]:
    """The network with averaged weights, and the history of its losses.

    Args:
        data: to learn from. validation: sets by name, looked at after every epoch, never learned from.
        report: called with every line of the history.
        max_seconds: the learning rate falls to zero by then at the latest.
    """
    generator = torch.Generator().manual_seed(settings.seed)
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        network = PosteriorNetwork()
    average = copy.deepcopy(network).requires_grad_(False)
    optimizer = torch.optim.AdamW(network.parameters(), lr=settings.lr, weight_decay=settings.decay)
    steps = settings.epochs * (len(data) // settings.batch)
    history: list[dict[str, Any]] = []
    step, started, begun = 0, time.perf_counter(), 0.0
    window: list[float] = []
    for epoch in range(settings.epochs):
        order = torch.randperm(len(data), generator=generator)
        for rows in order[: len(data) // settings.batch * settings.batch].split(settings.batch):
            begun = max(step / steps, (time.perf_counter() - started) / max_seconds)
            if begun >= 1.0:
                break
            rate = min(1.0, (step + 1) / 200) * 0.5 * (1.0 + math.cos(math.pi * begun))
            for group in optimizer.param_groups:
                group["lr"] = settings.lr * rate
            batch = data[rows]
            surprise, strange = losses(network, batch)
            weight = batch.weight / batch.weight.sum()
            loss = (weight * (surprise + settings.strange * strange)).sum()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            keep = min(0.998, step / (step + 20.0))
            with torch.no_grad():
                for mean, now in zip(average.parameters(), network.parameters(), strict=True):
                    mean.lerp_(now, 1.0 - keep)
            window.append(float(loss.detach()))
            step += 1
            if step % 250 == 0:
                line = {"step": step, "seconds": round(time.perf_counter() - started), "loss": _mean(window)}
                history.append(line)
                window = []
                if report is not None:
                    report(line)
        for name, one in (validation or {}).items():
            line = {"epoch": epoch + 1, "set": name, "loss": mean_loss(average, one), "start": mean_loss(None, one)}
            history.append(line)
            if report is not None:
                report(line)
        if begun >= 1.0:
            break
    return average, history


@torch.no_grad()
def mean_loss(network: PosteriorNetwork | None, data: Examples) -> float:
    """Mean surprise at the truth; None: of the network as it begins."""
    network = PosteriorNetwork() if network is None else network
    parts = [losses(network, data[rows])[0] for rows in torch.arange(len(data)).split(1024)]
    return float((torch.cat(parts) * data.weight).sum() / data.weight.sum())


def _mean(values: list[float]) -> float:
    return round(sum(values) / max(len(values), 1), 4)
