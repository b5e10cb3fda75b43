"""Training: the pure step, the batches, the loop that trains everything on one device, and Lightning around its step.

The names load on first use (PEP 562): the stacked loop (`train`, `predict`) never needs Lightning, which takes seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from geonode._bootstrap import lazily

# Public name → the module that defines it.
_PUBLIC = {
    "BatchSource": ".batches",
    "GeodesicSpectralModule": ".lightning.module",
    "PairsBatch": ".batches",
    "PointsBatch": ".batches",
    "Problem": ".problem",
    "SafetensorsIO": ".lightning.checkpoints",
    "SpectralDataModule": ".lightning.datamodule",
    "build_problem": ".problem",
    "build_trainer": ".lightning.trainer",
    "fit_gp": ".problem",
    "fit_node_folds": ".ensemble",
    "losses": ".loss",
    "predict": ".ensemble",
    "train": ".ensemble",
    "train_module": ".lightning.trainer",
}

if TYPE_CHECKING:
    from geonode.training.batches import BatchSource, PairsBatch, PointsBatch
    from geonode.training.ensemble import fit_node_folds, predict, train
    from geonode.training.lightning.checkpoints import SafetensorsIO
    from geonode.training.lightning.datamodule import SpectralDataModule
    from geonode.training.lightning.module import GeodesicSpectralModule
    from geonode.training.lightning.trainer import build_trainer, train_module
    from geonode.training.loss import losses
    from geonode.training.problem import Problem, build_problem, fit_gp

__all__ = [
    "BatchSource",
    "GeodesicSpectralModule",
    "PairsBatch",
    "PointsBatch",
    "Problem",
    "SafetensorsIO",
    "SpectralDataModule",
    "build_problem",
    "build_trainer",
    "fit_gp",
    "fit_node_folds",
    "losses",
    "predict",
    "train",
    "train_module",
]


__getattr__, __dir__ = lazily(__name__, _PUBLIC)
