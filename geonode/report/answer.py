"""The answer for one unknown, as people see it: in a terminal, in a notebook, as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Self

from geonode.calibration.causes.explained import Explained
from geonode.report.answer_figure import answer_figure, answer_svg
from geonode.report.shell import document
from geonode.report.style import figure_path, save_figure
from geonode_runtime.files import write_text
from geonode_runtime.given_paths import as_path
from geonode_runtime.refused import Refused

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGES = (".html", ".htm")


@dataclass(frozen=True, repr=False)
class Answer(Explained):
    """What `GeodesicModel.quantify` gives: a `Quantification` that explains itself and can be drawn."""

    @classmethod
    def from_explained(cls, found: Explained) -> Self:
        """``found`` as an answer."""
        return cls.of(found, found.calibration, found.unknown, found.name)

    def __repr__(self) -> str:
        return f"<{self.sentence(self.calibration.unit)}>"

    def lines(self) -> list[str]:
        """The sentence, the reasons and the notes, as `geonode quantify` prints them."""
        said = [f"{self.name}: {self.sentence(self.calibration.unit)}"]
        return [*said, *(f"  cause: {one}" for one in self.why), *(f"  note: {note}" for note in self.notes)]

    def html(self) -> str:
        """The answer with its figure as a part of a page."""
        said = "".join(f"<p>{escape(one[0].upper() + one[1:])}.</p>" for one in self.why)
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        notes = f'<ul class="notes">{notes}</ul>' if notes else ""
        head = f"<p><strong>{escape(self.sentence(self.calibration.unit))}</strong></p>"
        return f'<section class="answer">{head}{said}{answer_svg(self)}{notes}</section>'

    def _repr_html_(self) -> str:
        return self.html()

    def plot(self, path: str | Path | None = None) -> Figure | Path:
        """Draw unknown, prediction and residual.

        Args:
            path: a figure's file, or ``.html`` for a page; None for the figure itself, as matplotlib's.

        Returns:
            The figure, or the path that was written.

        Raises:
            InputError: a suffix that is no format of figures.
        """
        if path is None:
            return answer_figure([self])
        return plot_answers([self], path)


def require_drawable(path: Path) -> None:
    """Refuse a name that `plot_answers` could not write.

    Raises:
        InputError: a suffix that is neither a page's nor a figure's.
    """
    if path.suffix.lower() not in PAGES:
        figure_path(path)


def can_draw(answers: Sequence[Answer | Refused], path: Path) -> bool:
    """Whether there is anything to draw: a page has words of what was refused, a figure nothing."""
    return path.suffix.lower() in PAGES or any(isinstance(one, Answer) for one in answers)


def plot_answers(answers: Sequence[Answer | Refused], path: str | Path) -> Path:
    """Draw several answers into one file: a page (``.html``), which has words in the place of what was refused, or a
    figure with a row for each that was not.

    Raises:
        InputError: a suffix that is neither, or more rows than a figure holds.
    """
    path = as_path(path, "the page or figure")
    require_drawable(path)
    if path.suffix.lower() in PAGES:
        parts = "".join(f"<h2>{escape(one.name)}</h2>{one.html()}" for one in answers)
        return write_text(path, document("Answers", f"<main><h1>Answers</h1>{parts}</main>") + "\n")
    return save_figure(answer_figure([one for one in answers if isinstance(one, Answer)]), path)
