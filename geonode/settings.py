"""What every component's settings share: a frozen dataclass that checks kinds and ranges and names what is wrong."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

from geonode.errors import InputError
from geonode_runtime.wording import stated


def said_once(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """The mapping of the names and values that a file gives.

    Raises:
        InputError: a name that stands twice, of which one value would be ignored.
    """
    twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
    if twice:
        raise InputError(f"{twice[0]!r} stands twice; leave one of the two out.")
    return dict(pairs)


def setting(default: Any, minimum: float | None = None, choices: tuple[str, ...] | None = None) -> Any:
    """A field of a `Settings` class.

    Args:
        default: its value where none is given.
        minimum: the smallest value allowed; None allows any.
        choices: the words allowed; None allows any.
    """
    return dataclasses.field(default=default, metadata={"minimum": minimum, "choices": choices})


def options_field() -> Any:
    """A field of further settings by name, which the implementation that is chosen takes (JSON-able values)."""
    return dataclasses.field(default_factory=dict, hash=False)


class Settings:
    """Base of the components' settings. Subclasses are frozen dataclasses whose fields come from `setting`.

    Each value is checked against its annotation (whole number, number, true or false, list of whole numbers, text),
    its smallest value and its choices. Messages name a setting as ``component.setting``.
    """

    component: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for item in dataclasses.fields(self):  # type: ignore[arg-type] - subclasses are dataclasses
            value = getattr(self, item.name)
            kind = str(item.type)
            if kind == "tuple[int, ...]":
                value = tuple(int(v) for v in value) if _widths(value) else value
                object.__setattr__(self, item.name, value)
            label = self.label(item.name)
            check_kind(label, value, kind)
            check_choice(label, value, item.metadata.get("choices"))
            check_minimum(label, value, item.metadata.get("minimum"))

    @classmethod
    def label(cls, name: str) -> str:
        """What messages call the setting ``name``: ``metric.hidden``; the component's own name is the component."""
        return cls.component if name == "name" else f"{cls.component}.{name}"

    @classmethod
    def names(cls) -> list[str]:
        """The names of all settings."""
        return [item.name for item in dataclasses.fields(cls)]  # type: ignore[arg-type]

    def replace(self, **changes: Any) -> Self:
        """A copy with some settings changed, checked again.

        Raises:
            InputError: an unknown setting, one out of range, or settings that do not go together.
        """
        self.require_known(changes)
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    @classmethod
    def require_known(cls, values: Mapping[str, Any]) -> None:
        """Refuse names that are no settings of this component."""
        unknown = sorted(set(values) - set(cls.names()))
        if unknown:
            raise InputError(
                f"Unknown setting '{cls.component}.{unknown[0]}'; known settings of {cls.component} are "
                f"{', '.join(sorted(cls.names()))}."
            )


def _widths(value: Any) -> bool:
    """Whether ``value`` is a list of whole numbers from 1 on."""
    return isinstance(value, (list, tuple)) and all(isinstance(v, Integral) and int(v) >= 1 for v in value)


def check_kind(name: str, value: Any, kind: str) -> None:
    """Refuse a value of another kind than the field's: settings come from files too, where 1e-3 may be text."""
    if kind.endswith(" | None") and value is None:
        return
    kind = kind.removesuffix(" | None")
    number = not isinstance(value, bool) and isinstance(value, Real)
    if kind == "int" and not (number and isinstance(value, Integral)):
        raise InputError(f"{stated(name, value)} must be a whole number.")
    if kind == "float" and not number:
        raise InputError(f"{stated(name, value)} must be a number; in YAML, write 1.0e-3 for 0.001.")
    if kind == "bool" and not isinstance(value, bool):
        raise InputError(f"{stated(name, value)} must be true or false.")
    if kind == "str" and not isinstance(value, str):
        raise InputError(f"{stated(name, value)} must be a text.")
    if kind == "tuple[int, ...]" and not (_widths(value) and value):
        raise InputError(f"{stated(name, value)} must be a list of whole numbers from 1 on, for example [64, 64].")
    if kind.startswith("Mapping") and not (isinstance(value, Mapping) and all(isinstance(key, str) for key in value)):
        raise InputError(f"{stated(name, value)} must be a mapping from names to values.")


def check_choice(name: str, value: Any, allowed: tuple[str, ...] | None) -> None:
    """Refuse a word that is not one of those allowed."""
    if allowed is not None and value not in allowed:
        raise InputError(f"{stated(name, value)} is not known; choose one of {', '.join(allowed)}.")


def check_minimum(name: str, value: Any, low: float | None) -> None:
    """Refuse a number below the smallest one allowed; not-a-number is below every number."""
    if value is not None and low is not None and not value >= low:
        raise InputError(f"{stated(name, value)} is too small; it must be at least {low:g}.")
