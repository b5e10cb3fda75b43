"""What must be said of a calibration's standards before anything is asked of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from geonode.calibration.assessment.match_limits import wide_limits
from geonode_runtime.answers import UNCHECKED
from geonode_runtime.posterior.methods import chosen_method, profile_instead

if TYPE_CHECKING:
    from geonode.calibration.calibration import Calibration


def remarks_on(calibration: Calibration) -> list[str]:
    """Sentences on what the standards cannot give, and on what answers rest."""
    said = of_response(calibration)
    remarks = [said] if said else []
    ensemble, unfit = calibration.ensemble, calibration.unfit_for_posterior
    if ensemble is not None:
        seeds = len(ensemble.process.flow(calibration.levels[:1]))
        remarks.append(
            f"predictions and intervals rest on the neural flow ({seeds} seeds, {len(ensemble.folds)} folds), not on "
            "the Gaussian process"
        )
    if unfit:
        remarks.append(profile_instead(unfit))
    unit = f" {calibration.unit}" if calibration.unit else ""
    if not calibration.has_blank:
        remarks.append(
            f"no blank among the standards (the lowest is {calibration.levels[0]:g}{unit}): no detection limit can be "
            "claimed, and results wholly below it are outside the calibrated range"
        )
    if calibration.preprocessing is not None:
        remarks.append(
            f"spectra are preprocessed ({calibration.preprocessing}): signals, sensitivities and residuals are those "
            "of preprocessed spectra"
        )
    check = calibration.curve_check
    if not check.is_curve or check.pls_is_better or check.pls_is_closer:
        remarks.append(check.sentence(calibration.unit))
    if not calibration.checked:
        said = (
            f"{UNCHECKED} ({len(calibration.levels)} standards vouch for {100 * calibration.attainable:.1f} % at most)"
        )
        remarks.append(f"{said}, and 'does not match' is said by shape alone" if unfit else said)
    elif unfit:
        remarks += wide_limits_of(calibration)
    return remarks


def of_response(calibration: Calibration) -> str:
    """What speaks against any response of the standards; empty where they respond, and where their spectra are in no
    order of the concentration and PLS finds it all the same."""
    response = calibration.response
    if response.responds or (response.unordered and calibration.curve_check.pls_is_better):
        return ""
    return response.sentence()


def method_of(calibration: Calibration, method: str | None) -> tuple[str, tuple[str, ...]]:
    """The method that answers where this one is asked for, and what is said of that beside every answer.

    Raises:
        InputError: no such method, or one that cannot answer.
    """
    answering, said = chosen_method(method, calibration.unfit_for_posterior)
    return answering, (*said, *(asked_limits(calibration) if answering == "profile" else ()))


def asked_limits(calibration: Calibration) -> list[str]:
    """What is said beside answers of the profile that were asked for: limits that a foreign spectrum may pass. Where
    nothing else can answer, it stands among what is said of the standards."""
    return [] if calibration.unfit_for_posterior else wide_limits_of(calibration)


def wide_limits_of(calibration: Calibration) -> list[str]:
    """Limits of the profile so wide, or learned from so little, that a foreign spectrum may well pass them."""
    limits = calibration.own_limits
    return wide_limits(calibration.inverse, calibration.held_out, limits, calibration.spectra.shape[1])
