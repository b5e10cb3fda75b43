"""Compile, for a card that need not be here, every kernel that the ops launch forward and backward; a program.

    python -m tests.kernels.compile_kernels 90

The ops run on the CPU, and where one would launch a kernel, that kernel is compiled for the arguments it would get.
Prints a line a kernel; ends with the compiler's message where one does not compile, and with a sentence where a sum
across lanes is not the same in all of them (racecheck calls what becomes of it a hazard).
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections.abc import Callable
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import geonode  # noqa: F401  (finds geonode_kernels beside a bare checkout)
import geonode_kernels
from geonode_kernels import _dispatch

OPTIONS = ("num_warps", "num_stages", "maxnreg")
TYPES = {torch.float32: "*fp32", torch.float64: "*fp64", torch.int64: "*i64", torch.int32: "*i32"}


def described(value: Any) -> str:
    """Triton's name of an argument's type."""
    if isinstance(value, torch.Tensor):
        return TYPES[value.dtype]
    return "fp32" if isinstance(value, float) else "i32"


def fused_across_lanes(ptx: str) -> int:
    """How often a product is fused into the addition of what another lane holds.

    The other lane does the same with its own product and the rounded one of this lane, so the two sums differ in the
    last bit; `rounded_product` keeps the compiler from it.
    """
    defined: dict[str, str] = {}
    shuffled: set[str] = set()
    found = 0
    for line in ptx.splitlines():
        parts = re.match(r"\s*(?:@\S+\s+)?([a-z][\w.]*)\s+(%\w+),?\s*(.*?);", line)
        if not parts:
            continue
        operation, result, rest = parts.groups()
        sources = [source.strip() for source in rest.split(",")]
        defined[result] = operation
        if operation.startswith("shfl") or (operation.startswith("mov") and sources[0] in shuffled):
            shuffled.add(result)
        elif operation.startswith("fma"):
            found += sources[-1] in shuffled
        elif operation == "add.f32" and shuffled.intersection(sources):  # the assembler fuses these two
            found += any(defined.get(source) == "mul.f32" for source in sources if source not in shuffled)
    return found


def compiler(capability: int, done: set[str]) -> Callable[..., None]:
    """What takes the place of `launch`."""

    def compile_it(kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
        constants = {name: value for name, value in options.items() if name not in OPTIONS}
        names = list(kernel.arg_names)
        signature = dict(zip(names, map(described, arguments), strict=False))
        signature = {name: "constexpr" if name in constants else signature[name] for name in names}
        source = ASTSource(kernel, signature, constexprs={(names.index(n),): v for n, v in constants.items()})
        key = f"{kernel.__module__.removeprefix('geonode_kernels.')}.{kernel.__name__} {sorted(constants.items())}"
        if key not in done:
            settings = {name: options[name] for name in OPTIONS if options.get(name) is not None}
            compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=settings)
            if fused := fused_across_lanes(compiled.asm["ptx"]):
                sys.exit(f"{key}: {fused} products are fused into sums across lanes; see rounded_product.")
            done.add(key)
            print(key)

    return compile_it


def main(capability: int) -> None:
    done: set[str] = set()
    for module in pkgutil.walk_packages(geonode_kernels.__path__, "geonode_kernels."):
        loaded = importlib.import_module(module.name)
        if hasattr(loaded, "launch"):
            loaded.launch = compiler(capability, done)
    _dispatch.verify = lambda tensors, explicit=False: None  # as if there were a card
    from tests.kernels.test_operators import calls

    longer = calls("cpu", steps=6)  # with Γ interpolated along the paths
    asked = [*calls("cpu").values(), *(longer[name] for name in ("geodesic_states", "geodesic_shoot", "coupled_shot"))]
    for function, tensors, constant in asked:
        leaves = [t.detach().requires_grad_() for t in tensors]
        out = function(*leaves, *constant, backend="triton")
        out = [t for t in (out if isinstance(out, tuple) else (out,)) if t.requires_grad]
        torch.autograd.grad(out, leaves, [torch.ones_like(t) for t in out], allow_unused=True)
        with torch.no_grad():
            function(*tensors, *constant, backend="triton")
    parameter = torch.nn.Parameter(torch.zeros(1, 5))
    optimizer = geonode_kernels.FlatAdamW([{"params": [parameter], "lr": 1e-2, "clip": 1.0}], backend="triton")
    optimizer.step([torch.zeros(1, 5)])


if __name__ == "__main__":
    main(int(sys.argv[1]))
