"""Inputs and comparisons shared by the kernels' tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tests.kernels.conftest import CUDA
from tests.tolerances import tolerance

# operands of the kernels' products hold 22 bits where float32 holds 24
SPLIT = 4.0
FULL = 18_030 if CUDA else 67  # rows of a "full-size" case: 30 pairs × 601 wavelengths, subsampled in the interpreter


def draws(seed: int, device: str) -> Callable[..., Tensor]:
    """``draw(*shape, scale=1)``: uniform in ±scale, the same numbers on every device."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int, scale: float = 1.0) -> Tensor:
        return (scale * (2.0 * torch.rand(shape, generator=generator) - 1.0)).to(device)

    return draw


def metric_weights(draw: Callable[..., Tensor], models: int, h1: int, h2: int) -> list[Tensor]:
    """W1, b1, W2, b2, W3, b3 of a metric network with order-one pre-activations."""
    return [
        draw(models, h1, 2, scale=1.5),
        draw(models, h1),
        draw(models, h2, h1, scale=2.0 * h1**-0.5),
        draw(models, h2),
        draw(models, 1, h2, scale=2.0 * h2**-0.5),
        draw(models, 1),
    ]


def strided(t: Tensor) -> Tensor:
    """The same values in memory that is not contiguous."""
    return torch.stack([t, torch.full_like(t, torch.nan)], -1)[..., 0]


def relative(actual: Tensor, expected: Tensor) -> float:
    """‖actual − expected‖ / ‖expected‖, infinite for NaN."""
    value = (actual.double() - expected.double()).norm() / expected.double().norm().clamp_min(1e-300)
    return value.item() if bool(torch.isfinite(value)) else float("inf")


def values_and_gradients(
    function: Callable[..., Tensor | tuple[Tensor, ...]], inputs: Sequence[Tensor], constant: Sequence[int] = ()
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Results, and the gradients of all inputs but ``constant`` to Σ cotangent·result with fixed cotangents."""
    leaves = [t.detach().requires_grad_(i not in constant) for i, t in enumerate(inputs)]
    results = function(*leaves)
    results = results if isinstance(results, tuple) else (results,)
    generator = torch.Generator().manual_seed(99)
    ups = [torch.randn(r.shape, generator=generator, dtype=torch.float64).to(r) for r in results]
    gradients = torch.autograd.grad(
        results, [leaf for leaf in leaves if leaf.requires_grad], ups, materialize_grads=True
    )
    return tuple(r.detach() for r in results), gradients


def float32_error(
    reference: Callable[..., Tensor | tuple[Tensor, ...]],
    inputs: Sequence[Tensor],
    constant: Sequence[int],
    kind: str,
    i: int,
) -> float:
    """Largest relative error of the reference in float32 over eight problems a few roundings away from this one.

    One problem alone would do for many points, but of a single one that cancels, rounding may be lucky.
    """
    generator = torch.Generator().manual_seed(7)
    errors = []
    for _ in range(8):
        near = [t * (1.0 + 1e-6 * torch.randn(t.shape, generator=generator).to(t.device)) for t in inputs]
        rounded = values_and_gradients(reference, near, constant)
        exact = values_and_gradients(reference, [t.double() for t in near], constant)
        which = 0 if kind == "value" else 1
        errors.append(relative(rounded[which][i], exact[which][i]))
    return max(errors)


def check(
    kernel: Callable[..., Tensor | tuple[Tensor, ...]],
    reference: Callable[..., Tensor | tuple[Tensor, ...]],
    inputs: Sequence[Tensor],
    constant: Sequence[int] = (),
    largest: float = 2e-6,
) -> None:
    """Kernel in float32 against reference in float64: values, every gradient, and on a GPU the same bits the second
    time (the interpreter runs the blocks of a launch one after another, always in the same order).

    The relative error of a result is at most ``largest``, or, where terms cancel, ``SPLIT`` times that of the reference
    itself in float32.
    """
    actual = values_and_gradients(kernel, inputs, constant)
    again = values_and_gradients(kernel, inputs, constant) if CUDA else actual
    expected = values_and_gradients(reference, [t.double() for t in inputs], constant)
    for kind, ours, repeated, theirs in zip(("value", "gradient"), actual, again, expected, strict=True):
        for i, (a, b, e) in enumerate(zip(ours, repeated, theirs, strict=True)):
            assert a.dtype == torch.float32 and a.shape == e.shape
            assert torch.equal(a, b), f"{kind} {i} differs between two runs"
            limit = largest
            if relative(a, e) > largest and e.norm() >= 1e-6:
                limit = SPLIT * float32_error(reference, inputs, constant, kind, i)
                assert relative(a, e) <= limit, f"{kind} {i}: {relative(a, e):.1e}, limit {limit:.1e}"
            worst = ((a - e).abs().max() / e.abs().max().clamp_min(1e-30)).item()
            assert worst <= max(limit, tolerance(torch.float32, kind)["rtol"]), f"{kind} {i}: {worst:.1e} somewhere"
