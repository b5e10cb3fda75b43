"""Stage 2: train the network, and compare it with geonode's calibrator on scans that neither has seen."""

from __future__ import annotations

import json
import time

import numpy as np
import torch
from common import PPM, ScanRegressor, apparent_absorbance, arguments, device_of, network_input, run, write_text
from safetensors.torch import save_file

from geonode.calibration.calibration import Calibration
from geonode.data import load_standards
from geonode.data.methane import load_scans


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--width", type=int, default=32)
    options = parser.parse_args()
    device = device_of(options.device)
    scans = load_scans(options.project / "scans.h5")
    held_out = max(len(scans) // 10, 1)
    x, y = network_input(scans.voltages), torch.tensor(np.log10(scans.fraction), dtype=torch.float32)
    torch.manual_seed(options.seed)
    network = ScanRegressor(options.width).to(device)
    history = fit(network, x[:-held_out], y[:-held_out], options, device)
    predicted = predict(network, x[-held_out:], device)
    error = float((predicted - y[-held_out:]).square().mean().sqrt())
    print(f"network: {error:.4f} decades RMS on {held_out} scans that it has not seen")
    compare(options.project, scans, held_out, predicted.numpy())
    described = {
        "width": options.width,
        "samples": scans.voltages.shape[1],
        "rmse_decades": error,
        "seed": options.seed,
    }
    part = options.project / "cnn.safetensors.part"
    save_file({name: value.cpu().contiguous() for name, value in network.state_dict().items()}, part)
    part.replace(options.project / "cnn.safetensors")
    write_text(options.project / "cnn.json", json.dumps(described, indent=2))
    write_text(options.project / "training.csv", "epoch,loss\n" + "".join(f"{e},{loss:.6g}\n" for e, loss in history))


def fit(network: ScanRegressor, x: torch.Tensor, y: torch.Tensor, options, device: torch.device):
    """Train; (epoch, mean loss) of each epoch."""
    steps = options.epochs * -(-len(x) // options.batch)
    optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=steps)
    generator = torch.Generator().manual_seed(options.seed)
    history = []
    for epoch in range(options.epochs):
        network.train()
        started, total = time.perf_counter(), 0.0
        for rows in torch.randperm(len(x), generator=generator).split(options.batch):
            if len(rows) < 2:
                schedule.step()
                continue  # batch statistics need two
            loss = nn_loss(network(x[rows].to(device)), y[rows].to(device))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            total += float(loss.detach()) * len(rows)
        history.append((epoch, total / len(x)))
        print(
            f"epoch {epoch}: loss {history[-1][1]:.5f}, {len(x) / (time.perf_counter() - started):.0f} scans per second"
        )
    return history


def nn_loss(predicted: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.smooth_l1_loss(predicted, truth, beta=0.1)


@torch.no_grad()
def predict(network: ScanRegressor, x: torch.Tensor, device: torch.device) -> torch.Tensor:
    network.eval()
    return torch.cat([network(part.to(device)).cpu() for part in x.split(1024)])


def compare(project, scans, held_out: int, predicted: np.ndarray) -> None:
    """Both on the same scans, by decade of concentration."""
    calibration = Calibration.from_dataset(load_standards(project / "standards.nc"))
    rows = np.arange(len(scans))[-held_out:][:200]
    truth = scans.fraction[rows] * PPM
    offset = scans.settings["instrument"]["offset"]
    answers = calibration.quantify_many(apparent_absorbance(scans.voltages[rows], offset))
    estimates = np.array([answer.estimate for answer in answers])
    network = 10 ** predicted[: len(rows)] * PPM
    print("median relative error by concentration (ppm):  network  geonode, from its standards alone")
    for low, high in ((100, 1e3), (1e3, 1e4), (1e4, 1e5)):
        mine = (truth >= low) & (truth < high)
        if mine.any():
            a, b = (np.median(np.abs(e[mine] / truth[mine] - 1)) for e in (network, estimates))
            print(f"  {low:>7g} … {high:<7g} {a:8.1%} {b:8.1%}   ({int(mine.sum())} scans)")


if __name__ == "__main__":
    run(main)
