"""The kinds of files that commands write, and how each is recognised among those that are there already."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from geonode.bundle import is_bundle
from geonode.errors import InputError
from geonode.report.style import FORMATS
from geonode_runtime.outputs import ANSWER, PREDICTION, Output, check_output, check_writable, content, refuse_inputs

__all__ = [
    "ANSWER",
    "BUNDLE",
    "CARD",
    "DRAWING",
    "FIGURE",
    "ONNX",
    "PACKAGE",
    "PREDICTION",
    "RESULTS",
    "SCANS",
    "TABLE",
    "WEIGHTS",
    "Force",
    "check_folder",
    "check_output",
    "check_writable",
    "listed_files",
]

Force = Annotated[bool, typer.Option("--force", help="Replace an output of geonode that is there already.")]


def _is_weights(path: Path) -> bool:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        head = file.read(min(length, 2**24))
    return b'"size"' in head and b"expansion" in head


def _is_card(path: Path) -> bool:
    try:
        found = json.loads(content(path))
    except ValueError:
        return False
    return isinstance(found, dict) and {"name", "size", "what"} <= found.keys()


def _is_marked(path: Path) -> bool:
    return b"geonode" in content(path)


def _is_scans(path: Path) -> bool:
    import h5py

    try:
        with h5py.File(path) as file:
            return "settings" in file.attrs and "format" in json.loads(str(file.attrs["settings"]))
    except (OSError, ValueError):
        return False


def _is_sweep_table(path: Path) -> bool:
    return content(path).split(b"\n", 1)[0].split(b",")[:1] == [b"job"]


def _is_results(path: Path) -> bool:
    if content(path).startswith(b"name,verdict,"):
        return True
    try:
        with zipfile.ZipFile(path) as book:
            return b"geonode" in book.read("docProps/core.xml")
    except (zipfile.BadZipFile, KeyError, OSError):
        return False


BUNDLE = Output("a bundle", (".bundle", ""), is_bundle)
WEIGHTS = Output("a file of weights", (".safetensors",), _is_weights)
CARD = Output("a model card", (".json",), _is_card)
FIGURE = Output("a figure", FORMATS, _is_marked)
DRAWING = Output("a drawing of answers", (*FORMATS, ".html", ".htm", ""), _is_marked)
RESULTS = Output("a table of results", (".csv", ".xlsx"), _is_results)
ONNX = Output("an ONNX model", (".onnx",), _is_marked)
PACKAGE = Output("a torch.export package", (".pt2",), _is_marked)
SCANS = Output("a file of scans", (".h5", ".hdf5"), _is_scans)
TABLE = Output("a table of a sweep's results", (".csv",), _is_sweep_table)


def check_folder(
    folder: Path, member: str, kind: Output, inputs: Iterable[Path | None] = (), *, force: bool = False
) -> None:
    """Refuse to write many files into a folder that holds something else.

    Args:
        folder: to be written into; it need not be there.
        member: a file that every such folder has, of this ``kind``.
        inputs: files that the command reads.
        force: a folder of this kind may be written into again.

    Raises:
        InputError: a file, a folder of other things, or one of this kind and ``force`` is not given.
    """
    refuse_inputs(folder, inputs)
    if str(folder) == "-":
        raise InputError("many files are written and do not go to the screen; give a folder in place of -.")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder to write into.")
    if not folder.is_dir() or not os.listdir(folder):
        return
    mark = folder / member
    if not mark.is_file() or not kind.is_ours(mark):
        raise InputError(
            f"{folder} holds files that geonode did not write there; give a new or an empty folder to write into."
        )
    if not force:
        raise InputError(f"{folder} holds what was written before; give another folder, or --force to replace it.")


def listed_files(paths: Iterable[Path | None]) -> list[Path]:
    """Files that a command reads: those that are given, and those that a list of files names."""
    from geonode.data.readers.formats.manifest import files_listed

    found = [path for path in paths if path is not None]
    return [*found, *(listed for path in found if path.is_file() for listed in files_listed(path))]
