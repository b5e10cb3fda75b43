"""Exported geonode models without torch: spectra at given concentrations, and the concentration of an unknown.

Needs numpy and onnxruntime. The numerics of sets and verdicts live here, and geonode itself uses them from here, so
that both give the same answers.

    import geonode_runtime

    model = geonode_runtime.load("assay.onnx")
    mean, std = model.predict([25.0, 40.0])
    print(model.quantify(spectrum).sentence(model.unit))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from geonode_runtime.errors import GeonodeError, InputError, OutputError

if TYPE_CHECKING:
    from geonode_runtime.model import Model, load
    from geonode_runtime.verdicts import Quantification

__all__ = ["GeonodeError", "InputError", "Model", "OutputError", "Quantification", "load"]


def __getattr__(name: str) -> Any:
    """`Model`, `load` and `Quantification` load on first use."""
    if name in ("Model", "load"):
        from geonode_runtime import model

        return getattr(model, name)
    if name == "Quantification":
        from geonode_runtime.verdicts import Quantification

        return Quantification
    raise AttributeError(f"module 'geonode_runtime' has no attribute {name!r}")
