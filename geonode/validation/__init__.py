"""Honest comparisons: leave one concentration out, simple methods on the same folds, the choice made inside.

The public names load on first use (PEP 562).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# Public name → the module that defines it.
_PUBLIC = {
    "EvaluationReport": "geonode.validation.result",
    "InverseMethod": "geonode.calibration.baselines.method",
    "METHODS": "geonode.validation.evaluation",
    "MethodResult": "geonode.validation.result",
    "Predictor": "geonode.calibration.baselines.method",
    "baseline": "geonode.calibration.baselines.method",
    "baseline_names": "geonode.calibration.baselines.method",
    "evaluate": "geonode.validation.evaluation",
}

if TYPE_CHECKING:
    from geonode.calibration.baselines.method import InverseMethod, Predictor, baseline, baseline_names
    from geonode.validation.evaluation import METHODS, evaluate
    from geonode.validation.result import EvaluationReport, MethodResult

__all__ = [
    "METHODS",
    "EvaluationReport",
    "InverseMethod",
    "MethodResult",
    "Predictor",
    "baseline",
    "baseline_names",
    "evaluate",
    "register",
]


def register(name: str) -> Any:
    """Class decorator that makes a :class:`Predictor` or an :class:`InverseMethod` available to comparisons.

    Args:
        name: not yet taken; the one that ``evaluate(..., methods=[...])`` is given.

    Raises:
        InputError: no name, or one that another method has.
    """
    from geonode.calibration.baselines.method import EVALUATION_METHODS

    return EVALUATION_METHODS.register(name)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'geonode.validation' has no attribute {name!r}")
    value = getattr(importlib.import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
