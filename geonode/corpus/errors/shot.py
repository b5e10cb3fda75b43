"""Shot noise: variance in proportion to the light counted (Poisson), here to the size of the signal."""

from __future__ import annotations

from torch import Tensor

from geonode.corpus.kinds import ERRORS, Error
from geonode.corpus.lab import Lab


@ERRORS.register("shot")
class Shot(Error):
    """0.0003 to 0.1 of the largest signal where it is largest, median 0.4 %: 100 to 10⁷ photons."""

    share = 0.35

    def variance(self, lab: Lab, signal: Tensor) -> Tensor:
        size = lab.size(lab.numbers(4), self.share, 4e-3, 0.9, 0.1)
        # signal comes relative to the response; Poisson's variance at the largest signal is (size × largest)²
        largest = signal[:, : lab.counts.standards].abs().amax((1, 2), keepdim=True).clamp_min(1e-12)
        rough = lab.rough.square()[..., None]
        return size.square()[..., None] * largest.clamp_max(10.0) * signal.abs().clamp_max(10.0) * rough
