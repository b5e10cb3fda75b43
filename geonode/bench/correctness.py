"""Comparison with the float64 reference: what every case must pass before it is timed."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from geonode.bench.case import Checked


def relative_error(actual: Tensor, expected: Tensor) -> float:
    """‖actual − expected‖ / ‖expected‖ in float64; NaN counts as infinite."""
    expected = expected.double()
    value = ((actual.to(expected.device).double() - expected).norm() / expected.norm()).item()
    return value if value == value else float("inf")


def compare(actual: Sequence[Tensor], expected: Sequence[Tensor], names: Sequence[str], limit: float) -> list[Checked]:
    """One `Checked` per tensor. A shape that differs is as wrong as a value."""
    rows = []
    for a, b, name in zip(actual, expected, names, strict=True):
        rows.append(Checked(name, relative_error(a, b) if a.shape == b.shape else float("inf"), limit))
    return rows
