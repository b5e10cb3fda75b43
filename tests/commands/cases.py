"""A made-up dye that binds, whose truth is known: A(λ, c) = free·K/(K + c) + bound·c/(K + c), K = 30 µM.

The files that a first day at the bench brings are written from it, each with what it should give.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from geonode.cli import app

LEVELS = (0.0, 5.0, 10.0, 20.0, 50.0, 100.0)
WAVE = np.arange(400.0, 701.0, 5.0)
NOISE = 0.002
_BINDING = 30.0


def truth(c: float, wavelengths: np.ndarray = WAVE) -> np.ndarray:
    """The spectrum at one concentration in µM."""
    free, bound = (np.exp(-0.5 * ((wavelengths - at) / width) ** 2) for at, width in ((450.0, 30.0), (525.0, 40.0)))
    share = c / (_BINDING + c)
    return 0.02 + 0.9 * free * (1.0 - share) + 0.75 * bound * share


def measured(c: float, seed: int, wavelengths: np.ndarray = WAVE, noise: float = NOISE) -> np.ndarray:
    return truth(c, wavelengths) + noise * np.random.default_rng(seed).standard_normal(len(wavelengths))


def standards(levels: Sequence[float] = LEVELS) -> np.ndarray:
    return np.array([measured(c, k) for k, c in enumerate(levels)])


def write(
    path: Path,
    spectra: np.ndarray,
    heads: Sequence[str],
    *,
    first: str = "wavelength",
    wavelengths: np.ndarray = WAVE,
    mark: str = ",",
    number: str = "{:.5f}",
) -> Path:
    """A table with wavelengths down the first column; ``number`` is how a reading is written."""
    rows = [mark.join([first, *heads])]
    columns = np.atleast_2d(spectra).T
    rows += [mark.join([f"{x:g}", *map(number.format, row)]) for x, row in zip(wavelengths, columns, strict=True)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def write_standards(path: Path, heads: Sequence[str] | None = None, **how) -> Path:
    return write(path, standards(), heads or [f"{c:.1f}" for c in LEVELS], **how)


def write_unknown(path: Path, c: float, seed: int = 100, **how) -> Path:
    return write(path, measured(c, seed), ["unknown"], **how)


def run(*arguments: object, code: int = 0):
    """The command as a user would run it; asserts its exit code."""
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def fit(standards_file: Path, bundle: Path, *options: object):
    return run("fit", standards_file, "--predictor", "gp", "--out", bundle, *options)
