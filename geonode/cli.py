"""The `geonode` command: one sentence and exit code 2 for anything the user can put right."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup

from geonode.commands.once import given_once
from geonode.errors import GeonodeError, Interrupted


@contextlib.contextmanager
def warnings_as_sentences() -> Iterator[None]:
    """Within it the library's own warnings are a line each, without the place in the source that a program needs."""
    usual = warnings.formatwarning

    def line(message: Any, category: type[Warning], *place: Any, **more: Any) -> str:
        return f"geonode: {message}\n" if category is UserWarning else usual(message, category, *place, **more)

    warnings.formatwarning = line
    try:
        yield
    finally:
        warnings.formatwarning = usual


class _Program(TyperGroup):
    """Errors raised on purpose become one sentence on stderr and exit code 2, or 143 where SIGTERM stopped a training;
    never a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with warnings_as_sentences():
                return super().invoke(ctx)
        except GeonodeError as error:
            typer.echo(f"geonode: {error}", err=True)
            # 128 + SIGTERM: schedulers see that it is not done
            raise typer.Exit(143 if isinstance(error, Interrupted) else 2) from None
        except OSError as error:  # a folder that cannot be made, a disk that is full, a file that may not be read
            if error.filename is None:
                raise
            typer.echo(
                f"geonode: {error.filename} cannot be made or used ({error.strerror}); choose another.", err=True
            )
            raise typer.Exit(2) from None


app = typer.Typer(
    cls=_Program,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Spectra at concentrations nobody measured, and concentrations from spectra, by geodesic-coupled neural ODEs.",
)


@app.callback(invoke_without_command=True)
def _options(
    ctx: typer.Context, version: bool = typer.Option(False, "--version", help="Show the version and exit.")
) -> None:
    if version:
        from geonode import __version__

        typer.echo(f"geonode {__version__}")
        raise typer.Exit


def _register() -> None:
    from geonode.commands import (
        adapt,
        corpus,
        demo,
        doctor,
        evaluate,
        export,
        fit,
        inspect,
        plan,
        predict,
        pretrain,
        quantify,
        report,
        simulate,
        suggest,
        sweep,
    )

    for command in (
        fit,
        predict,
        quantify,
        report,
        suggest,
        evaluate,
        inspect,
        simulate,
        corpus,
        pretrain,
        adapt,
        demo,
        doctor,
        sweep,
        plan,
        export,
    ):
        command.register(app)
    given_once(app)


_register()


def main() -> None:
    """Entry point of the console script."""
    from geonode.commands.console import say_everything

    say_everything()
    # operations that Apple's GPUs lack run on the CPU, one by one, instead of failing
    os.environ.setdefault("PYTORCH_ENABLE_MPS_FALLBACK", "1")
    os.environ.setdefault("KINETO_LOG_LEVEL", "5")  # torch's profiler, which measures memory, is chatty
    app()


if __name__ == "__main__":
    main()
