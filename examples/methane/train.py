"""Stage 2: train the network, fit geonode's calibrator, and compare both on scans that neither has seen.

Scans are streamed, so a million of them need no more memory than a thousand. The state after each epoch is kept: the
same command with --resume goes on from there, and ends where the uninterrupted run ends. What is kept of the network is
its best state by the validation scans.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import PPM, ScanRegressor, apparent_absorbance, arguments, device_of, run, write_text
from safetensors.torch import save_file
from stream import in_order, shuffled, split

from geonode import GeodesicConfig, fit
from geonode.data import load_standards
from geonode.data.methane import ScanFile
from geonode.errors import InputError
from geonode.model import GeodesicModel
from geonode.training.checkpoint import load_checkpoint, save_checkpoint

BANDS = (2.0, 10.0, 100.0, 1e3, 1e4, 1e5)
"""ppm; from the lowest mole fraction that is drawn to the highest."""
COMPARED = 1000
STATE = "training.checkpoint"


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--rate", type=float, default=1e-2, help="highest learning rate")
    parser.add_argument("--resume", action="store_true", help="go on after the last epoch that was finished")
    options = parser.parse_args()
    device = device_of(options.device)
    with ScanFile(options.project / "scans.h5") as scans:
        training, validation, test = split(len(scans))
        trained = train(scans, training, validation, options, device, options.project / STATE)
        network = trained.best_network().to(device)
        errors = {"validation": trained.best, "test": rmse(network, scans, test, device)}
        print(
            f"network: {errors['test']:.4f} decades RMS on {len(test)} scans that it has not seen "
            f"({errors['validation']:.4f} on the {len(validation)} that choices may rest on), as it was after epoch "
            f"{trained.best_epoch}"
        )
        model = fit(load_standards(options.project / "standards.nc"), GeodesicConfig(predictor="gp"), device="cpu")
        model.save(options.project / "calibrator.bundle")
        compare(model, network, scans, range(test.start, min(test.stop, test.start + COMPARED)), device)
        samples = int(scans.settings["instrument"]["samples"])
    described = {"width": options.width, "samples": samples, "rmse_decades": errors, "seed": options.seed}
    part = options.project / "cnn.safetensors.part"
    save_file({name: value.cpu().contiguous() for name, value in network.state_dict().items()}, part)
    part.replace(options.project / "cnn.safetensors")
    write_text(options.project / "cnn.json", json.dumps(described, indent=2))
    rows = "".join(f"{e},{loss:.6g},{error:.6g}\n" for e, (loss, error) in enumerate(trained.history))
    write_text(options.project / "training.csv", "epoch,loss,validation_decades\n" + rows)
    print(f"peak memory {peak_memory() / 1e9:.2f} GB")


@dataclass
class Trained:
    """A network on its way: its state, the best one so far, and (mean loss, validation error) of each epoch."""

    network: ScanRegressor
    width: int
    best: float = float("inf")
    best_epoch: int = -1
    best_state: dict[str, torch.Tensor] = field(default_factory=dict)
    history: list[tuple[float, float]] = field(default_factory=list)

    def best_network(self) -> ScanRegressor:
        """The network as it was when it erred least on the validation scans."""
        network = ScanRegressor(self.width)
        network.load_state_dict(self.best_state)
        return network


def train(
    scans: ScanFile, rows: range, validation: range, options: Any, device: torch.device, state: Path | None = None
) -> Trained:
    """Train a network of ``options.width`` on the rows, a stream of them each epoch.

    Args:
        scans: the file.
        rows: scans to learn from. validation: scans by which the best epoch is chosen.
        options: epochs, batch, width, rate, seed, resume.
        device: where.
        state: file of the state after each epoch; None keeps none.

    Raises:
        InputError: ``options.resume`` where the state is that of another training.
    """
    torch.manual_seed(options.seed)
    found = Trained(ScanRegressor(options.width).to(device), options.width)
    optimiser = torch.optim.AdamW(found.network.parameters(), lr=options.rate, weight_decay=1e-4)
    steps = options.epochs * -(-len(rows) // options.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, options.rate, total_steps=steps)
    about = describe(scans, rows, options)
    if state is not None and options.resume and state.is_file():
        restore(found, optimiser, schedule, load_checkpoint(state), about, state)
    for epoch in range(len(found.history), options.epochs):
        started = time.perf_counter()
        loss = one_epoch(found.network, optimiser, schedule, shuffled(scans, rows, options.batch, options.seed, epoch))
        seconds = time.perf_counter() - started
        error = rmse(found.network, scans, validation, device)
        found.history.append((loss / len(rows), error))
        if error < found.best:
            found.best, found.best_epoch = error, epoch
            found.best_state = {k: v.detach().cpu().clone() for k, v in found.network.state_dict().items()}
        if state is not None:
            save_checkpoint(tree(found, optimiser, schedule, about), state)
        print(
            f"epoch {epoch}: loss {loss / len(rows):.5f}, validation {error:.4f} decades, "
            f"{len(rows) / seconds:.0f} scans per second"
        )
    return found


def one_epoch(network: ScanRegressor, optimiser: Any, schedule: Any, batches: Any) -> float:
    """Sum of the loss over the scans of an epoch."""
    network.train()
    device = next(network.parameters()).device
    total = torch.zeros((), device=device)
    for x, y in batches:
        if len(x) >= 2:  # batch statistics need two
            loss = nn_loss(network(x.to(device)), y.to(device))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += loss.detach() * len(x)
        schedule.step()
    return float(total)


def nn_loss(predicted: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.smooth_l1_loss(predicted, truth, beta=0.1)


def describe(scans: ScanFile, rows: range, options: Any) -> dict[str, Any]:
    """What a training's state belongs to."""
    names = ("epochs", "batch", "width", "rate", "seed")
    return {"scans": scans.settings, "rows": len(rows), **{name: getattr(options, name) for name in names}}


def tree(found: Trained, optimiser: Any, schedule: Any, about: dict[str, Any]) -> dict[str, Any]:
    """Everything that the next epoch depends on."""
    adam = optimiser.state_dict()
    return {
        "about": json.dumps(about, sort_keys=True),
        "network": dict(found.network.state_dict()),
        "optimiser": {str(k): slot for k, slot in adam["state"].items()},
        "rates": [{k: v for k, v in group.items() if k != "params"} for group in adam["param_groups"]],
        "schedule": {k: v for k, v in schedule.state_dict().items() if isinstance(v, (int, float, list))},
        "best": [found.best, found.best_epoch],
        "best_state": found.best_state,
        "history": [list(one) for one in found.history],
    }


def restore(found: Trained, optimiser: Any, schedule: Any, kept: Any, about: dict[str, Any], path: Path) -> None:
    if kept["about"] != json.dumps(about, sort_keys=True):
        raise InputError(
            f"{path} is the state of another training (other scans, epochs, batch, width, rate or seed); give the same "
            "options, or train without --resume."
        )
    found.network.load_state_dict(kept["network"])
    state = optimiser.state_dict()
    state["state"] = {int(k): slot for k, slot in kept["optimiser"].items()}
    for group, values in zip(state["param_groups"], kept["rates"], strict=True):
        group.update({k: tuple(v) if k == "betas" else v for k, v in values.items()})
    optimiser.load_state_dict(state)
    schedule.load_state_dict({**schedule.state_dict(), **kept["schedule"]})
    found.best, found.best_epoch = kept["best"]
    found.best_state = kept["best_state"]
    found.history = [tuple(one) for one in kept["history"]]


@torch.no_grad()
def predict(network: ScanRegressor, x: torch.Tensor, device: torch.device) -> torch.Tensor:
    network.eval()
    return torch.cat([network(part.to(device)).cpu() for part in x.split(1024)])


def rmse(network: ScanRegressor, scans: ScanFile, rows: range, device: torch.device) -> float:
    """Root mean square error in decades of concentration."""
    total = sum(float((predict(network, x, device) - y).double().square().sum()) for x, y in in_order(scans, rows))
    return (total / len(rows)) ** 0.5


def compare(model: GeodesicModel, network: ScanRegressor, scans: ScanFile, rows: range, device: torch.device) -> None:
    """Both on the same scans, by decade of concentration."""
    part = scans.read(rows.start, rows.stop)
    predicted = torch.cat([predict(network, x, device) for x, _ in in_order(scans, rows)]).numpy()
    truth, network_ppm = part.fraction * PPM, 10.0**predicted * PPM
    spectra = apparent_absorbance(part.voltages, scans.settings["instrument"]["offset"])
    answers = model.calibration.quantify_many(spectra, method="profile")  # as infer.py
    estimates = np.array([np.nan if answer.estimate is None else answer.estimate for answer in answers])
    answered = np.array([answer.verdict == "quantified" for answer in answers])
    print("median relative error by concentration (ppm):  network  geonode, from its standards alone (quantified)")
    for low, high in pairwise(BANDS):
        mine = (truth >= low) & (truth < high)
        if mine.any():
            a, b = (np.nanmedian(np.abs(e[mine] / truth[mine] - 1)) for e in (network_ppm, estimates))
            share = answered[mine].mean()
            print(f"  {low:>7g} … {high:<7g} {a:8.1%} {b:8.1%} ({share:.0%})   ({int(mine.sum())} scans)")


def peak_memory() -> float:
    """Bytes, of this process since it began."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(most if sys.platform == "darwin" else 1024 * most)


def namespace(**values: Any) -> argparse.Namespace:
    """Options of `train` from Python."""
    return argparse.Namespace(**{"resume": False, "seed": 0, **values})


if __name__ == "__main__":
    run(main)
