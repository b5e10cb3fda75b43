"""A network's weights as two vectors, its matrices end to end and all else.

They are reduced, clipped, updated and averaged two at a time, where 136 tensors would each cost the host a launch, a
hook or an entry in a list: milliseconds of every step in which the device has nothing to do.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call

from geonode.prior.features import Features
from geonode.prior.network import Network, NetworkSize, Output

_ALIGNED = 64  # numbers: every tensor begins at a multiple of 256 bytes, as kernels like it


class FlatNetwork(nn.Module):
    """A network that computes what ``network`` does, from ``matrices`` (weight decay) and ``vectors`` (none).

    Between the parts of a vector lie zeros up to the next aligned place; nothing reads them, and they stay zero.
    """

    def __init__(self, network: Network) -> None:
        super().__init__()
        self._model = (copy.deepcopy(network).requires_grad_(False),)  # a tuple hides it: its weights are not ours
        named = dict(network.named_parameters())
        self._names = [[name for name, p in named.items() if (p.ndim > 1) == matrix] for matrix in (True, False)]
        self._shapes = [[named[name].shape for name in names] for names in self._names]
        size = [sum(_room(shape) for shape in shapes) for shapes in self._shapes]
        kind = next(network.parameters())
        self.matrices, self.vectors = (nn.Parameter(kind.new_zeros(numbers)) for numbers in size)
        self.take(network)

    @property
    def size(self) -> NetworkSize:
        """Of the network."""
        return self._model[0].size

    @torch.no_grad()
    def take(self, network: Network) -> None:
        """Copy the weights of a network of the same size."""
        own = self.named([self.matrices, self.vectors])
        for name, value in network.named_parameters():
            own[name].copy_(value)

    def named(self, pair: Sequence[Tensor]) -> dict[str, Tensor]:
        """The network's tensors by their names, views into two vectors like ``matrices`` and ``vectors``."""
        found = {}
        for flat, names, shapes in zip(pair, self._names, self._shapes, strict=True):
            parts = flat.split([_room(shape) for shape in shapes])
            for name, shape, part in zip(names, shapes, parts, strict=True):
                count = math.prod(shape)
                found[name] = (part if len(part) == count else part[:count]).view(shape)
        return found

    def as_network(self) -> Network:
        """A network over the same memory: what changes here changes there."""
        network = copy.deepcopy(self._model[0])
        views = self.named([self.matrices.data, self.vectors.data])
        for name, parameter in network.named_parameters():
            parameter.data = views[name]
        return network

    def forward(self, f: Features, anchors: int) -> Output:
        """As the network's; gradients reach the two vectors."""
        weights = self.named([self.matrices, self.vectors])
        return functional_call(self._model[0], weights, (f, anchors))


def _room(shape: torch.Size) -> int:
    return -(-math.prod(shape) // _ALIGNED) * _ALIGNED
