"""`fit` and the loop inside `evaluate` are one engine: a model's step is the same work in both."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import geonode
from geonode.calibration import GeodesicGP
from geonode.config import GeodesicConfig
from geonode.data import simulate_assay
from geonode.training import fit_node_folds


class Work(TorchDispatchMode):
    """Operators called and numbers written up to the end of each epoch, the backward pass included.

    Counted and not timed: a ratio of times says what else the machine did.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls = self.numbers = 0
        self.at: list[tuple[int, int]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        self.calls += 1
        self.numbers += sum(x.numel() for x in torch.utils._pytree.tree_leaves(found) if isinstance(x, torch.Tensor))
        return found

    def epoch(self, *_: object) -> None:
        self.at.append((self.calls, self.numbers))

    def step(self, models: int) -> tuple[float, float]:
        """Operators and numbers of one model's step."""
        calls, numbers = (statistics.median(np.diff(column).tolist()) for column in zip(*self.at, strict=True))
        return calls / models, numbers / models


def test_a_step_of_fit_is_the_work_of_one_of_evaluate(one_thread, tmp_path):
    """Logs and checkpoints included."""
    assay = simulate_assay()
    config = GeodesicConfig(flow="path_independent", epochs=5)
    levels, means = assay.levels, assay.level_means()
    gps = [GeodesicGP().fit_levels(np.delete(levels, i), np.delete(means, i, 0)) for i in range(0, 6, 2)]
    targets = [levels[[i]] for i in range(0, 6, 2)]
    with Work() as fit:
        geonode.fit(assay, config, device="cpu", progress=fit.epoch, log_dir=tmp_path, checkpoint=tmp_path / "run")
    with Work() as evaluate:
        fit_node_folds(gps, targets, assay.wavelengths, config, progress=evaluate.epoch)
    assert len(fit.at) == len(evaluate.at) == 5 and evaluate.step(3)[0] > 100
    assert fit.step(2) == pytest.approx(evaluate.step(3), rel=0.2)
