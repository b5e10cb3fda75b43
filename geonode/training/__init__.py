"""Training: the pure step, the batches, the stacked loop, and Lightning around them.

The names load on first use (PEP 562): the stacked loop (`train`, `predict`) never needs Lightning, which takes seconds.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# Public name → the module that defines it.
_PUBLIC = {
    "BatchSource": "batches",
    "GeodesicSpectralModule": "module",
    "PairsBatch": "step",
    "PointsBatch": "step",
    "Problem": "problem",
    "SafetensorsIO": "checkpoint_io",
    "SpectralDataModule": "datamodule",
    "build_problem": "problem",
    "build_trainer": "trainer",
    "fit_gp": "datamodule",
    "fit_node_folds": "ensemble",
    "losses": "step",
    "predict": "ensemble",
    "resolve_device": "trainer",
    "train": "ensemble",
    "train_module": "trainer",
}

if TYPE_CHECKING:
    from geonode.training.batches import BatchSource
    from geonode.training.checkpoint_io import SafetensorsIO
    from geonode.training.datamodule import SpectralDataModule, fit_gp
    from geonode.training.ensemble import fit_node_folds, predict, train
    from geonode.training.module import GeodesicSpectralModule
    from geonode.training.problem import Problem, build_problem
    from geonode.training.step import PairsBatch, PointsBatch, losses
    from geonode.training.trainer import build_trainer, resolve_device, train_module

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
    "resolve_device",
    "train",
    "train_module",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'geonode.training' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"geonode.training.{_PUBLIC[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
