"""What a sheet shows, in words: for a reader who does not see it."""

from __future__ import annotations

import numpy as np

from geonode.report.sheet import Sheet
from geonode_runtime.figures import figure


def describe(sheet: Sheet, unit: str) -> str:
    """What the figure shows, in a sentence with its numbers."""
    columns, unit = sheet.columns, f" {unit}" if unit else ""
    words = {
        "spectra": _spectra, "predicted": _predicted, "residuals": _residuals, "resolution": _resolution,
        "ambiguity": _ambiguity, "metric": _metric, "training": _training,
        "single_wavelength": _single, "pls": _pls,
    }  # fmt: skip
    return f"{sheet.title}. {words[sheet.name](columns, unit)}"


def _spectra(columns: dict[str, np.ndarray], unit: str) -> str:
    w = columns["wavelength"]
    return f"{len(columns) - 1} columns of numbers over {len(w)} wavelengths from {w[0]:g} to {w[-1]:g}."


def _predicted(columns: dict[str, np.ndarray], unit: str) -> str:
    true, found = columns["concentration"], columns["held_out_estimate"]
    worst = int(np.abs(found - true).argmax())
    covered = columns["covered_by_80_percent_set"]
    said = "no set is claimed from so few standards"
    if not np.isnan(covered).any():
        said = f"{int(covered.sum())} of {len(true)} lie inside their 80 % set of the profile, the curve's own"
    by_posterior = columns.get("covered_by_80_percent_set_of_posterior")
    if by_posterior is not None:
        asked = {c: share for c, share in zip(true, by_posterior, strict=True) if not np.isnan(share)}
        inside = sum(share >= 0.5 for share in asked.values())
        said += f", and {inside} of {len(asked)} levels inside that of the posterior, which answers"
    return (
        f"{len(true)} left-out spectra; root mean square error {np.sqrt(np.mean((found - true) ** 2)):.3g}{unit}, the "
        f"largest at {true[worst]:g}{unit}, where {figure(found[worst], unit)} is found; {said}."
    )


def _residuals(columns: dict[str, np.ndarray], unit: str) -> str:
    rms = {n.removeprefix("residual_"): float(np.sqrt(np.mean(v**2))) for n, v in columns.items() if n != "wavelength"}
    worst = max(rms, key=lambda n: rms[n])
    return f"Root mean square from {min(rms.values()):.2g} to {rms[worst]:.2g}, largest for the level {worst}{unit}."


def _resolution(columns: dict[str, np.ndarray], unit: str) -> str:
    c = columns["concentration"]
    smallest = next(v for n, v in columns.items() if n.startswith("resolvable"))
    usable = np.isfinite(smallest)
    if not usable.any():
        return "Nothing can be told anywhere."
    best, worst = np.nanargmin(np.where(usable, smallest, np.nan)), np.nanargmax(np.where(usable, smallest, np.nan))
    return (
        f"The smallest difference that can be told is {smallest[best]:.3g}{unit} at {figure(c[best], unit)} and "
        f"{smallest[worst]:.3g}{unit} at {figure(c[worst], unit)}."
    )


def _ambiguity(columns: dict[str, np.ndarray], unit: str) -> str:
    first, second, distance = columns["first"], columns["second"], columns["distance"]
    far = np.abs(first - second) >= 0.1 * np.ptp(first)
    k = int(np.flatnonzero(far)[distance[far].argmin()])
    return (
        "A map, dark where two concentrations look alike. Of pairs at least a tenth of the range apart, "
        f"{figure(first[k])} and {figure(second[k], unit)} are nearest: {distance[k]:.2g} standard deviations."
    )


def _metric(columns: dict[str, np.ndarray], unit: str) -> str:
    c, arc = columns["concentration"], columns["arc_length"]
    half = float(np.interp(0.5 * (arc[0] + arc[-1]), arc, c))
    told = columns["fisher_arc_length_standard_deviations"][-1]
    return f"Half of the arc length lies below {figure(half, unit)}; the range is {told:.3g} standard deviations long."


def _training(columns: dict[str, np.ndarray], unit: str) -> str:
    name = "total" if "total" in columns else next(n for n in columns if n != "epoch")
    values = columns[name]
    return f"{name}: {values[0]:.2g} in the first and {values[-1]:.2g} in the last of {len(values)} epochs."


def _single(columns: dict[str, np.ndarray], unit: str) -> str:
    signal, line = columns["signal"], columns["line"]
    worst = int(np.abs(signal - line).argmax())
    off = f"{signal[worst] - line[worst]:+.2g}"
    return (
        f"{len(signal)} standards and the straight line through them; furthest from it is that of "
        f"{columns['concentration'][worst]:g}{unit}: {off}."
    )


def _pls(columns: dict[str, np.ndarray], unit: str) -> str:
    w, vip = columns["wavelength"], columns["vip"]
    return (
        f"{len(columns) - 2} loadings. {int((vip > 1.0).sum())} of {len(w)} wavelengths have an importance above 1, "
        f"the largest {vip.max():.2g} at {figure(w[int(vip.argmax())])}."
    )
