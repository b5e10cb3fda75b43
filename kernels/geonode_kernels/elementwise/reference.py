"""The elementwise operations in plain torch: specification and CPU path."""

import torch
from torch import Tensor


def christoffel_fd(below: Tensor, centre: Tensor, above: Tensor, shift: Tensor, step: float) -> Tensor:
    """Γ = ½ g′/g from g at a stencil's points, ``shift`` beside its middle; all of one shape."""
    g, slope = parabola(below, centre, above, shift, step)
    return 0.5 * slope / g


def parabola(below: Tensor, centre: Tensor, above: Tensor, shift: Tensor, step: float) -> tuple[Tensor, Tensor]:
    """Value and slope, ``shift`` beside the middle, of the parabola through three points ``step`` apart."""
    slope, curvature = (above - below) / (2.0 * step), (above - 2.0 * centre + below) / step**2
    return centre + shift * (slope + 0.5 * shift * curvature), slope + shift * curvature


def christoffel_grid(
    table: Tensor, c: Tensor, wavelength: Tensor, c_range: tuple[float, float], wavelength_range: tuple[float, float]
) -> Tensor:
    """Γ read bilinearly from ``table`` [M, C, L] over (c, λ), [M, N]; NaN outside: a table is never extrapolated."""
    row, x, inside = _locate(c, c_range, table.shape[1])
    column, y, covered = _locate(wavelength, wavelength_range, table.shape[2])
    flat, width = table.flatten(1), table.shape[2]
    corner = [flat.gather(1, row * width + column + step) for step in (0, 1, width, width + 1)]
    low, high = torch.lerp(corner[0], corner[1], y), torch.lerp(corner[2], corner[3], y)
    return torch.where(inside & covered, torch.lerp(low, high, x), torch.nan)


def _locate(x: Tensor, ends: tuple[float, float], size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Cell, fraction within it, and whether ``x`` is on the axis at all, a millionth of a cell beyond included."""
    place = (x - ends[0]) * ((size - 1) / (ends[1] - ends[0]))
    inside = (place >= -1e-6) & (place <= size - 1 + 1e-6)
    place = torch.where(inside, place, 0.0)
    cell = place.detach().floor().clamp(0, size - 2)
    return cell.long(), place - cell, inside
