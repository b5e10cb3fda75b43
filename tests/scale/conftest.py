"""The small problems of the training tests."""

from tests.training.conftest import assay, away, folds, small

__all__ = ["assay", "away", "folds", "small"]
