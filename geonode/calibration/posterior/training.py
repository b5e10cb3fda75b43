"""Training of the posterior: cross-entropy of simulated unknowns' true concentrations, and how far from them it is.

    python -m geonode.calibration.posterior.training weights/ --start posterior-2.safetensors

trains new weights from those before them: the examples are a function of the seed, and so is everything that follows.
The card beside weights has the command that made them. With ``--keep FOLDER`` examples are kept there, from which a
later run goes on.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from geonode.calibration.posterior.examples import BATCH, LEFT_OUT, Examples, examples
from geonode.calibration.posterior.network import PosteriorNetwork
from geonode.calibration.posterior.stored import load_posterior, save_posterior
from geonode.corpus import FAMILIES, UNKNOWNS
from geonode_runtime.posterior.cells import CELLS, ERRORS
from geonode_runtime.posterior.density import Posterior
from geonode_runtime.posterior.network import ABOVE, BELOW, NONE

HELD_OUT_FAMILIES = ("competitive", "kinetic", "redox")
_FARTHEST = 10.0  # times the smallest left-out error: what lies farther off counts as no farther


@dataclass(frozen=True)
class PosteriorSettings:
    """How the posterior is trained.

    Attributes:
        batches: of simulated assays (:func:`~geonode.calibration.posterior.examples.examples`).
        steps: of the optimiser.
        seed: of the assays, the network and the order. exclude: families kept for validation.
        batch: unknowns of a step. lr: largest learning rate (warm-up, then a cosine to zero). decay: of the weights.
        warm_up: steps over which the learning rate rises. look: steps between lines of the history.
        start: name of the weights that were trained on, empty for none.
        strange: weight of the loss of what the standards do not hold. distance: weight of `distances`.
    """

    batches: int = 600
    steps: int = 1600
    seed: int = 0
    exclude: tuple[str, ...] = HELD_OUT_FAMILIES
    batch: int = 256
    lr: float = 1.2e-3
    decay: float = 0.01
    strange: float = 0.1
    distance: float = 0.2
    warm_up: int = 200
    look: int = 400
    start: str = ""


def losses(network: PosteriorNetwork, batch: Examples) -> tuple[Tensor, Tensor, Tensor]:
    """``[E]`` each: cross-entropy of the truth, of whether the spectrum holds something strange, and `distances`.

    The first is that of whether any concentration explains the spectrum, and of which one does: of that ``among``.
    """
    outcome = network(batch.values.float(), batch.whole, batch.base, batch.odd, batch.even.float())
    chance = outcome.logs.gather(1, batch.label[:, None])[:, 0]
    known = torch.where(batch.label == NONE, chance, torch.logsumexp(outcome.logs[:, :NONE], 1))
    surprise = -known - batch.among * (chance - known)
    strange = (batch.kind >= UNKNOWNS.index("interferent")) & (batch.kind != LEFT_OUT)
    entropy = torch.nn.functional.binary_cross_entropy_with_logits(outcome.strange, strange.float(), reduction="none")
    return surprise, entropy, batch.among * distances(outcome.logs, batch)


def distances(logs: Tensor, batch: Examples) -> Tensor:
    """How far the posterior with ``logs [E, CELLS + 3]`` lies from the truth ``[E]``: the continuous ranked probability
    score (Gneiting & Raftery 2007, J. Am. Stat. Assoc. 102, 359) inside the searched range ÷ the smallest left-out
    error of any method there, at most `_FARTHEST`; 0 where the truth is not in that range.

    The cross-entropy is the same for mass one cell and ten cells from the truth; this is not.
    """
    share = torch.softmax(logs[:, :NONE], 1).double()
    edges, truth = batch.edges, batch.truth.nan_to_num(-9.0)[:, None]  # float64: cells may be as narrow as 1e-7
    width = edges.diff(dim=1)
    over = share[:, BELOW, None] + share[:, :CELLS].cumsum(1)
    middle = over - 0.5 * share[:, :CELLS]  # cumulative at the middle of every cell
    above = ((edges[:, 1:] - truth) / width).clamp(0.0, 1.0)  # what part of a cell is above the truth
    score = (width * (middle**2 * (1.0 - above) + (1.0 - middle) ** 2 * above)).sum(1)
    scale = torch.exp(2.0 * batch.whole[:, ERRORS]).amin(1).clamp(1e-4, 1.0)
    inside = (truth >= edges[:, :1]) & (truth <= edges[:, -1:])
    return torch.where(inside[:, 0], score / scale, 0.0).clamp_max(_FARTHEST).float()


def train(
    data: Examples,
    settings: PosteriorSettings,
    validation: dict[str, Examples] | None = None,
    report: Callable[[PosteriorNetwork, dict[str, Any]], None] | None = None,
    start: PosteriorNetwork | None = None,
) -> tuple[PosteriorNetwork, list[dict[str, Any]]]:
    """The network with averaged weights, and the history of its losses.

    Args:
        data: to learn from. validation: sets by name, looked at every ``settings.look`` steps, never learned from.
        report: called with the averaged network and every line of the history.
        start: what is trained on; None for a new one.
    """
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        network = PosteriorNetwork() if start is None else copy.deepcopy(start).requires_grad_(True)
    average = copy.deepcopy(network).requires_grad_(False)
    optimizer = torch.optim.AdamW(network.parameters(), lr=settings.lr, weight_decay=settings.decay)
    history: list[dict[str, Any]] = []
    window: list[float] = []
    started = time.perf_counter()
    for step, rows in enumerate(_batches(len(data), settings), 1):
        rate = min(1.0, step / settings.warm_up) * 0.5 * (1.0 + math.cos(math.pi * (step - 1) / settings.steps))
        for group in optimizer.param_groups:
            group["lr"] = settings.lr * rate
        batch = data[rows]
        surprise, strange, distance = losses(network, batch)
        weight = batch.weight / batch.weight.sum()
        loss = (weight * (surprise + settings.strange * strange + settings.distance * distance)).sum()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        keep = min(0.998, (step - 1) / (step + 19.0))
        with torch.no_grad():
            for mean, now in zip(average.parameters(), network.parameters(), strict=True):
                mean.lerp_(now, 1.0 - keep)
        window.append(float(loss.detach()))
        if step % settings.look == 0 or step == settings.steps:
            line = {"step": step, "seconds": round(time.perf_counter() - started), "loss": _mean(window)}
            line |= {f"loss, {name}": round(mean_loss(average, one), 4) for name, one in (validation or {}).items()}
            history.append(line)
            window = []
            if report is not None:
                report(average, line)
    return average, history


def _batches(count: int, settings: PosteriorSettings) -> Iterator[Tensor]:
    """Rows of every step: one random order of all after the other."""
    generator = torch.Generator().manual_seed(settings.seed)
    size = min(settings.batch, count)
    done = 0
    while True:
        order = torch.randperm(count, generator=generator)
        for rows in order[: count // size * size].split(size):
            if done == settings.steps:
                return
            done += 1
            yield rows


@torch.no_grad()
def mean_loss(network: PosteriorNetwork | None, data: Examples) -> float:
    """Mean surprise at the truth; None: of the network as it begins."""
    network = PosteriorNetwork() if network is None else network
    parts = [losses(network, data[rows])[0] for rows in torch.arange(len(data)).split(1024)]
    return float((torch.cat(parts) * data.weight).sum() / data.weight.sum())


@torch.no_grad()
def covered(network: PosteriorNetwork, data: Examples, level: float = 0.8) -> float:
    """Share of the samples and left-out levels inside the calibrated range whose set at ``level`` holds the truth."""
    genuine = (data.kind == UNKNOWNS.index("sample")) | (data.kind == LEFT_OUT)
    rows = torch.nonzero(genuine & (data.truth >= 0.0) & (data.truth <= 1.0))[:, 0]
    hits = []
    for some in rows.split(1024):
        batch = data[some]
        outcome = network(batch.values.float(), batch.whole, batch.base, batch.odd, batch.even.float())
        chance = torch.softmax(outcome.logs[:, :NONE].double(), 1).numpy()
        for edges, p, truth in zip(batch.edges.numpy(), chance, batch.truth.tolist(), strict=True):
            one = Posterior(edges, p[:CELLS], float(p[BELOW]), float(p[ABOVE]), 0.0, 1.0, False)
            hits.append(one.highest(level).contains(truth))
    return round(sum(hits) / max(len(hits), 1), 4)


def _mean(values: list[float]) -> float:
    return round(sum(values) / max(len(values), 1), 4)


def main() -> None:
    """Draw the examples, train, write weights and card."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="for weights and model card")
    parser.add_argument("--batches", type=int, default=PosteriorSettings.batches, help="of 32 simulated assays")
    parser.add_argument("--steps", type=int, default=PosteriorSettings.steps)
    parser.add_argument("--seed", type=int, default=PosteriorSettings.seed)
    parser.add_argument("--start", type=Path, help="weights to train on, in place of new ones")
    parser.add_argument("--keep", type=Path, help="folder that keeps the examples for a later run")
    args = parser.parse_args()
    torch.set_num_threads(1)
    start = None if args.start is None else load_posterior(args.start)
    name = "" if args.start is None else args.start.stem
    settings = PosteriorSettings(batches=args.batches, steps=args.steps, seed=args.seed, start=name)
    data = examples(settings.batches, seed=settings.seed, exclude=settings.exclude, progress=_say, keep=args.keep)
    validation = {
        "families left out": examples(20, seed=settings.seed + 1000, families=settings.exclude, keep=args.keep),
        "same families": examples(15, seed=settings.seed + 2000, exclude=settings.exclude, keep=args.keep),
    }

    def report(network: PosteriorNetwork, line: dict[str, Any]) -> None:
        print(line, flush=True)
        save_posterior(network, {"unfinished": line}, args.folder)

    network, history = train(data, settings, validation, report, start)
    card = card_of(network, settings, len(data), history, validation, start)
    made = f"python -m geonode.calibration.posterior.training weights/ {_words(args)}, one thread of a CPU"
    begun = {} if args.start is None else {"start": {"name": name, "sha256": _digest(args.start)}}
    print(save_posterior(network, {**card, "made with": made, **begun}, args.folder))


def card_of(
    network: PosteriorNetwork,
    settings: PosteriorSettings,
    count: int,
    history: list[dict[str, Any]],
    validation: dict[str, Examples],
    start: PosteriorNetwork | None = None,
) -> dict[str, Any]:
    """What users of the weights should know."""
    return {
        "what": "posterior of a concentration given a spectrum and the standards, from estimates and their errors",
        "trained on": "geonode.corpus alone; no real spectra",
        "families": [name for name in FAMILIES if name not in settings.exclude],
        "families left out": list(settings.exclude),
        "unknowns": count,
        "assays": settings.batches * BATCH,
        "settings": asdict(settings),
        "loss at the start": {name: round(mean_loss(start, one), 4) for name, one in validation.items()},
        "loss curve": history,
        "80 % sets cover": {name: covered(network, one) for name, one in validation.items()},
        "known failures": [
            "an interferent whose spectrum is a mix of the standards' cannot be told from the analyte",
            "two concentrations that give one spectrum stay two pieces",
        ],
    }


def _words(args: argparse.Namespace) -> str:
    """The arguments of the command that decide the weights."""
    words = [f"--{name} {getattr(args, name)}" for name in ("batches", "steps", "seed")]
    return " ".join(words if args.start is None else [*words, f"--start {args.start.name}"])


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _say(done: int, total: int) -> None:
    if done % 50 == 0 or done == total:
        print(f"{done} of {total} batches of assays", flush=True)


if __name__ == "__main__":
    main()
