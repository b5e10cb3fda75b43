"""A small sweep."""

from tests.sweep.sweep_spec import spec
from tests.training.conftest import away

__all__ = ["away", "spec"]
