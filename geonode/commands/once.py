"""What all commands have in common: an option of one value given twice is refused by name, where parsers would let the
last one win, and so is an empty value; messages name options while the command runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperOption

from geonode.commands.options import command_line
from geonode.errors import InputError
from geonode_runtime.wording import on_command_line


class OnceCommand(TyperCommand):
    """A command whose options are given once, but for those that collect values and flags that only repeat."""

    def make_parser(self, ctx: Any) -> Any:
        """The parser of this command's arguments, which says which options it met, and how often."""
        parser = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_once(args: list[str]) -> Any:
            found = parse(args)
            _require_once(found[2])
            _require_values(found[0], self.params)
            return found

        parser.parse_args = parse_once
        return parser

    def invoke(self, ctx: Any) -> Any:
        """The command, with its own options in what it says."""
        with on_command_line(command_line(ctx)):
            return super().invoke(ctx)


def given_once(app: typer.Typer) -> None:
    """Make the commands that ``app`` and its groups have so far such commands."""
    for command in app.registered_commands:
        command.cls = OnceCommand
    for group in app.registered_groups:
        if group.typer_instance is not None:
            given_once(group.typer_instance)


def _require_once(met: Sequence[Any]) -> None:
    """Refuse the first option among ``met``, one entry for each time it was given, that came twice.

    Raises:
        InputError: an option of one value, or both of ``--folds`` and ``--no-folds``.
    """
    options = [one for one in met if isinstance(one, TyperOption) and not one.multiple and not one.count]
    for option, times in Counter(options).items():
        if times > 1 and (not option.is_flag or option.secondary_opts):
            name = "/".join([option.opts[0], *option.secondary_opts[:1]])
            often = "twice" if times == 2 else f"{times} times"
            raise InputError(f"{name} is given {often}, and takes one value; give it once.")


def _require_values(given: Mapping[Any, Any], params: Sequence[Any]) -> None:
    """Refuse an empty value, as a variable of the shell leaves that was never set: an empty name of a file would be
    read as that of the folder one is in.

    Args:
        given: what was given, by the name of its parameter. params: those of the command.

    Raises:
        InputError: naming the option or the argument.
    """
    for param in params:
        value = given.get(param.name)
        if "" in (value if isinstance(value, list | tuple) else [value]):
            if param.param_type_name == "option":
                raise InputError(f"{param.opts[0]} is given an empty value; give one, or leave the option out.")
            called = str(param.metavar or param.name).upper()
            raise InputError(f"{called} is an empty name; give one.")
