"""Stage 1: simulate scans for training, and the standards of a laboratory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from common import PPM, apparent_absorbance, arguments, device_of, run

from geonode.data import SpectralDataset
from geonode.data.methane import Gas, Spectrometer, simulate_scans, strong_lines
from geonode.data.methane.spectrometer import draw_conditions
from geonode.data.methane.spectrometer import record as record_scans

LEVELS_PPM = (0.0, 100.0, 300.0, 1000.0, 3000.0, 10_000.0, 30_000.0, 100_000.0)


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--n", type=int, default=20_000, help="number of scans")
    parser.add_argument("--samples", type=int, default=1000, help="readings in a scan")
    parser.add_argument("--replicates", type=int, default=8, help="scans of each standard")
    parser.add_argument("--workers", type=int, default=None)
    options = parser.parse_args()
    options.project.mkdir(parents=True, exist_ok=True)
    device = device_of(options.device).type
    instrument = Spectrometer(samples=options.samples)
    out = simulate_scans(
        options.n,
        options.project / "scans.h5",
        seed=options.seed,
        workers=options.workers,
        instrument=instrument,
        device=device if device == "cuda" else "cpu",
    )
    print(f"{options.n} scans in {out}")
    standards = prepare_standards(instrument, options.replicates, options.seed)
    standards.save(options.project / "standards.nc")
    print(f"{standards} in {options.project / 'standards.nc'}")


def prepare_standards(instrument: Spectrometer, replicates: int, seed: int) -> SpectralDataset:
    """Standards of known concentration, each scanned ``replicates`` times as the gas drifts."""
    levels = np.repeat(LEVELS_PPM, replicates)
    generator = torch.Generator().manual_seed(seed + 1)
    # temperature and pressure drift from scan to scan as they do in what is to be measured: standards of steadier gas
    # would call every scan of another pressure foreign
    drawn = draw_conditions(len(levels), Gas(), instrument, generator)
    drawn = replace(drawn, fraction=torch.tensor(levels / PPM))
    codes = record_scans(drawn, instrument, strong_lines(), generator)
    spectra = apparent_absorbance(codes.numpy() * instrument.step, instrument.offset)
    grid = instrument.wavenumbers().numpy()
    points = spectra.shape[1]
    grid = grid[: len(grid) // points * points].reshape(points, -1).mean(axis=1)
    return SpectralDataset(
        spectra,
        levels,
        grid,
        concentration_unit="ppm",
        analytes=("methane",),
        wavelength_unit="cm-1",
        notes=(f"simulated standards, seed {seed}",),
        source="methane standards",
    )


if __name__ == "__main__":
    run(main)
