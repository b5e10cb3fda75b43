"""`GeodesicConfig`: every choice of model and training in one validated, JSON-able dataclass."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, get_args

from geonode.errors import InputError

FlowKind = Literal["path_independent", "velocity", "free"]
PathKind = Literal["arc_length", "shooting"]
SolverKind = Literal["quadrature", "rk4", "dopri5", "adjoint"]
Precision = Literal["32-true", "64-true", "bf16-mixed", "16-mixed"]
PredictorKind = Literal["node", "gp"]


@dataclass(frozen=True)
class LossWeights:
    """Weights of the loss terms. The reconstruction weight is the unit; the rest are relative to it.

    ``ramp`` is the fraction of the training over which the regularisers grow linearly from 0 to their weight, so that
    the data speak first.
    """

    reconstruction: float = 1.0
    smoothness: float = 1e-5
    bounds: float = 1e-2
    path_length: float = 0.0
    christoffel: float = 0.0
    ramp: float = 0.2

    def at(self, progress: float) -> dict[str, float]:
        """Weights at ``progress`` ∈ [0, 1] of the training."""
        scale = 1.0 if self.ramp <= 0 else min(1.0, progress / self.ramp)
        terms = {name: getattr(self, name) * scale for name in ("smoothness", "bounds", "path_length", "christoffel")}
        return {"reconstruction": self.reconstruction, **terms}


@dataclass(frozen=True)
class GeodesicConfig:
    """All settings of a geonode model. The defaults are the measured best; `blueprint()` is the original recipe.

    Raises:
        InputError: a value that is out of range or combinations that cannot work, with the argument named.
    """

    # geometry
    warp: bool = True  # metric = closed-form warp × exp(m_θ); False: the metric network alone, in raw concentration
    metric_network: bool = True  # False: m_θ is left out (the ablation)
    metric_hidden: tuple[int, ...] = (64, 64)
    table_nodes: int = 64
    path: PathKind = "arc_length"
    newton_steps: int = 10
    ode_steps: int = 20
    # flow
    flow: FlowKind = "path_independent"
    flow_hidden: int = 64
    embedding: int = 8
    solver: SolverKind = "quadrature"
    nodes: int = 16
    interval_nodes: int = 4  # per interval between adjacent points, where every pair is a difference of potentials
    rtol: float = 1e-5
    atol: float = 1e-7
    # data
    teacher: bool = True  # train on spectra of the geodesic GP as well as on the measured pairs
    collocation: int = 24
    margin: float = 0.25  # the range to be asked for reaches this fraction of the calibrated range beyond it
    # training: the flow starts at its least-squares optimum (see SpectralFlow.solve_output), so few epochs suffice
    epochs: int = 60
    batch_size: int | None = None  # None: every ordered pair at once
    micro_batch: int | None = None
    wavelengths_per_step: int | None = 128
    metric_lr: float = 3e-3
    flow_lr: float = 1e-3
    metric_clip: float = 1.0
    flow_clip: float = 1.0
    weight_decay: float = 0.0
    loss: LossWeights = dataclasses.field(default_factory=LossWeights)
    precision: Precision = "32-true"
    scaler_init: float = 2.0**16
    scaler_backoff: float = 0.5
    members: int = 2  # neural ensemble members (seeds), trained as one batch
    seed: int = 0
    predictor: PredictorKind = "node"  # which mean `predict_spectra` gives
    folds: bool = False  # every seed without each standard too: bands, `quantify` and report then rest on the flow

    def __post_init__(self) -> None:
        if isinstance(self.loss, dict):
            _check_names("loss", self.loss, LossWeights)
            object.__setattr__(self, "loss", LossWeights(**self.loss))
        for owner, prefix in ((self, ""), (self.loss, "loss.")):
            for item in dataclasses.fields(owner):
                _check_kind(prefix + item.name, getattr(owner, item.name), str(item.type))
        object.__setattr__(self, "metric_hidden", tuple(int(h) for h in self.metric_hidden))
        for name, kind in _LITERALS.items():
            _check_choice(name, getattr(self, name), get_args(kind))
        for name, low in _MINIMA.items():
            _check_minimum(name, getattr(self, name), low)
        for term in ("reconstruction", "smoothness", "bounds", "path_length", "christoffel"):
            _check_minimum(f"loss.{term}", getattr(self.loss, term), 0.0)
        if self.solver == "quadrature" and self.path == "shooting":
            raise InputError("solver='quadrature' needs path='arc_length'; with path='shooting' choose rk4 or dopri5.")
        if self.flow == "free" and self.solver == "quadrature" and not self.warp:
            raise InputError("flow='free' without a warp has no quadrature; choose solver rk4, dopri5 or adjoint.")
        if self.folds and self.predictor != "node":
            raise InputError("folds=True is for the neural flow; use predictor='node', or leave folds out.")
        if self.batch_size and self.micro_batch and self.batch_size % self.micro_batch:
            raise InputError(
                f"batch_size={self.batch_size} must be a multiple of micro_batch={self.micro_batch}; change either."
            )

    @property
    def accumulate(self) -> int:
        """Micro-batches per optimiser step (gradient accumulation)."""
        return self.batch_size // self.micro_batch if self.batch_size and self.micro_batch else 1

    @property
    def all_pairs(self) -> bool:
        """True where every pair is the difference of one potential, so that each interval is integrated once."""
        return self.flow == "path_independent" and self.solver == "quadrature" and self.batch_size is None

    @classmethod
    def blueprint(cls, **changes: Any) -> GeodesicConfig:
        """The original recipe exactly: metric 2→64→64→1 without warp, flow 11→16→1 free in v, ten Newton steps of
        shooting, dopri5 with adjoint gradients, mega-batches of 2048 in micro-batches of 256, fp16 with loss scaling.

        It needs a CUDA device as it stands; ``blueprint(precision="32-true")`` runs anywhere. ``changes`` are settings
        that take the place of the recipe's.

        Raises:
            InputError: a setting out of range, or settings that do not go together.
            TypeError: a setting that does not exist.
        """
        recipe: dict[str, Any] = {
            "warp": False,
            "metric_hidden": (64, 64),
            "path": "shooting",
            "newton_steps": 10,
            "flow": "free",
            "flow_hidden": 16,
            "solver": "adjoint",
            "rtol": 1e-5,
            "atol": 1e-7,
            "teacher": False,
            "batch_size": 2048,
            "micro_batch": 256,
            "wavelengths_per_step": None,
            "epochs": 500,
            "metric_lr": 1e-3,
            "flow_lr": 1e-3,
            "precision": "16-mixed",
            "scaler_init": 2.0**16,
            "scaler_backoff": 0.5,
            "members": 1,
        }
        return cls(**{**recipe, **changes})

    def replace(self, **changes: Any) -> GeodesicConfig:
        """A copy with some settings changed (validated again): ``changes`` by name.

        Raises:
            InputError: a setting out of range, or settings that do not go together.
            TypeError: a setting that does not exist.
        """
        return dataclasses.replace(self, **changes)

    def to_json(self) -> str:
        """The settings as JSON text."""
        return json.dumps(dataclasses.asdict(self), indent=2)

    @classmethod
    def from_json(cls, text: str) -> GeodesicConfig:
        """The inverse of `to_json`: ``text`` is what it gave.

        Raises:
            InputError: an unknown setting, by name, one out of range, or settings that do not go together.
        """
        values = json.loads(text)
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise InputError(f"Unknown setting {unknown[0]!r}; known settings are {', '.join(sorted(known))}.")
        return cls(**values)


_LITERALS = {
    "flow": FlowKind,
    "path": PathKind,
    "solver": SolverKind,
    "precision": Precision,
    "predictor": PredictorKind,
}
_MINIMA: dict[str, float] = {
    "table_nodes": 8,
    "newton_steps": 1,
    "ode_steps": 1,
    "flow_hidden": 1,
    "embedding": 1,
    "nodes": 1,
    "interval_nodes": 1,
    "collocation": 0,
    "margin": 0.0,
    "epochs": 1,
    "batch_size": 1,
    "micro_batch": 1,
    "wavelengths_per_step": 1,
    "metric_lr": 0.0,
    "flow_lr": 0.0,
    "metric_clip": 0.0,
    "flow_clip": 0.0,
    "weight_decay": 0.0,
    "members": 1,
    "rtol": 0.0,
    "atol": 0.0,
}


def _check_names(name: str, values: dict[str, Any], kind: type) -> None:
    known = sorted(item.name for item in dataclasses.fields(kind))
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise InputError(f"Unknown setting '{name}.{unknown[0]}'; known settings of {name} are {', '.join(known)}.")


def _check_kind(name: str, value: Any, kind: str) -> None:
    """Refuse a value of another kind than the field's: settings come from files too, where 1e-3 may be text."""
    if kind.endswith(" | None") and value is None:
        return
    kind = kind.removesuffix(" | None")
    number = not isinstance(value, bool) and isinstance(value, Real)
    if kind == "int" and not (number and isinstance(value, Integral)):
        raise InputError(f"{name}={value!r} must be a whole number.")
    if kind == "float" and not number:
        raise InputError(f"{name}={value!r} must be a number; in YAML, write 1.0e-3 for 0.001.")
    if kind == "bool" and not isinstance(value, bool):
        raise InputError(f"{name}={value!r} must be true or false.")
    if kind == "tuple[int, ...]" and not (
        isinstance(value, (list, tuple)) and value and all(isinstance(h, Integral) and int(h) >= 1 for h in value)
    ):
        raise InputError(f"{name}={value!r} must be a list of whole numbers from 1 on, for example [64, 64].")


def _check_choice(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"{name}={value!r} is not known; choose one of {', '.join(allowed)}.")


def _check_minimum(name: str, value: Any, low: float) -> None:
    if value is not None and not value >= low:
        raise InputError(f"{name}={value!r} is too small; it must be at least {low:g}.")
