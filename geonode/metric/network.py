"""Learned metrics: stacked multilayer perceptrons whose derivative by concentration travels with the value.

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
from geonode.metric.base import Chart, Metric, overridden
from geonode.metric.warp import WarpMetric
from geonode_kernels import MetricWeights
from geonode_kernels.metric_christoffel.reference import FLOOR

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
        return self.weights[0].dtype

    def forward(self, x: Tensor) -> Tensor:
        """``x`` ``[M, N, in]`` → ``[M, N, out]``, in the parameters' dtype."""
        act = ACTIVATIONS[self.activation][0]
        last = len(self.weights) - 1
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias[:, None, :], x.to(self.dtype), weight.mT).to(self.dtype)
            x = x if layer == last else act(x)
        return x

    def value_and_derivative(self, x: Tensor, inputs: Sequence[int] = (0,)) -> tuple[Tensor, Tensor]:
        """Value ``[M, N, out]`` at ``x [M, N, in]`` and its derivatives by the K ``inputs``, ``[K, M, N, out]``."""
        act, slope, _ = ACTIVATIONS[self.activation]
        last = len(self.weights) - 1
        tangents: list[Tensor] = []
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias[:, None, :], x.to(self.dtype), weight.mT).to(self.dtype)
            if layer == 0:  # the tangent of a coordinate is a unit vector: its product is a column of the weights
                tangents = [weight[:, None, :, k] for k in inputs]
            else:
                tangents = [torch.bmm(tangent, weight.mT).to(self.dtype) for tangent in tangents]
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
        last, count = len(self.weights) - 1, len(inputs)
        first: list[Tensor] = []
        second: dict[tuple[int, int], Tensor] = {}
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias[:, None, :], x.to(self.dtype), weight.mT).to(self.dtype)
            if layer == 0:
                first = [weight[:, None, :, k] for k in inputs]
                second = {(k, m): torch.zeros_like(first[k]) for k in range(count) for m in range(k + 1)}
            else:
                first = [torch.bmm(tangent, weight.mT).to(self.dtype) for tangent in first]
                second = {pair: torch.bmm(part, weight.mT).to(self.dtype) for pair, part in second.items()}
            if layer < last:
                z, x = x, act(x)
                gain, curve = slope(z, x), bend(z, x)
                second = {(k, m): curve * first[k] * first[m] + gain * part for (k, m), part in second.items()}
                first = [gain * tangent for tangent in first]
        full = [[second[max(k, m), min(k, m)].expand_as(x) for m in range(count)] for k in range(count)]
        return x, torch.stack([t.expand_as(x) for t in first]), torch.stack([torch.stack(row) for row in full])


class _NetworkOfConcentration(nn.Module):
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
            parts = torch.broadcast_tensors(*(part.to(self.mlp.dtype) for part in coordinates))
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
        return self.mlp(x).reshape(*shape, -1).to(c.dtype)

    def evaluate_with_derivative(self, c: Tensor, wavelength: Tensor | None) -> tuple[Tensor, Tensor]:
        """Raw outputs ``[..., out]`` and their derivatives by each coordinate, ``[D, ..., out]``."""
        x, shape = self._inputs(c, wavelength)
        value, derivative = self.mlp.value_and_derivative(x, range(self.dim))
        return value.reshape(*shape, -1).to(c.dtype), derivative.reshape(self.dim, *shape, -1).to(c.dtype)

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
        if mlp.activation != "tanh" or len(mlp.weights) != 3:
            return f"the kernels hold two hidden layers of tanh units, not {len(mlp.weights) - 1} of {mlp.activation}"
        pairs = zip(mlp.weights, mlp.biases, strict=True)
        return MetricWeights(tuple(t for pair in pairs for t in pair), output)


class MetricNetwork(Metric):
    """A learned metric: (c, λ), both normalised to order one, through an MLP to a symmetric positive definite g.

    D = 1: g = transform(net) + floor. D ≥ 2: g = L Lᵀ + floor·I with L lower triangular, its diagonal through the
    transform. The defaults are the original recipe: 2→64→64→1, tanh, softplus + 0.1.

    Args:
        dim: number of analytes D.
        hidden: widths of the hidden layers.
        floor: smallest eigenvalue of g, > 0: keeps paths finite wherever the network goes.
        transform: a key of TRANSFORMS, "softplus" or "exp".
        models: None for a single model with inputs of any batch shape; M for a stack whose inputs lead with M.
        seed: seed of the initial weights.
        activation: a key of ACTIVATIONS.
        uses_wavelength: False leaves the wavelength out of the inputs.

    Raises:
        InputError: floor ≤ 0, or an unknown transform or activation.
    """

    layout: Tensor
    on_diagonal: Tensor

    def __init__(
        self,
        dim: int = 1,
        hidden: Sequence[int] = (64, 64),
        floor: float = 0.1,
        transform: str = "softplus",
        models: int | None = None,
        seed: int | Sequence[int] = 0,
        activation: str = "tanh",
        uses_wavelength: bool = True,
    ) -> None:
        super().__init__(dim)
        if floor <= 0:
            raise InputError(f"floor must be positive, got {floor}; it keeps the metric positive definite.")
        if transform not in TRANSFORMS:
            raise InputError(f"Unknown transform {transform!r}; choose one of {', '.join(TRANSFORMS)}.")
        self.floor, self.transform, self.models = float(floor), transform, models
        outputs = dim * (dim + 1) // 2
        self.network = _NetworkOfConcentration(
            dim, outputs, hidden, models, uses_wavelength, activation=activation, seed=seed
        )
        # Where each entry of the full matrix L comes from: its own output, or the appended zero above the diagonal.
        rows, columns = torch.tril_indices(dim, dim)
        layout = torch.full((dim, dim), outputs)
        layout[rows, columns] = torch.arange(outputs)
        self.register_buffer("layout", layout.reshape(-1), persistent=False)
        self.register_buffer("on_diagonal", rows == columns, persistent=False)

    def forward(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """g [...] (D = 1) or [..., D, D] in the dtype of ``c``.

        Raises:
            InputError: the last axis of ``c`` is not the D coordinates; no wavelength where the network takes one;
                shapes that do not broadcast, or do not lead with M.
        """
        self.check(c)
        raw = self.network.evaluate(c, wavelength)
        positive = TRANSFORMS[self.transform][0]
        if self.dim == 1:
            return positive(raw[..., 0]) + self.floor
        factor = self._triangle(torch.where(self.on_diagonal, positive(raw), raw))
        return _product(factor, factor) + self.floor * torch.eye(self.dim, dtype=c.dtype, device=c.device)

    def value_and_derivative(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """g and ∂g, carried through the layers together."""
        self.check(c)
        raw, slope = self.network.evaluate_with_derivative(c, wavelength)
        positive, gain, _ = TRANSFORMS[self.transform]
        value = positive(raw)
        gain = gain(raw, value)
        if self.dim == 1:
            return value[..., 0] + self.floor, (gain * slope[0])[..., 0]
        factor = self._triangle(torch.where(self.on_diagonal, value, raw))
        change = self._triangle(torch.where(self.on_diagonal, gain * slope, slope))
        half = _product(torch.movedim(change, 0, -3), factor.unsqueeze(-3))
        floor = self.floor * torch.eye(self.dim, dtype=c.dtype, device=c.device)
        return _product(factor, factor) + floor, half + half.mT

    def two_derivatives(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """g, ∂g and ∂²g, carried through the layers together."""
        self.check(c)
        raw, first, second = self.network.evaluate_with_two_derivatives(c, wavelength)
        positive, gain, bend = TRANSFORMS[self.transform]
        value = positive(raw)
        slope, curve = gain(raw, value), bend(raw, value)
        curved = curve * first.unsqueeze(0) * first.unsqueeze(1) + slope * second
        if self.dim == 1:
            return value[..., 0] + self.floor, (slope * first)[0, ..., 0], curved[0, 0, ..., 0]
        factor = self._triangle(torch.where(self.on_diagonal, value, raw))
        change = self._triangle(torch.where(self.on_diagonal, slope * first, first)).movedim(0, -3)
        change2 = self._triangle(torch.where(self.on_diagonal, curved, second)).movedim((0, 1), (-4, -3))
        once = _product(change, factor.unsqueeze(-3))
        half = _product(change2, factor[..., None, None, :, :])
        cross = _product(change.unsqueeze(-3), change.unsqueeze(-4))
        floor = self.floor * torch.eye(self.dim, dtype=c.dtype, device=c.device)
        return _product(factor, factor) + floor, once + once.mT, half + half.mT + cross + cross.mT

    def reference(self, like: Tensor) -> Tensor:
        """The middle of the normalised range."""
        return torch.full_like(like, 0.5)

    def kernel_weights(self) -> MetricWeights | str:
        """See `Metric.kernel_weights`: the original recipe, softplus + 0.1, of one analyte."""
        reason = overridden(self, MetricNetwork, "forward", "value_and_derivative", "in_domain", "energy")
        if reason is None and (self.transform != "softplus" or self.floor != FLOOR):
            reason = f"the kernels hold softplus + {FLOOR:g}, not {self.transform} + {self.floor:g}"
        return reason or self.network.kernel_weights("softplus")

    def _triangle(self, entries: Tensor) -> Tensor:
        padded = torch.cat([entries, torch.zeros_like(entries[..., :1])], dim=-1)
        return padded[..., self.layout].reshape(*entries.shape[:-1], self.dim, self.dim)


def _product(left: Tensor, right: Tensor) -> Tensor:
    """left @ rightᵀ for small matrices, written out so that autocast does not round the metric itself."""
    return (left.unsqueeze(-2) * right.unsqueeze(-3)).sum(-1)


class LogMetricNetwork(nn.Module):
    """m_θ(u, λ), the logarithm of a metric on the warp coordinate u; zero before training.

    ``u`` is the warp coordinate (±1 on the calibrated range) and ``wavelength`` is normalised; inputs broadcast, and
    with ``models=M`` they lead with M. Used as g̃ = exp m in the warp coordinate, see ``ConformalWarpMetric``.

    Args:
        hidden: widths of the hidden layers.
        models: None for a single model with inputs of any batch shape; M for a stack whose inputs lead with M.
        seed: of the initial weights; one number, or one per model.
        activation: a key of ACTIVATIONS.

    Raises:
        InputError: an unknown activation, a width below one, or a wrong number of seeds.
    """

    def __init__(
        self,
        hidden: Sequence[int] = (64, 64),
        models: int | None = None,
        seed: int | Sequence[int] = 0,
        activation: str = "tanh",
    ) -> None:
        super().__init__()
        self.models = models
        self.network = _NetworkOfConcentration(
            1, 1, hidden, models, True, activation=activation, seed=seed, zero_last=True
        )

    def forward(self, u: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """m [...] at the warp coordinate ``u`` [...] and the normalised ``wavelength`` [...], in the dtype of ``u``.

        Raises:
            InputError: no wavelength; shapes that do not broadcast, or do not lead with M.
        """
        return self.network.evaluate(u, wavelength)[..., 0]

    def value_and_derivative(self, u: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """m and ∂m/∂u, both [...]; Γ̃ = ½ ∂m/∂u. Arguments and errors as for `forward`."""
        value, slope = self.network.evaluate_with_derivative(u, wavelength)
        return value[..., 0], slope[0, ..., 0]

    def kernel_weights(self) -> MetricWeights | str:
        """What the fused kernels need of g̃ = exp m, or in words why they cannot stand in for it."""
        reason = overridden(self, LogMetricNetwork, "forward", "value_and_derivative")
        return reason or self.network.kernel_weights("exp")


class ExponentialMetric(Metric):
    """g̃(u, λ) = exp m_θ(u, λ): the full metric seen in the warp coordinate (D = 1).

    Args:
        network: m_θ; ``c`` of the methods is the warp coordinate u.
    """

    def __init__(self, network: LogMetricNetwork) -> None:
        super().__init__(dim=1)
        self.network, self.models = network, network.models

    def forward(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """exp m [...]: closed form; errors as for `LogMetricNetwork.forward`."""
        return torch.exp(self.network(c, wavelength))

    def value_and_derivative(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """exp m and m′ exp m, both [...]: closed form."""
        m, slope = self.network.value_and_derivative(c, wavelength)
        g = torch.exp(m)
        return g, slope * g

    def kernel_weights(self) -> MetricWeights | str:
        """See `Metric.kernel_weights`: those of m."""
        reason = overridden(self, ExponentialMetric, "forward", "value_and_derivative", "in_domain", "energy")
        return reason or self.network.kernel_weights()


class ConformalWarpMetric(Metric):
    """√g_λ(c) = √g_warp(c) · exp(½ m_θ(u(c), λ)) in user units of concentration (D = 1).

    The full metric of the default flow. ``chart`` exposes it in the warp coordinate, where it is the smooth
    g̃ = exp m_θ; the closed form integrates there.

    Args:
        warp: g_warp and the coordinate u(c). network: m_θ.
    """

    def __init__(self, warp: WarpMetric, network: LogMetricNetwork) -> None:
        super().__init__(dim=1)
        self.warp, self.network = warp, network
        self.models = network.models if network.models is not None else warp.models

    @property
    def chart(self) -> Chart:
        """The warp coordinate, with g̃ = exp m_θ."""
        return Chart(
            self.warp.scaled, self.warp.from_scaled, self.warp.scaled_derivative, ExponentialMetric(self.network)
        )

    def forward(self, c: Tensor, wavelength: Tensor | None = None) -> Tensor:
        """g [...] in 1/(user unit)²."""
        return self.warp(c) * torch.exp(self.network(self.warp.scaled(c), wavelength))

    def value_and_derivative(self, c: Tensor, wavelength: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """g and ∂g/∂c by the chain rule: g = g_w e^m, g′ = (g_w′ + g_w m′ u′) e^m."""
        base, slope = self.warp.value_and_derivative(c)
        m, dm = self.network.value_and_derivative(self.warp.scaled(c), wavelength)
        factor = torch.exp(m)
        return base * factor, (slope + base * dm * self.warp.scaled_derivative(c)) * factor

    def in_domain(self, c: Tensor) -> Tensor:
        """See ``WarpMetric.in_domain``."""
        return self.warp.in_domain(c)

    def reference(self, like: Tensor) -> Tensor:
        """See ``WarpMetric.reference``."""
        return self.warp.reference(like)
