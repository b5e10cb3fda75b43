"""The table of docs/readers.md: what is read from every raw file, written from what the readers say.

python -m tests.data.readers_table        # rewrites the table between its marks
"""

from __future__ import annotations

import sys
from pathlib import Path

from geonode.data import inspect_file
from geonode.data.checks import format_level
from geonode.errors import ReaderError
from tests.conftest import ROOT, shared_data_path

DOCUMENT = ROOT / "docs" / "readers.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"

# How each file is read where it does not hold its concentrations itself.
_NOTES = {
    "fp_h148g/h148g-spettroC.csv": {"concentrations": "h148g-spettroC-nota.csv", "column": ["pH", "Cl"]},
    "rhodamine6g_meoh/Rhodamine": {"concentrations": "concentrations.csv"},
}


def row(root: Path, path: Path) -> str:
    """One row of the table."""
    name = str(path.relative_to(root))
    keywords = next((dict(k) for start, k in _NOTES.items() if name.startswith(start)), {})
    if "concentrations" in keywords:
        keywords["concentrations"] = path.parent / keywords["concentrations"]
    try:
        found = inspect_file(path, **keywords)
    except ReaderError as error:
        reason = str(error).replace(f"{path}: ", "").split(" (known formats")[0].split("; write a CSV")[0]
        return f"| `{name}` | refused | | | {reason} |"
    low, high = found.points
    points = f"{low}" if low == high else f"{low}–{high}"
    levels = sorted({point for _, point, _ in found.samples if point is not None})
    unknown = sum(point is None for _, point, _ in found.samples)
    listed = " ".join(format_level(level) for level in levels[:6]) + (f" … ({len(levels)})" if len(levels) > 6 else "")
    of = f" {' × '.join(found.analytes)}" if found.analytes else ""
    unit = f" {found.concentration_unit}" if found.concentration_unit else ""
    concentration = f"{listed}{unit}{of}, from {found.concentrations_from}" if levels else "none"
    if levels and unknown:
        concentration += f"; {unknown} unknown"
    span = f"{found.wavelengths[0]:g}–{found.wavelengths[1]:g} {found.wavelength_unit}"
    signal = found.signal + (f" [{found.signal_unit}]" if found.signal_unit else "")
    return (
        f"| `{name}` | {found.format} | {found.spectra} × {points}, {span}, {signal} | {concentration} "
        f"| {'; '.join(found.notes) or 'nothing'} |"
    )


def make(root: Path) -> str:
    """The whole table."""
    lines = [
        "| file | format | spectra × wavelengths, range, signal | concentrations | dropped, masked, assumed |",
        "|---|---|---|---|---|",
    ]
    for path in sorted(root.glob("*/*")):
        if not path.name.startswith(("SOURCE", "LICENSE")):
            lines.append(row(root, path))
    return "\n".join(lines)


def split(document: str) -> tuple[str, str, str]:
    """(what is before the table, the table, what is after it)."""
    before, _, rest = document.partition(BEGIN + "\n")
    found, _, after = rest.partition("\n" + END)
    return before, found, after


def main() -> int:
    root = shared_data_path()
    if root is None:
        print("no real spectra here", file=sys.stderr)
        return 1
    before, _, after = split(DOCUMENT.read_text(encoding="utf-8"))
    temporary = DOCUMENT.with_suffix(".part")
    temporary.write_text(f"{before}{BEGIN}\n{make(root / 'raw')}\n{END}{after}", encoding="utf-8")
    temporary.replace(DOCUMENT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
