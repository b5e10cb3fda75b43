"""The small problems of the training tests, and one thread where bits are compared."""

from tests.training.conftest import assay, folds, small

__all__ = ["assay", "folds", "small"]
