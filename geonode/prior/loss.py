"""What pre-training minimises: log error of the level taken out and of the truth elsewhere, and the likelihood."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from geonode.prior.examples import Examples
from geonode.prior.features import Features
from geonode.prior.network import Output

_FLOOR = 1e-6  # mean square, in scales²: a thousandth of the signal is as good as none


@dataclass(frozen=True)
class Errors:
    """Per assay and place, ``[B, P]``.

    Attributes:
        measured, truth: log root mean square error against what was measured and what is true, in scales.
        start_measured, start_truth: the same for the reference, the geodesic GP.
        surprise: negative log likelihood per wavelength of what was measured, Student t, in scales.
    """

    measured: Tensor
    truth: Tensor
    start_measured: Tensor
    start_truth: Tensor
    surprise: Tensor


def errors(f: Features, output: Output, examples: Examples) -> Errors:
    """All errors of a batch; those of the network carry gradients."""
    off_measured = ((f.reference - examples.measured) / f.scale).float()
    off_truth = ((f.reference - examples.truth) / f.scale).float()
    miss = off_measured + output.change
    # The variance is trained for the prediction as it stands: a likelihood must not trade bias for width.
    surprise = student_t(miss.detach(), output.variance(f.coordinate), output.dof)
    return Errors(
        _log_rms(miss), _log_rms(off_truth + output.change), _log_rms(off_measured), _log_rms(off_truth), surprise.mean(-1)
    )


def student_t(miss: Tensor, variance: Tensor, dof: Tensor) -> Tensor:
    """−log density of ``miss`` under a Student t of squared scale ``variance`` and ``dof`` degrees of freedom."""
    normaliser = torch.lgamma(0.5 * dof) - torch.lgamma(0.5 * (dof + 1.0)) + 0.5 * torch.log(dof * math.pi)
    variance = variance + 1e-10
    return normaliser + 0.5 * torch.log(variance) + 0.5 * (dof + 1.0) * torch.log1p(miss.square() / (dof * variance))


def _log_rms(miss: Tensor) -> Tensor:
    return 0.5 * torch.log(miss.square().mean(-1) + _FLOOR)


def total(e: Errors, likelihood: float = 0.2) -> Tensor:
    """The loss: level taken out as measured, twice; truth at all places, once; ``likelihood`` times the surprise."""
    return (2.0 * e.measured[:, 0].mean() + e.truth.mean() * 1.0) / 3.0 + likelihood * e.surprise.mean()
