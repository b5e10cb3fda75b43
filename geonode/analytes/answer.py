"""The answer for one unknown of two analytes: a region of the plane, and what it says of each analyte."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geonode.analytes.plane import PRIOR, PlaneDensity
from geonode.analytes.plane_sets import Region
from geonode_runtime.figures import figure
from geonode_runtime.verdicts import Quantification

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

WORST_FIRST = ("does not match", "outside calibrated range", "ambiguous", "below detection limit", "quantified")


@dataclass(frozen=True, repr=False)
class PlaneAnswer:
    """What is known of two concentrations from one spectrum.

    Attributes:
        name: of the unknown. analytes, units: two names, and their units.
        verdict: the first of `WORST_FIRST` that holds of an analyte, or of both together.
        parts: one `Quantification` an analyte, whatever the other: verdict, estimate, interval, notes.
        region, region_95: the joint regions at the level asked for and at 95 %.
        extrapolated: whether the estimate lies outside the hull of the standards.
        notes: sentences the reader must see beside the numbers.
        density: over the plane. levels: ``[n, 2]`` of the standards, for the figure.
    """

    name: str
    analytes: tuple[str, str]
    units: tuple[str, str]
    verdict: str
    parts: tuple[Quantification, Quantification]
    region: Region
    region_95: Region
    extrapolated: bool
    notes: tuple[str, ...]
    density: PlaneDensity = field(compare=False)
    levels: np.ndarray = field(compare=False)

    @property
    def point(self) -> tuple[float, float]:
        """Where the density is highest in the most probable piece of the region: the two estimates."""
        return self.region.pieces[0].point

    def sentence(self) -> str:
        """The result in one line."""
        if self.verdict == "does not match":
            return self.parts[0].sentence()
        said = [f"{a}: {p.sentence(u)}" for a, p, u in zip(self.analytes, self.parts, self.units, strict=True)]
        if len(self.region.pieces) > 1:
            places = " or ".join(
                f"({', '.join(figure(v) for v in piece.point)}; probability {piece.probability:.2f})"
                for piece in self.region.pieces[:4]
            )
            said.append(f"together {len(self.region.pieces)} separate regions, around {places}")
        return "; ".join(said)

    def lines(self) -> list[str]:
        """The sentence and the notes, as `geonode quantify` prints them."""
        return [f"{self.name}: {self.sentence()}", *(f"  note: {note}" for note in self.notes)]

    def __repr__(self) -> str:
        return f"<{self.sentence()}>"

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return f"<p><strong>{escape(self.sentence())}</strong></p>" + (f"<ul>{notes}</ul>" if notes else "")

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries, lists and numbers."""
        matches = self.verdict != "does not match"
        return {
            "verdict": self.verdict,
            "analytes": list(self.analytes),
            "units": list(self.units),
            "estimate": list(self.point) if matches else None,
            "extrapolated": self.extrapolated,
            "level": self.region.level,
            "regions": _pieces(self.region) if matches else [],
            "regions_95": _pieces(self.region_95) if matches else [],
            "by_analyte": {
                name: {**part.to_dict(), "prior": PRIOR, "method": "plane"}
                for name, part in zip(self.analytes, self.parts, strict=True)
            },
            "notes": list(self.notes),
        }

    def plot(self, path: str | Path | None = None) -> Figure | Path:
        """Draw the plane: density, the two regions, the standards, the estimate.

        Args:
            path: a figure's file (.png, .pdf, …), which is given back; None for matplotlib's figure itself.

        Raises:
            InputError: a suffix that is no format of figures.
        """
        from geonode.analytes.plane_figure import draw_answer

        return draw_answer(self, path)


def _pieces(found: Region) -> list[dict[str, Any]]:
    return [
        {"probability": p.probability, "point": list(p.point), "low": list(p.low), "high": list(p.high)}
        for p in found.pieces
    ]
