"""Made-up instruments with faults that no simulated calibration has, so that only their own calibrations can tell."""

from __future__ import annotations

import numpy as np

import geonode

SHARES = np.array([0.0, 0.1, 0.25, 0.5, 0.75, 1.0])
"""Levels of every series, as shares of its highest."""


def screw(shares: np.ndarray) -> np.ndarray:
    """A burette whose screw is not straight: it delivers a sine of half its length besides."""
    return shares + 0.06 * np.sin(4.0 * np.pi * shares)


def switch(shares: np.ndarray) -> np.ndarray:
    """A second pump from 0.4 of the stroke on, which delivers a tenth of it too much."""
    return np.where(shares > 0.4, shares + 0.1, shares)


def carry_over(shares: np.ndarray) -> np.ndarray:
    """A fifth of the standard before stays in the cell."""
    distinct, rows = np.unique(shares, return_inverse=True)
    before = np.concatenate([distinct[:1], distinct[:-1]])
    return (0.8 * distinct + 0.2 * before)[rows]


def straight(shares: np.ndarray) -> np.ndarray:
    """No fault."""
    return shares


FAULTS = {"screw": screw, "switch": switch, "carry-over": carry_over, "none": straight}
"""What the cell holds where the instrument was asked for ``shares`` of the highest standard."""


def series(seed: int, *, fault: str = "screw", width: int = 61, replicates: int = 1) -> geonode.SpectralDataset:
    """One calibration: a binding response of its own strength and bands, as that instrument measures it."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0.0, 1.0, width)

    def bands() -> np.ndarray:
        shapes = [np.exp(-0.5 * ((x - rng.uniform()) / rng.uniform(0.05, 0.2)) ** 2) for _ in range(3)]
        return rng.uniform(0.3, 1.0, 3) @ np.array(shapes)

    free, bound = bands(), bands()
    highest, half = 10.0 ** rng.uniform(0.0, 3.0), 10.0 ** rng.uniform(-1.0, 1.0)
    shares = np.repeat(SHARES, replicates)
    given = FAULTS[fault](shares)
    share_bound = given * (1.0 + half) / (given + half)
    spectra = np.outer(0.5 - 0.25 * share_bound, free) + np.outer(share_bound, bound)
    spectra *= 1.0 + 0.002 * rng.standard_normal((len(shares), 1))
    spectra += 0.003 * rng.standard_normal(spectra.shape)
    return geonode.SpectralDataset(spectra, highest * shares, 400.0 + 300.0 * x)
