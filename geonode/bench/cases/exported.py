"""Inference of an exported model by ONNX Runtime, as `geonode_runtime` runs it: no torch in the path measured."""

from __future__ import annotations

import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from geonode.bench.case import Case, Checked, Setting, Size, Work, register
from geonode.bench.problem import error

LEVELS = (0.0, 10.0, 20.0, 40.0, 60.0, 80.0)


def absent(setting: Setting) -> str | None:
    """Why an exported model cannot be measured here; None where it can."""
    for package in ("onnx", "onnxscript", "onnxruntime"):
        if find_spec(package) is None:
            return f"{package} is not installed"
    if setting.suite == "quick":
        return "fitting and exporting take half a minute; in the full suite"
    if setting.device != "cpu":
        return "geonode_runtime runs on the CPU; measure it with --device cpu"
    return None


@cache
def _models(wavelengths: int, seed: int) -> tuple[Any, Any]:
    """A fitted model of a simulated assay, and the same exported and loaded again."""
    import geonode_runtime
    from geonode.config import GeodesicConfig
    from geonode.data import simulate_assay
    from geonode.export.export import export_onnx
    from geonode.model import fit

    assay = simulate_assay(LEVELS, wavelengths=np.linspace(350.0, 750.0, wavelengths).tolist(), seed=seed)
    model = fit(assay, GeodesicConfig(flow="path_independent", epochs=3))
    with tempfile.TemporaryDirectory() as folder:
        export_onnx(model, Path(folder) / "model.onnx")
        return model, geonode_runtime.load(Path(folder) / "model.onnx")


def _predict(setting: Setting, size: Size) -> Work:
    """Mean spectra at ``size.pairs`` concentrations."""
    model, exported = _models(size.wavelengths, setting.seed)
    random = np.random.default_rng(setting.seed)
    sets = [random.uniform(LEVELS[0], LEVELS[-1], size.pairs) for _ in range(4)]

    def check() -> list[Checked]:
        ours, exact = exported.predict(sets[0])[0], model.predict_spectra(sets[0])[0]
        return [Checked("spectra against the library", error(np.asarray(ours), np.asarray(exact)), 1e-4)]

    return Work(
        lambda i: exported.predict(sets[i]), check, {"samples": size.pairs, "odes": size.trajectories}, {},
        8.0 * size.trajectories, 4, latency=True, notes="geonode_runtime on ONNX Runtime, one call a batch",
    )  # fmt: skip


register(
    Case(
        "infer-onnx", "inference by ONNX Runtime", _predict, lambda setting: [Size(1, 601), Size(64, 601)],
        absent=absent,
    )
)  # fmt: skip
