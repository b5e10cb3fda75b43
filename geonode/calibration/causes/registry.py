"""The causes that are tried, by name."""

from __future__ import annotations

from geonode.registry import Registry
from geonode_runtime.causes.cause import Cause
from geonode_runtime.causes.explanation import Explanation
from geonode_runtime.causes.explanation import explain as explain_by
from geonode_runtime.causes.fitting import Problem
from geonode_runtime.causes.kinds import KINDS

CAUSES: Registry[type[Cause]] = Registry("cause")
for _name, _kind in KINDS.items():
    CAUSES.register(_name)(_kind)


def registered() -> dict[str, type[Cause]]:
    """Every cause there is now, by name."""
    return {name: CAUSES[name] for name in CAUSES}


def explain(problem: Problem, wavelength_unit: str = "", signal: str = "the signal") -> Explanation:
    """Fit every registered cause and name the best.

    Args:
        problem: the spectrum, its noise and the curve.
        wavelength_unit: " nm" or nothing, with its space. signal: what the spectrum is called in a sentence.
    """
    return explain_by(problem, wavelength_unit, signal, registered())
