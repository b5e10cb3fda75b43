"""`GeodesicConfig`: every choice of model and training, by component, validated and JSON-able.

Each component's settings stand beside what they configure and are received by it alone; here they are put together,
and the flat names of earlier bundles, settings files and callers are understood.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from geonode.errors import InputError
from geonode.flow import FLOWS, SOLVERS, Flow, Solver
from geonode.flow.config import FlowConfig, flow_settings
from geonode.geodesic.config import PathConfig
from geonode.metric import METRICS, LogMetric, Metric
from geonode.metric.config import MetricConfig, metric_settings
from geonode.registry import Registry
from geonode.settings import check_choice, check_kind, said_once
from geonode.training.config import TrainingConfig
from geonode.training.terms import LOSSES, LossConfig
from geonode_runtime import wording
from geonode_runtime.given_numbers import short
from geonode_runtime.wording import argument

__all__ = [
    "ALIASES",
    "REGISTRIES",
    "FlowConfig",
    "GeodesicConfig",
    "LossConfig",
    "MetricConfig",
    "PathConfig",
    "TrainingConfig",
    "implementations",
]

Component = MetricConfig | PathConfig | FlowConfig | LossConfig | TrainingConfig
PREDICTORS = ("node", "gp")
REGISTRIES: dict[str, Registry[Any]] = {r.kind: r for r in (METRICS, FLOWS, SOLVERS, LOSSES)}
"""The registries of what a configuration names, by what they hold: "metric", "flow", "solver", "loss term"."""
_COMPONENTS: dict[str, type[Component]] = {
    "metric": MetricConfig,
    "path": PathConfig,
    "flow": FlowConfig,
    "loss": LossConfig,
    "training": TrainingConfig,
}
ALIASES: dict[str, tuple[str, str]] = {
    "warp": ("metric", "warp"),
    "metric_hidden": ("metric", "hidden"),
    "table_nodes": ("metric", "table_nodes"),
    "flow_hidden": ("flow", "hidden"),
    "embedding": ("flow", "embedding"),
    **{name: ("path", name) for name in PathConfig.names() if name not in ("name", "options")},
    **{name: ("training", name) for name in TrainingConfig.names()},
}
"""Flat name of a setting → its component and its name there. ``metric_network`` (true or false) is understood too."""


_USED_UNTRAINED = {("flow", "name"), ("flow", "options"), *(("training", name) for name in ("margin", "seed", "folds"))}
"""(component, setting) that count where nothing is trained; a seed is taken, for nothing is drawn."""


@dataclass(frozen=True, init=False)
class GeodesicConfig:
    """All settings of a geonode model. The defaults are the measured best; `blueprint()` is the original recipe.

    By default the flow is ``pretrained``: its weights have been trained on simulated assays, it reads the standards and
    nothing is trained, so settings of a training are refused. A metric, path, solver or flow of one's own (or settings
    of theirs) means a flow that is trained on the standards, ``path_independent`` unless another is named.

    Args:
        metric: a `MetricConfig`, some of its settings as a mapping, a metric's name, or a metric or its class: then
            the class and the arguments it was made with are taken down, not its parameters.
        path: a `PathConfig`, some of its settings, or a path's name.
        flow: a `FlowConfig`, some of its settings, a flow's name, or a flow or its class, likewise.
        loss: a `LossConfig`, or weights by term.
        training: a `TrainingConfig`, or some of its settings.
        predictor: which mean `predict_spectra` gives, ``node`` or ``gp``.
        flat: settings of the components by their flat names, ``epochs=5`` for ``training={"epochs": 5}``; `ALIASES`
            lists them. ``solver`` may be a `geonode.flow.Solver` or its class, too.

    Raises:
        InputError: a value that is out of range or combinations that cannot work, with the argument named.
        TypeError: a setting that does not exist.
    """

    metric: MetricConfig
    path: PathConfig
    flow: FlowConfig
    loss: LossConfig
    training: TrainingConfig
    predictor: str

    def __init__(
        self,
        metric: MetricConfig | Mapping[str, Any] | str | Metric | LogMetric | type | None = None,
        path: PathConfig | Mapping[str, Any] | str | None = None,
        flow: FlowConfig | Mapping[str, Any] | str | Flow | type | None = None,
        loss: LossConfig | Mapping[str, Any] | None = None,
        training: TrainingConfig | Mapping[str, Any] | None = None,
        predictor: str = "node",
        **flat: Any,
    ) -> None:
        components = {"metric": metric, "path": path, "flow": flow, "loss": loss, "training": training}
        bases = {**{name: kind() for name, kind in _COMPONENTS.items()}, "flow": FlowConfig("pretrained")}
        for name, value in _assembled(bases, components, flat).items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "predictor", predictor)
        self._check()

    def _check(self) -> None:
        """Refuse what single components cannot know: names of solvers, and settings that do not go together."""
        check_choice("predictor", self.predictor, PREDICTORS)
        SOLVERS.check(self.path.solver, "solver")
        name, solver, flow = self.path.solver, SOLVERS[self.path.solver], FLOWS[self.flow.name]
        if solver.closed_form and self.path.name == "shooting":
            raise InputError(
                f"{argument('solver', name)} needs {argument('path', 'arc_length')}; with "
                f"{argument('path', 'shooting')} choose rk4 or dopri5."
            )
        if solver.needs_potential and not flow.several_analytes:
            raise InputError(f"{argument('solver', name)} is for several analytes; along one axis choose quadrature.")
        if solver.closed_form and not flow.uses_arc_length and not flow.several_analytes and not self.metric.warp:
            raise InputError(
                f"{argument('flow', self.flow.name)} without a warp has no quadrature; choose solver rk4, dopri5 "
                "or adjoint."
            )
        if self.training.folds and self.predictor != "node":
            raise InputError(
                f"{argument('folds', True)} is for the neural flow; use {argument('predictor', 'node')}, or leave "
                f"{argument('folds')} out."
            )
        if not flow.needs_training and self.predictor == "node":
            self._require_nothing_to_train()

    def _require_nothing_to_train(self) -> None:
        """Refuse settings that a flow which is not trained would pass over."""
        for name, kind in _COMPONENTS.items():
            default, own = kind(), getattr(self, name)
            for setting in (item.name for item in dataclasses.fields(kind)):
                used = (name, setting) in _USED_UNTRAINED
                if not used and getattr(own, setting) != getattr(default, setting):
                    named = wording.setting(f"{name}.{setting}")
                    raise InputError(
                        f"{named} would have no effect: the flow {self.flow.name!r} brings its own metric "
                        "and trains nothing; leave the setting out, or choose "
                        f"{argument('flow', 'path_independent')}, which is trained on the standards."
                    )

    def __getattr__(self, name: str) -> Any:
        """A setting by its flat name; see `ALIASES`."""
        if name == "metric_network":
            return self.metric.name != "flat"
        if name not in ALIASES:
            raise AttributeError(f"GeodesicConfig has no setting {name!r}")
        component, setting = ALIASES[name]
        return getattr(object.__getattribute__(self, component), setting)

    @property
    def accumulate(self) -> int:
        """Micro-batches per optimiser step (gradient accumulation)."""
        return self.training.accumulate

    @property
    def closed_form(self) -> bool:
        """True where paths and spectra come from closed forms: no step is decided by looking at values."""
        return SOLVERS[self.path.solver].closed_form and self.path.name == "arc_length"

    @property
    def all_pairs(self) -> bool:
        """True where every pair is the difference of one potential, so that each interval is integrated once."""
        return FLOWS[self.flow.name].path_independent and self.closed_form and self.training.batch_size is None

    @classmethod
    def blueprint(cls, **changes: Any) -> GeodesicConfig:
        """The original recipe: metric 2→64→64→1 without warp, flow 11→16→1 free in v, ten Newton steps of shooting,
        20 steps of the coupled ODE, the data's loss alone, mega-batches of 2048 in micro-batches of 256, fp16 with loss
        scaling.

        Where it deviates, and why (docs/design.md §11 has the rest of the recipe):

        - Γ is exact, not the differences of stacked [c − ε, c, c + ε]: no ε to choose, and the shooting kernel has g
          and its derivative in one pass. ``christoffel="finite_difference"`` is the recipe's.
        - Newton's target goes from start to end in four stages of which the last has the ten steps: from v = b − a
          alone it fails on ordinary problems. Its derivative is the path's own, not a difference of trajectories.
        - One optimiser with a group each for metric and flow, not two optimisers: the same updates. Both rates are 1e-3
          unless ``metric_lr`` and ``flow_lr`` set them apart.
        - The 20 steps are equal ones of RK4, the very steps of shooting, with the gradient of what was computed: one
          kernel takes them all, and a CUDA graph can hold the training step. ``solver="adjoint"`` is the recipe's:
          dopri5 with adjoint gradients, to ``rtol`` and ``atol``, whose steps the 20 cap by their length, so that a
          path ends with a larger error (and a warning) rather than not at all.
        - No GroupNorm: inputs are scaled to order one, and a metric normalised over its channels has no derivative
          that kernels and exported graphs could write down.
        - The networks see concentration scaled to [−1, 1], not in user units.
        - A pair whose geodesic is not found counts for nothing in a step; each model ends in its best state, not its
          last, and each has its own loss scale.

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
            "solver": "rk4",
            "ode_steps": 20,
            "loss": {name: 0.0 for name in LOSSES if name != "reconstruction"},
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
        return cls(**recipe).replace(**changes)

    @classmethod
    def of(cls, config: GeodesicConfig | None) -> GeodesicConfig:
        """``config`` itself, or the defaults for None.

        Raises:
            InputError: neither of the two.
        """
        if config is None:
            return cls()
        if not isinstance(config, GeodesicConfig):
            raise InputError(
                f"config must be a geonode.GeodesicConfig, but {short(config)} was given; make one of settings by "
                "name, as in GeodesicConfig(margin=0.5)."
            )
        return config

    def replace(self, **changes: Any) -> GeodesicConfig:
        """A copy with some settings changed (validated again): ``changes`` by flat name, or by component.

        A component given as a mapping or by name changes what it says and keeps the rest of that component.

        Raises:
            InputError: a setting out of range, or settings that do not go together.
            TypeError: a setting that does not exist.
        """
        predictor = changes.pop("predictor", self.predictor)
        components = {name: changes.pop(name, None) for name in _COMPONENTS}
        present = {name: getattr(self, name) for name in _COMPONENTS}
        return GeodesicConfig(**_assembled(present, components, changes), predictor=predictor)

    def to_json(self) -> str:
        """The settings as JSON text, by component."""
        return json.dumps(dataclasses.asdict(self), indent=2)

    @classmethod
    def from_json(cls, text: str, flow: str | None = None) -> GeodesicConfig:
        """The inverse of `to_json`: ``text`` is what it gave, or settings by flat names as earlier states wrote them.

        Args:
            text: JSON.
            flow: the flow of settings that name none, ``path_independent`` before there was a pre-trained one; None
                takes today's default.

        Raises:
            InputError: an unknown setting, by name, one out of range, one that stands twice, or settings that do not go
                together.
        """
        values = json.loads(text, object_pairs_hook=said_once)
        if not isinstance(values, dict):
            raise InputError('Settings are an object such as {"seed": 3}.')
        known = {*_COMPONENTS, *ALIASES, "metric_network", "predictor"}
        unknown = sorted(set(values) - known)
        if unknown:
            raise InputError(f"Unknown setting {unknown[0]!r}; known settings are {', '.join(sorted(known))}.")
        for name in sorted(ALIASES.keys() & values.keys()):
            component, setting = ALIASES[name]
            if name != component and isinstance(values.get(component), dict) and setting in values[component]:
                raise InputError(f"{name!r} stands twice, as {component}.{setting} too; leave one of the two out.")
        if flow is not None and "flow" not in values:
            values["flow"] = flow
        return cls(**values)


def implementations(config: GeodesicConfig) -> dict[str, dict[str, str]]:
    """What a configuration names, for a record: kind (a key of `REGISTRIES`) → name → the module that defines it."""
    names = {
        "metric": [str(config.metric.name)],
        "flow": [config.flow.name],
        "solver": [config.path.solver],
        "loss term": [name for name, weight in config.loss.weights.items() if weight > 0.0],
    }
    return {kind: {name: REGISTRIES[kind][name].__module__ for name in found} for kind, found in names.items()}


def _assembled(present: Mapping[str, Any], components: Mapping[str, Any], flat: Mapping[str, Any]) -> dict[str, Any]:
    """The components from those at present, what was given for them, and settings by flat names (which go last)."""
    by_component: dict[str, dict[str, Any]] = {name: {} for name in _COMPONENTS}
    for name, value in flat.items():
        if name == "metric_network":
            check_kind(name, value, "bool")
            by_component["metric"]["metric_network"] = value
        elif name == "solver" and not isinstance(value, str):
            by_component["path"].update(Solver.settings(value))
        elif name in ALIASES:
            component, setting = ALIASES[name]
            by_component[component][setting] = value
        else:
            raise TypeError(f"GeodesicConfig has no setting {name!r}; settings are those of {', '.join(_COMPONENTS)}.")
    own_motion = any(components[name] is not None or by_component[name] for name in ("metric", "path", "flow"))
    result: dict[str, Any] = {}
    for name, kind in _COMPONENTS.items():
        given, changes = components[name], by_component[name]
        base = given if isinstance(given, kind) else present[name]
        if name in ("metric", "flow") and isinstance(given, (type, nn.Module)):
            changes = {**(metric_settings(given) if name == "metric" else flow_settings(given)), **changes}
        elif isinstance(given, Mapping):
            changes = {**_nested(name, given), **changes}
        elif isinstance(given, str) and name != "loss" and name != "training":
            changes = {"name": given, **changes}
        elif given is not None and not isinstance(given, kind):
            raise InputError(
                f"{wording.stated(name, given)} must be a {kind.__name__}, or a mapping from its settings to values."
            )
        if name == "metric":
            changes = _metric_changes(base, changes)
        untrained = isinstance(base, FlowConfig) and not FLOWS[base.name].needs_training
        if untrained and own_motion and not isinstance(given, kind):
            changes = {"name": FlowConfig.name, **changes}
        result[name] = base.replace(**changes) if changes else base
    return result


def _nested(component: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a component as a mapping; the weights of the loss may stand beside its ramp, as they once did."""
    values = dict(given)
    if component != "loss":
        return values
    weights = values.pop("weights", {})
    check_kind("loss.weights", weights, "Mapping")
    ramp = {"ramp": values.pop("ramp")} if "ramp" in values else {}
    return {"weights": {**weights, **values}, **ramp}


def _metric_changes(base: Any, changes: dict[str, Any]) -> dict[str, Any]:
    """Changes of the metric, with its name following ``warp`` and ``metric_network`` as it did when names were flat."""
    network = changes.pop("metric_network", None)
    if network is None and "warp" not in changes:
        return changes
    name = changes.get("name", base.name)
    if network is False:
        name = "flat"
    elif (network and name == "flat") or ("name" not in changes and name == base.default_name(base.warp)):
        name = None  # the default for the coordinate
    return {**changes, "name": name}
