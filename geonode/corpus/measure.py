"""From noiseless signals to measured ones: errors after the detector, unknowns, replicates' means."""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.assays import Assays
from geonode.corpus.kinds import ERRORS
from geonode.corpus.lab import Lab
from geonode.corpus.stages import ERROR_NAMES
from geonode.corpus.unknowns import disturb, without_concentration


def disturbed(lab: Lab, signal: Tensor, response: Tensor) -> Tensor:
    """Signals [B, M, W] with errors of wavelength, gain, baseline and noise; response [B, 1, 1]."""
    errors = [ERRORS[name]() for name in ERROR_NAMES]
    clean = signal
    shifts = [part for part in (error.wavelength(lab) for error in errors) if part is not None]
    if shifts:
        slope = torch.nn.functional.pad(clean[..., 2:] - clean[..., :-2], (1, 1)) * (0.5 * lab.counts.wavelengths)
        signal = signal + sum(shifts)[..., None] * slope
    gains = [part for part in (error.gain(lab) for error in errors) if part is not None]
    if gains:
        signal = signal * (1.0 + sum(gains))[..., None]
    additive = [part for part in (error.additive(lab) for error in errors) if part is not None]
    amounts = torch.cat([amount for amount, _ in additive], -1)
    shapes = torch.cat([shape for _, shape in additive], -2)
    variance = sum(part for part in (error.variance(lab, clean / response) for error in errors) if part is not None)
    noise = lab.source.normal(*signal.shape)
    return signal + response * (amounts @ shapes + variance.sqrt() * noise)


def replicate_counts(lab: Lab) -> Tensor:
    """Replicates of each level [B, n]: all of them, a few here and there, or one."""
    most, numbers = lab.counts.replicates, lab.numbers(1 + lab.counts.levels)
    kind = numbers.choice((0.65, 0.15, 0.2))
    some = 1 + (numbers.uniform(0.0, 1.0, lab.counts.levels) * most).long().clamp_max(most - 1)
    return torch.where(kind == 0, most, torch.where(kind == 1, some, 1))


def assays(
    lab: Lab, signal: Tensor, prepared: Tensor, unit: Tensor, spectrum: Tensor, detection: Tensor, dtype: torch.dtype
) -> Assays:
    """Everything an analyst gets to see, and the truth.

    Args:
        lab: rows in the final order.
        signal: noiseless signal [B, n + Q + M, W]: truth at the nominal levels and queries, then measured samples.
        prepared: true concentrations of the measured samples [B, M].
        unit: of the signal [B].
        spectrum, detection: indices of their kinds [B].
        dtype: of what is given back.
    """
    counts, n = lab.counts, lab.counts.levels
    truth, query_truth, clean = signal.split([n, counts.queries, counts.samples], 1)
    response = (truth - truth.mean(1, keepdim=True)).square().mean((1, 2), keepdim=True).sqrt()
    largest = truth.abs().amax((1, 2), keepdim=True)
    # a response too small to see still has noise of the size of the signal
    response = response.maximum(1e-3 * largest).clamp_min(1e-9)
    measured = disturbed(lab, clean, response)
    noise = (measured - clean)[:, : counts.standards].square().mean((1, 2)).sqrt() / response[:, 0, 0]
    standards, query, unknown = measured.split([counts.standards, counts.queries, counts.unknowns], 1)
    replicates = standards.unflatten(1, (n, counts.replicates))
    number = replicate_counts(lab)
    kept = torch.arange(counts.replicates, device=number.device) < number[..., None]
    replicates = replicates * kept[..., None]
    mean = replicates.sum(2) / number[..., None]
    spread = ((replicates - mean[:, :, None]) * kept[..., None]).square().sum(2) / (number[..., None] - 1).clamp_min(1)
    known = lab.nominal()[:, : counts.standards]
    width = torch.where(lab.amount, lab.high, lab.high - lab.low)
    preparation = ((prepared[:, : counts.standards] - known) / width).square().mean(1).sqrt()
    unknown_count = torch.ones_like(lab.unknown_kind)
    true = prepared[:, counts.standards + counts.queries :]
    if counts.unknowns:
        unknown = disturb(unknown, lab.unknown_kind, lab, response, largest)
    scale = torch.where(lab.amount, lab.numbers(1).log_uniform(1e-3, 1e3), 1.0)
    size = unit[:, None, None]
    return Assays(
        wavelength=lab.wavelength.to(dtype),
        concentration=(lab.levels * scale).to(dtype),
        spectra=(mean * size).to(dtype),
        replicates=(replicates * size[..., None]).to(dtype),
        count=number,
        replicate_variance=(spread * size.square()).to(dtype),
        truth=(truth * size).to(dtype),
        query_concentration=(lab.queries * scale).to(dtype),
        query_spectra=(query * size).to(dtype),
        query_truth=(query_truth * size).to(dtype),
        from_zero=lab.amount[:, 0],
        family=lab.family,
        detection=detection,
        spectrum=spectrum,
        design=lab.design,
        noise=noise.to(dtype),
        preparation=preparation.to(dtype),
        response=(response[:, 0, 0] * unit).to(dtype),
        unknown_concentration=torch.where(without_concentration(lab.unknown_kind), torch.nan, true * scale).to(dtype),
        unknown_spectra=(unknown * size).to(dtype),
        unknown_count=unknown_count,
        unknown_kind=lab.unknown_kind,
    )
