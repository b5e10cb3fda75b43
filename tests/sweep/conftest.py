"""The small problems of the training tests, and a small sweep."""

from tests.sweep.spec import spec
from tests.training.conftest import assay, away, folds, small

__all__ = ["assay", "away", "folds", "small", "spec"]
