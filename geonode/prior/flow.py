"""One assay read by the pre-trained network: spectra at any concentration, by transport along its geodesics.

The potential A(c, λ) is what the network says of concentration c. Its derivative along the learned arc length is the
rate h = dA/dŝ, and moving a spectrum from a to b along the geodesic adds ∫h dŝ = A(b) − A(a), by the potential exactly:
a path of no length adds nothing, there and back is nothing, and every way round gives the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.special import stdtrit
from torch import Tensor

from geonode.calibration.gp.numerics import checked_ordered, concentration_tensor
from geonode.errors import InputError
from geonode.prior.anchors import anchors_first
from geonode.prior.features import Reading
from geonode.prior.network import Network, Output

ANCHORS = 40
"""Wavelengths that all others listen to; as in training."""
_TOKENS = 16_384  # standards and places times wavelengths that are worked on at once (memory)
_PLACES = 64


@dataclass(frozen=True)
class FlowPrediction:
    """Prediction at C concentrations, numpy float64, in the units of the standards.

    Attributes:
        concentrations: ``[C]``.
        mean: ``[C, W]``.
        scale: ``[C, W]`` scale of the predictive Student t of one further spectrum.
        dof: its degrees of freedom.
        arc_length: ``[C, W]`` ŝ, −1 at the lowest standard and 1 at the highest.
        distance: ``[C, W]`` geodesic distance to the nearest standard.
        extrapolated: ``[C]`` true outside the calibrated range.
    """

    concentrations: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    dof: float
    arc_length: np.ndarray
    distance: np.ndarray
    extrapolated: np.ndarray

    def interval(self, level: float = 0.8) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper limits ``[C, W]`` of the central interval at ``level``.

        Raises:
            InputError: a level not between 0 and 1.
        """
        if not 0.0 < level < 1.0:
            raise InputError(f"the interval level must lie between 0 and 1, but {level} was given.")
        half = stdtrit(self.dof, 0.5 + 0.5 * level) * self.scale
        return self.mean - half, self.mean + half


def replicate_variance(deviations: np.ndarray, levels: int) -> np.ndarray | None:
    """Pooled variance ``[W]`` of spectra about their level's mean, from ``deviations [N, W]`` at ``levels`` levels
    (NaN where masked); None where nothing was repeated."""
    if len(deviations) <= levels:
        return None
    known = np.isfinite(deviations)
    return (np.where(known, deviations, 0.0) ** 2).sum(0) / np.maximum(known.sum(0) - levels, 1)


class AssayFlow:
    """The pre-trained flow of one assay. There is nothing to train: reading the standards is the fit.

    Args:
        network: pre-trained weights (:func:`geonode.prior.stored.load_network`).
        levels: ``[n]`` distinct concentrations of the standards, any unit and order, n ≥ 2.
        means: ``[n, W]`` their spectra, means of replicates.
        replicate_variance: ``[W]`` variance between replicates of one level, None where nothing was repeated.

    Raises:
        InputError: levels or spectra that are not finite, repeated or of shapes that do not fit.
    """

    def __init__(self, network: Network, levels: Any, means: Any, replicate_variance: Any = None) -> None:
        self.levels, self.means, _ = checked_ordered(levels, means)
        self.network = network.eval()
        width = self.means.shape[1]
        self.variance = None
        if replicate_variance is not None:
            self.variance = torch.as_tensor(np.asarray(replicate_variance, dtype=np.float64))[None]
            if self.variance.shape != (1, width):
                raise InputError(f"replicate_variance needs one value for each of the {width} wavelengths.")
        self._order = anchors_first(width, ANCHORS)

    @torch.inference_mode()
    def predict(self, concentrations: Any) -> FlowPrediction:
        """Mean spectra and bands at ``concentrations [C]``, user units, in any order, also outside the range.

        Raises:
            InputError: concentrations that are not finite numbers.
        """
        c = concentration_tensor(concentrations)
        parts = [self._places(part) for part in c.split(_PLACES)]
        mean, scale, arc, distance = (np.concatenate([part[i] for part in parts]) for i in range(4))
        outside = (c < self.levels[0]) | (c > self.levels[-1])
        return FlowPrediction(c.numpy(), mean, scale, parts[0][4], arc, distance, outside.numpy())

    def predict_mean(self, concentrations: Any) -> np.ndarray:
        """Mean spectra ``[C, W]`` at ``concentrations [C]`` alone; errors as for `predict`."""
        return self.predict(concentrations).mean

    def transport(self, start: Any, target: Any) -> np.ndarray:
        """What moving along the geodesics from ``start [C]`` to ``target [C]`` adds to a spectrum, ``[C, W]``.

        Raises:
            InputError: concentrations that are not finite, or not as many starts as targets.
        """
        start, target = concentration_tensor(start), concentration_tensor(target)
        if len(start) != len(target):
            raise InputError(f"transport needs as many starts as targets, but got {len(start)} and {len(target)}.")
        both = self.predict_mean(torch.cat([start, target]).numpy())
        return both[len(start) :] - both[: len(start)]

    def rate(self, concentrations: Any, step: float = 1e-4) -> np.ndarray:
        """h = dA/dŝ ``[C, W]`` at ``concentrations [C]``, by symmetric differences of ``step`` times the range."""
        c = concentration_tensor(concentrations).numpy()
        h = step * (self.levels[-1] - self.levels[0])
        found = self.predict(np.concatenate([c - h, c + h]))
        up, down = slice(len(c), None), slice(None, len(c))
        return (found.mean[up] - found.mean[down]) / (found.arc_length[up] - found.arc_length[down])

    # ------------------------------------------------------------------ the network

    def _places(self, c: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
        """Mean, scale, arc length and distance ``[C, W]`` each, and degrees of freedom."""
        reading = Reading(
            torch.from_numpy(self.levels)[None], torch.from_numpy(self.means)[None], c[None], self.variance
        )
        rows, width = len(self.levels) + len(c), len(self._order)
        columns = max(ANCHORS, _TOKENS // rows)
        order = self._order
        first = order[: max(min(ANCHORS, width), min(columns, width))]
        anchors = min(ANCHORS, width)
        found: list[tuple[np.ndarray, ...]] = []
        f = reading.features(first)
        tokens, known, pairs = self._first(self.network.embed(f), len(self.levels), anchors)
        found.append(self._numbers(f, self.network.heads(f, tokens, known)))
        for chunk in order[len(first) :].split(columns):
            f = reading.features(chunk)
            tokens = self.network.embed(f)
            for block, pair in zip(self.network.all_blocks, pairs, strict=True):
                tokens = block.along_wavelengths(block.along_levels(tokens, len(self.levels)), pair)
            found.append(self._numbers(f, self.network.heads(f, tokens, known)))
        back = torch.argsort(order).numpy()
        joined = [np.concatenate([part[i] for part in found], 1)[:, back] for i in range(4)]
        return joined[0], joined[1], joined[2], joined[3], float(found[0][4].item())

    def _first(self, tokens: Tensor, levels: int, anchors: int) -> tuple[Tensor, Tensor, list[Tensor]]:
        """The columns with the anchors among them; and the anchors' keys and values in every block."""
        pairs = []
        for block in self.network.all_blocks:
            tokens = block.along_levels(tokens, levels)
            pairs.append(block.pairs(tokens[:, :, :anchors]))
            tokens = block.along_wavelengths(tokens, pairs[-1])
        return tokens, tokens[:, :, :anchors], pairs

    @staticmethod
    def _numbers(f: Any, output: Output) -> tuple[np.ndarray, ...]:
        arc, lower, upper = output.metric.distances(f.coordinate)
        scale = f.scale * output.variance(f.coordinate).double().sqrt()
        values = (output.mean(f), scale, arc, torch.minimum(lower, upper), output.dof)
        return tuple(value[0].double().numpy() for value in values)
