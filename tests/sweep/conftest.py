"""A small sweep."""

from tests.sweep.sweep_spec import spec

__all__ = ["spec"]
