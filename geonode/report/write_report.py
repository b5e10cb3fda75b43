"""The whole report of a model: page, text, JSON, figures and their numbers, in one folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from geonode.report.calibration_report import CalibrationReport
from geonode.report.calibration_sheets import arc_grid
from geonode.report.page import html_report, training_page
from geonode.report.results_table import SUFFIXES, can_write_workbooks, standard_rows, write_table
from geonode_runtime.files import write_text

if TYPE_CHECKING:
    from geonode.model import GeodesicModel


def write_report(model: GeodesicModel, folder: str | Path, bundle: Path | None = None) -> tuple[list[Path], list[str]]:
    """Write everything into ``folder`` (made if need be).

    Args:
        model: fitted. bundle: the file it was loaded from, None where there is none.

    Returns:
        The files, and the sentences that the reader must see.

    Raises:
        InputError: ``folder`` is a file, or its parent does not exist.
    """

    def spectra(concentrations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, std = model.predict_spectra(concentrations)
        return mean.values, std.values

    predicted = spectra if model.ode is not None else None
    arc = model.arc_length(arc_grid(model.calibration))
    report = CalibrationReport(model.calibration, predicted, arc)
    written = report.write(folder)
    names, folder = tuple(model.standards.names), Path(folder)
    kinds = SUFFIXES if can_write_workbooks() else SUFFIXES[:1]
    rows = standard_rows(model.calibration, names)
    written += [write_table(folder / f"results{suffix}", rows) for suffix in kinds]
    trained = training_page(model)
    written += [path for page in trained for path in page.write(folder)]
    pages = [*report.sheets(), *trained]
    written.append(write_text(folder / "report.html", html_report(model, report, pages, bundle) + "\n"))
    return written, report.data["notes"]
