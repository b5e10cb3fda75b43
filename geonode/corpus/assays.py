"""`Assays`: simulated calibrations, as tensors."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor


@dataclass(frozen=True)
class Assays:
    """B assays of n levels, R replicates, W wavelengths, Q queries and U unknowns.

    Attributes:
        wavelength: [W], from 0 to 1.
        concentration: nominal levels [B, n], ascending, in an arbitrary unit of each assay.
        spectra: mean of each level's replicates [B, n, W], in an arbitrary unit of each assay.
        replicates: [B, n, R, W]; those beyond `count` are 0.
        count: replicates of each level [B, n], 1 to R.
        replicate_variance: variance of a single replicate about its level [B, n, W]; 0 where there is one.
        truth: noiseless spectra at the standards' nominal concentrations [B, n, W].
        query_concentration: nominal [B, Q], inside the range and some beyond either end.
        query_spectra: one measured spectrum each, with its own errors of preparation and measurement [B, Q, W].
        query_truth: noiseless, at the nominal concentration [B, Q, W].
        from_zero: the axis is an amount, whose zero means nothing there; else pH, a potential … [B] bool.
        family: chemistry, an index into `FAMILIES` [B].
        detection: index into `DETECTIONS` [B].
        spectrum: index into `SPECTRUM_KINDS` [B].
        design: index into `DESIGN_NAMES` [B].
        noise: standard error of one measured spectrum about the truth at its true concentration (root mean square over
            standards and wavelengths), over the response [B].
        preparation: standard error of preparation (root mean square over standards), relative to the highest level, or
            to the width of an axis that is no amount [B].
        response: root mean square, over levels and wavelengths, of the truth about its mean over levels, in the unit
            of the spectra [B].
        unknown_concentration: true concentrations [B, U]; NaN where there is none (foreign, nothing).
        unknown_spectra: mean of the replicates [B, U, W].
        unknown_count: replicates of each unknown [B, U].
        unknown_kind: index into `UNKNOWNS` [B, U].
    """

    wavelength: Tensor
    concentration: Tensor
    spectra: Tensor
    replicates: Tensor
    count: Tensor
    replicate_variance: Tensor
    truth: Tensor
    query_concentration: Tensor
    query_spectra: Tensor
    query_truth: Tensor
    from_zero: Tensor
    family: Tensor
    detection: Tensor
    spectrum: Tensor
    design: Tensor
    noise: Tensor
    preparation: Tensor
    response: Tensor
    unknown_concentration: Tensor
    unknown_spectra: Tensor
    unknown_count: Tensor
    unknown_kind: Tensor

    def __len__(self) -> int:
        return self.concentration.shape[0]

    def to(self, device: torch.device | str) -> Assays:
        """The same on another device."""
        return Assays(**{field.name: getattr(self, field.name).to(device) for field in fields(self)})

    def __getitem__(self, rows: slice | Tensor) -> Assays:
        """Some of the assays."""
        moved = {f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name != "wavelength"}
        return Assays(wavelength=self.wavelength, **moved)
