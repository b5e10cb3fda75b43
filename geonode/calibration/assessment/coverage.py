"""How often held-out standards were covered: what stands beside every interval."""

from __future__ import annotations

import math

import numpy as np

from geonode.calibration.calibration import Calibration
from geonode_runtime.verdicts import FEWEST_CHECKED


def responding_wavelengths(means: np.ndarray) -> np.ndarray:
    """``[n, W]`` → bool ``[W]``: where the standard deviation over levels reaches a tenth of its largest value."""
    spread = means.std(axis=0)
    return spread >= 0.1 * spread.max()


def coverage(calibration: Calibration) -> dict[str, float | None]:
    """How often held-out levels fall inside their 80 % bands and sets: what stands beside every interval.

    Of sets with fewer than four standards nothing is said (None): none is claimed.
    """
    held = calibration.held_out
    sets, interior = _sets_covered(calibration)
    responding = responding_wavelengths(calibration.gp.level_means)
    inside = held.band_inside
    return {
        "nominal": 0.8,
        "sets": _finite(sets) if calibration.checked else None,
        "sets_interior": _finite(interior) if calibration.checked else None,
        "bands_responding": float(inside[:, responding].mean()) if responding.any() and len(inside) else None,
        "bands_silent": float(inside[:, ~responding].mean()) if (~responding).any() and len(inside) else None,
        "attainable_confidence": calibration.attainable,
    }


def _sets_covered(calibration: Calibration, level: float = 0.8) -> tuple[float, float]:
    """Share of all and of interior levels whose set covers them when they are left out: the sets of the curve, or the
    intervals of PLS where that is what answers. Levels count equally."""
    check = calibration.curve_check
    if not check.pls_is_better:
        return calibration.held_out.covered(level), calibration.held_out.covered(level, interior=True)
    one = check.pls.component(0.0, level)
    inside = (one.low <= check.pls_errors) & (check.pls_errors <= one.high)
    n, index = len(calibration.levels), calibration.level_index
    shares = np.array([inside[index == i].mean() for i in range(n)])
    return float(shares.mean()), float(shares[1:-1].mean())


def coverage_sentence(found: dict[str, float | None], levels: int) -> str:
    """What :func:`coverage` found, to stand beside every interval."""
    if levels < FEWEST_CHECKED:
        return band_sentence(found, levels)
    return (
        f"Coverage of held-out levels at nominal 80 %: concentration sets of the profile {_percent(found['sets'])} "
        f"(interior levels {_percent(found['sets_interior'])}), {_bands(found)}. {_vouched(levels)}; beyond that, sets "
        "rest on the model."
    )


def band_sentence(found: dict[str, float | None], levels: int) -> str:
    """The part of :func:`coverage_sentence` that concerns predicted spectra."""
    return f"Coverage of held-out levels at nominal 80 %: {_bands(found)}. {_vouched(levels)}."


def _bands(found: dict[str, float | None]) -> str:
    return (
        f"spectral bands {_percent(found['bands_responding'])} where the spectrum responds and "
        f"{_percent(found['bands_silent'])} where it is silent"
    )


def _vouched(levels: int) -> str:
    if levels < FEWEST_CHECKED:
        return f"{levels} standards leave nothing to check the curve between them with: no interval or band is claimed"
    return f"{levels} standards alone vouch for at most {100 * levels / (levels + 1):.1f} % (n/(n + 1))"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
