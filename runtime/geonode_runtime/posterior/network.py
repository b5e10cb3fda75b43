"""The trained network of the posterior in numpy: geonode.calibration.posterior.network, layer by layer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from geonode_runtime.posterior.cells import CELLS, Cells

BELOW, ABOVE, NONE = CELLS, CELLS + 1, CELLS + 2
DILATIONS = (1, 3, 6)
TAIL = 0.002
"""Of the mass is even over the searched range, whatever the network says."""
_AT_ONCE = 16
"""Unknowns whose activations (half a megabyte a layer) stay in a core's cache."""

Weights = dict[str, np.ndarray]
"""Names and arrays of the network's parameters."""


class Outcome(NamedTuple):
    """``logs [U, CELLS + 3]`` log probability of every cell, below, above and none of these; ``strange [U]`` the
    probability that the spectrum holds something that the standards do not."""

    logs: np.ndarray
    strange: np.ndarray


def evaluate(weights: Weights, cells: Cells) -> Outcome:
    """What the network makes of the cells of U unknowns."""
    parts = [_evaluated(weights, cells, slice(start, start + _AT_ONCE)) for start in range(0, len(cells.odd), _AT_ONCE)]
    return Outcome(np.concatenate([p.logs for p in parts]), np.concatenate([p.strange for p in parts]))


def _evaluated(w: Weights, cells: Cells, rows: slice) -> Outcome:
    base, odd = cells.base[rows], cells.odd[rows]
    mass = np.exp(base[:, :CELLS])
    seen = gelu(_linear(w, "whole.2", gelu(_linear(w, "whole.0", cells.whole[rows]))))
    x = gelu(_along(w, "enter", cells.values[rows]) + _linear(w, "tell", seen)[:, None])
    for k, dilation in enumerate(DILATIONS):
        pooled = _linear(w, f"blocks.{k}.whole", np.matmul(mass[:, None], x)[:, 0])
        inner = gelu(_dilated(w, f"blocks.{k}.along", x, dilation) + pooled[:, None])
        x = x + _along(w, f"blocks.{k}.out", inner)
    together = np.concatenate([seen, np.matmul(mass[:, None], x)[:, 0]], 1)
    own = _linear(w, "classes.2", gelu(_linear(w, "classes.0", together)))
    moved = base[:, :CELLS] + _along(w, "cell", x)[..., 0]
    logs = np.concatenate([moved, base[:, CELLS:] + own[:, :2], (odd + own[:, 2])[:, None]], 1)
    logs -= logs.max(1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(1, keepdims=True))
    width = np.diff(cells.edges[rows], axis=1)
    even = width / width.sum(1, keepdims=True)
    kept = np.log(1.0 - TAIL)
    inside = np.logaddexp(logs[:, :CELLS] + kept, np.log(TAIL * even))
    strange = 1.0 / (1.0 + np.exp(-(odd + own[:, 3])))
    return Outcome(np.concatenate([inside, logs[:, CELLS:] + kept], 1), strange)


def _linear(w: Weights, name: str, x: np.ndarray) -> np.ndarray:
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def _along(w: Weights, name: str, x: np.ndarray) -> np.ndarray:
    """A convolution of width one: the same for every cell of ``x [U, CELLS, c]``."""
    found = x @ _turned(w[f"{name}.weight"][..., 0])
    found += w[f"{name}.bias"]
    return found


def _dilated(w: Weights, name: str, x: np.ndarray, dilation: int) -> np.ndarray:
    """A convolution of three taps, ``dilation`` cells apart, zero beyond the ends."""
    kernel = w[f"{name}.weight"]  # [out, in, 3]
    found = x @ _turned(kernel[..., 1])
    found += w[f"{name}.bias"]
    found[:, dilation:] += x[:, :-dilation] @ _turned(kernel[..., 0])
    found[:, :-dilation] += x[:, dilation:] @ _turned(kernel[..., 2])
    return found


def _turned(tap: np.ndarray) -> np.ndarray:
    """``[in, out]`` of ``[out, in]``, in one piece: a product by a view with gaps takes twice as long."""
    return np.ascontiguousarray(tap.T)


def gelu(x: np.ndarray) -> np.ndarray:
    """x Φ(x) as max(x, 0) − |x| Φ(−|x|), Φ by Abramowitz & Stegun 7.1.26 (error below 2e-7)."""
    size = np.abs(x)
    t = size * (0.3275911 * 0.7071067811865476)
    t += 1.0
    np.divide(1.0, t, out=t)
    tail = t * (0.5 * 1.061405429)  # in place from here on: most of the time went into memory for what lies between
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail += 0.5 * coefficient
        tail *= t
    tail *= size
    size *= size
    size *= -0.5
    tail *= np.exp(size, out=size)
    return np.subtract(np.maximum(x, 0.0, out=t), tail, out=tail)
