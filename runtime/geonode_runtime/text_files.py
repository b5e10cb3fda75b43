"""Spectra from plain text: two columns, wavelength and signal. Anything else is refused, not guessed at."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from geonode_runtime.errors import InputError
from geonode_runtime.replicates import ask_each

_FEWEST = 3
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")


def read_spectrum(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Wavelengths ``[V]`` ascending and values ``[V]`` of one file.

    Columns are divided by commas, semicolons, tabs or spaces (with semicolons or tabs the decimal sign may be a comma).
    Empty lines and lines that begin with # are skipped, and one line of headings may come first. The text is UTF-8 or
    UTF-16 with its mark, else Latin-1, as instruments write µ and λ.

    Raises:
        InputError: naming the file and the row.
    """
    try:
        lines = _text(path.read_bytes()).splitlines()
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; give a text file of wavelength and absorbance.") from None
    except (UnicodeError, IsADirectoryError):
        raise InputError(
            f"{path} is no text file; give two columns, wavelength and absorbance, or read it with geonode."
        ) from None
    rows = [(n, line) for n, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith("#")]
    if rows and _numbers(rows[0][1]) is None:
        rows = rows[1:]  # headings
    if len(rows) < _FEWEST:
        raise InputError(f"{path} has {len(rows)} rows of numbers; give two columns, wavelength and absorbance.")
    _require_one_reading(rows, path)
    found = []
    for n, line in rows:
        numbers = _numbers(line)
        if numbers is None or len(numbers) != 2:
            held = "no numbers" if numbers is None else f"{len(numbers)} columns"
            raise InputError(
                f"{path}, row {n}: {held} where two are meant, wavelength and absorbance; give one spectrum per file."
            )
        found.append(numbers)
    wavelengths, values = np.array(found, dtype=np.float64).T
    if not np.isfinite(wavelengths).all():
        raise InputError(f"{path}: a wavelength is no finite number; give one for every row.")
    order = np.argsort(wavelengths, kind="stable")
    wavelengths, values = wavelengths[order], values[order]
    if (np.diff(wavelengths) == 0.0).any():
        twice = wavelengths[:-1][np.diff(wavelengths) == 0.0][0]
        raise InputError(f"{path}: the wavelength {twice:g} is given twice; give one value for each.")
    return wavelengths, values


def read_replicates(paths: list[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Wavelengths ``[V]`` and spectra ``[k, V]`` of k files on the same wavelengths.

    Raises:
        InputError: as `read_spectrum`; other wavelengths, or the same spectrum twice.
    """
    spectra = []
    grid, first = None, paths[0]
    for path in paths:
        wavelengths, values = read_spectrum(path)
        if grid is None:
            grid = wavelengths
        elif len(grid) != len(wavelengths) or np.abs(grid - wavelengths).max() > 1e-6 * np.ptp(grid):
            raise InputError(f"{path} has other wavelengths than {first}, so they are no replicates; {ask_each()}.")
        if any(np.array_equal(values, other) for other in spectra):
            raise InputError(
                f"{path} is identical to a file before it, so it is a copy and no replicate; leave it out."
            )
        spectra.append(values)
    if grid is None:
        raise InputError("give at least one file with a spectrum.")
    return grid, np.stack(spectra)


def _require_one_reading(rows: list[tuple[int, str]], path: Path) -> None:
    """Refuse commas that may part thousands as well as decimals: three digits behind each, and no mark elsewhere."""
    cells = [re.split(r"[;\t]", line.strip().rstrip(";\t")) for _, line in rows]
    marked = [cell.strip() for row in cells if len(row) > 1 for cell in row if "," in cell]
    others = [cell.strip() for row in cells for cell in row if "," not in cell]
    if not marked or not all(_THOUSANDS.fullmatch(cell) for cell in marked):
        return
    if others and all(re.fullmatch(r"[+-]?\d+", cell) for cell in others):
        one = marked[0]
        raise InputError(
            f"{path}: '{one}' may be {one.replace(',', '')} or {one.replace(',', '.')}; write every number with its "
            "decimals, or without marks between thousands."
        )


def _text(data: bytes) -> str:
    """Raises UnicodeError where this is no text."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16")
    if b"\0" in data:
        raise UnicodeError("a NUL byte")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _numbers(line: str) -> list[float] | None:
    """The numbers of a row; None where any part of it is none."""
    line = line.strip()
    for divider in (";", "\t"):
        if divider in line:
            parts = [part.strip() for part in line.rstrip(divider).split(divider)]
            if "." not in line:
                parts = [part.replace(",", ".") for part in parts]
            break
    else:
        parts = [p.strip() for p in line.rstrip(",").split(",")] if "," in line else re.split(r"\s+", line)
    try:
        return [float(part) for part in parts]
    except ValueError:
        return None
