"""The two small assays of these tests: one that saturates, one that folds back on itself."""

from __future__ import annotations

import numpy as np

LEVELS = np.array([0.0, 10.0, 20.0, 30.0, 40.0, 60.0])
WAVE = np.arange(300.0, 701.0, 4.0)
NOISE = 0.002


def band(centre: float, width: float) -> np.ndarray:
    return np.exp(-0.5 * ((WAVE - centre) / width) ** 2)


def monotone(c) -> np.ndarray:
    x = np.atleast_1d(c)[:, None] / (np.atleast_1d(c)[:, None] + 25.0)
    return 0.2 + 0.9 * x * band(600, 40) + 0.3 * (1 - x) * band(450, 50)


def folding(c) -> np.ndarray:
    c = np.atleast_1d(c)[:, None]
    x = (c / 12) ** 1.8 / (1 + (c / 12) ** 1.8) / (1 + (c / 38) ** 4)
    return 0.2 + 0.8 * x * band(600, 35)


def straight(c) -> np.ndarray:
    return 0.2 + 0.01 * np.atleast_1d(c)[:, None] * band(600, 40)


def noisy(truth, c, seed: int, noise: float = NOISE) -> np.ndarray:
    exact = truth(c)
    return exact + noise * np.random.default_rng(seed).standard_normal(exact.shape)
