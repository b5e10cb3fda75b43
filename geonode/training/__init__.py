"""Training: the pure step, the batches, the stacked loop, and Lightning around them."""

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
