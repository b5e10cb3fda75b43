"""The laboratory in which assays are made: which samples are measured, in what order, and how carefully."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from geonode.corpus.kinds import Axis
from geonode.corpus.numbers import Numbers, Source


@dataclass(frozen=True)
class Counts:
    """Sizes of a draw: n levels of R replicates, Q queries, U unknowns, W wavelengths, B assays."""

    assays: int
    levels: int
    replicates: int
    queries: int
    unknowns: int
    wavelengths: int

    @property
    def standards(self) -> int:
        """Measured standards, n × R."""
        return self.levels * self.replicates

    @property
    def samples(self) -> int:
        """Measured samples, M."""
        return self.standards + self.queries + self.unknowns


@dataclass(frozen=True)
class Lab:
    """What errors may depend on. Samples M: standards' replicates (level by level), queries, unknowns.

    Attributes:
        source: random numbers of the draw.
        counts: its sizes.
        wavelength: [W], 0 to 1.
        family, design: indices of their kinds [B].
        low, high: calibrated range [B, 1]: amounts relative to the highest level, else the axis's unit.
        amount: the axis is an amount [B, 1], not pH or a potential.
        setting: standard error of setting the axis where it is no amount [B, 1], in its unit.
        serial: levels are made from each other [B, 1].
        levels, queries, unknowns: nominal concentrations [B, n], [B, Q], [B, U], float64.
        unknown_kind: [B, U].
        shared: replicates are readings of one solution [B, 1].
        care: factor on all sizes of an assay's errors [B, 1]: good and bad laboratories.
        rough: further factor of each sample [B, M]: unknowns may be measured with less care.
        order: when each sample was measured [B, M], 0 to 1 over the standards.
    """

    source: Source
    counts: Counts
    wavelength: Tensor
    family: Tensor
    design: Tensor
    low: Tensor
    high: Tensor
    amount: Tensor
    setting: Tensor
    serial: Tensor
    levels: Tensor
    queries: Tensor
    unknowns: Tensor
    unknown_kind: Tensor
    shared: Tensor
    care: Tensor
    rough: Tensor
    order: Tensor

    @property
    def axis(self) -> Axis:
        """The calibrated range."""
        return Axis(self.low, self.high)

    def nominal(self) -> Tensor:
        """Nominal concentrations of all measured samples [B, M], float64."""
        return torch.cat([self.of_levels(self.levels), self.queries, self.unknowns], 1)

    def of_levels(self, value: Tensor) -> Tensor:
        """A value of each level [B, n] as one of each replicate [B, n × R]."""
        return value[:, :, None].expand(-1, -1, self.counts.replicates).flatten(1)

    def numbers(self, columns: int) -> Numbers:
        """Further random numbers of every assay."""
        return self.source.table(self.counts.assays, columns)

    def normal(self, *shape: int) -> Tensor:
        """Standard normal [B, M, *shape], times `rough`."""
        number = self.source.normal(*self.rough.shape, *shape)
        return number * self.rough.view(*self.rough.shape, *(1 for _ in shape))

    def of_solutions(self) -> Tensor:
        """Standard normal [B, M], one number for all readings of one solution, times `rough`."""
        number, standards = self.source.normal(*self.rough.shape), self.counts.standards
        each = number[:, :standards].view(-1, self.counts.levels, self.counts.replicates)
        same = torch.where(self.shared[..., None], each[..., :1], each)
        return torch.cat([same.flatten(1), number[:, standards:]], 1) * self.rough

    def size(self, numbers: Numbers, share: float, median: float, sigma: float, largest: float) -> Tensor:
        """Size of an error [B, 1]: log-normal times the laboratory's care, 0 where the assay does not have it."""
        size = (numbers.log_normal(median, sigma) * self.care).clamp_max(largest)
        return torch.where(numbers.chance(share), size, 0.0)

    def reorder(self, rows: Tensor) -> Lab:
        """The same with assays in another order; rows [B]."""
        moved: dict[str, Any] = {
            field.name: getattr(self, field.name)[rows]
            for field in fields(self)
            if field.name not in ("source", "counts", "wavelength")
        }
        return replace(self, **moved)
