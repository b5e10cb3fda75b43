"""House rules that can be counted: sizes, import circles, dependencies and kernels in use, contracts, not types."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = [p for part in ("geonode", "kernels", "runtime") for p in sorted((ROOT / part).rglob("*.py"))]
WRITTEN = SHIPPED + [p for part in ("benchmarks", "examples", "tools") for p in sorted((ROOT / part).rglob("*.py"))]
TESTS = sorted((ROOT / "tests").rglob("*.py"))
LONGEST_FILE, LONGEST_FUNCTION = 400, 60
LONGEST_KERNEL = 140
"""A fused kernel is one launch whose values live in registers; cutting it into functions hides what is live."""

# Distribution → the module that is imported, where the two differ.
IMPORTED_AS = {"scikit-learn": "sklearn", "pyyaml": "yaml", "nvidia-ml-py": "pynvml"}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its argument list, its docstring and the functions inside it, which count alone."""
    body = function.body
    if ast.get_docstring(function) is not None:
        body = body[1:]
    if not body or function.end_lineno is None:
        return 0
    inner = [
        node
        for node in ast.walk(function)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node is not function
    ]
    inside = {line for node in inner for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    return len([line for line in range(body[0].lineno, function.end_lineno + 1) if line not in inside])


def test_no_file_is_too_long_to_read():
    lines = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in WRITTEN + TESTS}
    long = [f"{name}: {count} lines" for name, count in lines.items() if count > LONGEST_FILE]
    assert long == [], "two concepts, two files"


def test_no_function_is_too_long_to_read():
    long = [
        f"{name_of(path)}:{node.lineno} {node.name}: {code_lines(node)} lines"
        for path in WRITTEN
        for node in ast.walk(tree_of(path))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (node.end_lineno or 0) - node.lineno >= LONGEST_FUNCTION  # all of its lines: most need no closer look
        and code_lines(node) > (LONGEST_KERNEL if path.name == "_triton.py" else LONGEST_FUNCTION)
    ]
    assert long == []


def test_code_lines_leaves_out_arguments_docstring_and_inner_functions():
    source = 'def f(\n    a,\n    b,\n):\n    """Say."""\n    def g():\n        return 1\n    return a\n'
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert code_lines(function) == 1


# ---------------------------------------------------------------------- import circles


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] in ("kernels", "runtime") else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in SHIPPED}


def imported_when_loaded(module: str, path: Path) -> set[str]:
    """Modules of ours that loading this one loads by name: not those in functions, not those for type checkers."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found: set[str] = set()
    waiting: list[ast.AST] = list(tree_of(path).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in MODULES}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                found |= {inner} if inner in MODULES else ({base} & set(MODULES))
        else:
            waiting += ast.iter_child_nodes(node)
    return found - {module}


def circle_in(graph: dict[str, set[str]]) -> list[str]:
    """One circle of a directed graph as a list of names, or an empty list."""
    done: set[str] = set()

    def visit(node: str, trail: list[str]) -> list[str]:
        if node in trail:
            return [*trail[trail.index(node) :], node]
        if node in done:
            return []
        for other in sorted(graph.get(node, ())):
            circle = visit(other, [*trail, node])
            if circle:
                return circle
        done.add(node)
        return []

    for name in sorted(graph):
        circle = visit(name, [])
        if circle:
            return circle
    return []


def test_no_module_imports_itself_by_way_of_others():
    graph = {module: imported_when_loaded(module, path) for module, path in MODULES.items()}
    assert sum(map(len, graph.values())) > 300, "the imports were not found"
    assert circle_in(graph) == []


def test_circle_in_finds_a_circle():
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert circle_in({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


# ---------------------------------------------------------------------- promises that code keeps


def required() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [re.split(r"[\[><=;! ~]", entry)[0] for entry in project["dependencies"]]


def named_by(path: Path) -> set[str]:
    """Packages a file imports, or names in a text (an engine of xarray, a class to be imported late)."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"[\w.]+", node.value):
            found.add(node.value.split(".")[0])
    return found


def test_every_dependency_is_imported():
    named = set().union(*map(named_by, SHIPPED))
    unused = [name for name in required() if IMPORTED_AS.get(name, name.replace("-", "_")) not in named]
    assert unused == [], "pyproject.toml requires what nothing imports"


def test_every_public_kernel_has_a_caller_in_the_library():
    import geonode_kernels

    text = "\n".join(
        path.read_text(encoding="utf-8")
        for path in SHIPPED
        if path.is_relative_to(ROOT / "geonode") and "bench" not in path.relative_to(ROOT / "geonode").parts
    )
    errors = {"KernelError"}  # raised there and shown as it is
    idle = [name for name in geonode_kernels.__all__ if name not in errors and not re.search(rf"\b{name}\b", text)]
    assert idle == [], f"geonode calls none of {', '.join(idle)}: use them or delete them"


# ---------------------------------------------------------------------- contracts, not types

OWNERS = ("flow", "metric", "testing")


def types_asked_for(path: Path) -> list[str]:
    """Types of ours that a file compares a value's type with."""
    found = []
    for node in ast.walk(tree_of(path)):
        asked = ""
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) in ("isinstance", "issubclass")
            and len(node.args) == 2
        ):
            asked = ast.unparse(node.args[1])
        elif isinstance(node, ast.Compare) and ast.unparse(node.left).startswith("type("):
            asked = ast.unparse(node.comparators[0])
        if re.search(r"\w*(Flow|Metric|MetricNetwork|Solver)\b", asked):
            found.append(f"{name_of(path)}:{node.lineno} asks for {asked}")
    return found


def test_nobody_asks_which_flow_metric_or_solver_it_is():
    """What an implementation can do is a property or method of it; its own package alone may look at its type."""
    library = ROOT / "geonode"
    others = [p for p in SHIPPED if p.is_relative_to(library) and p.relative_to(library).parts[0] not in OWNERS]
    assert [line for path in others for line in types_asked_for(path)] == []


def test_types_asked_for_finds_both_ways_of_asking(tmp_path):
    source = tmp_path / "asks.py"
    source.write_text("isinstance(x, SpectralFlow)\ntype(x) is LogMetricNetwork\nisinstance(x, int)\n")
    assert len(types_asked_for(source)) == 2
