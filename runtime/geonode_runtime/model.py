"""An exported model: reading its file, predicting and quantifying with it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from geonode_runtime.answers import Facts, answer, answer_many, check_options, without_matrix
from geonode_runtime.causes.explainer import Explainer, ExportedAnswer
from geonode_runtime.distributions import f1_quantile
from geonode_runtime.errors import InputError
from geonode_runtime.given_numbers import as_numbers, mask_of
from geonode_runtime.given_paths import as_path
from geonode_runtime.pls import PLSRegression
from geonode_runtime.posterior.answers import LearnedPosterior
from geonode_runtime.posterior.methods import chosen_method
from geonode_runtime.posterior.standards import PosteriorStandards
from geonode_runtime.preprocessing import Steps
from geonode_runtime.reach import require_reach
from geonode_runtime.remedies import VerdictRules
from geonode_runtime.replicates import require_one_sample
from geonode_runtime.sets import Distances
from geonode_runtime.shapes import Shapes
from geonode_runtime.standard_spectra import StandardSpectra
from geonode_runtime.unknowns import Unknown, prepare_unknown
from geonode_runtime.verdicts import Quantification
from geonode_runtime.wording import either

KEY, CHECKSUM, FORMAT = "geonode", "geonode.checksum", 4
NO_CHECKSUM = "0" * 64
_CONCENTRATIONS, _SPECTRA = 64, 32  # rows at a time: working memory stays below 100 MB


class OnnxCurve:
    """The predicted curve inside an exported graph, as :mod:`geonode_runtime.answers` compares spectra to it."""

    def __init__(self, session: Any, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self._session, self._options = session, _only_what_is_asked()
        self.grid, self.scatter, self.basis = arrays["grid"], arrays["scatter"], arrays["basis"]
        self.dof, self.rank = float(facts["dof"]), int(facts["rank"])
        self.ends_at_zero = bool(facts["ends_at_zero"])
        self.doubt = arrays.get("doubt", np.zeros(len(self.grid)))  # format 1 had none

    def inflation(self, minimum: np.ndarray) -> np.ndarray:
        """max(1, d²_min/(r − 1))."""
        return np.maximum(1.0, minimum / max(self.rank - 1, 1))

    def threshold(self, level: float, minimum: np.ndarray) -> np.ndarray:
        """``F_{1,ν}(level) · max(1, d²_min/(r − 1))``."""
        return f1_quantile(self.dof, level) * self.inflation(minimum)

    def project(self, spectra: np.ndarray, usable: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates ``[U, r]`` and residual ``[U]`` of spectra ``[U, W]``."""
        coordinates, residual = self._run(["coordinates", "residual"], spectra, usable, 1.0)
        return coordinates, residual

    def compare(
        self, spectra: np.ndarray, usable: np.ndarray | None, replicates: float
    ) -> tuple[Distances, np.ndarray]:
        """Distances of spectra ``[U, W]``, each the mean of so many replicates, and Q ``[U]``."""
        squared, steps, q = self._run(["squared", "steps", "q"], spectra, usable, replicates)
        # Rounding may leave a square of nothing slightly below zero.
        return Distances(np.maximum(squared, 0.0), np.maximum(steps, 0.0), np.maximum(q, 1.0), self.doubt), q

    def _run(
        self, names: list[str], spectra: np.ndarray, usable: np.ndarray | None, replicates: float
    ) -> list[np.ndarray]:
        mask = np.ones(spectra.shape[1]) if usable is None else usable.astype(np.float64)
        parts = []
        for start in range(0, len(spectra), _SPECTRA):
            rows = spectra[start : start + _SPECTRA]
            feed = {
                "concentrations": np.zeros(0, dtype=np.float32),
                "spectra": np.ascontiguousarray(rows, dtype=np.float64),
                "usable": np.broadcast_to(mask, rows.shape).copy(),
                "replicates": np.full(len(rows), float(replicates)),
            }
            parts.append(self._session.run(names, feed, self._options))
        return [np.concatenate(column) for column in zip(*parts, strict=True)]


class Model:
    """A model exported by `geonode export`.

    Attributes: ``facts`` (what its metadata says), ``wavelengths`` ``[W]`` of predicted spectra, ``unit`` of
    concentrations, ``calibrated_range``, ``served_range`` (None: any concentration), ``checksum``.
    """

    def __init__(self, path: Path, session: Any, facts: dict[str, Any], checksum: str) -> None:
        self.path, self.facts, self.checksum = path, facts, checksum
        arrays = {name: _unpacked(value) for name, value in facts.pop("arrays").items()}
        self._session, self._arrays = session, arrays
        self.wavelengths, self.unit = arrays["wavelengths"], str(facts["concentration_unit"])
        self.calibrated_range: tuple[float, float] = tuple(facts["calibrated_range"])
        served = facts["served_range"]
        self.served_range: tuple[float, float] | None = None if served is None else tuple(served)
        self._curve = OnnxCurve(session, facts, arrays)
        rules: dict[str, Any] = {name: np.inf if value is None else value for name, value in facts["rules"].items()}
        levels, shapes = int(facts["levels"]), _shapes(facts, arrays)
        pls = _pls(facts.get("pls"), arrays, levels)
        cautions, untold = _cautions(facts), str(facts.get("untold", ""))
        rules |= {"usable": bool(facts.get("usable", True)), "declines": str(facts.get("declines", ""))}  # if said
        turns = tuple(facts.get("turns", ()))
        known = _standard_spectra(arrays)
        self._facts = Facts(levels, VerdictRules(**rules), known, shapes, pls, cautions, untold, turns)
        self._learned, self._unfit = _posterior(facts, arrays)
        self._explainer = _explainer(facts, arrays)
        self._steps = Steps(facts["steps"], arrays, facts["preprocessing"])

    def predict(self, concentrations: float | Sequence[float] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation ``[C, W]`` of the spectrum at each concentration, float32; ``std`` is that of one
        further measured spectrum.

        Raises:
            InputError: not finite, beyond what the model serves, or more than three ranges beyond the standards.
        """
        c = np.atleast_1d(as_numbers(concentrations, either("--at", "concentrations")))
        if c.ndim != 1 or len(c) == 0 or not np.isfinite(c).all():
            asked = either("--at takes", "concentrations must be a number or a list of")
            raise InputError(f"{asked} finite numbers.")
        require_reach(c, *self.calibrated_range, self.unit)
        if self.served_range is not None:
            low, high = self.served_range
            outside = c[(c < low) | (c > high)]
            if len(outside):
                again = f"with a larger margin{either(' (geonode fit --margin)', '')}"
                raise InputError(
                    f"Concentration {outside[0]:g} lies outside {low:g} … {high:g} {self.unit}, the range this model "
                    f"answers for; ask within it, or fit again {again} and export anew."
                )
        width = self._arrays["noise"].shape[0]
        nothing = np.zeros((0, width))
        parts = []
        for start in range(0, len(c), _CONCENTRATIONS):
            feed = {
                "concentrations": c[start : start + _CONCENTRATIONS].astype(np.float32),
                "spectra": nothing,
                "usable": nothing,
                "replicates": np.zeros(0),
            }
            parts.append(self._session.run(["mean", "std"], feed, self._curve._options))
        mean, std = (np.concatenate(column) for column in zip(*parts, strict=True))
        return mean, std

    def standing(self, method: str | None = None) -> dict[str, Any]:
        """What stands beside every answer of a ``method`` (None: of the one that answers by default): range, notes, how
        often held-out standards were covered, and that as a ``sentence``."""
        return self.facts.get(f"standing_of_{method}", self.facts["standing"])

    @property
    def doubts(self) -> tuple[str, ...]:
        """What is wrong with the standards, or leaves them in doubt: it stands beside predictions too."""
        return tuple(one for one in (*self._facts.cautions, self._facts.untold) if one)

    def extrapolated(self, concentrations: float | Sequence[float] | np.ndarray) -> np.ndarray:
        """``[C]``, True outside the calibrated range."""
        c = np.atleast_1d(as_numbers(concentrations, "concentrations"))
        return (c < self.calibrated_range[0]) | (c > self.calibrated_range[1])

    def quantify(
        self,
        spectra: Any,
        wavelengths: Any = None,
        *,
        replicates: bool = False,
        level: float = 0.8,
        dilution: float = 1.0,
        dilution_std: float = 0.0,
        blank: Any = None,
        blank_wavelengths: Any = None,
        mask: Any = None,
        saturation: float | None = None,
        name: str = "the unknown",
        method: str | None = None,
    ) -> Any:
        """The concentration of one unknown, or of several, as ``geonode.Calibration.quantify`` finds it.

        Args:
            spectra: ``[V]`` of one unknown, or ``[k, V]``, a sample a row. As measured.
            replicates: True where the rows are replicates of one unknown, which are combined.
            wavelengths: ``[V]``, None where they are those of the standards.
            level: nominal coverage of the set, 0 < level < 1.
            dilution: factor by which the unknown was diluted before measuring; dilution_std: its standard uncertainty.
            blank: ``[V]`` or ``[b, V]`` spectra of the unknown's matrix without analyte. blank_wavelengths: None for
                those of the unknown.
            mask: ``[V]`` or ``[k, V]``, True where a value is unusable. saturation: values at or above it are masked.
            name: of the unknown, for messages.
            method: ``"posterior"`` (learned on simulated unknowns) or ``"profile"`` (likelihood of the curve); None for
                the posterior, and for the profile where the posterior cannot answer, which a note then says.

        Returns:
            An `ExportedAnswer` (a `Quantification` that says why a spectrum does not match) for one spectrum ``[V]``
            and for ``replicates``; else a list, one for each row.

        Raises:
            InputError: a spectrum that cannot be compared (see :mod:`geonode_runtime.unknowns`), an option out of
                range, a method that cannot answer, or replicates that are different samples.
        """
        answering, said = self._method(method)
        check_options(level, dilution, dilution_std)
        if np.ndim(spectra) == 2 and not replicates:
            rows = as_numbers(spectra, name)
            masks = mask_of(spectra, rows.shape, mask)
            options: dict[str, Any] = {"level": level, "dilution": dilution, "dilution_std": dilution_std}
            options |= {"blank": blank, "blank_wavelengths": blank_wavelengths, "saturation": saturation}
            options["method"] = method
            return [
                self.quantify(row, wavelengths, mask=own, name=f"{name} {k + 1}", **options)
                for k, (row, own) in enumerate(zip(rows, masks, strict=True))
            ]
        unknown = self._aligned(spectra, wavelengths=wavelengths, mask=mask, saturation=saturation, name=name)
        effective = float(len(unknown.spectra))
        if blank is not None:
            grid = wavelengths if blank_wavelengths is None else blank_wavelengths
            matrix = self._aligned(blank, wavelengths=grid, check_units=False, name="the matrix blank")
            unknown, effective = without_matrix(unknown, matrix, self._arrays["at_zero"], self._facts.rules.has_blank)
        measured = unknown
        unknown = self._steps.applied(unknown, name)
        usable = None if unknown.usable.all() else unknown.usable
        if self._facts.pls is None:  # the curve's word on what is one sample counts only where there is a curve
            require_one_sample(self._curve, self.calibrated_range, unknown.spectra, usable, name, self.unit)
        unknown = replace(unknown, notes=(*said, *unknown.notes))
        how = (self._curve, self._facts, unknown, effective, level, dilution, dilution_std)
        found = answer(*how) if self._learned is None or answering == "profile" else self._learned.answer(*how)
        return self._explaining(found, measured, name)

    def quantify_many(self, spectra: Any, level: float = 0.8, method: str | None = None) -> list[ExportedAnswer]:
        """One answer per row of ``spectra [U, V]``, as measured on the standards' wavelengths; ``level`` and ``method``
        as for `quantify`."""
        answering, said = self._method(method)
        rows = np.atleast_2d(as_numbers(spectra, "spectra"))
        names = [f"unknown {i + 1}" for i in range(len(rows))]
        measured = [self._aligned(row, name=name) for row, name in zip(rows, names, strict=True)]
        unknowns = [self._steps.applied(one, name) for one, name in zip(measured, names, strict=True)]
        unknowns = [replace(one, notes=(*said, *one.notes)) for one in unknowns]
        learned = None if answering == "profile" else self._learned
        many = answer_many if learned is None else learned.answer_many
        found = many(self._curve, self._facts, unknowns, level)
        return [self._explaining(f, m, name) for f, m, name in zip(found, measured, names, strict=True)]

    def _method(self, method: str | None) -> tuple[str, tuple[str, ...]]:
        """The method that answers, and what is said of that beside every answer; files of before say less."""
        answering, said = chosen_method(method, self._unfit)
        return answering, (*said, *(self.facts.get("wide_limits", ()) if answering == "profile" else ()))

    def _explaining(self, found: Quantification, unknown: Unknown, name: str) -> ExportedAnswer:
        """``found`` with what it needs to say why a spectrum does not match: ``unknown`` as measured, and its name."""
        kept = {one.name: getattr(found, one.name) for one in fields(Quantification)}
        return ExportedAnswer(**kept, known=self._explainer, unknown=unknown, name=name)

    def _aligned(self, spectra: Any, *, wavelengths: Any = None, **options: Any) -> Unknown:
        grid, whole = self._arrays["measured_wavelengths"], self._arrays["whole_wavelengths"]
        if wavelengths is None and np.shape(spectra)[-1:] == whole.shape:
            wavelengths = whole  # leading ranges are the model's business, not the caller's
        return prepare_unknown(spectra, grid, self._arrays["standards"], wavelengths=wavelengths, **options)


def _onnxruntime(path: Path) -> Any:
    """The package that evaluates the graph; numerics that geonode shares with this package do without it."""
    try:
        import onnxruntime
    except ImportError as error:
        raise InputError(
            f"{path} is evaluated by the package onnxruntime, which cannot be imported ({error}); install it by "
            "`pip install onnxruntime`, or with geonode by `pip install 'geodesic-node[export]'`."
        ) from None
    return onnxruntime


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model exported by `geonode export`.

    Raises:
        InputError: missing, truncated, altered, foreign, or of a later version; onnxruntime is not installed.
    """
    path = as_path(path, "the exported model")
    if not path.is_file():
        raise InputError(f"{path} does not exist or is not a file; give the model that `geonode export --onnx` wrote.")
    onnxruntime = _onnxruntime(path)
    data = path.read_bytes()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors share no base of their own
        reason = " ".join(str(error).split())[:120]
        raise InputError(f"{path} is no ONNX model or is truncated ({reason}); export or copy it anew.") from None
    words = session.get_modelmeta().custom_metadata_map
    if KEY not in words or CHECKSUM not in words:
        raise InputError(f"{path} is an ONNX model but none of geonode's; give what `geonode export --onnx` wrote.")
    facts = json.loads(words[KEY])
    if facts["format"] > FORMAT:
        raise InputError(
            f"{path} has format {facts['format']}, and this geonode_runtime reads up to {FORMAT}; upgrade it."
        )
    said = words[CHECKSUM]
    if hashlib.sha256(data.replace(said.encode(), NO_CHECKSUM.encode())).hexdigest() != said:
        raise InputError(f"{path} was altered after it was written (its checksum differs); export or copy it anew.")
    return Model(path, session, facts, said)


def _cautions(facts: dict[str, Any]) -> tuple[str, ...]:
    """What is said beside every concentration; files of earlier versions have one sentence at most."""
    one = str(facts.get("caution", ""))
    return tuple(facts.get("cautions", [one] if one else []))


def _standard_spectra(arrays: dict[str, np.ndarray]) -> StandardSpectra:
    """The standards' spectra. A file from before they were kept has none: they count as new measurements there."""
    rank = arrays["basis"].shape[1]
    shapes = {"fingerprints": (0, rank + 1), "noise": (0, rank), "concentrations": (0,)}
    own = {name: arrays.get(f"own_{name}", np.zeros(shape)) for name, shape in shapes.items()}
    return StandardSpectra(scale=arrays["noise"], basis=arrays["basis"], **own)


def _pls(said: dict[str, Any] | None, arrays: dict[str, np.ndarray], levels: int) -> PLSRegression | None:
    """The regression where it is the better model of the standards; files from before it was kept have none."""
    if said is None:
        return None
    numbers = float(said["offset"]), float(said["rmsecv"]), int(said["components"])
    return PLSRegression(arrays["pls_vector"], arrays["pls_centre"], *numbers, levels)


def _shapes(facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> Shapes | None:
    """The shapes of the standards' levels; a file from before they were kept has none."""
    if "shape_spectra" not in arrays:
        return None
    return Shapes(arrays["shape_spectra"], arrays["noise"], bool(facts["shape_decides"]))


def _posterior(facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> tuple[LearnedPosterior | None, str]:
    """What answers with ``method="posterior"``, or why nothing does; files before format 4 hold none, or an earlier
    one."""
    if facts["format"] < 4:
        return None, "the file was exported before it held this posterior; export it again"
    numbers = facts["posterior"]
    if numbers is None:
        return None, facts["unfit_for_posterior"]
    known = {name[10:]: value for name, value in arrays.items() if name.startswith("posterior_")}
    weights = {name[8:]: value for name, value in arrays.items() if name.startswith("network_")}
    return LearnedPosterior(PosteriorStandards.from_state(known, numbers), weights), ""


def _explainer(facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> Explainer | None:
    """What says why a spectrum does not match; a file from before it was kept has none."""
    said = facts.get("causes")
    if said is None:
        return None
    return Explainer.from_state({n[6:]: value for n, value in arrays.items() if n.startswith("cause_")}, said)


def _only_what_is_asked() -> Any:
    """Without this a run computes every output of the graph, asked for or not."""
    import onnxruntime

    options = onnxruntime.RunOptions()
    options.only_execute_path_to_fetches = True
    return options


def _unpacked(value: dict[str, Any]) -> np.ndarray:
    found = np.frombuffer(base64.b64decode(value["data"]), dtype=value.get("type", "<f8")).reshape(value["shape"])
    return found.astype(np.float64)
