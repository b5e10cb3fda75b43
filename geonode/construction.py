"""Registered classes from settings, and settings from objects: what bundles and configurations say of an object.

`build` gives a class what its constructor takes; a class derived from `Recorded` remembers the arguments it was made
with, so that an object says what would make it again; one derived from `FollowsForward` never keeps a shortcut that
belongs to a formula it has replaced.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeVar

from geonode.errors import InputError
from geonode.registry import Registry

Made = TypeVar("Made")


class Recorded:
    """A mixin that remembers the arguments of the constructor as `arguments`."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        instance = super().__new__(cls)
        instance.__dict__["_made_with"] = (args, kwargs)
        return instance

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that the constructor was given, by name; defaults are left out."""
        args, kwargs = self.__dict__["_made_with"]
        bound = inspect.signature(type(self)).bind(*args, **kwargs)
        found: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            if bound.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                found.update(value)
            else:
                found[name] = value
        return found


class FollowsForward:
    """A mixin for contracts whose other methods have defaults that follow from ``forward``.

    ``derived`` names the methods, properties and flags of the contract that say something about ``forward``: closed
    forms, kernels, promises. A subclass that gives a ``forward`` of its own takes each of them from the contract again,
    unless it (or a class that it derives from before that ``forward``) gives that one too. So whoever overrides
    ``forward`` is honoured everywhere, and nobody who calls has to ask.
    """

    derived: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in cls.derived:
            owners = [owner for owner in cls.__mro__ if name in vars(owner)]
            if owners and _place(cls, "forward") < cls.__mro__.index(owners[0]):
                setattr(cls, name, vars(owners[-1])[name])


def _place(cls: type, name: str) -> int:
    """How far up the classes that ``cls`` derives from ``name`` is defined."""
    return next(i for i, owner in enumerate(cls.__mro__) if name in vars(owner))


def build(
    registry: Registry[type[Made]],
    name: str,
    context: Mapping[str, Any],
    settings: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Made:
    """An object of the registered class ``name``, given what its constructor takes.

    Args:
        registry: where the class is found.
        name: of the class.
        context: arguments from the surroundings (number of models, wavelengths, seed).
        settings: a component's general settings; like the context, what the constructor does not take is left out.
        options: further arguments, all of which it must take.

    Raises:
        InputError: an unknown name, an option that the class does not take, or an argument that it needs and nobody
            gives.
    """
    factory = registry.find(name)
    what = f"{registry.kind} {name!r}"
    parameters = inspect.signature(factory).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    names = [n for n, p in parameters.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    arguments = {key: value for key, value in {**context, **settings}.items() if key in names}
    for key, value in options.items():
        if key in context or (key not in names and not takes_any):
            free = [n for n in names if n not in context]
            raise InputError(f"The {what} takes no option {key!r}; it takes {', '.join(free) or 'none'}.")
        arguments[key] = value
    missing = [n for n in names if parameters[n].default is inspect.Parameter.empty and n not in arguments]
    if missing:
        raise InputError(f"The {what} needs {missing[0]!r}; give it among the options.")
    return factory(**arguments)


def describe(
    registry: Registry[Any], item: Any, general: Mapping[str, str], context: tuple[str, ...]
) -> dict[str, Any]:
    """Settings of a component that would make ``item`` again: ``name``, general settings and ``options``.

    Args:
        registry: where its class stands.
        item: an object, or a class (which then has no arguments).
        general: argument of the constructor → the general setting that gives it.
        context: arguments that the surroundings give; what the object was made with is left out.

    Raises:
        InputError: the class is not registered, or an argument cannot be written down as JSON.
    """
    name = registry.name_of(item)
    settings: dict[str, Any] = {"name": name}
    options: dict[str, Any] = {}
    for key, value in ({} if isinstance(item, type) else item.arguments).items():
        if key in general:
            settings[general[key]] = value
        elif key not in context:
            options[key] = _plain(value, f"{key!r} of the {registry.kind} {name!r}")
    return {**settings, "options": options}


def _plain(value: Any, what: str) -> Any:
    """A value that JSON has; arrays as lists."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(item, what) for item in value]
    raise InputError(
        f"The argument {what} is {type(value).__name__}; a model's settings hold numbers, texts, true or false, and "
        "lists of them, so that a bundle can record them."
    )
