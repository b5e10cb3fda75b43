"""Test bases that check an implementation of one's own against what geonode expects of it.

A test class inherits one of them and names what it tests; pytest then runs about a dozen tests that nobody has to
write. They need pytest and hypothesis, which come with the extra ``test``.
"""

from __future__ import annotations

from geonode.testing.flow import FlowContract
from geonode.testing.metric import MetricContract
from geonode.testing.reader import ReaderContract
from geonode.testing.solver import SolverContract

__all__ = ["FlowContract", "MetricContract", "ReaderContract", "SolverContract"]
