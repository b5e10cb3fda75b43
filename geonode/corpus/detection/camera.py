"""A camera behind a grating (home-built and telephone spectrometers): I = min((I₀(λ) 10^−A + dark)^γ, full scale).

Cameras write a power γ < 1 of the light (sRGB's is near 1/2.2) and clip what is too bright (Poynton, *Digital Video and
HD*, 2012; Grasse, Torcasio and Smith, J. Chem. Educ. 93 (2016) 146). Shown are the counts, or the absorbance that
follows from them and from the lamp alone as the same camera sees it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from geonode.corpus.kinds import DETECTION, Detection
from geonode.corpus.numbers import Numbers


@DETECTION.register("camera")
class Camera(Detection):
    """Largest absorbance 0.2 to 2; γ 0.4 to 1; dark 0.003 to 0.1 of the lamp; clips at 0.7 to 2 of it.

    Absorbance in one half.
    """

    share = 0.03
    unit = (1.0, 255.0)

    def detect(self, numbers: Numbers, density: Tensor, c: Tensor, x: Tensor) -> Tensor:
        center, width = numbers.uniform(0.2, 0.8, 1, 1), numbers.log_uniform(0.2, 0.8, 1, 1)
        lamp = torch.exp(-0.5 * ((x - center) / width) ** 2)
        absorbance = density * numbers.log_uniform(0.2, 2.0, 1, 1)
        dark, full = numbers.log_uniform(0.003, 0.1, 1, 1), numbers.log_uniform(0.7, 2.0, 1, 1)
        power = numbers.log_uniform(0.4, 1.0, 1, 1)

        def written(light: Tensor) -> Tensor:
            return torch.minimum(light + dark, full) ** power

        counts = written(lamp * torch.exp(-math.log(10.0) * absorbance))
        seen = torch.log10(written(lamp) / counts)
        return torch.where(numbers.chance(0.5, 1, 1), seen, counts)
