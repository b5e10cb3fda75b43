"""Thermal melting: two states in equilibrium along the temperature; the axis is °C, far from zero.

ln K = −(ΔH/R)(1/T − 1/Tₘ) (van 't Hoff; Marky and Breslauer, Biopolymers 26 (1987) 1601), with signals of both states
that slope a little. Nucleic acids, proteins, spin crossover.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.kinds import CHEMISTRY, Axis, Chemistry
from geonode.corpus.numbers import Numbers

_GAS = 8.314462618e-3  # kJ/(mol K)


@CHEMISTRY.register("thermal")
class Thermal(Chemistry):
    """Folded and unfolded fractions; ΔH 60 to 600 kJ/mol; Tₘ inside the window or up to a tenth of it outside.

    The folded state's signal changes by up to 10 % over the window, in one half of the assays.
    """

    share = 0.015
    window = (5.0, 95.0, 20.0, 80.0, 10.0)
    error = (0.02, 0.5)

    def amounts(self, numbers: Numbers, c: Tensor, axis: Axis) -> Tensor:
        melting = axis.low + (axis.high - axis.low) * numbers.uniform(-0.1, 1.1)
        enthalpy = numbers.log_uniform(60.0, 600.0)
        unfolded = melted(c, melting, enthalpy)
        slope = numbers.uniform(0.0, 0.1) * numbers.chance(0.5)
        folded = (1.0 - unfolded) * (1.0 - slope * ((c - axis.low) / (axis.high - axis.low)).clamp(-1.0, 2.0))
        return torch.stack([folded, unfolded], -1)


def melted(celsius: Tensor, melting: Tensor, enthalpy: Tensor) -> Tensor:
    """Unfolded fraction at a temperature in °C, from the melting temperature and ΔH in kJ/mol."""
    return torch.sigmoid(enthalpy / _GAS * (1.0 / (melting + 273.15) - 1.0 / (celsius + 273.15)))
