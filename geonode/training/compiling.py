"""What torch.compile needs beside torch, said in one sentence where it is not there."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from geonode.errors import DeviceError
from geonode_runtime.wording import argument


@contextmanager
def compiler_failures() -> Iterator[None]:
    """Turn a C++ compiler that is missing or fails, which torch.compile notices at the first step, into a sentence.

    A context manager, and a decorator of a function. Without torch's advice on cached functions, for those here
    (quadrature points) have no state.

    Raises:
        DeviceError: in place of torch's error, which is many lines long.
    """
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Dynamo detected a call to a `functools.lru_cache`.*")
            yield
    except Exception as error:
        said = _sentence(error)
        if said is None:
            raise
        raise DeviceError(said) from error


def cpp_compiler() -> str:
    """The C++ compiler that torch.compile calls on a CPU."""
    return os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")


def _sentence(error: BaseException) -> str | None:
    from torch._inductor.exc import CppCompileError, InvalidCxxCompiler

    remedy = f"install one (g++ or clang++), name it in CXX, or train without {argument('compiled')}."
    for cause in _causes(error):
        if isinstance(cause, InvalidCxxCompiler):
            return f"torch.compile needs a C++ compiler on a CPU, and {cpp_compiler()!r} does not run here; {remedy}"
        if isinstance(cause, CppCompileError):
            lines = [line.strip() for line in str(cause).splitlines() if "error:" in line]
            why = f" ({lines[0]})" if lines else ""
            return f"torch.compile needs a C++ compiler that works, and {cpp_compiler()!r} failed{why}; {remedy}"
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and what it came from; torch's carry the first one as ``inner_exception``."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            waiting += [one.__context__, one.__cause__, getattr(one, "inner_exception", None)]
            yield one
