"""Why a spectrum lies off the curve of the standards: where, by how much, and which simple cause fits best.

The numerics are those of :mod:`geonode_runtime.causes`, which exported models have too. A further cause is one more
class, in a module of yours; exported models and the report's page try only those that come with geonode:

    @CAUSES.register("hook")
    class Hook(Cause): ...
"""

from __future__ import annotations

from geonode.calibration.causes.registry import CAUSES, explain
from geonode_runtime.causes.cause import Cause
from geonode_runtime.causes.explanation import Explanation, Stretch

__all__ = ["CAUSES", "Cause", "Explanation", "Stretch", "explain"]
