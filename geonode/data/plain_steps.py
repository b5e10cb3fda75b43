"""A fitted preprocessing as plain numbers: cuts, matrices and standard normal variates, or a refusal."""

from __future__ import annotations

from typing import Any

import numpy as np

from geonode.data.preprocessing import RANGE, Preprocessing
from geonode.data.steps import Step, apply_step
from geonode.errors import InputError

_EXACT = 1e-9
_NOTHING = 1e-14


def exported_steps(chain: Preprocessing | None) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
    """The steps behind the leading ranges, as the runtime applies them, and the arrays they need.

    ``{"kind": "range", "first", "last"}`` keeps positions first … last − 1; ``{"kind": "snv"}``; ``{"kind":
    "affine", "index": k}`` is y = x A + b with A in bands: ``stepk_bands [W', b]``, ``stepk_starts [W']`` and
    ``stepk_offset [W']``.

    Raises:
        InputError: a step that is none of these (a baseline or a median, say), by name.
    """
    if chain is None:
        return [], {}
    steps: list[dict[str, Any]] = []
    arrays: dict[str, np.ndarray] = {}
    y, x = chain.measured
    for k, step in enumerate(chain._steps[chain._leading :]):
        after, x_after = apply_step(step, y, x)
        if step.name == RANGE:
            kept = np.flatnonzero(step.inside(x))
            steps.append({"kind": "range", "first": int(kept[0]), "last": int(kept[-1]) + 1})
        elif step.name == "snv":
            _require_same(step, (y - y.mean(1, keepdims=True)) / y.std(1, keepdims=True), after)
            steps.append({"kind": "snv"})
        else:
            matrix, offset = _affine(step, y, x)
            _require_same(step, y @ matrix + offset, after)
            bands, starts = _bands(matrix)
            steps.append({"kind": "affine", "index": k})
            arrays |= {f"step{k}_bands": bands, f"step{k}_starts": starts, f"step{k}_offset": offset}
        y, x = after, x_after
    return steps, arrays


def _affine(step: Step, y: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A and b of y = x A + b, from how the step answers a change of one value at a time."""
    centre, size = y.mean(0), max(float(np.ptp(y)), 1e-12)
    try:
        base = apply_step(step, centre[None], x)[0][0]
        matrix = (apply_step(step, centre + size * np.eye(len(x)), x)[0] - base) / size
    except InputError:
        raise _refusal(step) from None
    return matrix, base - centre @ matrix


def _require_same(step: Step, mine: np.ndarray, theirs: np.ndarray) -> None:
    if mine.shape != theirs.shape or np.abs(mine - theirs).max() > _EXACT * max(np.abs(theirs).max(), 1e-12):
        raise _refusal(step)


def _refusal(step: Step) -> InputError:
    return InputError(
        f"preprocessing step '{step.describe()}' cannot be exported: only ranges, snv and steps that are linear in the "
        "spectrum (savgol, derivative, whittaker, center, …) can; fit with one of those instead."
    )


def _bands(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A matrix ``[W, W']`` as the stretch of every column that is not zero: ``[W', b]`` and where each begins."""
    used = np.abs(matrix) > _NOTHING * np.abs(matrix).max()
    first = np.where(used.any(0), used.argmax(0), 0)
    last = np.where(used.any(0), len(matrix) - used[::-1].argmax(0), 1)
    width = int((last - first).max())
    starts = np.minimum(first, len(matrix) - width)
    rows = starts[:, None] + np.arange(width)
    return matrix[rows, np.arange(matrix.shape[1])[:, None]], starts.astype(np.float64)
