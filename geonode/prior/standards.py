"""The pre-trained flow of a data set: what ``geonode.fit`` makes of standards, and its folds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from geonode.calibration.assessment.coverage import responding_wavelengths
from geonode.calibration.gp.geodesic_gp import GeodesicGP
from geonode.calibration.gp.node_process import Flow, NodeEnsemble
from geonode.calibration.leave_out import levels_kept, levels_to_leave_out
from geonode.config import GeodesicConfig
from geonode.data import SpectralDataset
from geonode.errors import InputError
from geonode.flow import FLOWS
from geonode.prior.flow import AssayFlow, replicate_variance
from geonode.prior.stored import load_network, smooth_of, weights_at_hand, weights_of, weights_record
from geonode.training.leave_out import Folds
from geonode_runtime.wording import argument

MOST_LEVELS = 50
"""Assays of 3 to so many levels trained the flow (`geonode.corpus`); reading 100 takes minutes, for weights that never
saw as many."""


def with_weights(config: GeodesicConfig, weights: str | Path | None) -> GeodesicConfig:
    """The settings with the pre-trained flow of other weights; None leaves them as they are.

    Args:
        config: whose flow is the pre-trained one.
        weights: a file that `geonode adapt` or `geonode pretrain` wrote, or the name of weights that come with geonode.

    Raises:
        InputError: weights that cannot be had, or settings by which nothing would read them.
    """
    if weights is None:
        return config
    if config.predictor == "gp" or FLOWS[config.flow.name].needs_training:
        chosen = (
            f"{argument('predictor', 'gp')} has none"
            if config.predictor == "gp"
            else f"{argument('flow', config.flow.name)} is trained"
        )
        raise InputError(f"weights are those of the pre-trained flow, and {chosen}; give one of both.")
    load_network(weights)
    return config.replace(flow={"name": "pretrained", "options": {**config.flow.options, "weights": str(weights)}})


def read_all(dataset: SpectralDataset, gp: GeodesicGP, folds: Folds | None, config: GeodesicConfig) -> dict[str, Any]:
    """What a model holds of the pre-trained flow: ``flow``, ``fold_flows`` and ``weights`` (name and SHA-256).

    Args:
        dataset, gp, config: as for `read_standards`.
        folds: levels that are left out in turn, or None.
    """
    return {
        "flow": read_standards(dataset, gp, config),
        "fold_flows": [] if folds is None else read_folds(dataset, folds, config),
        "weights": weights_record(weights_of(config.flow.options)),
    }


def levels_to_read(levels: np.ndarray, config: GeodesicConfig) -> int:
    """The number of ``levels [n]``, asked before anything is computed from them.

    Raises:
        InputError: more than the pre-trained flow can read, where it is the predictor.
    """
    if len(levels) > MOST_LEVELS and config.predictor != "gp" and not FLOWS[config.flow.name].needs_training:
        raise InputError(
            f"there are {len(levels)} distinct concentrations, and the pre-trained flow reads {MOST_LEVELS} at most, "
            "as many as it was trained on; give neighbours one concentration as replicates, keep fewer "
            f"({argument('select')}), or "
            f"take the Gaussian process alone ({argument('predictor', 'gp')} with "
            f"{argument('flow', 'path_independent')})."
        )
    return len(levels)


def read_standards(dataset: SpectralDataset, gp: GeodesicGP, config: GeodesicConfig) -> AssayFlow:
    """The flow of all standards; nothing is trained.

    Args:
        dataset: of one analyte, without masked wavelengths.
        gp: the geodesic process of its level means.
        config: whose flow is the pre-trained one; its options name the weights.

    Raises:
        InputError: weights that are not there or are none.
    """
    network, margin = load_network(weights_of(config.flow.options)), config.training.margin
    return AssayFlow(
        network,
        gp.levels,
        gp.level_means,
        variance_between(dataset),
        margin=margin,
        gp=gp,
        smooth=smooth_of(config.flow.options),
    )


def read_folds(dataset: SpectralDataset, folds: Folds, config: GeodesicConfig) -> list[AssayFlow]:
    """The flow without each of the levels that ``folds`` leave out."""
    network = load_network(weights_of(config.flow.options))
    return [
        AssayFlow(
            network,
            gp.levels,
            gp.level_means,
            variance_between(dataset, int(i)),
            margin=_reach(dataset, gp, config),
            gp=gp,
            smooth=smooth_of(config.flow.options),
        )
        for i, gp in zip(folds.left_out, folds.gps, strict=True)
    ]


def flow_ensemble(gp: GeodesicGP, flow: AssayFlow, folds: Folds, flows: list[AssayFlow]) -> NodeEnsemble:
    """What a calibration rests on with ``config.folds``: the flow, and what its folds get wrong."""
    return NodeEnsemble.of(gp, _member(flow), folds.left_out, folds.gps, [_member(one) for one in flows])


def band_coverage(
    dataset: SpectralDataset, gp: GeodesicGP, config: GeodesicConfig, weights: dict[str, str] | None
) -> dict[str, float | None]:
    """How often the flow's 80 % bands held levels that it was read without, at responding and silent wavelengths; None
    where the ``weights`` that it was read with are not at hand."""
    path = weights_at_hand(weights, config.flow.options)
    if path is None:
        return {"bands_responding": None, "bands_silent": None}
    network, means = load_network(path), gp.level_means
    left_out = levels_to_leave_out(len(means))
    inside = []
    for i in left_out:
        kept = levels_kept(len(means), int(i))
        variance, smooth = variance_between(dataset, int(i)), smooth_of(config.flow.options)
        flow = AssayFlow(network, gp.levels[kept], means[kept], variance, smooth=smooth)
        low, high = flow.predict(gp.levels[[i]]).interval(0.8)
        inside.append((low[0] <= means[i]) & (means[i] <= high[0]))
    covered, responding = np.stack(inside), responding_wavelengths(means)
    return {
        "bands_responding": float(covered[:, responding].mean()) if responding.any() else None,
        "bands_silent": float(covered[:, ~responding].mean()) if (~responding).any() else None,
    }


def variance_between(dataset: SpectralDataset, without: int | None = None) -> Any:
    """Variance between replicates ``[W]``, None where nothing was repeated.

    Args:
        dataset: of one analyte. without: a level that is left out, by its place in ascending order; None for none.
    """
    deviations = np.asarray(dataset.replicate_deviations())
    levels, index = np.unique(np.asarray(dataset.concentrations), return_inverse=True)
    kept = np.ones(len(index), dtype=bool) if without is None else index != without
    return replicate_variance(deviations[kept], len(levels) - (without is not None))


def _reach(dataset: SpectralDataset, gp: GeodesicGP, config: GeodesicConfig) -> float:
    """The margin with which a fold's knots cover what those of all standards do."""
    levels, span = np.asarray(dataset.levels), float(gp.levels[-1] - gp.levels[0])
    whole = config.training.margin * float(levels.max() - levels.min())
    beyond = max(gp.levels[0] - levels.min(), levels.max() - gp.levels[-1], 0.0)
    return (whole + beyond) / span


def _member(flow: AssayFlow) -> Flow:
    """An ensemble of one."""
    return lambda concentrations: flow.predict_mean(concentrations)[None]
