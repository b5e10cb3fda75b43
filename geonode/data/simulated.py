"""What simulated data sets have in common: a noiseless truth at any concentration, and tensors kept on their device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from geonode.data.dataset import SpectralDataset
from geonode.errors import InputError
from geonode_runtime.given_numbers import as_number, as_numbers

Concentrations = float | Sequence[float] | Sequence[Sequence[float]] | NDArray[np.float64] | torch.Tensor
Model = Callable[[torch.Tensor, torch.Tensor, Any], torch.Tensor]


class SimulatedSpectra(SpectralDataset):
    """A `SpectralDataset` that knows its noiseless truth and keeps its tensors on the device that made them.

    Attributes: ``parameters``, the constants of the simulation. ``model(concentrations, wavelengths, parameters)``
    gives noiseless spectra ``[C, W]`` of concentrations ``[C]`` or ``[C, D]``. Further ``kwargs`` are those of
    `SpectralDataset`.
    """

    def __init__(
        self, spectra: Any, concentrations: Any, wavelengths: Any, *, parameters: Any, model: Model, **kwargs: Any
    ) -> None:
        self.parameters, self._model = parameters, model
        self._device_tensors: tuple[torch.Tensor, torch.Tensor, torch.Tensor] = (concentrations, spectra, wavelengths)
        super().__init__(spectra, concentrations, wavelengths, **kwargs)

    @property
    def device(self) -> torch.device:
        """Where its tensors lie."""
        return self._device_tensors[1].device

    def truth(self, concentrations: Concentrations) -> torch.Tensor:
        """Noiseless spectra ``[C, W]`` at any concentrations ``[C]``, or ``[C, D]`` for D analytes, on the device."""
        dtype = self._device_tensors[1].dtype
        if isinstance(concentrations, np.ndarray):
            concentrations = concentrations.tolist()  # arrays of a data set are read-only, which torch warns of
        c = torch.as_tensor(concentrations, dtype=dtype, device=self.device)
        c = c.reshape(-1) if self.dim == 1 else c.reshape(-1, self.dim)
        return self._model(c, self._device_tensors[2], self.parameters)

    def tensors(
        self, device: str | torch.device | None = None, dtype: torch.dtype | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """``(concentrations [N] or [N, D], spectra [N, W], wavelengths [W])``, by default on the ``device`` and in the
        ``dtype`` in which they were made.
        """
        concentrations, spectra, wavelengths = (t.to(device=device, dtype=dtype) for t in self._device_tensors)
        return concentrations, spectra, wavelengths


def working_dtype(device: torch.device, dtype: torch.dtype | None) -> torch.dtype:
    """``dtype``, by default float64, and float32 on MPS, which has nothing wider."""
    return dtype or (torch.float32 if device.type == "mps" else torch.float64)


def check_levels(levels: torch.Tensor, who: str) -> torch.Tensor:
    """Ascending levels ``[n]`` of one analyte, checked on the host: finite, not negative, distinct, at least one.

    Raises:
        InputError: otherwise.
    """
    levels = levels.reshape(-1).sort().values
    if levels.numel() == 0 or not bool(torch.isfinite(levels).all()) or bool((levels < 0).any()):
        raise InputError(f"{who}: concentrations must be finite and not negative, and at least one.")
    if bool((levels.diff() <= 0).any()):
        raise InputError(f"{who}: a concentration is given twice; ask for replicates instead.")
    return levels


def host_tensor(wavelengths: Any) -> torch.Tensor:
    """Wavelengths as a tensor of its own: numpy's may be read-only, of which torch would warn."""
    if isinstance(wavelengths, torch.Tensor):
        return wavelengths
    return torch.from_numpy(np.array(as_numbers(wavelengths, "wavelengths")))


def check_grid(wavelengths: torch.Tensor, who: str) -> torch.Tensor:
    """Wavelengths ``[W]``, checked on the host: finite, positive, ascending.

    Raises:
        InputError: otherwise.
    """
    grid = wavelengths.reshape(-1)
    finite = grid.numel() > 0 and bool(torch.isfinite(grid).all())
    if not finite or bool((grid.diff() <= 0).any()) or bool(grid[0] <= 0):
        raise InputError(f"{who}: wavelengths must be positive, distinct and ascending.")
    return grid


def check_counts(replicates: int, who: str, **sizes: float) -> None:
    """Replicates at least 1, and standard deviations finite and not negative.

    Raises:
        InputError: otherwise.
    """
    if as_number(replicates, f"{who}: replicates") < 1:
        raise InputError(f"{who}: replicates is {replicates} (at least 1).")
    for name, size in sizes.items():
        if not 0 <= as_number(size, f"{who}: {name}") < float("inf"):
            raise InputError(f"{who}: {name} is {size} (finite, at least 0).")
