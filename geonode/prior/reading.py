"""The network read at places of one assay, in chunks of wavelengths so that memory stays bounded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from geonode.prior.anchors import anchors_first
from geonode.prior.features import Features, Reading
from geonode.prior.network import Network, Output
from geonode.threads import threads_for

ANCHORS = 40
"""Wavelengths that all others listen to; as in training."""
_TOKENS = 16_384  # standards and places times wavelengths that are worked on at once (memory)
_PLACES = 64


@dataclass(frozen=True)
class Read:
    """What the network says, numpy float64, units of the signal.

    Attributes:
        change: ``[C, W]`` what is added to the geodesic process's mean.
        log_metric: ``[n + 2, W]`` ln g̃ at the nodes of the metric.
        sigma, tau: ``[W]`` scales of the bridge along arc length and of a spectrum's scatter.
        dof: degrees of freedom of the Student t.
    """

    change: np.ndarray
    log_metric: np.ndarray
    sigma: np.ndarray
    tau: np.ndarray
    dof: float


@torch.inference_mode()
def read_places(
    network: Network, levels: np.ndarray, means: np.ndarray, concentrations: np.ndarray, variance: Tensor | None
) -> Read:
    """Read ``network`` at ``concentrations [C]``.

    Args:
        network: in evaluation mode.
        levels: ``[n]`` ascending. means: ``[n, W]``.
        concentrations: user units, at least one.
        variance: ``[1, W]`` between replicates, None where nothing was repeated.
    """
    order = anchors_first(means.shape[1], ANCHORS)
    parts = []
    with threads_for(_TOKENS):  # a chunk is small: a second thread waits three times as long as it works
        for part in torch.from_numpy(np.ascontiguousarray(concentrations)).split(_PLACES):
            reading = Reading(torch.from_numpy(levels)[None], torch.from_numpy(means)[None], part[None], variance)
            parts.append(_columns(network, reading, order, len(levels) + len(part)))
    change = np.concatenate([part[0] for part in parts])
    return Read(change, *parts[0][1:])


def _columns(
    network: Network, reading: Reading, order: Tensor, rows: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """All wavelengths: those with the anchors among them first, the others in chunks that listen to these."""
    levels, width = reading.levels.shape[1], len(order)
    anchors, columns = min(ANCHORS, width), max(ANCHORS, _TOKENS // rows)
    first = order[: max(anchors, min(columns, width))]
    f = reading.features(first)
    tokens, known, pairs = _with_anchors(network, network.embed(f), levels, anchors)
    found = [_numbers(f, network.heads(f, tokens, known))]
    for chunk in order[len(first) :].split(columns):
        f = reading.features(chunk)
        tokens = network.embed(f)
        for block, pair in zip(network.all_blocks, pairs, strict=True):
            tokens = block.along_wavelengths(block.along_levels(tokens, levels), pair)
        found.append(_numbers(f, network.heads(f, tokens, known)))
    back = torch.argsort(order).numpy()
    change, log_metric, sigma, tau = (np.concatenate([part[i] for part in found], -1)[..., back] for i in range(4))
    return change, log_metric, sigma[0], tau[0], float(found[0][4].item())


def _with_anchors(network: Network, tokens: Tensor, levels: int, anchors: int) -> tuple[Tensor, Tensor, list[Tensor]]:
    """The columns with the anchors among them; and the anchors' keys and values in every block."""
    pairs = []
    for block in network.all_blocks:
        tokens = block.along_levels(tokens, levels)
        pairs.append(block.pairs(tokens[:, :, :anchors]))
        tokens = block.along_wavelengths(tokens, pairs[-1])
    return tokens, tokens[:, :, :anchors], pairs


def _numbers(f: Features, output: Output) -> tuple[np.ndarray, ...]:
    scale = f.scale
    sized = (scale * output.change.double(), scale * output.sigma.double(), scale * output.tau.double())
    values = (sized[0], output.metric.log_metric.double(), sized[1], sized[2], output.dof.double())
    return tuple(value[0].numpy() for value in values)
