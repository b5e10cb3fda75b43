"""A sweep of 24 small jobs on simulated standards."""

from __future__ import annotations

import pytest

from geonode.data import simulate_assay

SPEC = """
data: standards.csv
seeds: 2
config: {metric_hidden: [8, 8], flow_hidden: 12, table_nodes: 16, collocation: 8, epochs: EPOCHS, members: 1}
grid:
  flow_lr: [0.001, 0.003]
"""


@pytest.fixture
def spec(tmp_path):
    """Six folds × two seeds × two learning rates."""
    assay = simulate_assay(wavelengths=[300.0 + 20.0 * k for k in range(21)])
    lines = [",".join(["wavelength", *(f"{c}" for c in assay.concentrations)])]
    for wavelength, column in zip(assay.wavelengths, assay.spectra.T, strict=True):
        lines.append(",".join([f"{wavelength:g}", *(f"{value:.6f}" for value in column)]))
    (tmp_path / "standards.csv").write_text("\n".join(lines) + "\n")
    path = tmp_path / "sweep.yaml"
    path.write_text(SPEC.replace("EPOCHS", "2"))
    return path
