"""Two analytes on the command line: what `geonode fit` and `geonode quantify` do where standards vary in two."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from geonode.commands.common import remarkable, say, write_text
from geonode.errors import InputError
from geonode.schema import SCHEMAS
from geonode_runtime.refused import Refused, answered, not_answered

if TYPE_CHECKING:
    from geonode.analytes import PlaneCalibration
    from geonode.data import SpectralDataset


FIT = ("select", "unit", "concentrations", "column", "decimal", "sheet", "out", "quiet", "force")
QUANTIFY = (
    "level", "each", "average", "select", "decimal", "sheet", "saturation", "json_path", "plot", "quiet", "force"
)  # fmt: skip
"""What the two commands honour of their options where two analytes vary, by the names of their parameters."""


def refuse_given(context: typer.Context, honoured: Sequence[str]) -> None:
    """Refuse options that were given on the command line and have no meaning for two analytes.

    Args:
        context: of the command that runs. honoured: its parameters that have one.

    Raises:
        InputError: naming the first other option that was given.
    """
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        given = source is not None and source.name == "COMMANDLINE"
        if given and parameter.param_type_name == "option" and name not in honoured:
            raise InputError(f"{parameter.opts[0]} is for one analyte, and these standards vary in two; leave it out.")


def fit_two(context: typer.Context, dataset: SpectralDataset, out: Path, quiet: bool) -> None:
    """Fit standards of two analytes, write the bundle and say what it can be asked for; ``context``: of `geonode fit`.

    Raises:
        InputError: more than two analytes, an option that is for one, and as `geonode.analytes.fit_plane`.
    """
    from geonode.analytes import fit_plane, save_plane

    refuse_given(context, FIT)
    if dataset.dim > 2:
        raise InputError(
            f"{dataset.dim} analytes ({', '.join(dataset.analytes)}): a calibration is for one or two; name them with "
            "--column, once each."
        )
    made = fit_plane(dataset)
    save_plane(made, out)
    if quiet:
        return
    typer.echo(f"{len(dataset)} spectra × {dataset.shape[1]} wavelengths, {len(made.gp.levels)} levels of two analytes")
    for note in remarkable(dataset.notes):
        typer.echo(f"note: {note}")
    for line in _ranges(made):
        typer.echo(line)
    typer.echo(f"bundle written to {out}")


def _ranges(made: PlaneCalibration) -> list[str]:
    lines = []
    for d, (name, unit) in enumerate(zip(made.analytes, made.units, strict=True)):
        values = sorted(set(made.gp.levels[:, d].tolist()))
        lines.append(f"{name}: {' '.join(f'{value:g}' for value in values)}{f' {unit}' if unit else ''}")
    lines.append(_learned(made))
    return lines


def _learned(made: PlaneCalibration) -> str:
    if not made.left_out:
        return f"nothing will be quantified: {made.declines}"
    return f"regions are set by {made.left_out} standards left out one by one within the others"


def quantify_two(
    context: typer.Context,
    bundle: Path,
    unknowns: Sequence[Path],
    *,
    reading: Mapping[str, Any],
    level: float,
    saturation: float | None,
    json_path: Path | None,
    plot: Path | None,
    quiet: bool,
) -> None:
    """Answer for every unknown, print the answers, write what was asked for.

    Args:
        context: of `geonode quantify`. bundle, unknowns: files. reading: arguments of `read_unknowns` by name.
        level, saturation: as `PlaneCalibration.quantify` takes them.
        json_path, plot: files to write, or None. quiet: print nothing.

    Raises:
        InputError: an option that is for one analyte, unknowns that do not suit the standards, several unknowns for one
            figure.
    """
    refuse_given(context, QUANTIFY)
    from geonode.analytes import load_plane
    from geonode.calibration.unknown_files import read_unknowns
    from geonode.data.readers.concentrations import listing

    made = load_plane(bundle)
    found = read_unknowns(list(unknowns), made.dataset, **reading)
    if plot is not None and len(found) > 1:
        raise InputError(f"--plot draws the plane of one unknown, and there are {len(found)}; ask for one at a time.")
    entries, answers = [], []
    for unknown in found:
        asked = lambda one: made.quantify(one, level=level, saturation=saturation)  # noqa: E731
        answer = answered(unknown, asked, alone=len(found) == 1)
        answers.append(answer)
        if isinstance(unknown, Refused) or isinstance(answer, Refused):
            entries.append(answer.to_dict())
            say("\n".join(answer.lines()), quiet)
            continue
        say(f"{unknown.name}: {answer.sentence()}", quiet)
        if len(unknown.spectra_names) > 1:
            say(f"  average of {len(unknown.spectra_names)} spectra: {listing(unknown.spectra_names)}", quiet)
        for note in remarkable(answer.notes):
            say(f"  note: {note}", quiet)
        entries.append({"name": unknown.name, "spectra": list(unknown.spectra_names), **answer.to_dict()})
        if plot is not None:
            say(f"drawn in {answer.plot(plot)}", quiet)
    say(_learned(made), quiet)
    if json_path is not None:
        data = {
            "schema_version": SCHEMAS["quantify"],
            "bundle": str(bundle),
            "analytes": list(made.analytes),
            "units": list(made.units),
            "unknowns": entries,
        }
        write_text(json_path, json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    if any(isinstance(one, Refused) for one in answers):
        raise InputError(not_answered(answers, said=not quiet))
