"""Widths of the posterior that were asked for before: of equal standards they are equal, and they are more than half of
the work of a `geonode fit`, which hundreds of tests run on a few sets of standards."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from geonode.calibration.calibration import Calibration
    from geonode.calibration.design.posterior_widths import PosteriorWidths


def asked_of(calibration: Calibration, concentrations: np.ndarray, replicates: int) -> str:
    """A digest of all that `geonode.calibration.design.posterior_widths` makes the widths of."""
    learned, gp = calibration.posterior, calibration.gp
    arrays, numbers = learned.known.state()
    known = hashlib.sha256(f"{replicates} {numbers} {calibration.facts.rules}".encode())
    parts = {
        **{f"known.{name}": value for name, value in arrays.items()},
        **{f"weights.{name}": value for name, value in learned.weights.items()},
        "concentrations": concentrations,
        "curve": gp.predict_mean(concentrations),
        "lowest": gp.predict_mean(calibration.levels[:1]),
        "noise": np.asarray(calibration.inverse.projection.scale),
    }
    for name, value in sorted(parts.items()):
        known.update(f"{name} {value.dtype} {value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    return known.hexdigest()


@contextmanager
def widths_made_once() -> Iterator[None]:
    """Inside, what was asked of standards equal to the last bit is not worked out again."""
    from geonode.calibration.design import posterior_widths as module

    make, made = module._posterior_widths, {}

    def kept(calibration: Calibration, concentrations: np.ndarray, replicates: int) -> PosteriorWidths:
        key = asked_of(calibration, concentrations, replicates)
        if key not in made:
            made[key] = make(calibration, concentrations, replicates)
        return made[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_posterior_widths", kept)
        yield
