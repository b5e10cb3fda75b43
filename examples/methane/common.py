"""What the stages share: the project directory, the device, and what is done to a scan before anything else."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn

from geonode.errors import GeonodeError

PPM = 1e6


def arguments(description: str) -> argparse.ArgumentParser:
    """A parser with the options of every stage."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--project", type=Path, required=True, help="directory of the project; all files are in it")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps")
    parser.add_argument("--seed", type=int, default=0)
    return parser


def device_of(name: str) -> torch.device:
    if name != "auto":
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def run(main) -> None:
    """Run a stage; what the user can put right ends in one sentence and exit code 2."""
    try:
        main()
    except GeonodeError as error:
        raise SystemExit(f"{error}") from None


def write_text(path: Path, text: str) -> None:
    """Whole or not at all."""
    temporary = path.with_suffix(path.suffix + ".part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def bins(light: np.ndarray, points: int) -> np.ndarray:
    """Averages of neighbouring readings ``[N, points]``; as many readings as there are, where those are fewer."""
    points = min(points, light.shape[1])
    usable = light.shape[1] // points * points
    return light[:, :usable].reshape(len(light), points, -1).mean(axis=2)


def apparent_absorbance(voltages: np.ndarray, offset: float = 0.02, points: int = 250) -> np.ndarray:
    """−ln of the light against a cubic through both ends of the scan ``[N, points]``: what the ramp hides.

    The gas is nearly transparent in the outer sixths.
    """
    binned = bins(np.log(np.maximum(voltages - offset, 1e-4)), points)
    u = np.linspace(-1, 1, binned.shape[1])
    ends = np.abs(u) > 2 / 3
    coefficients = np.polynomial.polynomial.polyfit(u[ends], binned[:, ends].T, 3)
    return np.polynomial.polynomial.polyval(u, coefficients) - binned


def network_input(voltages: np.ndarray, points: int = 250) -> torch.Tensor:
    """Scans as the network sees them ``[N, 1, points]``: the logarithm of the light, less its mean, times ten."""
    light = bins(np.log(np.maximum(voltages, 1e-3)), points)
    return torch.tensor(10 * (light - light.mean(axis=1, keepdims=True)), dtype=torch.float32)[:, None]


class ScanRegressor(nn.Module):
    """A 1-D convolutional regressor: ``[N, 1, points]`` → log₁₀ of the mole fraction ``[N]``."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()

        def block(inside: int, outside: int) -> nn.Sequential:
            return nn.Sequential(nn.Conv1d(inside, outside, 7, stride=2, padding=3), nn.BatchNorm1d(outside), nn.GELU())

        self.body = nn.Sequential(
            block(1, width), block(width, width), block(width, 2 * width), block(2 * width, 2 * width)
        )
        self.pool = nn.AdaptiveAvgPool1d(8)
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(16 * width, 64), nn.GELU(), nn.Linear(64, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.pool(self.body(x)))[:, 0] - 3.0  # starts in the middle of the range


class VoltagesToFraction(nn.Module):
    """The network behind `network_input`: voltages ``[N, S]`` → log₁₀ of the mole fraction ``[N]``, and ppm ``[N]``."""

    def __init__(self, network: ScanRegressor, samples: int, points: int = 250) -> None:
        super().__init__()
        self.network = network
        self.points = min(points, samples)
        self.usable = samples // self.points * self.points

    def forward(self, voltages: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        light = voltages[:, : self.usable].clamp(min=1e-3).log().unflatten(1, (self.points, -1)).mean(2)
        decades = self.network(10.0 * (light - light.mean(1, keepdim=True))[:, None])
        return decades, PPM * 10.0**decades


def load_network(project: Path) -> tuple[ScanRegressor, dict]:
    """The trained network on the CPU, and what is known of it."""
    described = json.loads((project / "cnn.json").read_text(encoding="utf-8"))
    network = ScanRegressor(described["width"])
    network.load_state_dict(load_file(project / "cnn.safetensors"))
    return network.eval(), described
