"""Unknowns: what is brought to a calibration to be quantified, and should not always be."""

from __future__ import annotations

import torch
from torch import Tensor

from geonode.corpus.lab import Lab
from geonode.corpus.numbers import Numbers

# what it is, and its share
KINDS = {
    "sample": 0.55,  # as the standards, at any concentration in an extended range
    "rough": 0.13,  # measured with three to ten times the errors
    "interferent": 0.12,  # with a band of something else: 2 to 100 % of the response
    "foreign": 0.12,  # a spectrum of another assay
    "nothing": 0.08,  # flat, or noise alone
}
UNKNOWNS = tuple(KINDS)


def draw_kinds(numbers: Numbers, unknowns: int) -> Tensor:
    """Kind of each unknown [B, U]."""
    return numbers.choice(tuple(KINDS.values()), unknowns)


def is_rough(kind: Tensor) -> Tensor:
    """Measured with less care."""
    return kind == UNKNOWNS.index("rough")


def without_concentration(kind: Tensor) -> Tensor:
    """There is no concentration to find."""
    return (kind == UNKNOWNS.index("foreign")) | (kind == UNKNOWNS.index("nothing"))


def disturb(spectra: Tensor, kind: Tensor, lab: Lab, response: Tensor, largest: Tensor) -> Tensor:
    """Unknown spectra [B, U, W] as their kind has them.

    Args:
        spectra: as measured samples of this assay.
        kind: [B, U].
        lab: where they are measured.
        response, largest: root mean square and largest size of the standards' signal [B, 1, 1].
    """
    count = kind.shape[1]
    numbers = lab.numbers(5 * count + 3)
    band = torch.exp(
        -0.5
        * ((lab.wavelength - numbers.uniform(0.0, 1.0, count, 1)) / numbers.log_uniform(0.02, 0.5, count, 1)).square()
    )
    other = spectra + numbers.log_uniform(0.02, 1.0, count, 1) * 2.0 * response * band
    # the next assay's unknowns, as large as this assay's signal
    scale = largest / largest.roll(1, 0).clamp_min(1e-12)
    foreign = spectra.roll(1, 0) * scale * numbers.log_uniform(0.3, 1.5, count, 1)
    noise = lab.source.normal(*spectra.shape)
    flat = response * (0.1 * numbers.log_uniform(1e-3, 10.0, count, 1) * noise)
    which = kind[..., None]
    spectra = torch.where(which == UNKNOWNS.index("interferent"), other, spectra)
    spectra = torch.where(which == UNKNOWNS.index("foreign"), foreign, spectra)
    return torch.where(which == UNKNOWNS.index("nothing"), flat, spectra)
