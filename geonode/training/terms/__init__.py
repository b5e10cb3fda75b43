"""The terms of the training loss: one file a term, in one registry.

A new term is one new file here (or anywhere that is imported), with a class that `LOSSES` registers.
"""

# in the order in which they are summed
from geonode.training.terms.base import LOSSES, LossTerm
from geonode.training.terms.reconstruction import Reconstruction
from geonode.training.terms.smoothness import Smoothness

from geonode.training.terms.bounds import Bounds  # isort: skip
from geonode.training.terms.path_length import PathLength  # isort: skip
from geonode.training.terms.pullback import PullbackChristoffel  # isort: skip
from geonode.training.terms.config import LossConfig  # isort: skip

__all__ = [
    "LOSSES",
    "Bounds",
    "LossConfig",
    "LossTerm",
    "PathLength",
    "PullbackChristoffel",
    "Reconstruction",
    "Smoothness",
]
