"""A sweep of 24 small jobs on simulated standards."""

from __future__ import annotations

from pathlib import Path

import pytest

from geonode.data import simulate_assay

SPEC = """
data: standards.csv
seeds: 2
config: {metric_hidden: [8, 8], flow_hidden: 12, table_nodes: 16, collocation: 8, epochs: EPOCHS, members: 1}
grid:
  flow_lr: [0.001, 0.003]
"""


def written(folder: Path) -> Path:
    """The standards and the sweep in a folder: six folds × two seeds × two learning rates."""
    assay = simulate_assay(wavelengths=[300.0 + 20.0 * k for k in range(21)])
    lines = [",".join(["wavelength", *(f"{c}" for c in assay.concentrations)])]
    for wavelength, column in zip(assay.wavelengths, assay.spectra.T, strict=True):
        lines.append(",".join([f"{wavelength:g}", *(f"{value:.6f}" for value in column)]))
    (folder / "standards.csv").write_text("\n".join(lines) + "\n")
    path = folder / "sweep.yaml"
    path.write_text(SPEC.replace("EPOCHS", "2"))
    return path


@pytest.fixture
def spec(tmp_path) -> Path:
    """The path of a sweep in a folder of its own."""
    return written(tmp_path)
