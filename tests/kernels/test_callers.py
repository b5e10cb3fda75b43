"""Kernels are the library's: what `geonode_kernels` offers, geonode uses."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import geonode
import geonode_kernels

LIBRARY = Path(geonode.__file__).parent


def loaded(path: Path) -> set[str]:
    """Names that a file imports from `geonode_kernels` or takes from it, and then uses."""
    text = path.read_text(encoding="utf-8")
    if "geonode_kernels" not in text:
        return set()
    nodes = list(ast.walk(ast.parse(text)))
    imported = {
        alias.asname or alias.name: alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "geonode_kernels"
        for alias in node.names
    }
    used = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    attributes = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "geonode_kernels"
    }
    return {name for local, name in imported.items() if local in used} | attributes


PUBLIC = [
    name
    for name in geonode_kernels.__all__
    if not (isinstance(getattr(geonode_kernels, name), type) and issubclass(getattr(geonode_kernels, name), Exception))
]


@pytest.fixture(scope="module")
def called() -> set[str]:
    """What the library uses of the kernels."""
    return set().union(*(loaded(p) for p in LIBRARY.rglob("*.py") if "bench" not in p.relative_to(LIBRARY).parts))


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_a_caller_in_the_library(name, called) -> None:
    """The bench does not count: it would measure what nobody runs. Errors are for who catches them."""
    assert name in called, f"geonode_kernels.{name} is used nowhere in geonode/: use it there or delete it"


def test_every_op_is_public() -> None:
    """A folder with a kernel offers at least one public name, so that the test above sees it."""
    folder = Path(geonode_kernels.__file__).parent
    for kernel in folder.rglob("_triton.py"):
        package = kernel.parent.name
        names = __import__(f"geonode_kernels.{package}", fromlist=["__all__"]).__all__
        assert set(names) & set(geonode_kernels.__all__), f"no op of {package} is public"
