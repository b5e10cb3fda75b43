"""Settings that have no effect in a training, each with the reason: what a run says of them before it begins.

A setting has an effect where it changes a loss or a spectrum. Most belong to one flow, solver, metric or precision, and
where another is chosen nothing reads them; whoever changed one then waits for what cannot come.
"""

from __future__ import annotations

import dataclasses
import inspect
import warnings
from collections.abc import Callable
from typing import Any

from geonode.config import FlowConfig, GeodesicConfig, LossConfig, MetricConfig, PathConfig, TrainingConfig
from geonode.errors import InputError
from geonode.flow import FLOWS, SOLVERS, Flow
from geonode.flow.parts import build_metric
from geonode.metric import METRICS
from geonode.training.problem import DENSE
from geonode.training.terms import LOSSES
from geonode_runtime.wording import argument, setting

COMPONENTS = (MetricConfig, PathConfig, FlowConfig, LossConfig, TrainingConfig)
SERVED = "margin"
"""The one setting of a training that counts without one: it says which range a report shows."""


def without_effect(config: GeodesicConfig) -> dict[str, str]:
    """What ``config`` sets to another value than the default though nothing reads it: setting → why.

    A setting is named ``component.setting``, a weight of the loss ``loss.<term>``. That a value does no more than
    another (a largest gradient that is never met, more wavelengths a step than there are) is not looked for.

    Raises:
        InputError: a metric that cannot be made with its options.
    """
    if config.predictor == "gp":
        why = f"{argument('predictor', 'gp')} trains nothing"
        return {name: why for name in _changed(config) if name != f"training.{SERVED}"}
    if not getattr(FLOWS[config.flow.name], "needs_training", True):
        return {}  # the settings of a flow that is not trained are refused where they are put together
    reasons = {**_of_path(config), **_of_parts(config), **_of_training(config)}
    return {name: reasons[name] for name in _changed(config) if name in reasons}


def sentences(config: GeodesicConfig) -> list[str]:
    """`without_effect` of ``config`` as sentences, each with its remedy; errors as there."""
    return [f"{setting(name)} has no effect here: {why}; leave it out." for name, why in without_effect(config).items()]


def warn_of_idle_settings(config: GeodesicConfig) -> None:
    """Each of `sentences` of ``config`` as a warning at the place that called the caller; errors as there."""
    for text in sentences(config):
        warnings.warn(text, stacklevel=3)


READING = ("concentration_unit", "concentrations", "column", "decimal", "select", "sheet", "wavelength_unit", "signal")
"""Options of reading standards, which people look for in ``fit``."""
_WATCHING = ("probe", "watcher")
"""Options that do no more than look on: where nothing is trained there is nothing to see, and nobody is misled."""


def require_no_training(config: GeodesicConfig, **options: Any) -> None:
    """Refuse ``options`` of a training where there is none.

    Raises:
        InputError: naming the option and the remedy.
    """
    process = config.predictor == "gp"
    why = (
        f"{argument('predictor', 'gp')} trains nothing" if process else f"the flow {config.flow.name!r} is not trained"
    )
    other = (
        f"fit the neural flow ({argument('predictor', 'node')})"
        if process
        else f"choose {argument('flow', 'path_independent')}, which is trained"
    )
    for name, value in options.items():
        if name in READING:
            raise InputError(
                f"fit has no option {name}: it belongs to the standards; give it to geonode.load_standards or to "
                "SpectralDataset, and fit what comes back."
            )
        idle = not value or (name == "strategy" and value == "auto")
        if name not in _WATCHING and not idle:
            raise InputError(f"{argument(name, value)} would have no effect: {why}; leave it out, or {other}.")


def _changed(config: GeodesicConfig) -> list[str]:
    """Settings that are not the default's, but for names of implementations, which say what counts."""
    found = []
    for kind in COMPONENTS:
        own, default = getattr(config, kind.component), kind()
        for item in dataclasses.fields(kind):
            value, usual = getattr(own, item.name), getattr(default, item.name)
            if item.name == "weights":
                found += [f"loss.{name}" for name in value if value[name] != usual[name]]
            elif item.name not in ("name", "solver") and value != usual:
                found.append(f"{kind.component}.{item.name}")
    return found


def _of_path(config: GeodesicConfig) -> dict[str, str]:
    path, solver, flow = config.path, SOLVERS[config.path.solver], FLOWS[config.flow.name]
    shooting, said = path.name == "shooting", argument("solver", path.solver)
    taken = _takes(solver)
    reasons = {f"path.{name}": f"{said} does not take it" for name in ("rtol", "atol") if name not in taken}
    if not shooting:
        reasons["path.newton_steps"] = f"they are shooting's, and {argument('path', 'arc_length')} has a closed form"
    if not shooting and "ode_steps" not in taken:
        reasons["path.ode_steps"] = f"{said} does not take it"
    if solver.closed_form:
        reasons["path.christoffel"] = f"{said} follows closed-form paths, for which no Christoffel symbol is needed"
    elif config.metric.name == "flat":
        reasons["path.christoffel"] = "the metric is flat, so that every rule gives zero"
    if "nodes" not in taken and not flow.path_independent:
        reasons["path.nodes"] = f"{said} does not take it"
    if not config.all_pairs:
        reasons["path.interval_nodes"] = "explicit pairs are trained, not differences of one potential"
    return reasons


def _of_parts(config: GeodesicConfig) -> dict[str, str]:
    """Of the metric, of the flow, and of what the loss asks of the metric."""
    reasons = {}
    if "hidden" not in _takes(METRICS[str(config.metric.name)]):
        reasons["metric.hidden"] = f"the metric {config.metric.name!r} has no hidden layers"
    flow = FLOWS[config.flow.name]
    if getattr(flow.from_config, "__func__", None) is Flow.from_config.__func__:  # type: ignore[attr-defined]
        for name in {"hidden", "embedding"} - _takes(flow):
            reasons[f"flow.{name}"] = f"the flow {config.flow.name!r} does not take it"
    fixed = not list(build_metric(config.metric, 1, 0).parameters())
    if fixed:
        why = f"the metric {config.metric.name!r} has no parameters to train"
        reasons |= {f"loss.{name}": why for name, term in LOSSES.items() if term.of_metric}
        reasons |= {"training.metric_lr": why, "training.metric_clip": why}
    growing = [
        n for n, term in LOSSES.items() if config.loss.weights[n] and term.ramped and not (fixed and term.of_metric)
    ]
    if not growing:
        reasons["loss.ramp"] = "no term with a weight grows over the training"
    return reasons


def _of_training(config: GeodesicConfig) -> dict[str, str]:
    training, reasons = config.training, {}
    if not training.teacher:
        reasons["training.collocation"] = f"{argument('teacher', False)}: nothing speaks between the standards"
    elif not config.all_pairs and 0 < training.collocation <= DENSE:
        reasons["training.collocation"] = f"pairs are drawn among {DENSE} concentrations at the least"
    if training.precision != "16-mixed":
        for name in ("scaler_init", "scaler_backoff"):
            reasons[f"training.{name}"] = f"{argument('precision', training.precision)} scales no loss"
    return reasons


def _takes(made: Callable[..., Any]) -> set[str]:
    """The arguments of a constructor."""
    return set(inspect.signature(made).parameters)
