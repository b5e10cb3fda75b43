"""What the runtime would read from an exported file, its graph evaluated by torch: to trace one takes seconds.

That the graph says what the module says is `test_parity`'s business, on files; what else stands in a file (facts,
arrays, notes) can be asked without one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from geonode.export.closed_form import INPUTS, OUTPUTS
from geonode.export.node import spectra_module
from geonode.export.onnx_file import _packed, gather
from geonode.model import GeodesicModel
from geonode_runtime.model import FORMAT, Model


class _Session:
    """As onnxruntime's, of a module."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.module = module

    def run(self, names: list[str], feed: dict[str, np.ndarray], options: Any = None) -> list[np.ndarray]:
        """The outputs called ``names``."""
        with torch.no_grad():
            found = self.module(*(torch.from_numpy(feed[name]) for name in INPUTS))
        outputs = dict(zip(OUTPUTS, found, strict=True))
        return [outputs[name].numpy() for name in names]


def in_torch(model: GeodesicModel, predictor: str | None = None) -> Model:
    """The runtime's model of a fitted one, its facts and arrays as they come out of a file."""
    predictor = predictor or model.config.predictor
    with torch.no_grad():
        module, facts, arrays = gather(model, spectra_module(model, predictor).eval(), predictor)
    text = {"format": FORMAT, **facts, "arrays": {name: _packed(value) for name, value in arrays.items()}}
    return Model(Path("in torch"), _Session(module.eval()), json.loads(json.dumps(text, allow_nan=False)), "")
