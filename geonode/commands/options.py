"""What a command's options are called, for messages that are read where it runs."""

from __future__ import annotations

from typing import Any

from geonode_runtime.wording import CommandLine


def command_line(ctx: Any) -> CommandLine:
    """The options of the command of ``ctx``, and those of ``geonode fit``."""
    program = ctx.find_root().command
    fit = getattr(program, "commands", {}).get("fit")
    return CommandLine(_named(ctx.command), {} if fit is None else _named(fit))


def _named(command: Any) -> dict[str, str]:
    """Names of arguments → options: as the option is called, and as the command's function calls it."""
    found: dict[str, str] = {}
    for one in command.params:
        if one.param_type_name != "option":
            continue
        for option in one.opts:
            found.setdefault(option.lstrip("-").replace("-", "_"), option)
        found.setdefault(one.name, one.opts[0])
    return found
