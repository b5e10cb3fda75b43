"""What the kernels need of a metric of one analyte (six weights and the transform of the network's output), and of a
flow of tanh units."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class MetricWeights(NamedTuple):
    """A metric as the kernels hold it: a network 2→H₁→H₂→1 of tanh units of (c, λ), and what makes g of its value.

    tensors: W1 [M, H1, 2], b1 [M, H1], W2 [M, H2, H1], b2 [M, H2], W3 [M, 1, H2], b3 [M, 1].
    output: ``softplus``: g = softplus(y) + 0.1; ``exp``: g = e^y.
    """

    tensors: tuple[Tensor, ...]
    output: str

    @property
    def hidden(self) -> tuple[int, int]:
        """H1 and H2."""
        return self.tensors[0].shape[1], self.tensors[2].shape[1]


class FlowUnits(NamedTuple):
    """A flow as the kernels hold it: dA/dt = Σⱼ gainⱼ tanh(placeⱼ u + paceⱼ u̇ + shiftⱼ(λ)) + level.

    place, pace, gain: [M, H]. shift: [M, H, W]. level: [M].
    """

    place: Tensor
    pace: Tensor
    shift: Tensor
    gain: Tensor
    level: Tensor
