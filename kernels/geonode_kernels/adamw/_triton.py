"""Clipping and AdamW of every parameter of a model in one launch: one program a model, two passes over its elements."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def step_kernel(
    parameter,
    gradient,
    mean,
    square,
    powers,
    rates,
    scale,
    active,
    norms,
    base,
    stride,
    group,
    P,
    betas,
    eps,
    decay,
    clip0,
    clip1,
    BLOCK: tl.constexpr,
):
    """Element e of model m lies at base[e] + m·stride[e]. ``powers`` [M, 2] float64: β₁ᵗ, β₂ᵗ; ``norms`` [M, 2].

    ``rates`` [M, 2]; gradients are divided by ``scale`` [M]. A model without ``active`` [M], or with a norm that is not
    finite, stays.
    """
    m = tl.program_id(0)
    inverse = 1.0 / tl.load(scale + m)
    sum0 = tl.zeros([BLOCK], tl.float32)
    sum1 = tl.zeros([BLOCK], tl.float32)
    for first in range(0, P, BLOCK):
        e = first + tl.arange(0, BLOCK)
        at = tl.load(base + e, mask=e < P, other=0) + m * tl.load(stride + e, mask=e < P, other=0)
        g = tl.load(gradient + at, mask=e < P, other=0.0) * inverse
        second = tl.load(group + e, mask=e < P, other=0) == 1
        sum0 += tl.where(second, 0.0, g * g)
        sum1 += tl.where(second, g * g, 0.0)
    norm0 = tl.sqrt(tl.sum(sum0, 0))
    norm1 = tl.sqrt(tl.sum(sum1, 0))
    tl.store(norms + 2 * m, norm0)
    tl.store(norms + 2 * m + 1, norm1)
    scale0 = tl.where(clip0 > 0.0, tl.minimum(clip0 / (norm0 + 1e-12), 1.0), 1.0)
    scale1 = tl.where(clip1 > 0.0, tl.minimum(clip1 / (norm1 + 1e-12), 1.0), 1.0)
    beta1, beta2 = tl.load(betas), tl.load(betas + 1)  # float64: 1 − β₂ᵗ loses digits otherwise
    before1, before2 = tl.load(powers + 2 * m), tl.load(powers + 2 * m + 1)
    power1, power2 = before1 * beta1, before2 * beta2
    correct1 = (1.0 / (1.0 - power1)).to(tl.float32)
    correct2 = (1.0 / (1.0 - power2)).to(tl.float32)
    rate0, rate1 = tl.load(rates + 2 * m), tl.load(rates + 2 * m + 1)
    go = tl.where(norm0 + norm1 < float("inf"), tl.load(active + m), 0.0) > 0.0  # no for NaN too
    end = tl.where(go, P, 0)
    b1, b2 = beta1.to(tl.float32), beta2.to(tl.float32)
    for first in range(0, P, BLOCK):
        e = first + tl.arange(0, BLOCK)
        inside = e < end
        at = tl.load(base + e, mask=inside, other=0) + m * tl.load(stride + e, mask=inside, other=0)
        second = tl.load(group + e, mask=inside, other=0) == 1
        rate = tl.where(second, rate1, rate0)
        g = tl.load(gradient + at, mask=inside, other=0.0) * inverse * tl.where(second, scale1, scale0)
        p = tl.load(parameter + at, mask=inside, other=0.0)
        m1 = tl.load(mean + at, mask=inside, other=0.0)
        m2 = tl.load(square + at, mask=inside, other=0.0)
        m1 += (1.0 - b1) * (g - m1)
        m2 = b2 * m2 + (1.0 - b2) * g * g
        p = p * (1.0 - rate * decay) - rate * correct1 * m1 / (tl.sqrt(m2 * correct2) + eps)
        tl.store(parameter + at, p, mask=inside)
        tl.store(mean + at, m1, mask=inside)
        tl.store(square + at, m2, mask=inside)
    tl.store(powers + 2 * m, tl.where(go, power1, before1))
    tl.store(powers + 2 * m + 1, tl.where(go, power2, before2))
