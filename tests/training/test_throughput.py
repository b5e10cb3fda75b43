"""`fit` and the loop inside `evaluate` are one engine: a model's step takes the same processor time in both."""

from __future__ import annotations

import statistics
import time

import numpy as np
import pytest

import geonode
from geonode.calibration import GeodesicGP
from geonode.config import GeodesicConfig
from geonode.data import simulate_assay
from geonode.training import fit_node_folds


class Clock:
    """Processor time at the end of each epoch: what other programs do beside this one counts for little."""

    def __init__(self) -> None:
        self.at: list[float] = []

    def __call__(self, *_: object) -> None:
        self.at.append(time.process_time())

    def step(self, models: int) -> float:
        """Lower quartile of the seconds that one model's step took."""
        return statistics.quantiles(np.diff(self.at), n=4)[0] / models


def test_a_step_of_fit_takes_the_processor_time_of_one_of_evaluate(one_thread, tmp_path):
    """Logs and checkpoints included; the best of three tries, for a loaded machine's caches belong to others too."""
    assay = simulate_assay()
    config = GeodesicConfig(flow="path_independent", epochs=18)
    levels, means = assay.levels, assay.level_means()
    gps = [GeodesicGP().fit_levels(np.delete(levels, i), np.delete(means, i, 0)) for i in range(0, 6, 2)]
    targets = [levels[[i]] for i in range(0, 6, 2)]
    ratios = []
    for number in range(3):
        fit, evaluate = Clock(), Clock()
        log = tmp_path / str(number)
        geonode.fit(assay, config, device="cpu", progress=fit, log_dir=log, checkpoint=log / "run")
        fit_node_folds(gps, targets, assay.wavelengths, config, progress=evaluate)
        ratios.append(fit.step(2) / evaluate.step(3))
        if 0.8 <= ratios[-1] <= 1.2:
            return
    pytest.fail(f"a step of fit took {ratios} of one of evaluate")
