"""`Registry`: named implementations of one thing, in one place. All that people may add to geonode is found in one.

    FLOWS: Registry[type[Flow]] = Registry("flow", package=__package__)

    @FLOWS.register("doubling")
    class DoublingFlow(SpectralFlow): ...

    FLOWS["doubling"], FLOWS.names(), FLOWS.name_of(flow)

A registry with a ``package`` imports that package's modules before it is first asked, so that a new implementation is
one new file there. Implementations that live elsewhere are registered when their module is imported.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from geonode.errors import InputError
from geonode_runtime import wording

Item = TypeVar("Item")
Registered = TypeVar("Registered")


class Registry(Mapping[str, Item]):
    """Named implementations of one thing, in the order in which they were registered.

    It is a read-only mapping from names to implementations (classes, functions or objects); `register` adds to it.

    Args:
        kind: what is registered, in the words of an error and as its argument is called: "flow", "loss term".
        package: name of a package all of whose modules are imported before the registry is first asked; None if the
            modules that register are imported anyway.
    """

    def __init__(self, kind: str, package: str | None = None) -> None:
        self.kind = kind
        self._package = package
        self._items: dict[str, Item] = {}

    def register(self, name: str) -> Callable[[Registered], Registered]:
        """A decorator that registers what it decorates, and gives it back unchanged.

        A definition that is executed again (a notebook's cell, a reloaded module) takes the place of the first.

        Args:
            name: not yet taken, not empty.

        Raises:
            InputError: no name, or one that another implementation has.
        """
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"A {self.kind} is registered under a name, a text that is not empty; got {name!r}.")

        def add(item: Any) -> Any:
            taken = self._items.get(name)
            if taken is not None and _origin(taken) != _origin(item):
                raise InputError(f"The {self.kind} name {name!r} is taken by {_describe(taken)}; choose another name.")
            self._items[name] = item
            return item

        return add

    def names(self) -> list[str]:
        """All names, in the order in which they were registered."""
        self._import_package()
        return list(self._items)

    def __getitem__(self, name: str) -> Item:
        """The implementation called ``name``.

        Raises:
            InputError: none is called so; the message lists the names.
        """
        return self.find(name)

    def find(self, name: Any, argument: str | None = None) -> Item:
        """The implementation called ``name``.

        Args:
            name: a registered name.
            argument: the setting that named it, for the error's text; None takes the registry's kind.

        Raises:
            InputError: none is called so; the message lists the names.
        """
        self.check(name, argument)
        return self._items[name]

    def check(self, name: Any, argument: str | None = None) -> None:
        """Refuse what is not a registered name; arguments and errors as for `find`."""
        if name not in self:
            raise InputError(
                f"{wording.stated(argument or self.kind, name)} is not known; choose one of "
                f"{', '.join(self.names()) or '(none)'}."
            )

    def name_of(self, item: Any) -> str:
        """The name under which ``item``, or the class of which it is an instance, was registered.

        Args:
            item: an implementation, or an object made by one. A subclass of a registered class is not registered.

        Raises:
            InputError: it was not registered.
        """
        self._import_package()
        for candidate in (item, type(item)):
            for name, known in self._items.items():
                if known is candidate:
                    return name
        raise InputError(
            f"{_describe(item)} is not a registered {self.kind}; register its class with the decorator "
            f'register("a name") of the {self.kind} registry.'
        )

    def __contains__(self, name: object) -> bool:
        self._import_package()
        return isinstance(name, str) and name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __repr__(self) -> str:
        return f"<{self.kind} registry: {', '.join(self._items)}>"

    def _import_package(self) -> None:
        if self._package is None:
            return
        # forgotten first: a module that asks while it is being imported gets what is registered so far
        package, self._package = importlib.import_module(self._package), None
        for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            importlib.import_module(module.name)


def _origin(item: Any) -> tuple[str, str]:
    """Where an implementation was defined: equal for two runs of one definition."""
    if not hasattr(item, "__qualname__"):
        item = type(item)
    return item.__module__, item.__qualname__


def _describe(item: Any) -> str:
    return ".".join(_origin(item))
