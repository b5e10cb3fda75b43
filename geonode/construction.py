"""Registered classes from settings, and settings from objects: what bundles and configurations say of an object.

`build` gives a class those settings that its constructor takes and refuses the others; a class derived from `Recorded`
remembers the arguments it was made with, so that an object says what would make it again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Self, TypeVar

from geonode.errors import InputError

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
        return dict(bound.arguments)


def build(
    factory: Callable[..., Made],
    what: str,
    context: Mapping[str, Any],
    settings: Mapping[str, Any],
    defaults: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Made:
    """``factory`` called with what it takes of the context, the settings and the options.

    Args:
        factory: a class or function.
        what: what it makes, for messages: "flow 'velocity'".
        context: arguments from the surroundings (number of models, wavelengths, seed); those that it does not take are
            left out.
        settings: a component's general settings; one that it does not take must have its default value.
        defaults: of the settings.
        options: further arguments, all of which it must take.

    Raises:
        InputError: a setting or option that it does not take, or an argument that it needs and nobody gives.
    """
    parameters = inspect.signature(factory).parameters
    any_name = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    names = [n for n, p in parameters.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    arguments = {name: value for name, value in context.items() if name in names}
    for name, value in settings.items():
        if name in names:
            arguments[name] = value
        elif value != defaults[name]:
            raise InputError(f"The {what} takes no setting {name!r} ({name}={value!r}); leave it out.")
    for name, value in options.items():
        if name not in names and not any_name:
            free = sorted(set(names) - set(context))
            raise InputError(f"The {what} takes no option {name!r}; it takes {', '.join(free) or 'none'}.")
        arguments[name] = value
    missing = [n for n, p in parameters.items() if n in names and p.default is p.empty and n not in arguments]
    if missing:
        raise InputError(f"The {what} needs {missing[0]!r}; give it among the options.")
    return factory(**arguments)
