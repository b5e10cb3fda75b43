"""The docstrings behind the API pages say what goes in and which errors come out.

That arguments documented under ``Args:`` exist is looked at in test_site.py; here it is the other way round.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import pytest

from geonode.errors import InputError
from tests.docs.blocks import ROOT

_PAGES = sorted((ROOT / "docs" / "api").glob("*.md"))
_OURS = ("geonode", "geonode_kernels", "geonode_runtime", "tests")
_NOT_TOLD = {"NotImplementedError", "AttributeError", "StopIteration"}  # Python's own protocols
_AS = re.compile(r"\b(?:args|arguments)\b[^.]*?(?:as|those) (?:in|for|of|by)\b|: as in\b", re.IGNORECASE)
_QUOTED = re.compile(r"`~?([A-Za-z_][\w.]*)`")


def _names() -> list[str]:
    return [m for page in _PAGES for m in re.findall(r"^::: (\S+)", page.read_text(encoding="utf-8"), re.MULTILINE)]


def _find(name: str) -> Any:
    """What stands under a dotted name. A function may shadow its module, so modules are taken from sys.modules."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        module, rest = ".".join(parts[:count]), parts[count:]
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(module)
            return attrgetter(".".join(rest))(sys.modules[module]) if rest else sys.modules[module]
    raise LookupError(f"there is no {name}")


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    """A function itself; of a class its constructor and what else its page shows of it: methods and properties."""
    if inspect.isfunction(thing):
        yield "", thing
    elif inspect.isclass(thing):
        for name, value in vars(thing).items():
            if isinstance(value, property):
                value = value.fget
            elif isinstance(value, (classmethod, staticmethod)):
                value = value.__func__
            written = inspect.isfunction(value) and value.__code__.co_filename != "<string>"  # not by @dataclass
            if written and (name == "__init__" or not name.startswith("_")):
                yield name, value


def _doc(owner: Any, name: str, function: Any) -> str:
    """The function's own docstring, not an inherited one; a constructor may be described by its class."""
    own = inspect.cleandoc(function.__doc__ or "")
    return f"{inspect.cleandoc(owner.__doc__ or '')}\n{own}" if name == "__init__" else own


def _raised(function: Any) -> set[str]:
    """Names of the errors raised in the body itself; "" for one that is made elsewhere."""
    found: set[str] = set()
    waiting = list(ast.iter_child_nodes(ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Raise) and node.exc is not None:
            made = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            found.add(made.id if isinstance(made, ast.Name) and made.id[:1].isupper() else "")
        if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))
    return found - _NOT_TOLD


def _mentions(doc: str, argument: str) -> bool:
    return re.search(rf"\b{re.escape(argument)}\b", doc) is not None


def _siblings(doc: str, owner: Any, function: Any) -> str:
    """The docstrings of what "arguments as in `name`" points at: in the class, in the module, or by full name."""
    text = ""
    for sentence in re.split(r"\.\s|\n\n", doc):
        for quoted in _QUOTED.findall(sentence) if _AS.search(sentence) else ():
            for scope in (owner, sys.modules[function.__module__]):
                with contextlib.suppress(AttributeError):
                    text += attrgetter(quoted)(scope).__doc__ or ""
            if quoted.startswith(_OURS):
                text += _find(quoted).__doc__ or ""
    return text


def _inherited(owner: Any, name: str, argument: str) -> bool:
    """Whether a base documents this argument of this method. Hooks of other libraries are documented there."""
    for base in owner.__mro__[1:] if name and name != "__init__" else ():
        method = vars(base).get(name)
        if inspect.isfunction(method) and argument in inspect.signature(method).parameters and method.__doc__:
            doc = inspect.cleandoc(method.__doc__)
            if base.__module__.partition(".")[0] not in _OURS or _mentions(
                doc + _siblings(doc, base, method), argument
            ):
                return True
    return False


def _lacks(owner: Any, name: str, function: Any) -> list[str]:
    """What is missing from one docstring."""
    doc = _doc(owner, name, function)
    if not doc.strip():
        return ["no docstring"]
    lacks = [
        f"raises {e or 'an error'}" for e in _raised(function) if not re.search(rf"\b{e}\b" if e else "Error", doc)
    ]
    known = doc + _siblings(doc, owner, function)
    for argument in inspect.signature(function).parameters:
        own = argument not in ("self", "cls") and not argument.startswith("_")
        if own and not _mentions(known, argument) and not _inherited(owner, name, argument):
            lacks.append(f"takes {argument}")
    return lacks


@pytest.mark.parametrize("name", _names())
def test_docstring_names_arguments_and_errors(name):
    thing = _find(name)
    wrong = {part or name: _lacks(thing, part, function) for part, function in _parts(thing)}
    wrong = {part: lacks for part, lacks in wrong.items() if lacks}
    assert not wrong, f"{name}: its docstrings do not say {wrong}"


class _Base:
    def told(self, x):
        """Twice ``x``."""

    def untold(self, x):
        """Twice it."""


class _Example(_Base):
    def told(self, x):
        """Closed form."""

    def untold(self, x):
        """Closed form."""

    def beside(self, x):
        """Arguments as for `told`, of the base."""

    def silent(self):
        if self:
            raise InputError("no")

    def raises(self):
        """Nothing."""
        if self:
            raise InputError("no")

    @property
    def bare(self):
        return 1


def test_what_the_check_finds():
    lacks = {name: _lacks(_Example, name, function) for name, function in _parts(_Example)}
    assert lacks == {
        "told": [],
        "untold": ["takes x"],
        "beside": ["takes x"],
        "silent": ["no docstring"],
        "raises": ["raises InputError"],
        "bare": ["no docstring"],
    }
    assert _lacks(_Base, "told", _Base.told) == [] and _lacks(_Base, "untold", _Base.untold) == ["takes x"]


def test_a_sibling_stands_in_only_for_what_it_says():
    source = _Base.told
    assert _mentions(_siblings("Arguments as for `told`.", _Base, source), "x")
    assert not _siblings("See `told`.", _Base, source)
    assert not _mentions(_siblings("Arguments as for `untold`.", _Base, source), "x")
