"""Static quantisation to eight bits by ONNX Runtime, calibrated on the spectra that the model was trained on: those of
the standards and of concentrations spread over the range."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

_KEPT = ("variance_weight", "products", "std_", "series")
"""Weights of variances, and of the arc length that everything else depends on: eight bits of those are too few."""


def quantised(model: onnx.ModelProto, concentrations: np.ndarray, width: int) -> tuple[onnx.ModelProto, int]:
    """The model with the weights of its mean spectra and what they multiply in INT8 (QDQ), and how many products.

    ``concentrations``: of the training spectra, whose values set the scales. Quantification stays as it is.
    """
    import onnx
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Standards(CalibrationDataReader):
        def __init__(self) -> None:
            self._rest = iter([concentrations.astype(np.float32)])

        def get_next(self) -> dict[str, Any] | None:  # type: ignore[override]
            batch = next(self._rest, None)
            if batch is None:
                return None
            one = np.ones((1, width))
            return {"concentrations": batch, "spectra": one, "usable": one, "replicates": np.ones(1)}

    names = _products(model)
    if not names:
        return model, 0
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "full.onnx", Path(folder) / "int8.onnx"
        onnx.save(model, str(source))
        logging.disable(logging.WARNING)  # it recommends a preparation that would round float64 constants
        quantize_static(
            str(source),
            str(target),
            Standards(),
            quant_format=QuantFormat.QDQ,
            activation_type=QuantType.QInt8,
            weight_type=QuantType.QInt8,
            per_channel=True,
            nodes_to_quantize=names,
            extra_options={"ActivationSymmetric": True},  # TensorRT takes no other zero point than 0
        )
        logging.disable(logging.NOTSET)
        result = onnx.load(str(target))
    onnx.checker.check_model(result, full_check=True)
    return result, len(names)


def _products(model: onnx.ModelProto) -> list[str]:
    """Names of float32 matrix products with a constant [·, W] that is not in ``_KEPT``."""
    import onnx

    constant = {
        one.name
        for one in model.graph.initializer
        if one.data_type == onnx.TensorProto.FLOAT and len(one.dims) == 2 and not any(k in one.name for k in _KEPT)
    }
    return [node.name for node in model.graph.node if node.op_type == "MatMul" and node.input[1] in constant]
