"""What the documentation claims of the shared real series; skips where the data are absent."""

from __future__ import annotations

import numpy as np
import pytest

from geonode.calibration import Calibration
from geonode.data import load_standards
from geonode.validation.inverse_comparison import evaluate_inverse
from tests.real_series import SERIES

RIVALS = {"nttA04_cl_em": ("pls", "pls_warped", "pcr", "pchip_curve"), "h148g_cl_ph74": ("pls",)}


@pytest.fixture(scope="module")
def results(shared_data) -> dict:
    found = {}
    for name in SERIES:
        dataset = load_standards(shared_data / "series" / f"{name}.csv")
        found[name] = evaluate_inverse(dataset, methods=["geonode", *RIVALS.get(name, ())])
    return found


def test_linear_fluorescence(results: dict) -> None:
    assert results["flu_quinine"]["geonode"]["rmsep_percent_interior"] <= 0.9


def test_saturating_sensor_is_no_worse_than_the_best_rival(results: dict) -> None:
    own, *rivals = results["nttA04_cl_em"].values()
    assert own["rmsep_percent_interior"] <= min(r["rmsep_percent_interior"] for r in rivals)


def test_a_straight_regression_is_far_worse_where_a_sensor_saturates(results: dict) -> None:
    assert results["h148g_cl_ph74"]["geonode"]["rmsep_percent_interior"] <= 1.9
    assert results["h148g_cl_ph74"]["pls"]["rmsep_percent_interior"] > 5.0


def test_coverage_and_refusals_pooled_over_levels(results: dict) -> None:
    """Levels of all series count alike: nominal 80 %, measured 79.7 %; genuine levels refused 4.6 %."""
    rows = [row for found in results.values() for row in found["geonode"]["per_level"]]
    assert 0.7 <= np.mean([np.mean(row["covered"]) for row in rows]) <= 0.9
    assert np.mean([np.mean([v == "does not match" for v in row["verdicts"]]) for row in rows]) <= 0.10
    assert sum(found["geonode"]["confidently_wrong"] for found in results.values()) <= 1


def test_the_unlabelled_rhodamine_sample_is_quantified(shared_data) -> None:
    """Sample C on the grid of the series, 250–800 nm: within the standards, with both ends."""
    calibration = Calibration.from_dataset(load_standards(shared_data / "series" / "rhodamine6g_meoh.csv"))
    rows = []
    for path in sorted((shared_data / "raw" / "rhodamine6g_meoh").glob("*C*.csv")):
        table = np.genfromtxt(path, delimiter=",", skip_header=2, usecols=(0, 1), invalid_raise=False)
        table = table[np.isfinite(table).all(axis=1)]
        rows.append(np.interp(calibration.wavelengths, *table[np.argsort(table[:, 0])].T))
    learned = calibration.quantify(np.stack(rows), replicates=True)
    answer = calibration.quantify(np.stack(rows), replicates=True, method="profile")
    assert answer.verdict == learned.verdict == "quantified" and answer.low is not None and answer.high is not None
    # nobody knows the truth: each way's estimate lies in the other's 80 % set
    assert learned.low is not None and learned.high is not None
    assert learned.low < answer.estimate < learned.high and answer.low < learned.estimate < answer.high
    assert answer.estimate == pytest.approx(0.07923, abs=5e-5)  # as docs/calibration.md has it
    assert 0.055 < answer.low < answer.estimate < answer.high < 0.1
    assert answer.high - answer.low < 0.02
