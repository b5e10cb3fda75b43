"""Device functions every kernel shares: reciprocal, tanh, and the dots of the metric network in three precisions.

Precision codes: 0 = fp32, 1 = tf32, 2 = bf16 (see ``_runtime.PRECISIONS``). 0 splits each operand into two fp16 numbers
of 11 bits after scaling by a power of two, and adds three products; that is the arithmetic of 3xTF32 (TF32 keeps the
same 11 bits) at twice its rate and half its shared-memory traffic. 1 is the leading product alone. 1 and 2 also take
tanh from one special-function instruction, whose error is that of their operands.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ._interpreter import INTERPRETED

# The interpreter would wrap a constexpr times a tensor in another constexpr; plain numbers do there.
constant = float if INTERPRETED else tl.constexpr
# exp(2 z) = exp2(TWO_LOG2E * z): weights and biases are scaled once so that tanh needs no product of its own
TWO_LOG2E = constant(2.8853900817779268)
LN2 = constant(0.6931471805599453)
LOG2E = constant(1.4426950408889634)
# operands of a split dot are brought to at most twice this: far from fp16's 65504 and from its subnormals
SCALE = constant(4096.0)

if INTERPRETED:

    @triton.jit
    def reciprocal(x):
        return 1.0 / x

    @triton.jit
    def rounded_product(a, b):
        return a * b

    @triton.jit
    def tanh_approx(x):
        return 1.0 - 2.0 / (1.0 + tl.exp2(x * TWO_LOG2E))

else:

    @triton.jit
    def reciprocal(x):
        """1/x by one special-function instruction (1 ulp); 1/inf = 0, which is what tanh of a large number needs."""
        return tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )

    @triton.jit
    def rounded_product(a, b):
        """a·b that is never merged into a following addition.

        In a sum across lanes the compiler otherwise fuses each lane's own product with its neighbour's rounded one: the
        lanes then hold sums that differ in the last bit, and which of them is kept is a race.
        """
        return tl.inline_asm_elementwise(
            "mul.rn.f32 $0, $1, $2;", "=f,f,f", [a, b], dtype=tl.float32, is_pure=True, pack=1
        )

    @triton.jit
    def tanh_approx(x):
        """tanh by one special-function instruction, relative error 2**-11: for tf32 and bf16 only."""
        return tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def logistic_pair(z, PRECISION: tl.constexpr):
    """r = 1/(1 + exp 2x), so tanh x = 1 − 2r and its derivative is 4 (r − r²).

    fp32: ``z`` = x · TWO_LOG2E, two special functions. Below that ``z`` = x and tanh is one, whose error (2**-11) is no
    larger than that of the products.
    """
    if PRECISION == 0:
        return reciprocal(1.0 + tl.exp2(z))
    else:
        return 0.5 - 0.5 * tanh_approx(z)


@triton.jit
def power_of_two(x):
    """The largest power of two not above x (x > 0 and normal; zero and subnormals give 2**-126)."""
    bits = x.to(tl.int32, bitcast=True) & 0x7F800000
    return tl.maximum(bits, 0x00800000).to(tl.float32, bitcast=True)


@triton.jit
def scale_for(peak):
    """A power of two that brings |x| ≤ peak below 2·SCALE, within 2**±100 so that its reciprocal is normal too."""
    size = tl.minimum(tl.maximum(power_of_two(peak), 7.888609052210118e-31), 1.2676506002282294e30)
    return SCALE / size


@triton.jit
def narrow(x, PRECISION: tl.constexpr):
    """The leading part of an operand."""
    if PRECISION == 2:
        return x.to(tl.bfloat16)
    else:
        return x.to(tl.float16)


@triton.jit
def remainder(x, high):
    """What the leading part left out, rounded in its turn."""
    return (x - high.to(tl.float32)).to(tl.float16)


@triton.jit
def dot(a_high, a_low, b_high, b_low, total, PRECISION: tl.constexpr):
    """total + a·b; the small products first."""
    if PRECISION == 0:
        total = tl.dot(a_low, b_high, total)
        total = tl.dot(a_high, b_low, total)
    return tl.dot(a_high, b_high, total)
