"""What tests/interpreter_types.py keeps is what Triton's interpreter would make anew."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

pytest.importorskip("triton")
if torch.cuda.is_available():
    pytest.skip("kernels are compiled here", allow_module_level=True)

from triton.language import core
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter

TYPES = [core.float64, core.float32, core.float16, core.int64, core.int32, core.uint32, core.int1]


def tensor(dtype, shape):
    """Of some numbers."""
    data = (np.arange(np.prod(shape, dtype=int)) % 5).astype(interpreter._get_np_dtype(dtype)).reshape(shape)
    return core.tensor(interpreter.TensorHandle(data, dtype), core.block_type(dtype, list(shape)) if shape else dtype)


OPERANDS = [tensor(dtype, shape) for dtype in TYPES for shape in ((), (4,), (2, 4), (2, 1))] + [2, 0, 0.5, float("nan")]


def said(function, *arguments):
    """Types, shapes and bytes of the results, or the sentence of what was raised."""
    try:
        return [
            (t.type.name, t.dtype.name, [s.value for s in t.shape], t.numel.value, t.handle.data.tobytes())
            for t in function(interpreter.interpreter_semantic, *arguments)
        ]
    except (TypeError, ValueError) as error:
        return str(error)


@pytest.mark.parametrize("flags", [(), (False, False, True, True)], ids=["", "division"])
def test_two_operands_become_what_triton_makes_of_them(flags):
    ours = TritonSemantic.binary_op_type_checking_impl
    for lhs, rhs in itertools.product(OPERANDS, OPERANDS):
        assert said(ours, lhs, rhs, *flags) == said(ours.__wrapped__, lhs, rhs, *flags), (lhs, rhs)


def test_types_are_those_of_triton():
    for one, other in itertools.product(OPERANDS[:-4], TYPES):
        if one.type.is_block():
            ours, theirs = (f(one.type, other) for f in (change, change.__wrapped__))
            assert ours == theirs and (ours.name, ours.numel) == (theirs.name, theirs.numel)
        look_up = interpreter._get_np_dtype
        assert look_up(one.type) == look_up.__wrapped__(one.type)
    pointers = [core.block_type(core.pointer_type(t, const=c), [4]) for t in TYPES for c in (False, True)]
    for one, other in itertools.product(pointers, pointers):
        assert (one == other) == (one is other)
        assert (one.with_element_ty(other.element_ty) == other) and one.with_element_ty(core.int32) is not one


change = core.block_type.with_element_ty
