"""An unknown among several that has no answer: it costs no other its own, and its place says why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from geonode_runtime.errors import InputError

VERDICT = "refused"
"""What stands where answers have their verdict."""


@dataclass(frozen=True, repr=False)
class Refused:
    """Stands in the place of one of several unknowns that cannot be read, or cannot be answered.

    Attributes:
        name: of the unknown; of a file that cannot be read its own. reason: the sentence that names it and says what to
            do. spectra_names: of those that it has; none where the file cannot be read.
    """

    name: str
    reason: str
    spectra_names: tuple[str, ...] = ()

    verdict = VERDICT
    estimate = None
    matches = False
    notes = ()

    @property
    def why(self) -> tuple[str, ...]:
        """The reason, as answers have theirs."""
        return (self.reason,)

    def sentence(self, unit: str = "") -> str:
        """In the place of an answer's; there is no concentration that could have a ``unit``."""
        return f"no answer: {self.reason}"

    def lines(self) -> list[str]:
        """What commands print of it: the reason alone, which names it."""
        return [self.sentence()]

    def to_dict(self) -> dict[str, Any]:
        """Its entry in the JSON of commands, where each unknown has one."""
        return {"name": self.name, "spectra": list(self.spectra_names), "refused": self.reason}

    def html(self) -> str:
        """Its part of a page, where each unknown has one."""
        return f'<section class="answer"><p><strong>{escape(self.sentence())}</strong></p></section>'

    def __repr__(self) -> str:
        return f"<{self.sentence()}>"

    def _repr_html_(self) -> str:
        return self.html()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(f"{self.name} has no {name}, for it was refused: {self.reason}")


def answered(unknown: Any, answer: Callable[[Any], Any], *, alone: bool) -> Any:
    """What ``answer`` says of one unknown, or `Refused` where it refuses it.

    Args:
        unknown: with ``name`` and ``spectra_names``, or a `Refused`, which stays one.
        alone: no other is asked about, so that a refusal is the caller's.

    Raises:
        InputError: the only unknown is refused.
    """
    if isinstance(unknown, Refused):
        return unknown
    try:
        return answer(unknown)
    except InputError as error:
        if alone:
            raise
        return Refused(unknown.name, str(error), tuple(unknown.spectra_names))


def require_one_taken(found: Sequence[Any]) -> None:
    """Refuse a list of which nothing is left: what is wrong with all is wrong with what was asked.

    Raises:
        InputError: every one is a `Refused`; with the reason where they share one, else the first of them.
    """
    refused = [one for one in found if isinstance(one, Refused)]
    if not found or len(refused) < len(found):
        return
    reasons = list(dict.fromkeys(one.reason for one in refused))
    if len(reasons) == 1:
        raise InputError(reasons[0])
    raise InputError(f"none of the {len(refused)} unknowns can be taken; the first: {reasons[0]}")


def not_answered(found: Sequence[Any], *, said: bool) -> str:
    """The last line of a command: how many of all have no answer, and which.

    Args:
        found: answers and `Refused`, at least one of these.
        said: whether reasons were printed in the places of the answers; else the first is given here.
    """
    refused = [one for one in found if isinstance(one, Refused)]
    count = len(refused)
    if said:
        names = ", ".join(one.name for one in refused[:_NAMED]) + (f" and {count - _NAMED} more" * (count > _NAMED))
        why = f"{names}; why is said in the place of {'its answer' if count == 1 else 'each answer'}."
    else:
        why = refused[0].reason if count == 1 else f"the first, {refused[0].reason}"
    if count == len(found):
        return f"none of the {count} unknowns was answered: {why}"
    return f"{count} of {len(found)} unknowns {'was' if count == 1 else 'were'} not answered: {why}"


_NAMED = 6
