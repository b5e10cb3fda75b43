"""Stacked multilayer perceptrons whose derivatives by concentration travel with the value.

Value and derivative go through the layers together as plain matrix products, so they can be exported, run under CUDA
graphs and be differentiated again; no forward-mode transform is hidden inside. Every parameter carries a leading model
axis M (folds × inner folds × seeds); a single model is M = 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from geonode.errors import InputError
from geonode_kernels import MetricWeights

# name → functions of z: the value y, and from (z, y) the first and the second derivative
Curve = tuple[Callable[[Tensor], Tensor], Callable[[Tensor, Tensor], Tensor], Callable[[Tensor, Tensor], Tensor]]


def _sigmoid_slope(z: Tensor, y: Tensor) -> Tensor:
    sigmoid = torch.sigmoid(z)
    return sigmoid * (1.0 - sigmoid)


ACTIVATIONS: dict[str, Curve] = {
    "tanh": (torch.tanh, lambda z, y: 1.0 - y * y, lambda z, y: 2.0 * y * (y * y - 1.0)),
    "silu": (
        F.silu,
        lambda z, y: torch.sigmoid(z) * (1.0 + z - y),
        lambda z, y: _sigmoid_slope(z, y) * (2.0 + z * (1.0 - 2.0 * torch.sigmoid(z))),
    ),
    "softplus": (F.softplus, lambda z, y: torch.sigmoid(z), _sigmoid_slope),
}
TRANSFORMS: dict[str, Curve] = {
    "softplus": ACTIVATIONS["softplus"],
    "exp": (torch.exp, lambda z, y: y, lambda z, y: y),
}


class StackedMLP(nn.Module):
    """M perceptrons of the same shape evaluated as one batch: ``[M, N, in]`` → ``[M, N, out]``.

    Weights ``[M, out, in]``, biases ``[M, out]``, drawn uniformly from ±1/√in with a generator per model: model m of a
    stack seeded with s starts exactly as a single model seeded with s + m. Under autocast only the matrix
    products run in low precision; activations stay in the parameters' dtype.

    Args:
        sizes: layer widths, input first.
        models: number of models M.
        activation: a key of ACTIVATIONS, applied after every layer but the last.
        seed: seed of the initial weights; one number for the stack, or one per model.
        zero_last: start from the zero function (last layer zero), as corrections should.

    Raises:
        InputError: fewer than two sizes, no model, an unknown activation, or a wrong number of seeds.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        models: int = 1,
        activation: str = "tanh",
        seed: int | Sequence[int] = 0,
        zero_last: bool = False,
    ) -> None:
        super().__init__()
        if len(sizes) < 2 or min(sizes) < 1 or models < 1:
            raise InputError(f"A network needs at least two positive sizes and one model, got {sizes} and {models}.")
        if activation not in ACTIVATIONS:
            raise InputError(f"Unknown activation {activation!r}; choose one of {', '.join(ACTIVATIONS)}.")
        self.sizes, self.models, self.activation = tuple(sizes), int(models), activation
        seeds = [seed + m for m in range(models)] if isinstance(seed, int) else list(seed)
        if len(seeds) != models:
            raise InputError(f"A stack of {models} models needs one seed or {models} seeds, got {len(seeds)}.")
        generators = [torch.Generator().manual_seed(s) for s in seeds]
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for layer, (fan_in, fan_out) in enumerate(pairwise(sizes)):
            bound = 0.0 if zero_last and layer == len(sizes) - 2 else 1.0 / math.sqrt(fan_in)
            draws = [torch.rand((fan_out, fan_in + 1), generator=g, dtype=torch.float64) for g in generators]
            draw = (bound * (2.0 * torch.stack(draws) - 1.0)).to(torch.get_default_dtype())
            self.weights.append(nn.Parameter(draw[..., :-1].contiguous()))
            self.biases.append(nn.Parameter(draw[..., -1].contiguous()))

    @property
    def dtype(self) -> torch.dtype:
        """The parameters' dtype; inputs are cast to it."""
        return self.layers[0][0].dtype

    @property
    def layers(self) -> list[tuple[nn.Parameter, nn.Parameter]]:
        """Weight and bias of each layer. Of the lists' own dictionaries: for every item that is asked of it, a
        `ParameterList` makes a name of its number, and small networks are asked thousands of times a step."""
        weights, biases = self.weights._parameters.values(), self.biases._parameters.values()
        return list(zip(weights, biases, strict=True))  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        """``x`` ``[M, N, in]`` → ``[M, N, out]``, in the parameters' dtype."""
        act = ACTIVATIONS[self.activation][0]
        layers = self.layers
        last, dtype = len(layers) - 1, layers[0][0].dtype
        for layer, (weight, bias) in enumerate(layers):
            x = torch.baddbmm(bias[:, None, :], x.to(dtype), weight.mT).to(dtype)
            x = x if layer == last else act(x)
        return x

    def value_and_derivative(self, x: Tensor, inputs: Sequence[int] = (0,)) -> tuple[Tensor, Tensor]:
        """Value ``[M, N, out]`` at ``x [M, N, in]`` and its derivatives by the K ``inputs``, ``[K, M, N, out]``."""
        act, slope, _ = ACTIVATIONS[self.activation]
        layers = self.layers
        last, dtype = len(layers) - 1, layers[0][0].dtype
        tangents: list[Tensor] = []
        for layer, (weight, bias) in enumerate(layers):
            x = torch.baddbmm(bias[:, None, :], x.to(dtype), weight.mT).to(dtype)
            if layer == 0:  # the tangent of a coordinate is a unit vector: its product is a column of the weights
                tangents = [weight[:, None, :, k] for k in inputs]
            else:
                tangents = [torch.bmm(tangent, weight.mT).to(dtype) for tangent in tangents]
            if layer < last:
                z, x = x, act(x)
                gain = slope(z, x)
                tangents = [gain * tangent for tangent in tangents]
        return x, torch.stack([tangent.expand_as(x) for tangent in tangents])

    def two_derivatives(self, x: Tensor, inputs: Sequence[int] = (0,)) -> tuple[Tensor, Tensor, Tensor]:
        """Value ``[M, N, out]`` at ``x [M, N, in]``, first ``[K, M, N, out]`` and second ``[K, K, M, N, out]``
        derivatives by the K named ``inputs``.
        """
        act, slope, bend = ACTIVATIONS[self.activation]
        layers, count = self.layers, len(inputs)
        last, dtype = len(layers) - 1, layers[0][0].dtype
        first: list[Tensor] = []
        second: dict[tuple[int, int], Tensor] = {}
        for layer, (weight, bias) in enumerate(layers):
            x = torch.baddbmm(bias[:, None, :], x.to(dtype), weight.mT).to(dtype)
            if layer == 0:
                first = [weight[:, None, :, k] for k in inputs]
                second = {(k, m): torch.zeros_like(first[k]) for k in range(count) for m in range(k + 1)}
            else:
                first = [torch.bmm(tangent, weight.mT).to(dtype) for tangent in first]
                second = {pair: torch.bmm(part, weight.mT).to(dtype) for pair, part in second.items()}
            if layer < last:
                z, x = x, act(x)
                gain, curve = slope(z, x), bend(z, x)
                second = {(k, m): curve * first[k] * first[m] + gain * part for (k, m), part in second.items()}
                first = [gain * tangent for tangent in first]
        full = [[second[max(k, m), min(k, m)].expand_as(x) for m in range(count)] for k in range(count)]
        return x, torch.stack([t.expand_as(x) for t in first]), torch.stack([torch.stack(row) for row in full])


class NetworkOfConcentration(nn.Module):
    """Shared plumbing: (c, wavelength) of any batch shape ↔ the stacked network's [M, N, in]."""

    def __init__(self, dim: int, outputs: int, hidden: Sequence[int], models: int | None, uses_wavelength: bool, **kw):
        super().__init__()
        self.dim, self.models, self.uses_wavelength = int(dim), models, uses_wavelength
        self.mlp = StackedMLP((dim + int(uses_wavelength), *hidden, outputs), models=models or 1, **kw)

    def _inputs(self, c: Tensor, wavelength: Tensor | None) -> tuple[Tensor, torch.Size]:
        """Features [M, N, in] and the batch shape they came from (without the axis D)."""
        coordinates = [c] if self.dim == 1 else list(c.unbind(-1))
        if self.uses_wavelength:
            if wavelength is None:
                raise InputError("This metric depends on the wavelength; pass wavelength=, normalised to order one.")
            coordinates.append(wavelength)
        try:
            dtype = self.mlp.dtype
            parts = torch.broadcast_tensors(*(part.to(dtype) for part in coordinates))
        except RuntimeError:
            shapes = ", ".join(str(tuple(part.shape)) for part in coordinates)
            raise InputError(f"Concentration and wavelength do not broadcast together: {shapes}.") from None
        shape = parts[0].shape
        if self.models is None:
            return torch.stack([part.reshape(1, -1) for part in parts], dim=-1), shape
        if not shape or shape[0] != self.models:
            raise InputError(f"This network stacks {self.models} models; give inputs [M, ...], not {tuple(shape)}.")
        return torch.stack([part.reshape(self.models, -1) for part in parts], dim=-1), shape

    def evaluate(self, c: Tensor, wavelength: Tensor | None) -> Tensor:
        """Raw outputs ``[..., out]`` in the dtype of ``c``."""
        x, shape = self._inputs(c, wavelength)
        value = self.mlp(x)
        return value.reshape(*shape, value.shape[-1]).to(c.dtype)

    def evaluate_with_derivative(self, c: Tensor, wavelength: Tensor | None) -> tuple[Tensor, Tensor]:
        """Raw outputs ``[..., out]`` and their derivatives by each coordinate, ``[D, ..., out]``."""
        x, shape = self._inputs(c, wavelength)
        value, derivative = self.mlp.value_and_derivative(x, range(self.dim))
        outputs = value.shape[-1]
        return value.reshape(*shape, outputs).to(c.dtype), derivative.reshape(self.dim, *shape, outputs).to(c.dtype)

    def evaluate_with_two_derivatives(self, c: Tensor, wavelength: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Raw outputs ``[..., out]``, first ``[D, ..., out]`` and second ``[D, D, ..., out]`` derivatives."""
        x, shape = self._inputs(c, wavelength)
        parts = self.mlp.two_derivatives(x, range(self.dim))
        value, first, second = (part.reshape(*part.shape[:-3], *shape, part.shape[-1]).to(c.dtype) for part in parts)
        return value, first, second

    def kernel_weights(self, output: str) -> MetricWeights | str:
        """The weights of a network of two hidden layers of tanh units of (c, λ), or why this is none."""
        mlp = self.mlp
        if self.dim != 1:
            return f"the metric has {self.dim} coordinates, and the kernels hold one"
        if not self.uses_wavelength:
            return "the metric does not take the wavelength, and the kernels' network does"
        layers = mlp.layers
        if mlp.activation != "tanh" or len(layers) != 3:
            return f"the kernels hold two hidden layers of tanh units, not {len(layers) - 1} of {mlp.activation}"
        return MetricWeights(tuple(t for layer in layers for t in layer), output)
