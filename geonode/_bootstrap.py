"""What has to happen before anything else in geonode can be imported, and nothing more.

Everything here is standard library: a bare checkout on a GPU node, where nothing can be installed, must get through.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

DISTRIBUTION = "geodesic-node"
_CHECKOUT = Path(__file__).resolve().parent.parent


def ensure_siblings_importable() -> None:
    """Make ``geonode_kernels`` and ``geonode_runtime`` importable from a bare checkout, where they lie in the sibling
    folders ``kernels/`` and ``runtime/``.

    Installed ones are left alone, and a folder goes to the end of the path, so that it shadows nothing.
    """
    for folder, package in (("kernels", "geonode_kernels"), ("runtime", "geonode_runtime")):
        source_root = _CHECKOUT / folder
        if importlib.util.find_spec(package) is None and (source_root / package).is_dir():
            sys.path.append(str(source_root))


def lazily(package: str, public: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose public names load on first use (PEP 562).

    Args:
        package: its name.
        public: public name → module that defines it, ``".relative"`` to the package or absolute.
    """
    names = vars(sys.modules[package])

    def load(name: str) -> Any:
        if name not in public:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = names[name] = getattr(importlib.import_module(public[name], package), name)
        return value

    return load, lambda: sorted({*names, *names["__all__"]})


def version() -> str:
    """The installed version, or in a bare checkout the one of its ``pyproject.toml``, marked ``+source``."""
    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        pass
    import tomllib

    try:
        project = tomllib.loads((_CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        return f"{project['version']}+source"
    except (OSError, KeyError, ValueError):
        return "0+unknown"


class CallableModule(ModuleType):
    """A module that can be called as its function of the same name: ``geonode.christoffel(…)``.

    ``geonode.christoffel`` is both a public function and the submodule that holds it, and the import system binds the
    submodule to that name whenever anybody imports it. With this class both readings of the name stay true, in any
    order of imports: ``geonode.christoffel(…)``, ``geonode.christoffel.christoffel`` and
    ``import geonode.christoffel as module``.
    """

    @property
    def __wrapped__(self) -> Any:
        """The function; ``inspect.signature`` and ``help`` follow it."""
        return self.__dict__[self.__name__.rpartition(".")[2]]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)


class PackageModule(ModuleType):
    """The class of the package ``geonode``: makes the submodules named in ``_callable_submodules`` callable.

    The import system binds a submodule to its parent by ``setattr``, which is the one moment that every import passes.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if name in self.__dict__.get("_callable_submodules", ()) and type(value) is ModuleType:
            value.__class__ = CallableModule
        super().__setattr__(name, value)
