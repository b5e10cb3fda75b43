"""The monitor's figures: counted as they happened, in TensorBoard and CSV."""

from __future__ import annotations

import csv
import re
import time

import torch

from geonode.geodesic import Status
from geonode.training import SpectralDataModule, build_problem, train_module
from geonode.training.lightning.monitor import Monitor, metric_range, samples_in, solver_counts


def test_rates_metric_range_and_probe_reach_csv_and_tensorboard(assay, small, tmp_path):
    config = small.replace(epochs=7)
    calls = []

    def probe():
        calls.append(1)
        return {"power_w": 321.0}

    data = SpectralDataModule(assay, config)
    module = train_module(data, config, "cpu", log_dir=tmp_path, callbacks=[Monitor(probe, every=3)])
    (table,) = tmp_path.glob("csv/*/metrics.csv")
    rows = list(csv.DictReader(table.open()))
    kept = [row for row in rows if row.get("rate/steps_per_s")]
    assert [int(row["step"]) for row in kept] == [3, 6, 7] and len(calls) == 3
    points = data.problem.points.shape[1]
    for row in kept:
        ratio = float(row["rate/samples_per_s"]) / float(row["rate/steps_per_s"])
        assert abs(ratio / (2 * points * (points - 1)) - 1) < 1e-6  # two members, all ordered pairs
        assert float(row["device/power_w"]) == 321.0
    expected = metric_range(module.ode)
    assert abs(float(kept[-1]["metric/low"]) - expected["metric/low"]) < 1e-6
    assert expected["metric/low"] <= expected["metric/high"]
    losses = [row for row in rows if row.get("loss/total")]
    assert len(losses) == 7
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (folder,) = tmp_path.glob("tensorboard/*")
    events = EventAccumulator(str(folder)).Reload()
    assert [event.step for event in events.Scalars("rate/steps_per_s")] == [3, 6, 7]


def test_the_progress_bar_shows_rate_and_time_left(monkeypatch, capfd):
    from geonode.commands.common import progress_bar

    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, as far as rich is concerned
    monkeypatch.setenv("COLUMNS", "140")
    with progress_bar(False) as progress:
        for done in range(1, 41):
            progress("train", done, 400)
            time.sleep(0.01)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capfd.readouterr().err)
    assert re.search(r"train .*40/400 +[0-9.e+]+/s +\d:\d\d:\d\d +\d:\d\d:\d\d", shown), shown
    with progress_bar(True) as nothing:
        assert nothing is None


def test_solver_outcomes_are_counted(folds, assay, small):
    config = small.replace(warp=False, solver="rk4", path="shooting", newton_steps=8, ode_steps=12)
    problem = build_problem(folds[:2], assay.wavelengths, config).to("cpu", torch.float64)
    ode = problem.build_model(config, 0)
    counts = solver_counts(ode, problem)
    assert set(counts) == {status.name.lower() for status in Status}
    assert sum(counts.values()) == 2 * 4 * 8  # models × neighbours × wavelengths
    assert counts["converged"] > 0
    hasty = problem.build_model(config.replace(newton_steps=1, ode_steps=1), 0)
    for parameter in hasty.metric.parameters():
        torch.nn.init.normal_(parameter, std=3.0)
    assert solver_counts(hasty, problem)["converged"] < sum(counts.values())


def test_samples_are_ordered_pairs(folds, assay, small):
    from geonode.training import BatchSource

    problem = build_problem(folds, assay.wavelengths, small).to("cpu", torch.float64)
    batch = BatchSource(problem, problem.build_model(small, 0).table, small).batch(0, 0)
    assert samples_in(batch) == 3 * problem.points.shape[1] * (problem.points.shape[1] - 1)
    config = small.replace(flow="velocity", batch_size=8, micro_batch=4, teacher=False)
    pairs = BatchSource(problem, problem.build_model(config, 0).table, config).batch(0, 0)
    assert samples_in(pairs) == 3 * 4
