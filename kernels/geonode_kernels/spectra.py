"""Post-processing of predicted spectra where they lie: Savitzky–Golay, peaks and PCHIP, on the GPU by CuPy.

Tensors go to CuPy and come back by DLPack, without a copy and on torch's current stream; on the CPU the same functions
call SciPy. Nothing here is differentiable: it reads spectra off, it does not train.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ._runtime import KernelError

__all__ = ["Peaks", "find_peaks", "pchip", "savitzky_golay"]

BACKENDS = ("auto", "cupy", "scipy")
EDGES = ("interp", "mirror", "nearest", "wrap", "constant")


@dataclass(frozen=True)
class Peaks:
    """Peaks of a stack of spectra, row by row and ascending in each; all tensors [K], on the spectra's device.

    row: which spectrum, counted over the flattened leading axes. index: place along the wavelength axis. height:
    value there. prominence: height above the higher of the two saddles beside it.
    """

    row: Tensor
    index: Tensor
    height: Tensor
    prominence: Tensor


def savitzky_golay(
    spectra: Tensor,
    window: int = 11,
    order: int = 2,
    derivative: int = 0,
    spacing: float = 1.0,
    edges: str = "interp",
    *,
    backend: str = "auto",
) -> Tensor:
    """Local polynomial smoothing (Savitzky & Golay 1964) along the last axis, or a derivative of it.

    Args:
        spectra: [..., W].
        window: odd number of points, ≤ W for ``edges="interp"``.
        order: of the polynomial, below ``window``.
        derivative: 0 for the smoothed spectrum.
        spacing: between neighbouring wavelengths; derivatives are per unit of it.
        edges: what lies beyond the ends, a SciPy mode; ``interp`` fits the last window instead.
        backend: ``auto`` (CuPy for CUDA tensors), ``cupy`` or ``scipy``.

    Returns:
        [..., W], same dtype and device.

    Raises:
        ValueError: a window, order, derivative or edge rule that cannot be.
        KernelError: CuPy is needed and missing, or the backend does not fit the tensor's device.
    """
    width = _width(spectra, "spectra")
    if window < 1 or window % 2 == 0 or (edges == "interp" and window > width):
        raise ValueError(f"window={window} must be odd, positive and at most the {width} wavelengths of a spectrum.")
    if not 0 <= order < window:
        raise ValueError(f"order={order} must be at least 0 and below window={window}.")
    if derivative < 0:
        raise ValueError(f"derivative={derivative} must be at least 0.")
    if edges not in EDGES:
        raise ValueError(f"edges={edges!r} is not known; choose one of {', '.join(EDGES)}.")
    with _arrays(backend, spectra) as (to_array, to_tensor, scipy):
        result = scipy("signal").savgol_filter(
            to_array(spectra), window, order, deriv=derivative, delta=spacing, axis=-1, mode=edges
        )
        return to_tensor(result).to(spectra.dtype)


def find_peaks(
    spectra: Tensor,
    height: float | None = None,
    prominence: float | None = None,
    distance: float | None = None,
    *,
    backend: str = "auto",
) -> Peaks:
    """Local maxima of every spectrum in one call of SciPy's (CuPy's) ``find_peaks``.

    The spectra are laid end to end with +∞ between them: a saddle search stops there as it does at an array's end, and
    the walls are longer than ``distance``, so that no spectrum feels its neighbour.

    Args:
        spectra: [..., W], finite.
        height, prominence: smallest value that counts; None for no limit.
        distance: smallest separation of two peaks in points, ≥ 1; the higher one stays.
        backend: ``auto`` (CuPy for CUDA tensors), ``cupy`` or ``scipy``.

    Raises:
        ValueError: a spectrum that is not finite, or a distance below 1.
        KernelError: CuPy is needed and missing, or the backend does not fit the tensor's device.
    """
    width = _width(spectra, "spectra")
    if distance is not None and distance < 1:
        raise ValueError(f"distance={distance:g} must be at least one point.")
    rows = spectra.detach().reshape(-1, width)
    if not bool(torch.isfinite(rows).all()):
        bad = int((~torch.isfinite(rows)).any(1).nonzero()[0])
        raise ValueError(f"Spectrum {bad} holds a value that is not finite; remove it or fill it in before the search.")
    wall = 1 if distance is None else int(np.ceil(distance))
    line = torch.nn.functional.pad(rows, (0, wall), value=torch.inf).reshape(-1)
    lowest = -torch.inf if height is None else height
    with _arrays(backend, line) as (to_array, to_tensor, scipy):
        # the upper limit removes the walls themselves, before distances are looked at
        place, found = scipy("signal").find_peaks(
            to_array(line),
            height=(lowest, torch.finfo(line.dtype).max),
            distance=distance,
            prominence=-torch.inf if prominence is None else prominence,
        )
        place = to_tensor(place).long()
        heights, prominences = (to_tensor(found[key]).to(line.dtype) for key in ("peak_heights", "prominences"))
    step = width + wall
    return Peaks(torch.div(place, step, rounding_mode="floor"), place % step, heights, prominences)


def pchip(x: Tensor, y: Tensor, points: Tensor, derivative: int = 0, *, backend: str = "auto") -> Tensor:
    """Monotone piecewise cubic interpolation (Fritsch & Butland 1984) along the last axis.

    Args:
        x: [N] ascending, N ≥ 2.
        y: [..., N].
        points: [K] inside [x₀, x₋₁]: nothing is extrapolated.
        derivative: 0, 1, 2 or 3.
        backend: ``auto`` (CuPy for CUDA tensors), ``cupy`` or ``scipy``.

    Returns:
        [..., K] in y's dtype.

    Raises:
        ValueError: shapes that do not fit, x not ascending, a point outside x, or a derivative beyond the third.
        KernelError: CuPy is needed and missing, or the backend does not fit the tensors' device.
    """
    if x.ndim != 1 or points.ndim != 1 or len(x) < 2 or y.ndim < 1 or y.shape[-1] != len(x):
        raise ValueError(
            f"x {tuple(x.shape)} must be [N] with N ≥ 2, y {tuple(y.shape)} [..., N], points {tuple(points.shape)} [K]."
        )
    if derivative not in (0, 1, 2, 3):
        raise ValueError(f"derivative={derivative} must be 0, 1, 2 or 3: the pieces are cubic.")
    if not bool((x.diff() > 0).all()):
        raise ValueError("x must ascend strictly; sort it and average repeated entries first.")
    if len(points) and bool(((points < x[0]) | (points > x[-1])).any()):
        raise ValueError(f"points leave the range [{x[0]:g}, {x[-1]:g}] of x, and PCHIP does not extrapolate.")
    with _arrays(backend, x, y, points) as (to_array, to_tensor, scipy):
        curve = scipy("interpolate").PchipInterpolator(to_array(x), to_array(y), axis=-1)
        return to_tensor(curve(to_array(points), nu=derivative)).to(y.dtype)


def _width(spectra: Tensor, name: str) -> int:
    if spectra.ndim < 1 or spectra.shape[-1] < 1 or not spectra.is_floating_point():
        raise ValueError(f"{name} must be a floating-point tensor [..., W] with W ≥ 1, got {tuple(spectra.shape)}.")
    return spectra.shape[-1]


def _choose(backend: str, tensors: tuple[Tensor, ...]) -> str:
    """``cupy`` or ``scipy`` for these tensors."""
    if backend not in BACKENDS:
        raise KernelError(f"backend={backend!r} is unknown; choose one of {', '.join(BACKENDS)}.")
    devices = {t.device for t in tensors}
    if len(devices) > 1:
        raise KernelError(f"The tensors lie on {', '.join(sorted(map(str, devices)))}; move them to one device.")
    wanted = {"cuda": "cupy", "cpu": "scipy"}.get(tensors[0].device.type)
    if wanted is None or backend not in ("auto", wanted):
        raise KernelError(
            f"backend={backend!r} cannot read a tensor on {tensors[0].device}: CuPy reads CUDA tensors, SciPy reads "
            "those on the CPU; move the tensor."
        )
    if wanted == "cupy" and find_spec("cupy") is None:
        raise KernelError(
            "Spectra on a CUDA device need CuPy, which is not installed; install it or call .cpu() first."
        )
    return wanted


_Converters = tuple[Callable[[Tensor], Any], Callable[[Any], Tensor], Callable[[str], Any]]


@contextmanager
def _arrays(backend: str, *tensors: Tensor) -> Iterator[_Converters]:
    """(tensor → array, array → tensor, submodule name → SciPy's or CuPy's) while work goes to torch's stream."""
    import importlib

    if _choose(backend, tensors) == "scipy":

        def array(tensor: Tensor) -> Any:
            return tensor.detach().numpy()

        yield (
            array,
            lambda a: torch.from_numpy(np.ascontiguousarray(a)),
            lambda s: importlib.import_module(f"scipy.{s}"),
        )
        return
    import cupy

    device = tensors[0].device
    with (
        torch.cuda.device(device),
        cupy.cuda.Device(device.index),
        cupy.cuda.ExternalStream(torch.cuda.current_stream(device).cuda_stream, device.index),
    ):
        yield (
            lambda t: cupy.from_dlpack(t.detach()),
            lambda a: torch.from_dlpack(cupy.ascontiguousarray(a)),
            lambda s: importlib.import_module(f"cupyx.scipy.{s}"),
        )
