"""Absorbance, A = −log₁₀ T, by a spectrometer that is straight over its range."""

from __future__ import annotations

from torch import Tensor

from geonode.corpus.kinds import DETECTION, Detection
from geonode.corpus.numbers import Numbers


@DETECTION.register("absorbance")
class Absorbance(Detection):
    """Largest absorbance 0.03 to 2.5, around 0.7: the range in which analysts work (Skoog, ch. 13)."""

    share = 0.50

    def detect(self, numbers: Numbers, density: Tensor, c: Tensor, x: Tensor) -> Tensor:
        return density * numbers.log_normal(0.7, 0.7, 1, 1).clamp(0.03, 2.5)
