"""A figure with the numbers it shows: what is drawn can be read off a CSV of the same name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from geonode.report.style import new_figure, save_figure
from geonode.report.tables import csv_text
from geonode_runtime.files import write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Sheet:
    """A figure and its numbers.

    Attributes:
        name: file name without suffix. title: for the report.
        columns: equal-length columns of the CSV by heading.
        draw: draws into one axes.
    """

    name: str
    title: str
    columns: dict[str, np.ndarray]
    draw: Callable[[Axes], None]

    def write(self, folder: Path) -> list[Path]:
        """Write ``name.png`` and ``name.csv`` into ``folder``, each whole or not at all."""
        figure, axes = new_figure(7.2, 4.6)
        self.draw(axes[0, 0])
        path = save_figure(figure, folder / f"{self.name}.png")
        return [path, write_text(folder / f"{self.name}.csv", self.csv())]

    def csv(self) -> str:
        """The numbers as the text of the CSV."""
        return csv_text(self.columns)
