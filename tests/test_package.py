"""What `import geonode` promises: lean, lazy, layered, and callable from a bare checkout."""

from __future__ import annotations

import ast
import importlib
import os
from pathlib import Path

import pytest

from tests.fresh import fresh

ROOT = Path(__file__).resolve().parent.parent

HEAVY = ["xarray", "pandas", "chemotools", "lightning", "matplotlib", "torchdiffeq", "triton", "typer", "rich"]

# Layers of docs/architecture.md, left to right; names on one row may import each other.
LAYERS = [
    {"_bootstrap", "errors", "schema", "registry", "construction", "settings"},
    {"bundle", "device", "threads"},
    {"data"},
    {"corpus"},
    {"metric"},
    {"christoffel"},
    {"geodesic"},
    {"flow"},
    {"calibration"},
    {"training", "config"},
    {"prior"},
    {"adaptation"},
    {"report"},
    {"validation"},
    {"analytes"},
    {"artifact", "on_device"},
    {"model"},
    {"sweep"},
    {"export", "bench", "plotting", "commands", "cli", "__main__", "testing"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def run_python(code: str, *, cwd: Path = ROOT, **environment: str) -> str:
    """What the code prints where torch is loaded, nothing of geonode is, and the checkout is on the path."""
    result = fresh(code, cwd, {**os.environ, "PYTHONPATH": str(ROOT), **environment})
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_import_is_lean():
    loaded = run_python(f"import sys, geonode; print(*[m for m in {HEAVY!r} if m in sys.modules])")
    assert loaded == "", f"import geonode also imported {loaded}"


def test_public_names_touch_no_gpu():
    code = """
import sys, geonode
geonode.load_standards, geonode.MetricNetwork, geonode.shoot, geonode.GeodesicConfig
import torch
print(torch.cuda.is_initialized())
"""
    assert run_python(code) == "False"


def test_every_public_name_resolves_and_is_listed():
    import geonode

    for name in geonode.__all__:
        assert name in dir(geonode)
        getattr(geonode, name)
    assert set(geonode.__all__) - {"__version__"} == set(geonode._PUBLIC)


def test_the_stacked_loop_needs_no_lightning():
    code = (
        "import sys; from geonode.training import train, predict; print(*[m for m in sys.modules if 'lightning' in m])"
    )
    assert run_python(code) == ""


def test_every_public_name_of_training_resolves_and_is_listed():
    import geonode.training as training

    assert sorted(training._PUBLIC) == training.__all__
    for name in training.__all__:
        assert name in dir(training)
        getattr(training, name)


@pytest.mark.parametrize("module", ["geonode", "geonode.training"])
def test_unknown_name_is_an_attribute_error(module):
    with pytest.raises(AttributeError, match=f"'{module}' has no attribute 'nonsense'"):
        importlib.import_module(module).nonsense  # noqa: B018


CHRISTOFFEL = (
    "import geonode; geonode.christoffel",
    "import geonode.christoffel",
    "from geonode import christoffel",
    "from geonode.christoffel import christoffel",
)


def test_christoffel_is_function_and_module_in_any_order_of_imports():
    """Each order in a process of its own, which begins where torch is loaded and nothing of geonode is."""
    check = """
import inspect, geonode, geonode.christoffel as module
assert callable(geonode.christoffel)
assert geonode.christoffel.christoffel is module.christoffel
assert inspect.signature(geonode.christoffel) == inspect.signature(module.christoffel)
try:
    geonode.christoffel()
except TypeError as error:
    assert "christoffel() missing" in str(error), error
"""
    code = f"""
import os, sys, torch
for first in {CHRISTOFFEL!r}:
    assert "geonode" not in sys.modules
    child = os.fork()
    if not child:
        exec(first + {check!r}, {{}})
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, first
"""
    run_python(code)


def test_bare_checkout_finds_its_kernels_and_a_version(tmp_path):
    code = """
import geonode, geonode_kernels
print(geonode.__version__)
"""
    # -S semantics by an empty distribution path: the version must fall back rather than fail.
    assert run_python(code, cwd=tmp_path)[0].isdigit()
    blind = "import importlib.metadata as m, geonode\ndef absent(name): raise m.PackageNotFoundError(name)\n"
    assert run_python(blind + "m.version = absent\nprint(geonode.__version__)").endswith("+source")


def geonode_imports(path: Path) -> list[tuple[int, str]]:
    """(line, layer) of every import of geonode in a file, those for the type checker alone left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    hidden = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for statement in block.body
        for node in ast.walk(statement)
    }
    found = []
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                package = ("geonode." + ".".join(path.relative_to(ROOT / "geonode").parts[:-1])).rstrip(".").split(".")
                base = ".".join(package[: len(package) - node.level + 1] + ([node.module] if node.module else []))
            else:
                base = node.module or ""
            names = [f"{base}.{alias.name}" for alias in node.names] if base == "geonode" else [base]
        else:
            continue
        parts = [name.split(".") for name in names if name == "geonode" or name.startswith("geonode.")]
        found += [(node.lineno, part[1] if len(part) > 1 else "__init__") for part in parts]
    return found


SOURCES = sorted(p for p in (ROOT / "geonode").rglob("*.py") if p != ROOT / "geonode" / "__init__.py")


@pytest.mark.parametrize("path", SOURCES, ids=[str(p.relative_to(ROOT)) for p in SOURCES])
def test_modules_import_only_from_their_left(path):
    layer = path.relative_to(ROOT / "geonode").parts[0].removesuffix(".py")
    layer = "__main__" if path.name == "__main__.py" else layer  # a program of a folder's, which nothing imports
    assert layer in RANK, f"geonode/{layer} is in no layer: add it to LAYERS here and to docs/architecture.md"
    for line, other in geonode_imports(path):
        if other == "__version__":  # metadata, not a layer
            continue
        assert other in RANK, f"{path.name}:{line} imports geonode.{other}: import the module that defines the name"
        assert RANK[other] <= RANK[layer], f"{path.name}:{line}: geonode.{layer} must not import geonode.{other}"


def test_kernels_never_import_geonode():
    for path in sorted((ROOT / "kernels").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert not [n for n in names if n.split(".")[0] == "geonode"], f"{path}:{node.lineno} imports geonode"
