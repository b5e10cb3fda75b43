"""A fitted calibration as JSON: the arrays and facts with which a page quantifies an unknown."""

from __future__ import annotations

import base64
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from geonode.data.plain_steps import exported_steps
from geonode_runtime.posterior.methods import profile_instead

if TYPE_CHECKING:
    from geonode.calibration.calibration import Calibration
    from geonode.model import GeodesicModel


def answer_data(model: GeodesicModel) -> dict[str, Any]:
    """What the page's scripts take: JSON's own types, arrays in float64 as base64.

    Lengths below: V wavelengths measured, W of them behind the preprocessing, K points of the curve, n levels, N
    spectra of standards, r directions that the standards span. ``arrays``: ``measured [V]``, ``standards [n, V]`` (as
    measured), ``wavelengths``, ``centre``, ``scale [W]``, ``basis [W, r]``, ``grid``, ``doubt [K]``, ``curve [K, r]``,
    ``covariance [K, r (r + 1)/2]`` (lower triangles, row by row), ``scatter [r, r]``, the predicted spectra as
    ``weights [K, n]`` of ``residual [n, W]``, ``shapeSpectra [n, W]`` of the levels, ``plsVector`` and
    ``plsCentre [W]`` where PLS answers, and the standards' own spectra as
    :class:`~geonode_runtime.standard_spectra.StandardSpectra` has them. ``posterior``: ``arrays`` and ``numbers`` of
    :class:`~geonode_runtime.posterior.standards.PosteriorStandards` and the network's ``weights``; None where it cannot
    answer, and ``unfit`` then says so. ``causes``: ``arrays`` and ``facts`` of
    :class:`~geonode_runtime.causes.explainer.Explainer`.

    Raises:
        InputError: a preprocessing step that cannot be written as plain numbers.
    """
    calibration = model.calibration
    inverse, own, measured = calibration.inverse, calibration.standard_spectra, calibration.measured
    space, facts, units = inverse.projection, calibration.facts, model.dataset.units
    rules, shapes, pls = facts.rules, facts.shapes, facts.pls
    steps, learned = exported_steps(model.preprocessing)
    assert shapes is not None  # every fitted calibration has them; exported files of earlier versions may not
    rows, columns = np.tril_indices(inverse.rank)
    arrays = {
        "measured": measured.wavelengths,
        "standards": measured.gp.level_means,
        "wavelengths": calibration.wavelengths,
        "centre": space.centre,
        "scale": space.scale,
        "basis": space.basis,
        "grid": inverse.grid,
        "doubt": inverse.doubt,
        "curve": inverse.mean,
        "covariance": inverse.covariance[:, rows, columns],
        "scatter": inverse.scatter,
        "weights": inverse.gp.predict_rows(inverse.grid),
        "residual": inverse.gp.residual,
        "shapeSpectra": shapes.spectra,
        "ownFingerprints": own.fingerprints,
        "ownNoise": own.noise,
        "ownConcentrations": own.concentrations,
    }
    if pls is not None:
        arrays |= {"plsVector": pls.vector, "plsCentre": pls.centre}
    return {
        "arrays": _packed(arrays, {}),
        "posterior": _posterior(calibration, arrays),
        "causes": _causes(calibration, arrays),
        "unfit": [profile_instead(calibration.unfit_for_posterior)] if calibration.unfit_for_posterior else [],
        "steps": [_step(step, learned) for step in steps],
        "preprocessing": None if model.preprocessing is None else str(model.preprocessing),
        "levels": len(calibration.levels),
        "shapeDecides": shapes.decides,
        "pls": None if pls is None else {"offset": pls.offset, "rmsecv": pls.error, "components": pls.components},
        "cautions": list(facts.cautions),
        "untold": facts.untold,
        "turns": list(facts.turns),
        "rank": inverse.rank,
        "dof": float(inverse.dof),
        "endsAtZero": inverse.ends_at_zero,
        "rules": {
            "lowest": rules.lowest,
            "highest": rules.highest,
            "hasBlank": rules.has_blank,
            "qLimit": _finite(rules.q_limit),
            "t2Limit": _finite(rules.t2_limit),
            "isCurve": rules.is_curve,
            "usable": rules.usable,
            "declines": rules.declines,
        },
        "unit": calibration.unit,
        "signal": model.dataset.signal,
        "wavelengthUnit": units["wavelength"],
        "xLabel": calibration.wavelength_label,
        "yLabel": calibration.signal,
    }


def _packed(arrays: dict[str, Any], there: dict[str, Any]) -> dict[str, Any]:
    """Each array packed, or ``{"as": name}`` where it is one of those before it or ``there``: a page holds it once."""
    found: dict[str, Any] = {}
    for name, value in arrays.items():
        known = {**there, **{one: arrays[one] for one in found}}
        same = (one for one, other in known.items() if np.size(value) > 100 and np.array_equal(value, other))
        first = next(same, None)
        found[name] = packed(value) if first is None else {"as": first}
    return found


def _posterior(calibration: Calibration, there: dict[str, Any]) -> dict[str, Any] | None:
    if calibration.unfit_for_posterior:
        return None
    arrays, numbers = calibration.posterior.known.state()
    weights = {name: packed(value, "<f4") for name, value in calibration.posterior.weights.items()}
    return {"arrays": _packed(arrays, there), "numbers": numbers, "weights": weights}


def _causes(calibration: Calibration, there: dict[str, Any]) -> dict[str, Any]:
    arrays, facts = calibration.explainer.state()
    return {"arrays": _packed(arrays, there), "facts": facts}


def packed(value: np.ndarray, kind: str = "<f8") -> dict[str, Any]:
    """``{"shape", "type", "data"}``: of the ``kind`` of numbers, little-endian, base64."""
    value = np.ascontiguousarray(value, dtype=kind)
    return {"shape": list(value.shape), "type": kind, "data": base64.b64encode(value.tobytes()).decode("ascii")}


def _step(step: dict[str, Any], learned: dict[str, np.ndarray]) -> dict[str, Any]:
    if step["kind"] != "affine":
        return step
    return step | {name: packed(learned[f"step{step['index']}_{name}"]) for name in ("bands", "starts", "offset")}


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
