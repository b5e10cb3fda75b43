"""PLS where it is the better tool: loadings and the wavelengths that count (VIP)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geonode.calibration.baselines.latent_variables import pls_parts
from geonode.calibration.calibration import Calibration
from geonode.report.sheet import Sheet
from geonode.report.style import OKABE_ITO, legend_below, split_at_gaps

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 4
"""Components whose loadings are drawn; the numbers have all."""


def pls_sheet(calibration: Calibration) -> Sheet | None:
    """Loadings of each component and VIP over the wavelengths; None where the curve is the right model."""
    if not calibration.curve_check.pls_is_better:
        return None
    components = calibration.curve_check.pls_rmsecv[1]
    parts = pls_parts(calibration.spectra, calibration.concentrations, components)
    columns = {"wavelength": calibration.wavelengths, "vip": parts.vip}
    columns |= {f"loading_{a + 1}": row for a, row in enumerate(parts.loadings)}

    def draw(axis: Axes) -> None:
        size = np.abs(parts.loadings).max() or 1.0
        for a, row in enumerate(parts.loadings[:SHOWN]):
            x, y = split_at_gaps(calibration.wavelengths, row / size)
            dashes = ("-", "--", "-.", ":")[a % 4]
            axis.plot(x, y, dashes, color=OKABE_ITO[a], linewidth=1.2, label=f"loading {a + 1}")
        x, y = split_at_gaps(calibration.wavelengths, parts.vip)
        axis.plot(x, y, color="0.2", linewidth=1.8, label="VIP (above 1: counts)")
        axis.axhline(1.0, color="0.6", linewidth=0.8)
        axis.set_xlabel(calibration.wavelength_label)
        axis.set_ylabel("loading ÷ largest, and VIP")
        legend_below(axis)

    return Sheet("pls", f"PLS with {components} components: loadings and importance of wavelengths", columns, draw)
