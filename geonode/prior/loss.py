"""What pre-training minimises: log error of the level taken out and of the truth elsewhere, and the likelihood."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from geonode.prior.examples import Examples
from geonode.prior.features import Features
from geonode.prior.network import Output

_LEVEL = 0.8
_FLOOR = 1e-6  # mean square, in scales²: a thousandth of the signal is as good as none


@dataclass(frozen=True)
class Errors:
    """Per assay and place, ``[B, P]``.

    Attributes:
        measured, truth: log root mean square error against what was measured and what is true, in scales.
        start_measured, start_truth: the same for the reference, the geodesic GP.
        surprise: negative log likelihood per wavelength of what was measured, Student t, in scales.
        band: quantile loss of the 80 % band's half width, in logarithms (so that no assay outweighs another).
    """

    measured: Tensor
    truth: Tensor
    start_measured: Tensor
    start_truth: Tensor
    surprise: Tensor
    band: Tensor


def errors(f: Features, output: Output, examples: Examples) -> Errors:
    """All errors of a batch; those of the network carry gradients."""
    off_measured = ((f.reference - examples.measured) / f.scale).to(output.change)
    off_truth = ((f.reference - examples.truth) / f.scale).to(output.change)
    miss = off_measured + output.change
    # The variance is trained for the prediction as it stands: a likelihood must not trade bias for width.
    still, variance = miss.detach(), output.variance(f.coordinate)
    surprise = student_t(still, variance, output.dof)
    half = torch.log(upper_decile(output.dof.detach())) + 0.5 * torch.log(variance + 1e-10)
    over = torch.log(still.abs() + 1e-5) - half
    band = torch.maximum(_LEVEL * over, (_LEVEL - 1.0) * over)
    return Errors(
        _log_rms(miss),
        _log_rms(off_truth + output.change),
        _log_rms(off_measured),
        _log_rms(off_truth),
        surprise.mean(-1),
        band.mean(-1),
    )


def upper_decile(dof: Tensor) -> Tensor:
    """The 90 % quantile of a Student t, by its expansion in 1/ν (Abramowitz & Stegun 26.7.5); 0.3 % low at ν = 2."""
    r = 1.0 / dof
    return 1.28155 + r * (0.84658 + r * (0.57094 + r * 0.25863))


def student_t(miss: Tensor, variance: Tensor, dof: Tensor) -> Tensor:
    """−log density of ``miss`` under a Student t of squared scale ``variance`` and ``dof`` degrees of freedom."""
    normaliser = torch.lgamma(0.5 * dof) - torch.lgamma(0.5 * (dof + 1.0)) + 0.5 * torch.log(dof * math.pi)
    variance = variance + 1e-10
    return normaliser + 0.5 * torch.log(variance) + 0.5 * (dof + 1.0) * torch.log1p(miss.square() / (dof * variance))


def _log_rms(miss: Tensor) -> Tensor:
    return 0.5 * torch.log(miss.square().mean(-1) + _FLOOR)


def total(e: Errors, likelihood: float = 0.2) -> Tensor:
    """The loss: twice the level taken out as measured, once the truth at all places, ÷ 3; ``likelihood`` times the
    surprise and the loss of the band."""
    spectra = (2.0 * e.measured[:, 0].mean() + e.truth.mean()) / 3.0
    return spectra + likelihood * (e.surprise.mean() + 2.0 * e.band.mean())
