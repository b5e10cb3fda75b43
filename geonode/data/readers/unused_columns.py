"""Columns beside the concentration whose names promise an effect that reading them does not have."""

from __future__ import annotations

import re
from collections.abc import Iterable

from geonode.data.readers.concentration_table import SPREAD
from geonode_runtime.wording import either

_WEIGHTS = re.compile(r"\s*(weights?|weighting)\s*", re.IGNORECASE)


def unused_columns(names: Iterable[str]) -> list[str]:
    """A sentence for each of the columns ``names`` that stands for an uncertainty or a weight: neither is read."""
    said = []
    for name in names:
        if SPREAD.search(name):
            declared = either("geonode fit --standard-uncertainty", "concentration_std")
            said.append(f"column '{name}' is not used: the uncertainty of the standards is what {declared} says")
        elif _WEIGHTS.fullmatch(name):
            said.append(f"column '{name}' is not used: standards count alike")
    return said
