"""Low-rank adapters (LoRA, arXiv 2106.09685): W → W + U V, with U zero at the start, so that nothing changes there.

They sit on the network's last block and on its heads. What comes before reads an assay; what comes after decides what
to make of it, and that is where instruments differ. It also means that the tokens before the last block are worked out
once for all steps of a tuning.
"""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from geonode.prior.network import Network

HEADS = ("own", "shared", "metric", "scales")
"""The network's heads, by their names."""


class LowRank(nn.Module):
    """weight ``[R, C]`` → weight + U V, with U ``[R, rank]`` zero and V ``[rank, C]`` random: it starts as the weight.

    Args:
        weight: what is corrected; it sets shape, kind and device.
        rank: of the correction.
        seed: of V.
    """

    def __init__(self, weight: Tensor, rank: int, seed: int = 0) -> None:
        super().__init__()
        rows, columns = weight.shape
        draw = torch.Generator().manual_seed(seed)
        self.u = nn.Parameter(weight.new_zeros(rows, rank))
        start = torch.randn(rank, columns, generator=draw, dtype=torch.float64) / columns**0.5
        self.v = nn.Parameter(start.to(weight))

    def forward(self, weight: Tensor) -> Tensor:
        """The corrected weight."""
        return weight + self.u @ self.v


def with_adapters(network: Network, rank: int, seed: int = 0) -> Network:
    """A copy of ``network`` with adapters on its last block and its heads; they alone are to be trained.

    Args:
        network: stays as it is.
        rank: of every adapter.
        seed: of what they start from.
    """
    copied = deepcopy(network).requires_grad_(False)
    for number, layer in enumerate(_layers(copied).values()):
        parametrize.register_parametrization(layer, "weight", LowRank(layer.weight, rank, seed + number))
    return copied


def adapters(network: Network) -> list[nn.Parameter]:
    """The parameters of a network's adapters, U and V of each in turn; none where it has none."""
    found = [part for part in network.modules() if isinstance(part, LowRank)]
    return [parameter for one in found for parameter in (one.u, one.v)]


def merged(network: Network) -> Network:
    """A network without adapters, on the CPU, whose weights are W + U V; it predicts what ``network`` does."""
    state = {name: value for name, value in network.state_dict().items() if ".parametrizations." not in name}
    for name, layer in _layers(network).items():
        state[f"{name}.weight"] = layer.weight.detach()
    # a new one: copies of a parametrised layer share its class, and taking adapters off one would break the other
    whole = Network(network.size)
    whole.load_state_dict(state)
    return whole.requires_grad_(False).eval()


def layer_names(network: Network) -> list[str]:
    """Names of the layers that get adapters."""
    return list(_layers(network))


def _layers(network: Network) -> dict[str, nn.Linear]:
    last = network.all_blocks[-1]
    within = {f"blocks.{len(network.blocks) - 1}.{name}": part for name, part in last.named_modules()}
    candidates = {**within, **{name: getattr(network, name) for name in HEADS}}
    return {name: part for name, part in candidates.items() if isinstance(part, nn.Linear)}
