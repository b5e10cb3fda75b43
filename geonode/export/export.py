"""`export_onnx`: from a fitted model to one checked file, or to one sentence on why not."""

from __future__ import annotations

import io
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from geonode.errors import InputError
from geonode.export.distill import distilled
from geonode.export.int8 import quantised
from geonode.export.node import NodeSpectra, spectra_module, spectral_range
from geonode.export.onnx_file import gather, onnx_model, require_packages, traced, write_onnx
from geonode.model import GeodesicModel
from geonode_runtime.files import write_atomically
from geonode_runtime.given_paths import as_path
from geonode_runtime.model import Model, load

if TYPE_CHECKING:
    import onnx

LIMITS = {"full": 1e-5, "distilled": 1e-3, "int8": 2e-2}
"""Largest error against the library's spectra, as a fraction of the spectral range, above which nothing is written."""
ROUNDS = 10
"""Calls for a concentration, of which the fastest counts: what else a machine does only ever adds."""


@dataclass(frozen=True)
class ExportReport:
    """What was written and how good it is.

    Attributes:
        form: ``full``, ``table`` or ``network``; int8: whether quantised.
        mean_error, std_error: largest difference to the library's mean and standard deviation, fractions of the
            spectral range, over the served range and the standards. limit: what was allowed.
        bytes: of the file. milliseconds, full_milliseconds: one concentration (median over the range, each the least of
            ten calls), of the file and of the full graph (None where that was not measured).
        units, pruned: hidden units, and how many dead ones were left out. products: matrix products in INT8.
        checksum: of the file.
    """

    form: str
    int8: bool
    mean_error: float
    std_error: float
    limit: float
    bytes: int
    milliseconds: float
    full_milliseconds: float | None
    units: int
    pruned: int
    products: int
    checksum: str

    def sentence(self) -> str:
        """In one line."""
        kind = self.form + (" in INT8" if self.int8 else "")
        said = (
            f"{kind}: spectra differ from the library's by at most {self.mean_error:.2g} of the range (allowed "
            f"{self.limit:g}), their standard deviations by {self.std_error:.2g}; {self.bytes / 1e6:.2f} MB, "
            f"{self.milliseconds:.2f} ms a concentration"
        )
        if self.full_milliseconds is not None:
            said += f" ({self.full_milliseconds:.2f} ms in full)"
        return said + (f"; {self.pruned} of {self.units} hidden units were dead and left out" if self.units else "")


def export_onnx(
    model: GeodesicModel,
    path: str | Path,
    *,
    predictor: str | None = None,
    int8: bool = False,
    distill: bool = False,
    max_error: float | None = None,
) -> ExportReport:
    """Write a fitted model as one ONNX file that `geonode_runtime` reads.

    Args:
        path: replaced where it exists, whole or not at all.
        predictor: ``"node"`` or ``"gp"``; None for the model's own.
        int8: the products of the mean spectra in eight bits. distill: a table or a small network in place of the full
            formulas, whichever is the faster within the limit.
        max_error: allowed error of mean and standard deviation as a fraction of their range; None for that of `LIMITS`.

    Raises:
        InputError: missing packages, a flow or a preprocessing that cannot be exported, an error above the limit, or
            nothing gained.
    """
    require_packages()
    predictor = predictor or model.config.predictor
    with torch.no_grad():
        full = spectra_module(model, predictor).eval()
    path = as_path(path, "the exported model")
    limit = LIMITS["int8" if int8 else "distilled" if distill else "full"] if max_error is None else float(max_error)
    check = _Check(model, predictor)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        forms, full_milliseconds, served = [("full", full)], None, None
        if distill:
            served = check.low, check.high
            forms, full_milliseconds = _quickest(scratch, model, full, predictor, limit, check)
        tries: list[_Try] = []
        for name, module in forms:
            one = _try(scratch, model, name, module, predictor, check, served)
            tries.append(_eight_bits(scratch, one, check) if int8 else one)
            if tries[-1].worst <= limit:
                break
        good = [one for one in tries if one.worst <= limit]
        if not good:
            raise _refused(min(tries, key=lambda one: one.worst), limit, int8, distill)
        best = good[0]
        module = best.module
        facts = {**best.facts, "form": best.form, "int8": int8, "mean_error": best.error, "std_error": best.std_error}
        checksum = write_onnx(best.graph, facts, best.arrays, path)
    return ExportReport(
        form=best.form,
        int8=int8,
        mean_error=best.error,
        std_error=best.std_error,
        limit=limit,
        bytes=path.stat().st_size,
        milliseconds=best.milliseconds,
        full_milliseconds=full_milliseconds,
        units=int(getattr(module, "units", 0)),
        pruned=int(getattr(module, "pruned", 0)),
        products=best.products,
        checksum=checksum,
    )


def export_package(model: GeodesicModel, path: str | Path, predictor: str | None = None) -> None:
    """Write both halves as a `torch.export` package (.pt2) for use in a process that has torch.

    Args:
        model: a fitted model.
        path: the file, written whole or not at all.
        predictor: ``"node"`` or ``"gp"``; None takes ``model.config.predictor``.

    Raises:
        InputError: a predictor, a flow or a preprocessing that cannot be exported.
    """
    from geonode import __version__

    path = as_path(path, "the exported model")
    module, width = in_process(model, predictor)
    data = io.BytesIO()
    torch.export.save(traced(module, width), data, extra_files={"geonode": __version__})
    write_atomically(path, lambda temporary: Path(temporary).write_bytes(data.getvalue()))


def compiled(model: GeodesicModel, predictor: str | None = None, backend: str = "inductor") -> nn.Module:
    """The spectra of a model under `torch.compile`: concentrations [C] float32 → mean and std [C, W] float32.

    Raises:
        InputError: as `export_onnx`.
    """
    return torch.compile(spectra_module(model, predictor).eval(), dynamic=True, backend=backend)  # type: ignore[return-value]


def in_process(model: GeodesicModel, predictor: str | None = None) -> tuple[nn.Module, int]:
    """The module of both halves and the number of wavelengths that its second half takes."""
    predictor = predictor or model.config.predictor
    module, _, arrays = gather(model, spectra_module(model, predictor), predictor)
    return module.eval(), len(arrays["noise"])


@dataclass
class _Try:
    form: str
    module: nn.Module
    graph: onnx.ModelProto
    facts: dict[str, Any]
    arrays: dict[str, np.ndarray]
    error: float = np.inf
    std_error: float = np.inf
    milliseconds: float = np.inf
    products: int = 0

    @property
    def worst(self) -> float:
        """The larger error of the two: nan counts as infinite."""
        worst = max(self.error, self.std_error)
        return worst if np.isfinite(worst) and not np.isnan(self.error + self.std_error) else np.inf


class _Check:
    """Concentrations of the served range and the library's spectra there."""

    def __init__(self, model: GeodesicModel, predictor: str, count: int = 256) -> None:
        inverse = model.calibration.inverse
        self.low, self.high = model.served_range if predictor == "node" else (inverse.low, inverse.high)
        inside = np.linspace(self.low, self.high, count)[1:-1]
        levels = model.gp.levels
        near = levels[0] + (levels[-1] - levels[0]) * np.logspace(-4, -1, 32)
        self.concentrations = np.unique(np.concatenate([inside, levels, near]).astype(np.float32)).astype(np.float64)
        mean, std = model.predict_spectra(self.concentrations, predictor)
        self.mean, self.std, self.unit = mean.values, std.values, spectral_range(model)
        self.levels = levels

    def measure(self, one: _Try, loaded: Model) -> None:
        mean, std = loaded.predict(self.concentrations)
        one.error = float(np.abs(mean - self.mean).max()) / self.unit
        one.std_error = float(np.abs(std - self.std).max()) / self.unit
        asked = np.linspace(self.low, self.high, 32)[1:-1]
        times = np.empty((ROUNDS, len(asked)))
        for row in times:
            for i, c in enumerate(asked):
                started = time.perf_counter()
                loaded.predict(c)
                row[i] = time.perf_counter() - started
        one.milliseconds = 1e3 * float(np.median(times.min(0)))


class _SpectraAlone:
    """A session of the spectra's half, asked as one of both."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def run(self, names: list[str], feed: dict[str, np.ndarray], options: Any) -> list[np.ndarray]:
        return self._session.run(names, {"concentrations": feed["concentrations"]}, options)


def _quickest(
    folder: Path, model: GeodesicModel, full: nn.Module, predictor: str, limit: float, check: _Check
) -> tuple[list[tuple[str, nn.Module]], float]:
    """The reduced forms that are faster than the full one, or not exact enough to tell (for the refusal), fastest
    first; and the milliseconds of the full one. Of their spectra alone: what answers unknowns is the same in all."""
    served = check.low, check.high
    whole = _try(folder, model, "full", full, predictor, check, alone=True)
    forms = distilled(model, full, *served).items()
    tries = [_try(folder, model, name, module, predictor, check, served, alone=True) for name, module in forms]
    tries = [one for one in tries if one.milliseconds < whole.milliseconds or one.worst > limit]
    if not tries:
        raise InputError("Neither a table nor a network is faster than the full model; export without distill.")
    tries.sort(key=lambda one: one.milliseconds)
    return [(one.form, one.module) for one in tries], whole.milliseconds


def _try(
    folder: Path,
    model: GeodesicModel,
    form: str,
    module: nn.Module,
    predictor: str,
    check: _Check,
    served: tuple[float, float] | None = None,
    alone: bool = False,
) -> _Try:
    whole, facts, arrays = gather(model, module, predictor)
    if served is not None:
        facts["served_range"] = list(served)
    graph = onnx_model(module.eval(), None) if alone else onnx_model(whole, len(arrays["noise"]))
    one = _Try(form, module, graph, facts, arrays)
    _measured(folder, one, check, alone)
    return one


def _measured(folder: Path, one: _Try, check: _Check, alone: bool = False) -> None:
    write_onnx(one.graph, one.facts, one.arrays, folder / "try.onnx")
    loaded = load(folder / "try.onnx")
    if alone:
        loaded._session = _SpectraAlone(loaded._session)
    check.measure(one, loaded)


def _eight_bits(folder: Path, one: _Try, check: _Check) -> _Try:
    trained_on = np.concatenate([check.levels, np.linspace(check.low, check.high, 65)])
    graph, products = quantised(one.graph, trained_on, len(one.arrays["noise"]))
    if not products:
        raise InputError(
            "The full neural flow is no product of matrices but a sum of curves, so INT8 has nothing to quantise; "
            "combine it with distill, or export the Gaussian process (predictor gp)."
        )
    result = _Try(one.form, one.module, graph, one.facts, one.arrays, products=products)
    _measured(folder, result, check)
    return result


def _refused(one: _Try, limit: float, int8: bool, distill: bool) -> InputError:
    kind = " and ".join(name for name, asked in (("distilled", distill), ("INT8", int8)) if asked) or "full"
    return InputError(
        f"The {kind} model (as a {one.form}) differs from the library by {one.worst:.2g} of the spectral range, above "
        f"the allowed {limit:g}, so nothing was written; allow more with max_error, or export with fewer reductions."
    )


__all__ = ["LIMITS", "ExportReport", "NodeSpectra", "compiled", "export_onnx", "export_package", "in_process"]
