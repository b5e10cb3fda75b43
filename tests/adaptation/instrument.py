"""A made-up instrument with a fault that no simulated calibration has: the screw of its burette is not straight."""

from __future__ import annotations

import numpy as np

import geonode

SHARES = np.array([0.0, 0.1, 0.25, 0.5, 0.75, 1.0])
"""Levels of every series, as shares of its highest."""


def delivered(shares: np.ndarray, fault: float = 0.06) -> np.ndarray:
    """What the burette delivers where it is asked for ``shares`` of its stroke: a sine of half its length besides."""
    return shares + fault * np.sin(4.0 * np.pi * shares)


def series(seed: int, *, fault: float = 0.06, width: int = 61, replicates: int = 1) -> geonode.SpectralDataset:
    """One calibration: a binding response of its own strength and bands, as that instrument measures it."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0.0, 1.0, width)

    def bands() -> np.ndarray:
        shapes = [np.exp(-0.5 * ((x - rng.uniform()) / rng.uniform(0.05, 0.2)) ** 2) for _ in range(3)]
        return rng.uniform(0.3, 1.0, 3) @ np.array(shapes)

    free, bound = bands(), bands()
    highest, half = 10.0 ** rng.uniform(0.0, 3.0), 10.0 ** rng.uniform(-1.0, 1.0)
    shares = np.repeat(SHARES, replicates)
    given = delivered(shares, fault)
    share_bound = given * (1.0 + half) / (given + half)
    spectra = np.outer(0.5 - 0.25 * share_bound, free) + np.outer(share_bound, bound)
    spectra *= 1.0 + 0.002 * rng.standard_normal((len(shares), 1))
    spectra += 0.003 * rng.standard_normal(spectra.shape)
    return geonode.SpectralDataset(spectra, highest * shares, 400.0 + 300.0 * x)
