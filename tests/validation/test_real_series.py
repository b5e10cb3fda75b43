"""The promise on real spectra: over the seven shared series the process stays near the best simple method of each.

The neural flow on the same series takes minutes: `benchmarks/accuracy.py` measures and records it.
"""

from __future__ import annotations

import numpy as np
import pytest

from geonode import GeodesicConfig, evaluate, load_standards
from tests.real_series import SERIES

SIMPLE = ("linear", "pchip", "cubic", "quadratic", "line")


def test_the_process_beside_the_best_simple_method_of_each_series(shared_data):
    """Geometric mean over series of RMSE ÷ best simple: median and worst interior level, lowest, highest level."""
    ratios = []
    for name in SERIES:
        report = evaluate(load_standards(shared_data / "series" / f"{name}.csv"), methods=[*SIMPLE, "gp"], inner=False)
        rmse = np.array([report.results[method].rmse for method in (*SIMPLE, "gp")])
        inner = rmse[:, 1:-1]
        statistics = np.stack([np.median(inner, 1), inner.max(1), rmse[:, 0], rmse[:, -1]])
        ratios.append(statistics[:, -1] / statistics[:, :-1].min(1))
    mean = np.exp(np.log(ratios).mean(0))
    assert (mean <= [1.10, 1.05, 0.90, 0.85]).all(), mean


def test_gray_blue_gray_is_no_easier_for_the_flow_to_lose(shared_data):
    """The gold series, which folds back at every wavelength: the neural flow stays with its teacher."""
    report = evaluate(
        load_standards(shared_data / "series/aunp_dmsa_nacl.csv"),
        GeodesicConfig(flow="path_independent"),
        methods=["linear", "gp", "node"],
        inner=False,
    )
    node, gp, linear = (report.results[name].rmse for name in ("node", "gp", "linear"))
    assert np.median(node[1:-1]) < np.median(linear[1:-1])
    assert node == pytest.approx(gp, rel=0.1)
