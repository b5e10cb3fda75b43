"""How a message names what its reader can give: an argument in Python, an option on a command line.

The same refusal is read by someone who wrote ``predictor="gp"`` and by someone who wrote ``--predictor gp``. A command
says which options it has for the time it runs (`on_command_line`); a message asks with `argument` for what to give,
with `stated` for what was given, or with `either` where the two ways have no name in common.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class CommandLine:
    """What may be said of a command that runs.

    Attributes:
        options: names of arguments → the options of this command. fit: the same of ``geonode fit``, which another
            command may have to send its reader back to.
    """

    options: Mapping[str, str]
    fit: Mapping[str, str] = field(default_factory=dict)


_BARE = object()
"""No value: the argument is named alone."""
_RUNNING: list[CommandLine] = []  # one for the process: threads of a command raise as the command does


@contextmanager
def on_command_line(line: CommandLine) -> Iterator[None]:
    """Within it messages name options, not arguments."""
    _RUNNING.append(line)
    try:
        yield
    finally:
        _RUNNING.pop()


def either(option: str, python: str) -> str:
    """``option`` where a command runs, ``python`` elsewhere."""
    return option if _RUNNING else python


def argument(name: str, value: object = _BARE, *, literal: bool = False) -> str:
    """An argument, with a value where one is given: ``predictor='gp'``, or ``--predictor gp`` in a command.

    Of a command that has no such option it is that of ``geonode fit``, or else a setting as its file has it:
    ``"solver": "rk4"``.

    Args:
        name: of the argument, or of a setting with its place, ``training.epochs``.
        value: what it is, or should be.
        literal: the value is a word for one, such as ``NOTE``.
    """
    if not _RUNNING:
        return name if value is _BARE else f"{name}={value if literal else repr(value)}"
    line, own = _RUNNING[-1], name.rpartition(".")[2]
    if own in line.options:
        return _as_option(line.options[own], value)
    if own in line.fit and "settings" not in line.options:
        return f"geonode fit {_as_option(line.fit[own], value)}"
    if value is _BARE:
        return name
    return f'"{name}": {value if literal else json.dumps(value, ensure_ascii=False, default=str)}'


def stated(name: str, value: object) -> str:
    """A setting that somebody gave: as the option of the command that runs, or else ``epochs='five'``, as every file of
    settings (JSON, YAML) and Python may have it."""
    own = name.rpartition(".")[2]
    if _RUNNING and own in _RUNNING[-1].options:
        return _as_option(_RUNNING[-1].options[own], value)
    return f"{name}={value!r}"


def setting(path: str) -> str:
    """A setting by its place, ``training.epochs``; where the command that runs has an option for it, that."""
    name = path.rpartition(".")[2]
    return _RUNNING[-1].options[name] if _RUNNING and name in _RUNNING[-1].options else path


def _as_option(option: str, value: object) -> str:
    if value is _BARE or value is True:
        return option
    if value is False:
        return f"no {option}"
    text = str(value)
    # a shell takes a comma or a column's name with a blank as one word only in quotes; µ and ° need none
    return f"{option} {text if not set(text) & set(' ()[]/%&;|<>*?$`!') else shlex.quote(text)}"
