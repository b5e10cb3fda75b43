"""What all figures look like, and how they are written; matplotlib is imported on first use, without pyplot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from geonode.errors import InputError
from geonode_runtime.files import write_atomically
from geonode_runtime.given_paths import as_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
"""Colours that are told apart with any colour vision (Okabe & Ito 2008)."""
GAP = 3.0
"""Wavelengths further apart than this many median steps are not joined by a line."""
FORMATS = (".png", ".pdf", ".svg", ".jpg", ".jpeg", ".eps", ".tif", ".tiff", ".webp")
_EXIF_SOFTWARE = 0x0131


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Figure, np.ndarray]:
    """A figure outside pyplot's global state and its axes as ``[rows, columns]``; sizes in inches.

    Its layout measures all that is written once: "constrained" does so twice, and so does "tight" with a ``rect``, the
    whole figure where none is named, which the second time changes nothing. Each time is a seventh of a figure.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import TightLayoutEngine

    once: Any = None  # as the default is written, matplotlib's types do not know that it may be none
    figure = Figure(figsize=(width, height), layout=TightLayoutEngine(rect=once))
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.ravel():
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write by suffix (png where there is none) to a temporary name in the same folder, then rename."""
    path = figure_path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = path.suffix[1:].lower()  # the temporary name has another suffix
    words = _who_wrote_it(kind)
    figure.set_dpi(150)
    return write_atomically(path, lambda temporary: print_figure(figure, temporary, kind, **words))


def print_figure(figure: Figure, file: Any, kind: str, **words: Any) -> None:
    """As ``figure.savefig(file, format=kind, dpi="figure", **words)``, which draws a figure twice, the first time for
    its layout alone: canvases of pixels and of SVG lay it out as they draw, once."""
    if kind == "png":
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        FigureCanvasAgg(figure).print_png(file, **words)
    elif kind == "svg":
        from matplotlib.backends.backend_svg import FigureCanvasSVG

        FigureCanvasSVG(figure).print_svg(file, **words)
    else:
        figure.savefig(file, format=kind, dpi="figure", **words)


def _who_wrote_it(kind: str) -> dict[str, Any]:
    """What `savefig` takes to say in the file that geonode wrote it, in the way of its format."""
    if kind in ("jpg", "jpeg", "webp"):
        from PIL.Image import Exif

        exif = Exif()
        exif[_EXIF_SOFTWARE] = "geonode"
        return {"pil_kwargs": {"exif": exif.tobytes()}}
    if kind in ("tif", "tiff"):
        return {"pil_kwargs": {"software": "geonode"}}
    return {"metadata": {"Software" if kind == "png" else "Creator": "geonode"}}


def figure_path(path: str | Path) -> Path:
    """``path``, with .png where it has no suffix.

    Raises:
        InputError: a suffix that is no format of figures.
    """
    path = as_path(path, "the figure")
    path = path if path.suffix else path.with_suffix(".png")
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path}: figures are written as {', '.join(FORMATS)}; give such a name.")
    return path


def level_colours(count: int) -> np.ndarray:
    """RGBA ``[count, 4]`` from low to high concentration."""
    from matplotlib import colormaps

    return colormaps["viridis"](np.linspace(0.0, 0.92, max(count, 1)))


def split_at_gaps(wavelengths: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both with a NaN in every gap (more than GAP median steps), so that no line crosses what was left out."""
    gaps = gap_positions(wavelengths)
    return np.insert(wavelengths, gaps, np.nan), np.insert(np.asarray(values, dtype=float), gaps, np.nan)


def gap_positions(wavelengths: np.ndarray) -> np.ndarray:
    """Positions of the first wavelength behind every gap."""
    steps = np.diff(wavelengths)
    return np.flatnonzero(steps > GAP * np.median(steps)) + 1 if len(steps) else np.zeros(0, dtype=int)


def legend_beside(axis: Axes, title: str, entries: int) -> None:
    """The legend to the right of the axes: spectra leave no free corner."""
    columns = 1 + entries // 22
    style = {"fontsize": 7, "title_fontsize": 7, "frameon": False, "ncols": columns}
    axis.legend(title=title, loc="center left", bbox_to_anchor=(1.01, 0.5), **style)


def legend_below(axis: Axes, columns: int = 2) -> None:
    """The legend below the axes, where lines fill them."""
    axis.legend(fontsize=7, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=columns)
