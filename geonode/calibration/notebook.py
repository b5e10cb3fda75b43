"""What a notebook shows of a calibration: a line, the levels' spectra, and what is wrong with the standards."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from geonode.data.notebook import spectra_svg, standards_html

if TYPE_CHECKING:
    from geonode.calibration.calibration import Calibration


def calibration_text(calibration: Calibration) -> str:
    """The calibration in a line."""
    (low, high), unit = calibration.range, f" {calibration.unit}" if calibration.unit else ""
    samples, wavelengths = calibration.spectra.shape
    rests = "Gaussian process" if calibration.ensemble is None else "neural flow with folds"
    return (
        f"<{type(calibration).__name__}: {rests}, {len(calibration.levels)} levels {low:g} … {high:g}{unit}, {samples} "
        f"spectra × {wavelengths} wavelengths>"
    )


def calibration_html(calibration: Calibration) -> str:
    """The calibration as a part of a page."""
    unit = f" {calibration.unit}" if calibration.unit else ""
    names = [f"{level:g}{unit}" for level in calibration.levels]
    drawn = spectra_svg(calibration.wavelengths, calibration.gp.level_means, names)
    return standards_html(calibration_text(calibration), drawn, calibration.standing.warnings)


class ShownCalibration:
    """How a `Calibration`, the only class that is one of these, shows itself in a terminal and in a notebook."""

    def __repr__(self) -> str:
        return calibration_text(cast("Calibration", self))

    def _repr_html_(self) -> str:
        return calibration_html(cast("Calibration", self))
