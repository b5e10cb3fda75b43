"""Stage 3: the concentration of one scan, on the CPU, by the network and by geonode's calibrator."""

from __future__ import annotations

import time

import numpy as np
import torch
from common import PPM, apparent_absorbance, arguments, load_network, network_input, run

from geonode import load
from geonode.data.methane import load_scans


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--scan", type=int, default=0, help="number of the scan in scans.h5")
    options = parser.parse_args()
    scan = load_scans(options.project / "scans.h5", options.scan, options.scan + 1)
    network, described = load_network(options.project)
    if described["samples"] != scan.voltages.shape[1]:
        raise SystemExit(f"the network was trained on {described['samples']} readings; this scan has others.")
    x = network_input(scan.voltages)
    with torch.inference_mode():
        network(x)  # the first call sets up
        started = time.perf_counter()
        ppm = PPM * 10 ** float(network(x)[0])
        milliseconds = 1e3 * (time.perf_counter() - started)
    print(f"truth    {PPM * scan.fraction[0]:.4g} ppm")
    print(f"network  {ppm:.4g} ppm ({milliseconds:.1f} ms)")
    calibration = load(options.project / "calibrator.bundle").calibration
    started = time.perf_counter()
    absorbance = apparent_absorbance(np.asarray(scan.voltages), scan.settings["instrument"]["offset"])[0]
    # the profile: standards over four decades are wider than any simulated design that the posterior learned from
    answer = calibration.quantify(absorbance, method="profile")
    print(f"geonode  {answer.sentence('ppm')} ({1e3 * (time.perf_counter() - started):.1f} ms)")


if __name__ == "__main__":
    run(main)
