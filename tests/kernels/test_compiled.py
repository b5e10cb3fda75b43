"""What the interpreter does not show: places where Triton's compiler makes something else of a kernel."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import geonode_kernels

FOLDER = Path(geonode_kernels.__file__).parent


def bare(statement: ast.AST) -> Iterator[tuple[str, str]]:
    """(name, other name) of every assignment of one plain name to another, also side by side."""
    if not isinstance(statement, ast.Assign):
        return
    for target in statement.targets:
        sides = [target], [statement.value]
        if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            sides = target.elts, statement.value.elts
        for left, right in zip(*sides, strict=False):
            if isinstance(left, ast.Name) and isinstance(right, ast.Name):
                yield left.id, right.id


def taken_for_constant(function: ast.FunctionDef) -> list[str]:
    """Names that a loop assigns from another name which, before the loop, is a second name of the same value.

    Triton finds out what a loop changes by whether a name still means the same value at the end of its body. After
    ``a, b = zero, zero``, a loop with ``a, b = b, f(b)`` looks as if it left ``a`` alone: `a` is zero for good.
    """
    loops = [node for node in ast.walk(function) if isinstance(node, ast.For | ast.While)]
    inside = {id(node) for loop in loops for node in ast.walk(loop)}
    root: dict[str, str] = {}

    def find(name: str) -> str:
        while name in root:
            name = root[name]
        return name

    for node in ast.walk(function):
        for left, right in bare(node) if id(node) not in inside else ():
            if find(left) != find(right):
                root[find(left)] = find(right)
    swapped = (pair for loop in loops for node in ast.walk(loop) for pair in bare(node))
    return sorted({left for left, right in swapped if left != right and find(left) == find(right)})


def functions(source: str) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("late, last = zero, zero\n for k in range(9):\n  late, last = last, 2.0 * last", ["late"]),
        ("late = last\n for k in range(9):\n  late = last", ["late"]),
        ("a, b = zero, zero\n c = b\n while k < 3:\n  if k:\n   c = a", ["c"]),
        ("late, last = zeros(), zeros()\n for k in range(9):\n  late, last = last, 2.0 * last", []),
        ("a, b = zero, zero\n for k in range(9):\n  a, b = a + b, b + 1.0", []),
    ],
)
def test_a_name_that_the_compiler_takes_for_constant_is_found(body, found):
    assert taken_for_constant(functions(f"def kernel(zero):\n {body}\n")[0]) == found


@pytest.mark.parametrize(
    "path", sorted(FOLDER.rglob("_*.py")), ids=lambda p: str(p.relative_to(FOLDER)).replace("/", ".")
)
def test_no_kernel_has_one(path):
    found = {f.name: taken_for_constant(f) for f in functions(path.read_text(encoding="utf-8"))}
    assert not any(found.values()), found


SHUFFLED = "shfl.sync.bfly.b32 %r2, %r1, 8, 31, -1;\n mov.b32 %f2, %r2;\n "


@pytest.mark.parametrize(
    ("ptx", "found"),
    [
        (SHUFFLED + "fma.rn.f32 %f3, %f4, %f5, %f2;", 1),
        ("mul.f32 %f6, %f4, %f5;\n " + SHUFFLED + "add.f32 %f3, %f6, %f2;", 1),
        ("shfl.sync.bfly.b32 %r2, %r1, 8, 31, -1;\n fma.rn.f32 %r3, %r4, %r5, %r2;", 1),
        ("mul.rn.f32 %f6, %f4, %f5;\n " + SHUFFLED + "add.f32 %f3, %f6, %f2;", 0),
        (SHUFFLED + "fma.rn.f32 %f3, %f4, %f2, %f5;\n add.f32 %f7, %f8, %f9;", 0),
    ],
)
def test_products_fused_into_sums_across_lanes_are_counted(ptx, found):
    from tests.kernels.compile_kernels import fused_across_lanes

    assert fused_across_lanes(ptx) == found


@pytest.mark.slow
@pytest.mark.parametrize("capability", [90])
def test_every_kernel_compiles_for_a_card_that_is_not_here(capability):
    """And no sum across lanes is a race. In a process of its own, for here the kernels are the interpreter's."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "tests.kernels.compile_kernels", str(capability)]
    folder = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    compiled = {line.split()[0] for line in done.stdout.splitlines()}
    kernels = {
        f"{path.parent.name}._triton.{function.name}"
        for path in FOLDER.rglob("_triton.py")
        for function in functions(path.read_text(encoding="utf-8"))
        if function.name.endswith("_kernel")
    }
    assert kernels <= compiled, kernels - compiled
