"""The options that say how files of standards are to be read: declared once, for every command that reads them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

if TYPE_CHECKING:
    from geonode.data import SpectralDataset

Decimal = Annotated[
    str | None,
    typer.Option(metavar="MARK", help="Decimal mark, . or , where 1,050 may be read in two ways; the other groups."),
]
Sheet = Annotated[str | None, typer.Option(help="Of a workbook with several sheets, the name or number of one.")]


@dataclass(frozen=True)
class Reading:
    """What those options said; each field is an option of its own, with the annotation that it has here."""

    select: Annotated[
        str | None,
        typer.Option("--select", help="Keep the samples whose name contains this, where a file holds several series."),
    ] = None
    unit: Annotated[
        str | None, typer.Option("--unit", help="Unit of concentration, where the file does not say it.")
    ] = None
    concentrations: Annotated[
        Path | None, typer.Option("--concentrations", help="Table of concentrations, where the files have none.")
    ] = None
    column: Annotated[
        list[str] | None, typer.Option("--column", help="Column of that table; once more for each further analyte.")
    ] = None
    decimal: Decimal = None
    sheet: Sheet = None

    def options(self) -> dict[str, Any]:
        """All but the unit, as readers take them."""
        said = {name: getattr(self, name) for name in ("select", "concentrations", "decimal", "sheet")}
        return {**said, "column": self.column or None}

    def standards(self, files: Sequence[Path]) -> SpectralDataset:
        """The standards of these files.

        Raises:
            InputError: as `geonode.data.load_standards`.
        """
        from geonode.data import load_standards

        return load_standards(list(files), concentration_unit=self.unit, **self.options())

    def only(self, select: str | None) -> Reading:
        """The same of the samples whose name contains ``select``."""
        return replace(self, select=select)


class _Command(Protocol):
    __name__: str

    def __call__(self, *args: Any, **kwargs: Any) -> None: ...


def reads_standards(*, without: Sequence[str] = ()) -> Callable[[_Command], _Command]:
    """A command with an argument ``reading: Reading`` gets these options in its place.

    Args:
        without: options that the command has no use for, or has itself in another meaning.
    """
    names = [field.name for field in fields(Reading) if field.name not in without]

    def decorated(command: _Command) -> _Command:
        @functools.wraps(command)
        def run(*args: Any, **options: Any) -> None:
            given = {name: options.pop(name) for name in names}
            command(*args, reading=Reading(**given), **options)

        wanted = inspect.signature(Reading, eval_str=True).parameters
        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            parameters += [wanted[name] for name in names] if parameter.name == "reading" else [parameter]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer asks for
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorated
