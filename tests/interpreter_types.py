"""Triton's interpreter makes a type, its shape and its constants anew for every operation of a kernel, which is most of
its time. Here each is made once: nothing that is computed changes, only what describes it is kept.

Every function answers the ordinary case and leaves the rest to Triton's own, which is its `__wrapped__`.
"""

from __future__ import annotations

from functools import wraps
from typing import Any


def keep_types() -> None:
    """Replace, in Triton's own classes, what is made anew for every operation."""
    from triton.language import core
    from triton.language.semantic import TritonSemantic
    from triton.runtime import interpreter

    _unwrap_plainly(core)
    _keep_blocks(core)
    _keep_descriptions(core)
    _keep_numpy_types(core, interpreter)
    _pass_equal_shapes(TritonSemantic)
    _pass_floats(core, TritonSemantic)


def _unwrap_plainly(core: Any) -> None:
    """Numbers, names and tensors are no constants wrapped up, and lie in no list."""
    unwrap, plain = core._unwrap_if_constexpr, {int, float, bool, str, type(None), core.tensor, core.dtype}

    @wraps(unwrap)
    def unwrap_if_constexpr(o: Any) -> Any:
        kind = type(o)
        if kind in plain:
            return o
        return o.value if kind is core.constexpr else unwrap(o)

    core._unwrap_if_constexpr = unwrap_if_constexpr


def _keep_blocks(core: Any) -> None:
    """Of each element and shape there is one block type."""
    make, kept = core.block_type.__init__, {}

    def new(cls: Any, *arguments: Any) -> Any:
        if len(arguments) != 2 or type(arguments[0]) is not core.dtype:  # a pointer's name does not say all
            return object.__new__(cls)
        element, shape = arguments
        key = element.name, *getattr(shape, "values", shape)
        if any(type(n) is not int for n in key[1:]):
            return object.__new__(cls)
        if key not in kept:
            kept[key] = object.__new__(cls)
        return kept[key]

    def init(self: Any, element_ty: Any, shape: Any) -> None:
        if "name" not in self.__dict__:
            make(self, element_ty, shape)

    core.block_type.__new__, core.block_type.__init__ = new, init


def _keep_descriptions(core: Any) -> None:
    """What a tensor says of its type is the same for every tensor of that type; and so is a block of another type."""
    make, other = core.tensor.__init__, core.block_type.with_element_ty

    @wraps(make)
    def describe(self: Any, handle: Any, type: Any) -> None:
        known = type.__dict__.get("_of_tensors")
        if known is None:
            make(self, handle, type)
            type._of_tensors = {name: value for name, value in vars(self).items() if name != "handle"}
        else:
            self.__dict__.update(known)
            self.handle = handle

    @wraps(other)
    def with_element_ty(self: Any, scalar_ty: Any) -> Any:
        if scalar_ty is self.element_ty:
            return self
        if scalar_ty.is_ptr():  # its name does not say all
            return other(self, scalar_ty)
        kept = self.__dict__.setdefault("_others", {})
        if scalar_ty.name not in kept:
            kept[scalar_ty.name] = other(self, scalar_ty)
        return kept[scalar_ty.name]

    core.tensor.__init__, core.block_type.with_element_ty = describe, with_element_ty


def _keep_numpy_types(core: Any, interpreter: Any) -> None:
    """A table of twenty types is made to look one of them up."""
    look_up, kept = interpreter._get_np_dtype, {}

    @wraps(look_up)
    def np_dtype(of: Any) -> Any:
        if isinstance(of, (core.pointer_type, core.block_type)):
            return look_up(of) if of.scalar.is_ptr() else np_dtype(of.element_ty)
        if of.name not in kept:
            kept[of.name] = look_up(of)
        return kept[of.name]

    interpreter._get_np_dtype = np_dtype


def _pass_equal_shapes(semantic: Any) -> None:
    """Two blocks of one shape need no broadcasting."""
    broadcast = semantic.broadcast_impl_value

    @wraps(broadcast)
    def broadcast_impl_value(self: Any, lhs: Any, rhs: Any) -> Any:
        one, other = lhs.type, rhs.type
        if one is other or (one.is_block() and other.is_block() and list(one.shape) == list(other.shape)):
            return lhs, rhs
        return broadcast(self, lhs, rhs)

    semantic.broadcast_impl_value = broadcast_impl_value


def _pass_floats(core: Any, semantic: Any) -> None:
    """Of two floating-point operands of one precision, or one and a Python number, the result has that precision."""
    check = semantic.binary_op_type_checking_impl
    floats, numbers = ("fp32", "fp64"), (int, float)

    @wraps(check)
    def binary_op_type_checking_impl(self: Any, lhs: Any, rhs: Any, *rest: Any, **options: Any) -> Any:
        left, right = type(lhs) is core.tensor, type(rhs) is core.tensor
        if left and right:
            if lhs.dtype.name in floats and lhs.dtype.name == rhs.dtype.name:
                return self.broadcast_impl_value(lhs, rhs)
        elif not rest and not options:
            if left and type(rhs) in numbers and lhs.dtype.name in floats:
                return self.broadcast_impl_value(lhs, self.scalar_constant(rhs, dtype=lhs.dtype))
            if right and type(lhs) in numbers and rhs.dtype.name in floats:
                return self.broadcast_impl_value(self.scalar_constant(lhs, dtype=rhs.dtype), rhs)
        return check(self, lhs, rhs, *rest, **options)

    semantic.binary_op_type_checking_impl = binary_op_type_checking_impl
