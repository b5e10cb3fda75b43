"""Honest comparisons: leave one concentration out, simple methods on the same folds, the choice made inside."""

from geonode.validation.baselines import Predictor, baseline, baseline_names, register
from geonode.validation.evaluate import METHODS, evaluate
from geonode.validation.report import EvaluationReport, MethodResult

__all__ = [
    "METHODS",
    "EvaluationReport",
    "MethodResult",
    "Predictor",
    "baseline",
    "baseline_names",
    "evaluate",
    "register",
]
