"""Write a fitted model as one ONNX file: both halves, and in its metadata all that the runtime needs besides."""

from __future__ import annotations

import base64
import contextlib
import gc
import hashlib
import io
import json
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from geonode.calibration.remarks import asked_limits
from geonode.data.plain_steps import exported_steps
from geonode.errors import InputError
from geonode.export.closed_form import INPUTS, OUTPUTS, Exported, Quantifier
from geonode.model import GeodesicModel
from geonode.report.conclusion import Conclusion
from geonode_runtime.files import require_replaceable, write_atomically
from geonode_runtime.model import CHECKSUM, FORMAT, KEY, NO_CHECKSUM
from geonode_runtime.remedies import VerdictRules

if TYPE_CHECKING:
    import onnx

OPSET = 18


def require_packages() -> None:
    """Refuse where the extra ``export`` is not installed.

    Raises:
        InputError: naming the package and the command that installs it.
    """
    for name in ("onnx", "onnxscript", "onnxruntime"):
        try:
            __import__(name)
        except ImportError:
            raise InputError(
                f"Exporting needs the package {name}, which is not installed: pip install 'geodesic-node[export]'."
            ) from None


def example_inputs(width: int) -> tuple[torch.Tensor, ...]:
    """Two concentrations and three spectra: the batches are dynamic, so the sizes say nothing."""
    ones = torch.ones(3, width, dtype=torch.float64)
    return torch.linspace(0.25, 0.75, 2), ones, ones.clone(), ones[:, 0].clone()


def dynamic_shapes() -> tuple[dict[int, Any], ...]:
    """The two batches, of any size."""
    count, rows = torch.export.Dim("count"), torch.export.Dim("rows")
    return {0: count}, {0: rows}, {0: rows}, {0: rows}


def traced(module: nn.Module, width: int) -> torch.export.ExportedProgram:
    """`torch.export` of both halves, the two batches dynamic."""
    with torch.no_grad():
        return torch.export.export(module.eval(), example_inputs(width), dynamic_shapes=dynamic_shapes(), strict=False)


def onnx_model(module: nn.Module, width: int | None) -> onnx.ModelProto:
    """The graph, checked by ``onnx.checker`` with full shape inference; ``width`` None: of the spectra alone, which
    takes a third of the time."""
    import onnx
    from onnxscript import optimizer

    inputs, outputs = (INPUTS, OUTPUTS) if width is not None else (INPUTS[:1], OUTPUTS[:2])

    with _quiet(), _without_garbage_search():
        program = torch.onnx.export(
            module.eval(),
            example_inputs(width or 1)[: len(inputs)],
            dynamo=True,
            opset_version=OPSET,
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_shapes=dynamic_shapes()[: len(inputs)],
            external_data=False,
            optimize=False,  # its rules take numbers near 0 and 1 for 0 and 1
            verbose=False,
        )
    if program is None:
        raise RuntimeError("torch.onnx.export gave no program")
    with _quiet():
        optimizer.fold_constants(program.model)
        optimizer.remove_unused_nodes(program.model)
    model = program.model_proto
    model = onnx.ModelProto.FromString(model.SerializeToString())
    _forget_places(model)
    onnx.checker.check_model(model, full_check=True)
    return model


def write_onnx(model: onnx.ModelProto, facts: dict[str, Any], arrays: dict[str, np.ndarray], path: Path) -> str:
    """Put ``facts`` and ``arrays`` into the metadata, then the checksum of the whole; returns it.

    The checksum is the SHA-256 of the file with 64 zeros in the checksum's own place.
    """
    from onnx.helper import set_model_props

    text = {"format": FORMAT, **facts, "arrays": {name: _packed(value) for name, value in arrays.items()}}
    set_model_props(model, {KEY: json.dumps(text, allow_nan=False), CHECKSUM: NO_CHECKSUM})
    data = model.SerializeToString()
    if data.count(NO_CHECKSUM.encode()) != 1:
        raise RuntimeError("the place of the checksum is not unique")
    checksum = hashlib.sha256(data).hexdigest()
    data = data.replace(NO_CHECKSUM.encode(), checksum.encode())
    require_replaceable(path)
    write_atomically(path, lambda temporary: Path(temporary).write_bytes(data))
    return checksum


def gather(model: GeodesicModel, spectra: nn.Module, predictor: str) -> tuple[Exported, dict[str, Any], dict]:
    """The module of both halves, the facts and the arrays of a fitted model.

    Raises:
        InputError: a preprocessing step that cannot be exported.
    """
    from geonode import __version__

    calibration = model.calibration
    inverse, own, pls = calibration.inverse, calibration.standard_spectra, calibration.facts.pls
    steps, arrays = exported_steps(model.preprocessing)
    units, (low, high) = model.dataset.units, model.served_range
    facts = {
        "geonode": __version__,
        "opset": OPSET,
        "predictor": predictor,
        "analyte": model.dataset.analytes[0],
        "concentration_unit": units["concentration"],
        "wavelength_unit": units["wavelength"],
        "signal": model.dataset.signal,
        "signal_unit": units["signal"],
        "calibrated_range": list(model.calibrated_range),
        "served_range": [low, high] if predictor == "node" else None,
        "levels": len(calibration.levels),
        "rules": _rules(calibration.facts.rules),
        "pls": None if pls is None else {"offset": pls.offset, "rmsecv": pls.error, "components": pls.components},
        "caution": "; ".join(calibration.facts.cautions),  # for readers of earlier versions
        "cautions": list(calibration.facts.cautions),
        "untold": calibration.facts.untold,
        "turns": list(calibration.facts.turns),
        "usable": calibration.facts.rules.usable,
        "declines": calibration.facts.rules.declines,
        "shape_decides": calibration.facts.shapes is not None and calibration.facts.shapes.decides,
        "dof": inverse.dof,
        "rank": inverse.rank,
        "ends_at_zero": inverse.ends_at_zero,
        "unfit_for_posterior": calibration.unfit_for_posterior,
        "wide_limits": asked_limits(calibration),
        "preprocessing": None if model.preprocessing is None else str(model.preprocessing),
        "steps": steps,
        "standing": _standing(calibration, None),
        "standing_of_profile": _standing(calibration, "profile"),
    }
    measured = calibration.measured
    arrays |= {
        "wavelengths": calibration.wavelengths,
        "measured_wavelengths": measured.wavelengths,
        "whole_wavelengths": measured.wavelengths if model.preprocessing is None else model.preprocessing.wavelengths,
        "standards": measured.gp.level_means,
        "at_zero": measured.gp.predict_mean([0.0])[0],
        "grid": inverse.grid,
        "scatter": inverse.scatter,
        "doubt": inverse.doubt,
        "noise": inverse.projection.scale,
        "basis": inverse.basis,
        "own_fingerprints": own.fingerprints,
        "own_noise": own.noise,
        "shape_spectra": calibration.gp.level_means,
        "own_concentrations": own.concentrations,
    }
    if pls is not None:
        arrays |= {"pls_vector": pls.vector, "pls_centre": pls.centre}
    for name, part in (("posterior", _posterior), ("causes", _causes)):
        facts[name], learned = part(calibration)
        arrays |= learned
    return Exported(spectra, Quantifier(inverse)), facts, arrays


def _rules(rules: VerdictRules) -> dict[str, Any]:
    return {
        "lowest": rules.lowest,
        "highest": rules.highest,
        "has_blank": rules.has_blank,
        "q_limit": _finite(rules.q_limit),
        "t2_limit": _finite(rules.t2_limit),
        "is_curve": rules.is_curve,
    }


def _posterior(calibration: Any) -> tuple[dict[str, float] | None, dict[str, np.ndarray]]:
    """Numbers and arrays of the learned posterior; None where it cannot answer."""
    if calibration.unfit_for_posterior:
        return None, {}
    known, numbers = calibration.posterior.known.state()
    arrays = {f"posterior_{name}": value for name, value in known.items()}
    return numbers, arrays | {
        f"network_{name}": value.astype("<f4") for name, value in calibration.posterior.weights.items()
    }


def _causes(calibration: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Facts and arrays by which an answer says why a spectrum does not match."""
    arrays, facts = calibration.explainer.state()
    return facts, {f"cause_{name}": value for name, value in arrays.items()}


def _standing(calibration: Any, method: str | None) -> dict[str, Any]:
    """What stands beside every interval of a ``method``, as `geonode quantify` says it."""
    from geonode.calibration.assessment.coverage import coverage, coverage_sentence

    notes = Conclusion(calibration).caveats
    found = coverage(calibration, method)
    said = [*(f"standards: {note}" for note in notes), coverage_sentence(found, len(calibration.levels))]
    return {"range": list(calibration.range), "notes": notes, **found, "sentence": "\n".join(said)}


def _packed(value: np.ndarray) -> dict[str, Any]:
    kind = "<f4" if value.dtype == np.float32 else "<f8"
    value = np.ascontiguousarray(value, dtype=kind)
    return {"shape": list(value.shape), "type": kind, "data": base64.b64encode(value.tobytes()).decode("ascii")}


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _forget_places(model: onnx.ModelProto) -> None:
    """Drop what the exporter notes of source files: names of this machine's folders, and half of the size."""
    model.doc_string = ""
    for part in (*model.graph.node, *model.graph.value_info, *model.graph.input, *model.graph.output, model.graph):
        part.doc_string = ""
        del part.metadata_props[:]
    for function in model.functions:
        for node in function.node:
            del node.metadata_props[:]


@contextlib.contextmanager
def _without_garbage_search() -> Iterator[None]:
    """Tracing makes millions of objects that live to its end: looking for garbage among them takes a tenth of it."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's progress and its remarks on registries."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
