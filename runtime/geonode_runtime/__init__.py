"""Exported geonode models without torch: spectra at given concentrations, and the concentration of an unknown.

Needs numpy and onnxruntime. The numerics of sets and verdicts live here, and geonode itself uses them from here, so
that both give the same answers.

    import geonode_runtime

    model = geonode_runtime.load("assay.onnx")
    mean, std = model.predict([25.0, 40.0])
    print(model.quantify(spectrum).sentence(model.unit))
"""

from __future__ import annotations
