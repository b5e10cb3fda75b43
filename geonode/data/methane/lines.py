"""Spectral lines: HITRAN files, and a short table of the strong lines of methane near 1653.7 nm."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from geonode.data.checks import Floats
from geonode.errors import ReaderError

# One record of HITRAN's .par format (L. S. Rothman et al., JQSRT 96 (2005) 139, table 1): column and width.
_FIELDS = {
    "molecule": (0, 2),
    "isotopologue": (2, 1),
    "position": (3, 12),
    "strength": (15, 10),
    "gamma_air": (35, 5),
    "gamma_self": (40, 5),
    "lower_energy": (45, 10),
    "n_air": (55, 4),
    "delta_air": (59, 8),
}
_RECORD = 160
MOST_LINES = 200_000
# Mass in g/mol and share of isotopologues 1 … 4 in HITRAN's order: 12CH4, 13CH4, 12CH3D, 13CH3D.
MASSES = {1: 16.0313, 2: 17.034655, 3: 17.037475, 4: 18.04083}


@dataclass(frozen=True)
class LineList:
    """Lines of methane ``[K]``, in HITRAN's units.

    Attributes:
        position: cm⁻¹, in vacuum. strength: cm⁻¹/(molecule cm⁻²) at 296 K, weighted by natural abundance.
        gamma_air, gamma_self: half widths at half maximum, cm⁻¹/atm at 296 K. n_air: their exponent of temperature.
        delta_air: pressure shift, cm⁻¹/atm. lower_energy: cm⁻¹. mass: g/mol of the isotopologue.
        source: where they come from, to cite.
    """

    position: Floats
    strength: Floats
    gamma_air: Floats
    gamma_self: Floats
    n_air: Floats
    delta_air: Floats
    lower_energy: Floats
    mass: Floats
    source: str

    def __len__(self) -> int:
        return len(self.position)

    def between(self, low: float, high: float) -> LineList:
        """Lines from ``low`` to ``high`` cm⁻¹."""
        keep = (self.position >= low) & (self.position <= high)
        arrays = {f.name: getattr(self, f.name)[keep] for f in fields(self) if f.name != "source"}
        return LineList(**arrays, source=self.source)

    def fingerprint(self) -> str:
        """A digest of all values, by which a simulated set knows the lines it was made with."""
        digest = hashlib.sha256()
        for f in fields(self):
            value = getattr(self, f.name)
            digest.update(value.encode() if isinstance(value, str) else np.ascontiguousarray(value).tobytes())
        return digest.hexdigest()[:16]


def strong_lines() -> LineList:
    """The triplet R(3) of 2ν₃ of ¹²CH₄ at 6046.96 cm⁻¹ (1653.72 nm), nominal values.

    Position and strength of the strongest component, A₂, are those of HITRAN2020 (I. E. Gordon et al., JQSRT 277 (2022)
    107949). The two F components, 0.011 and 0.022 cm⁻¹ below it, have 3/5 of its strength, the ratio of nuclear spin
    weights. Widths and exponent are what HITRAN gives for lines from J″ = 3, and the shift follows its rule of
    −2·10⁻⁶ of the position per atm. Good for simulation; to evaluate measurements, give a HITRAN file.
    """
    position = np.array([6046.9420, 6046.9527, 6046.9636])
    strength = 1.43e-21 * np.array([0.6, 0.6, 1.0])
    same = np.ones(3)
    return LineList(
        position,
        strength,
        gamma_air=0.065 * same,
        gamma_self=0.079 * same,
        n_air=0.73 * same,
        delta_air=-2e-6 * position,
        lower_energy=np.array([62.8757, 62.8768, 62.8782]),
        mass=MASSES[1] * same,
        source="2ν3 R(3) of 12CH4, nominal values after HITRAN2020 (Gordon et al., JQSRT 277 (2022) 107949)",
    )


def read_hitran(path: str | os.PathLike[str], low: float = 0.0, high: float = float("inf")) -> LineList:
    """Lines of methane from a file of HITRAN's 160-character records (``.par``, or HAPI's ``.data``).

    Args:
        low, high: keep lines from ``low`` to ``high`` cm⁻¹.

    Raises:
        ReaderError: missing, no such records, a field that is no number, no line of methane in the range.
    """
    path = Path(path)
    rows: dict[str, list[float]] = {name: [] for name in _FIELDS}
    try:
        with path.open(encoding="ascii", errors="replace") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                if len(line.rstrip("\r\n")) < _RECORD - 1:
                    raise ReaderError(
                        f"{path}: line {number} has {len(line.rstrip())} characters and a HITRAN record 160; give a "
                        ".par file of HITRAN or a .data file of HAPI."
                    )
                record = _parse(line, number, path)
                if record["molecule"] == 6 and low <= record["position"] <= high:
                    for name, value in record.items():
                        rows[name].append(value)
                    if len(rows["position"]) > MOST_LINES:
                        raise ReaderError(f"{path}: more than {MOST_LINES} lines of methane; choose a narrower range.")
    except OSError as error:
        raise ReaderError(f"{path}: cannot be read ({error.strerror}).") from None
    if not rows["position"]:
        raise ReaderError(
            f"{path}: no line of methane from {low:g} to {high:g} cm⁻¹; give a file that covers the scan."
        )
    columns = {name: np.array(values) for name, values in rows.items()}
    mass = np.array([MASSES.get(int(k), MASSES[1]) for k in columns.pop("isotopologue")])
    del columns["molecule"]
    return LineList(**columns, mass=mass, source=f"HITRAN file {path.name}")


def _parse(line: str, number: int, path: Path) -> dict[str, float]:
    record = {}
    for name, (start, width) in _FIELDS.items():
        cell = line[start : start + width]
        try:
            record[name] = float(int(cell, 16)) if name == "isotopologue" else float(cell)
        except ValueError:
            raise ReaderError(
                f"{path}: line {number}, column {start + 1} has '{cell}' instead of the {name.replace('_', ' ')}; "
                "give a .par file of HITRAN."
            ) from None
    return record


def write_hitran(lines: LineList, path: str | os.PathLike[str]) -> None:
    """Write lines as HITRAN records (quantum numbers and references blank), as HAPI reads them."""
    records = []
    for k in range(len(lines)):
        isotopologue = next(iso for iso, mass in MASSES.items() if abs(mass - lines.mass[k]) < 1e-3)
        records.append(
            f"{6:2d}{isotopologue:1d}{lines.position[k]:12.6f}{lines.strength[k]:10.3E}{0.0:10.3E}"
            f"{f'{lines.gamma_air[k]:.4f}'.lstrip('0'):>5s}{lines.gamma_self[k]:5.3f}{lines.lower_energy[k]:10.4f}"
            f"{lines.n_air[k]:4.2f}{lines.delta_air[k]:8.5f}".ljust(_RECORD - 14)
            + f"{1.0:7.1f}{1.0:7.1f}"
        )
    Path(path).write_text("".join(record + "\n" for record in records), encoding="ascii")
