"""Stage 2: train the network, fit geonode's calibrator, and compare both on scans that neither has seen."""

from __future__ import annotations

import json
import time

import numpy as np
import torch
from common import PPM, ScanRegressor, apparent_absorbance, arguments, device_of, network_input, run, write_text
from safetensors.torch import save_file

from geonode import GeodesicConfig, fit
from geonode.data import load_standards
from geonode.data.methane import load_scans
from geonode.model import GeodesicModel


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--rate", type=float, default=1e-2, help="highest learning rate")
    options = parser.parse_args()
    device = device_of(options.device)
    scans = load_scans(options.project / "scans.h5")
    x, y = network_input(scans.voltages), torch.tensor(np.log10(scans.fraction), dtype=torch.float32)
    training, validation, test = split(len(x))
    network, history = train(x[training], y[training], options, device)
    errors = {
        "validation": rmse(network, x[validation], y[validation], device),
        "test": rmse(network, x[test], y[test], device),
    }
    print(
        f"network: {errors['test']:.4f} decades RMS on {len(x[test])} scans that it has not seen "
        f"({errors['validation']:.4f} on the {len(x[validation])} that choices may rest on)"
    )
    model = fit(load_standards(options.project / "standards.nc"), GeodesicConfig(predictor="gp"), device="cpu")
    model.save(options.project / "calibrator.bundle")
    compare(model, scans, range(*test.indices(len(x)))[:1000], predict(network, x[test], device).numpy())
    described = {
        "width": options.width,
        "samples": scans.voltages.shape[1],
        "rmse_decades": errors,
        "seed": options.seed,
    }
    part = options.project / "cnn.safetensors.part"
    save_file({name: value.cpu().contiguous() for name, value in network.state_dict().items()}, part)
    part.replace(options.project / "cnn.safetensors")
    write_text(options.project / "cnn.json", json.dumps(described, indent=2))
    write_text(options.project / "training.csv", "epoch,loss\n" + "".join(f"{e},{loss:.6g}\n" for e, loss in history))


def split(count: int) -> tuple[slice, slice, slice]:
    """Training, validation (a tenth, for choices) and test (the last tenth, for figures)."""
    tenth = max(count // 10, 1)
    return slice(0, count - 2 * tenth), slice(count - 2 * tenth, count - tenth), slice(count - tenth, count)


def train(x: torch.Tensor, y: torch.Tensor, options, device: torch.device):
    """A network of ``options.width`` trained on scans x; and (epoch, mean loss) of each epoch."""
    torch.manual_seed(options.seed)
    network = ScanRegressor(options.width).to(device)
    steps = options.epochs * -(-len(x) // options.batch)
    optimiser = torch.optim.AdamW(network.parameters(), lr=options.rate, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, options.rate, total_steps=steps)
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
    return network, history


def nn_loss(predicted: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.smooth_l1_loss(predicted, truth, beta=0.1)


@torch.no_grad()
def predict(network: ScanRegressor, x: torch.Tensor, device: torch.device) -> torch.Tensor:
    network.eval()
    return torch.cat([network(part.to(device)).cpu() for part in x.split(1024)])


def rmse(network: ScanRegressor, x: torch.Tensor, y: torch.Tensor, device: torch.device) -> float:
    """Root mean square error in decades of concentration."""
    return float((predict(network, x, device) - y).square().mean().sqrt())


def compare(model: GeodesicModel, scans, rows: range, predicted: np.ndarray) -> None:
    """Both on the same scans, by decade of concentration."""
    chosen = np.asarray(rows)
    truth = scans.fraction[chosen] * PPM
    offset = scans.settings["instrument"]["offset"]
    answers = model.calibration.quantify_many(apparent_absorbance(scans.voltages[chosen], offset))
    estimates = np.array([answer.estimate for answer in answers])
    network = 10 ** predicted[: len(chosen)] * PPM
    print("median relative error by concentration (ppm):  network  geonode, from its standards alone")
    for low, high in ((100, 1e3), (1e3, 1e4), (1e4, 1e5)):
        mine = (truth >= low) & (truth < high)
        if mine.any():
            a, b = (np.median(np.abs(e[mine] / truth[mine] - 1)) for e in (network, estimates))
            print(f"  {low:>7g} … {high:<7g} {a:8.1%} {b:8.1%}   ({int(mine.sum())} scans)")


if __name__ == "__main__":
    run(main)
