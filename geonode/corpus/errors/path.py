"""Path and placement: every spectrum is multiplied by its own factor, before the detector (cuvettes, drops, plates)."""

from __future__ import annotations

from torch import Tensor

from geonode.corpus.kinds import ERRORS, Error
from geonode.corpus.lab import Lab


@ERRORS.register("path")
class Path(Error):
    """Relative 0.0002 to 0.06, median 0.4 %."""

    share = 0.45

    def path(self, lab: Lab) -> Tensor:
        return lab.size(lab.numbers(4), self.share, 4e-3, 1.0, 0.06) * lab.normal()
