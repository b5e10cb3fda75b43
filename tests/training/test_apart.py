"""Products model by model: the same numbers as batched ones, forward and backward."""

from __future__ import annotations

import torch

from geonode.training.apart import _Apart, products_apart


def test_products_apart_are_the_batched_ones_with_their_gradients():
    generator = torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()  # noqa: E731
    bias, left, right = draw(3, 1, 4), draw(3, 5, 6), draw(3, 4, 6)

    def run():
        first = torch.baddbmm(bias, left, right.mT)
        value = (first @ right).square().sum()
        return [value, *torch.autograd.grad(value, [bias, left, right])]

    seen = []
    batched = run()
    with _Apart() as mode:
        original = torch.mm
        apart = run()
        torch.mm = lambda a, b: seen.append(1) or original(a, b)
        try:
            run()
        finally:
            torch.mm = original
    assert mode is not None and len(seen) >= 9  # three models, forward and backward
    for a, b in zip(batched, apart, strict=True):
        torch.testing.assert_close(b, a, rtol=1e-13, atol=1e-13)


def test_elsewhere_nothing_changes():
    with products_apart(torch.zeros(1, dtype=torch.float64)) as mode:
        assert mode is None
