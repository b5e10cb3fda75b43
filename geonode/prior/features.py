"""What the network sees of an assay, free of its units: numbers about standards, places, wavelengths and the assay.

Everything is made from the scaled concentration, from spectra divided by one scale of the assay, and from the residuals
and differences of the candidate smoothers, so neither the unit of concentration nor that of the signal can matter. All
values are bounded (logarithms and asinh), because leave-one-out residuals span many orders of magnitude.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from geonode.prior.candidates import GROUPS, scaled, smoothers
from geonode.prior.simple import SIMPLE, simple_smoothers

PLACE_NUMBERS = 23
LEVEL_VALUES = GROUPS + SIMPLE + 7
WAVELENGTH_VALUES = GROUPS + SIMPLE + 5
ASSAY_VALUES = 2 * GROUPS + SIMPLE + 17
PLACE_VALUES = GROUPS + SIMPLE + 2

_FLOOR = 1e-6  # of the assay's scale: residuals below are numerical noise
_FAR = 3.0  # candidates may differ from the reference by this many scales; more is extrapolation gone wild
_LEAST_EVIDENCE = -20.0
_SAME = 1e-9  # of half the range of the base coordinate


@dataclass(frozen=True)
class Features:
    """One batch of assays. Axes: B assays, n standards, P places, W wavelengths, G groups, S simple methods.

    Attributes:
        level_numbers: ``[B, n, F]`` and place_numbers ``[B, P, F]``: where standards and places lie.
        level_values: ``[B, n, W, F]`` spectra and leave-one-out residuals. place_values: ``[B, P, W, F]`` what the
            candidates say there, relative to the reference. wavelength_values: ``[B, W, F]`` how far candidates err at
            a wavelength; assay_values: ``[B, F]`` the same over all wavelengths, and their evidence.
        reference: ``[B, P, W]`` float64, the evidence-averaged geodesic GP, signal units.
        differences: ``[B, G + S, P, W]`` candidates less the reference, in scales of the assay, bounded.
        nearby: ``[B, G + S, P]`` log leave-one-out error of the candidates at the standards near a place, less its mean
            over the candidates.
        log_evidence: ``[B, G]`` and simple_evidence ``[B, S]``: log weights within the GP's groups and the simple ones.
        coordinate: ``[B, P]``, standards: ``[B, n]``: the evidence-averaged warp (the base of the learned metric).
        scale: ``[B, 1, 1]`` float64: root mean square of the spectra about their mean.
        residual: ``[B, W]`` root mean square leave-one-out residual of the reference, in scales, shrunk.
    """

    level_numbers: Tensor
    place_numbers: Tensor
    level_values: Tensor
    place_values: Tensor
    wavelength_values: Tensor
    assay_values: Tensor
    reference: Tensor
    differences: Tensor
    nearby: Tensor
    log_evidence: Tensor
    simple_evidence: Tensor
    coordinate: Tensor
    standards: Tensor
    scale: Tensor
    residual: Tensor

    def split(self, size: int) -> list[Features]:
        """Cut into batches of ``size`` assays (views)."""
        parts = [getattr(self, field.name).split(size) for field in fields(self)]
        return [Features(*part) for part in zip(*parts, strict=True)]


def features(levels: Tensor, means: Tensor, places: Tensor, replicate_variance: Tensor | None = None) -> Features:
    """Features of a batch of assays of the same shape, at all their wavelengths; arguments as for :class:`Reading`."""
    return Reading(levels, means, places, replicate_variance).features()


def _middles(levels: Tensor) -> Tensor:
    """Half way between neighbouring standards, and half an interval beyond the ends: ``[B, n + 1]``."""
    half = 0.5 * levels.diff(dim=1)
    inner = levels[:, :-1] + half
    return torch.cat([levels[:, :1] - half[:, :1], inner, levels[:, -1:] + half[:, -1:]], 1)


def _pooled_residual(operators: Tensor, gram: Tensor, width: int, scale: Tensor) -> Tensor:
    """Root mean square leave-one-out residual over standards and wavelengths, in scales: ``[B, G + S]``."""
    squared = torch.einsum("bgij,bjk,bgik->bg", operators, gram, operators)
    return (squared / (gram.shape[-1] * width)).clamp_min(0.0).sqrt() / scale[:, 0]


def _nearby(operators: Tensor, gram: Tensor, width: int, near: Tensor) -> Tensor:
    """Log leave-one-out errors at the standards, weighed by ``near [B, P, n]``: ``[B, G + S, P]``, of mean 0."""
    by_level = torch.einsum("bgij,bjk,bgik->bgi", operators, gram, operators).clamp_min(0.0) / width
    score = 0.5 * torch.log(torch.einsum("bpn,bgn->bgp", near, by_level.clamp_max(1e6)) + _FLOOR).float()
    return (score - score.mean(1, keepdim=True)).clamp(-6.0, 6.0)


def _compress(x: Tensor) -> Tensor:
    """Signed, linear below a twentieth of a scale, logarithmic above."""
    return torch.asinh(20.0 * x) / 3.0


def _log(x: Tensor) -> Tensor:
    """Logarithm of sizes in scales, bounded below, of order one."""
    return (torch.log(x + _FLOOR) + 4.0) / 3.0


class Reading:
    """A batch of assays as the candidates see it: all that no single wavelength decides, worked out once.

    Args:
        levels: ``[B, n]`` ascending concentrations, n ≥ 2. means: ``[B, n, W]`` their spectra (means of replicates).
        places: ``[B, P]`` concentrations asked for.
        replicate_variance: ``[B, W]`` variance between replicates of a level, NaN where there are none; None: none.
    """

    def __init__(self, levels: Tensor, means: Tensor, places: Tensor, replicate_variance: Tensor | None = None) -> None:
        levels, means, places = levels.double(), means.double(), places.double()
        self.levels, self.places, self.count = levels, places, places.shape[1]
        self.mean = means.mean(1, keepdim=True)
        centred = means - self.mean
        gram = centred @ centred.mT
        n, width = means.shape[1:]
        scale = (gram.diagonal(dim1=-2, dim2=-1).sum(-1) / (n * width)).sqrt()[:, None, None]
        # spectra that do not change at all are divided by next to nothing instead of by zero
        tiny = torch.finfo(torch.float64).tiny ** 0.5
        self.scale = scale + 1e-12 * means.abs().amax((1, 2), keepdim=True) + tiny
        self.values = centred / self.scale
        self.replicate_variance = replicate_variance
        self.found = smoothers(levels, gram, width, torch.cat([places, _middles(levels)], 1))
        rows, left_out = simple_smoothers(levels, places)
        average = self.found.average  # [B, P + n + 1, n]
        self.average = average[:, : self.count]
        differing = self.found.rows - average[:, None]
        self.differing = torch.cat([differing[:, :, : self.count], rows - self.average[:, None]], 1).float()
        self.between = differing[:, :, self.count :].float()
        self.operators = torch.cat([self.found.leave_one_out, left_out], 1)  # [B, G + S, n, n]
        self.own = self.found.average_leave_one_out @ self.values  # [B, n, W]
        self.pooled = _pooled_residual(self.operators, gram, width, self.scale)
        near = torch.softmax(-3.0 * (self.coordinate[:, :, None] - self.found.standards[:, None]).abs(), -1)
        self.nearby = _nearby(self.operators, gram / self.scale.square(), width, near)

    @property
    def coordinate(self) -> Tensor:
        """Base coordinates of the places, ``[B, P]``."""
        return self.found.coordinate[:, : self.count]

    def features(self, chosen: Tensor | None = None) -> Features:
        """Features at all wavelengths, or at those that ``chosen [W′]`` numbers."""
        chosen = torch.arange(self.values.shape[-1], device=self.values.device) if chosen is None else chosen
        values, own = self.values[..., chosen], self.own[..., chosen]
        few = values.float()[:, None]
        reference = self.average @ values
        residuals = (self.operators.float() @ few).clamp(-1e3, 1e3)  # [B, G + S, n, W]
        differences = _FAR * torch.tanh(self.differing @ few / _FAR)
        own_size = own.square().mean(1).sqrt().float()  # [B, W]
        everywhere = self.own.square().mean((1, 2)).float()[:, None]
        simple_evidence = -1.0 * self.levels.shape[1] * torch.log(self.pooled[:, GROUPS:] + 1e-4)
        raw, at = few[:, 0], reference.float().clamp(-10.0, 10.0)
        plain = torch.stack([raw, _compress(raw), _compress(own.float())], -1)
        placed = torch.stack([at, _compress(at)], -1)
        return Features(
            level_numbers=self._numbers(self.levels, self.found.standards, own=True),
            place_numbers=self._numbers(self.places, self.coordinate, own=False),
            level_values=torch.cat([_compress(residuals.permute(0, 2, 3, 1)), plain, _log(self._spread(few))], -1),
            place_values=torch.cat([_compress(differences.permute(0, 2, 3, 1)), placed], -1),
            wavelength_values=self._wavelength_values(chosen, residuals.square().mean(2).sqrt(), own_size),
            assay_values=self._assay_values(),
            reference=self.mean[..., chosen] + reference * self.scale,
            differences=differences,
            nearby=self.nearby,
            log_evidence=self.found.log_evidence.clamp_min(_LEAST_EVIDENCE).float(),
            simple_evidence=torch.log_softmax(simple_evidence, 1).float(),
            coordinate=self.coordinate,
            standards=self.found.standards,
            scale=self.scale,
            residual=(0.8 * own_size.square() + 0.2 * everywhere).sqrt() + 1e-5,
        )

    def _spread(self, few: Tensor) -> Tensor:
        """How far the groups disagree in the intervals left and right of every standard, ``[B, n, W, 4]``: weighed by
        evidence, and by its fourth root (so that groups of little evidence are heard)."""
        differ = (self.between @ few).clamp(-_FAR, _FAR).square()
        spread = []
        for power in (1.0, 0.25):
            weights = torch.softmax(power * self.found.log_evidence, 1).float()
            middle = torch.einsum("bg,bgpw->bpw", weights, differ).sqrt()
            spread += [middle[:, :-1], middle[:, 1:]]
        return torch.stack(spread, -1)

    def _wavelength_values(self, chosen: Tensor, at_wavelength: Tensor, own_size: Tensor) -> Tensor:
        offset = (self.mean[..., chosen] / self.scale)[:, 0].float()
        signal = self.values[..., chosen].square().mean(1).sqrt().float()
        columns = [_compress(offset), _log(signal), _log(own_size)]
        if self.replicate_variance is None:
            noise, known = torch.zeros_like(offset), torch.zeros_like(offset)
        else:
            variance = self.replicate_variance[..., chosen]
            known = torch.isfinite(variance)
            noise = torch.where(known, variance, 0.0).double().sqrt() / self.scale[:, 0]
            noise, known = torch.where(known, _log(noise), 0.0).float(), known.float()
        return torch.cat([_log(at_wavelength).mT, torch.stack([*columns, noise, known], -1)], -1)

    def _assay_values(self) -> Tensor:
        n = self.levels.shape[1]
        by_level = self.own.square().mean(-1).sqrt().float()
        size = by_level.square().mean(1).sqrt()
        by_warp = self.found.weights.reshape(len(self.levels), 13, -1).sum(-1).float()
        numbers = [_log(size), _log(by_level[:, 0]), _log(by_level[:, -1]), torch.full_like(size, math.log(n) - 2.0)]
        evidence = self.found.log_evidence
        best = evidence - evidence.amax(1, keepdim=True)
        low = (0.1 * best).clamp_min(-5.0).float()
        return torch.cat([_log(self.pooled).float(), low, by_warp, torch.stack(numbers, -1)], -1)

    def _numbers(self, c: Tensor, s: Tensor, own: bool) -> Tensor:
        """Where ``c [B, m]`` lies on several scales of concentration, ``[B, m, F]``, and how near to standards."""
        levels, standards = self.levels, self.found.standards
        u, at = scaled(levels, c)
        low, high = levels[:, :1], levels[:, -1:]
        share = (c - low) / (high - low)
        log, log_low = torch.log(at.clamp_min(1e-3)), torch.log(u[:, :1].clamp_min(1e-3))
        below, above = _gaps(standards, s, own)
        plain_below, plain_above = _gaps((levels - low) / (high - low), share, own)
        n = levels.shape[1]
        rank = torch.searchsorted(levels.contiguous(), c.contiguous()).double() / n
        columns = [share, at, log / 3.0, 1.0 - log / (log_low - 1e-6), at.clamp_min(0.0).sqrt(), s, rank]
        columns += [torch.full_like(share, n / 10.0), (u[:, :1]).expand_as(share)]
        columns += [torch.log(gap.clamp_min(1e-4)) / 3.0 for gap in (below, above, plain_below, plain_above)]
        columns += [(c < low).double(), (c > high).double()]
        columns += [wave(math.pi * k * s) for k in (0.5, 1.0, 2.0) for wave in (torch.sin, torch.cos)]
        columns += [torch.sin(math.pi * share), torch.cos(math.pi * share)]
        return torch.stack(columns, -1).clamp(-4.0, 4.0).float()


def _gaps(standards: Tensor, s: Tensor, own: bool) -> tuple[Tensor, Tensor]:
    """Distances to the next standard below and above, ``[B, m]`` (``own``: the places are the standards themselves);
    3 where there is none. A place at a standard, to rounding, has it below: which side it is on must not hang on the
    unit of concentration."""
    difference = s[:, :, None] - standards[:, None, :]
    if own:
        eye = torch.eye(standards.shape[1], dtype=torch.bool, device=s.device)
        difference = torch.where(eye, torch.full_like(difference, math.inf), difference)
    below = torch.where(difference >= -_SAME, difference.clamp_min(0.0), math.inf).amin(-1)
    above = torch.where(difference < -_SAME, -difference, math.inf).amin(-1)
    return below.clamp_max(3.0), above.clamp_max(3.0)
