"""Between stages 1 and 2, for who wants to choose: eight small trainings, judged on the validation scans alone.

Learning rate × width on a quarter of the training scans; then the best of them on a sixteenth and on all, to see what
more scans would bring. The test scans are predicted by each too, but chosen is by validation.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from common import arguments, device_of, network_input, run, write_text
from train import rmse, split, train

from geonode.data.methane import load_scans

RATES, WIDTHS = (1e-3, 3e-3, 1e-2), (16, 32)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--epochs", type=int, default=8)
    options = parser.parse_args()
    device = device_of(options.device)
    scans = load_scans(options.project / "scans.h5")
    x, y = network_input(scans.voltages), torch.tensor(np.log10(scans.fraction), dtype=torch.float32)
    training, validation, test = split(len(x))
    count = training.stop
    rows = []

    def attempt(rate: float, width: int, used: int) -> float:
        """Train once; the validation error."""
        settings = argparse.Namespace(epochs=options.epochs, batch=64, width=width, rate=rate, seed=options.seed)
        started = time.perf_counter()
        network, _ = train(x[:used], y[:used], settings, device)
        seconds = time.perf_counter() - started
        errors = [rmse(network, x[part], y[part], device) for part in (validation, test)]
        rows.append(f"{rate:g},{width},{used},{errors[0]:.5f},{errors[1]:.5f},{seconds:.1f}")
        print(f"rate {rate:g}, width {width}, {used} scans: validation {errors[0]:.4f}, test {errors[1]:.4f} decades")
        return errors[0]

    few = max(count // 4, 2)
    _, rate, width = min((attempt(rate, width, few), rate, width) for rate in RATES for width in WIDTHS)
    for used in (max(few // 4, 2), count):
        attempt(rate, width, used)
    header = "rate,width,scans,validation_decades,test_decades,seconds\n"
    write_text(options.project / "tuning.csv", header + "\n".join(rows) + "\n")
    print(f"chosen by validation: --rate {rate:g} --width {width}")


if __name__ == "__main__":
    run(main)
