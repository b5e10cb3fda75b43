"""A small sweep."""

import pytest

from tests.sweep.sweep_spec import spec
from tests.training.conftest import away

__all__ = ["away", "spec"]


@pytest.fixture(autouse=True)
def as_urgent_as_the_test(monkeypatch):
    """Ray's workers are nice to all others by default: beside a busy program a test waited minutes for them."""
    monkeypatch.setenv("RAY_worker_niceness", "0")
