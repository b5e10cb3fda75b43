"""How often held-out standards were covered: what stands beside every interval."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from geonode.calibration.calibration import Calibration
from geonode.calibration.posterior.stored import simulated_coverage
from geonode_runtime.posterior.methods import chosen_method
from geonode_runtime.verdicts import FEWEST_CHECKED


def responding_wavelengths(means: np.ndarray) -> np.ndarray:
    """``[n, W]`` → bool ``[W]``: where the standard deviation over levels reaches a tenth of its largest value."""
    spread = means.std(axis=0)
    return spread >= 0.1 * spread.max()


def coverage(calibration: Calibration, method: str | None = None) -> dict[str, Any]:
    """How often held-out levels fall inside their 80 % bands and sets: what stands beside every interval.

    ``sets_by`` says whose sets they are: those of what answers with ``method`` (None: by default), which is
    "posterior", "profile", or "pls" where the assay is no curve. Of the posterior ``sets_simulated`` is the share of
    simulated unknowns, of families that its training did not have, whose set held the truth. Of sets with fewer than
    four standards nothing is said (None): none is claimed.
    """
    held = calibration.held_out
    by, sets, interior = _sets_covered(calibration, method)
    responding = responding_wavelengths(calibration.gp.level_means)
    inside = held.band_inside
    return {
        "nominal": 0.8,
        "sets_by": by,
        "sets": _finite(sets) if calibration.checked else None,
        "sets_interior": _finite(interior) if calibration.checked else None,
        "sets_simulated": simulated_coverage() if by == "posterior" else None,
        "bands_responding": float(inside[:, responding].mean()) if responding.any() and len(inside) else None,
        "bands_silent": float(inside[:, ~responding].mean()) if (~responding).any() and len(inside) else None,
        "attainable_confidence": calibration.attainable,
    }


def _sets_covered(calibration: Calibration, method: str | None, level: float = 0.8) -> tuple[str, float, float]:
    """Whose sets, and the share of all and of interior levels whose set covers them when they are left out. Levels
    count equally."""
    check = calibration.curve_check
    if check.pls_is_better:
        one = check.pls.component(0.0, level)
        inside = (one.low <= check.pls_errors) & (check.pls_errors <= one.high)
        n, index = len(calibration.levels), calibration.level_index
        shares = np.array([inside[index == i].mean() for i in range(n)])
        return "pls", float(shares.mean()), float(shares[1:-1].mean())
    if chosen_method(method, calibration.unfit_for_posterior)[0] == "posterior":
        own = calibration.own_levels
        return "posterior", own.share(), own.share(interior=True)
    held = calibration.held_out
    return "profile", held.covered(level), held.covered(level, interior=True)


_WHOSE = {"posterior": "of the posterior", "profile": "of the profile", "pls": "of PLS"}


def coverage_sentence(found: dict[str, Any], levels: int) -> str:
    """What :func:`coverage` found, to stand beside every interval."""
    if levels < FEWEST_CHECKED:
        return band_sentence(found, levels)
    simulated = found["sets_simulated"]
    trained = "" if simulated is None else f"; on simulated assays of kinds it never saw {_percent(simulated)}"
    return (
        f"Coverage of held-out levels at nominal 80 %: concentration sets {_WHOSE[found['sets_by']]} "
        f"{_percent(found['sets'])} (interior levels {_percent(found['sets_interior'])}{trained}), {_bands(found)}. "
        f"{_vouched(levels)}; beyond that, sets rest on the model."
    )


def band_sentence(found: dict[str, Any], levels: int) -> str:
    """The part of :func:`coverage_sentence` that concerns predicted spectra."""
    return f"Coverage of held-out levels at nominal 80 %: {_bands(found)}. {_vouched(levels)}."


def _bands(found: dict[str, Any]) -> str:
    said = f"spectral bands {_percent(found['bands_responding'])} where the spectrum responds"
    silent = found["bands_silent"]  # None where it responds everywhere
    return said if silent is None else f"{said} and {_percent(silent)} where it is silent"


def _vouched(levels: int) -> str:
    if levels < FEWEST_CHECKED:
        return f"{levels} standards leave nothing to check the curve between them with: no interval or band is claimed"
    return f"{levels} standards alone vouch for at most {100 * levels / (levels + 1):.1f} % (n/(n + 1))"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
