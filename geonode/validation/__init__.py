"""Honest comparisons: leave one concentration out, simple methods on the same folds, the choice made inside.

The public names load on first use (PEP 562).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from geonode._bootstrap import lazily

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


__getattr__, __dir__ = lazily(__name__, _PUBLIC)
