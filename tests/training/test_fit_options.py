"""Options of `geonode fit` that concern scale reach the training."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from geonode.cli import app
from geonode.data import simulate_assay
from geonode.errors import InputError
from geonode.model import load


@pytest.fixture(scope="module")
def standards(tmp_path_factory):
    path = tmp_path_factory.mktemp("standards") / "standards.csv"
    assay = simulate_assay(wavelengths=np.linspace(300.0, 700.0, 21).tolist())
    header = "nm," + ",".join(f"{level:g} ppb" for level in assay.levels)
    rows = [f"{w:g}," + ",".join(f"{a:.6f}" for a in column) for w, column in zip(
        assay.wavelengths, assay.level_means().T, strict=True)]  # fmt: skip
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def _fit(standards, out, *options):
    return CliRunner().invoke(
        app,
        [
            "fit",
            str(standards),
            "--out",
            str(out),
            "--flow",
            "path_independent",
            "--epochs",
            "2",
            "--device",
            "cpu",
            *options,
        ],
    )


def test_batch_recompute_and_profile_reach_the_training(standards, tmp_path, monkeypatch):
    from geonode.training import ensemble, memory

    seen, tried, real = [], [], memory.try_step
    build = ensemble.build_losses
    monkeypatch.setattr(ensemble, "build_losses", lambda *asked: seen.append(asked) or build(*asked))
    monkeypatch.setattr(memory, "try_step", lambda problem, size: tried.append(size.recompute) or real(problem, size))
    log = tmp_path / "log"
    result = _fit(standards, tmp_path / "m", "--batch", "auto", "--recompute", "3", "--log", str(log), "--profile")
    assert result.exit_code == 0, result.output
    assert set(seen) == {(False, 3)} and tried == [3] and (tmp_path / "m").exists()
    events = json.loads((log / "profile.json").read_text())["traceEvents"]
    assert any("Backward" in event["name"] for event in events) and "aten::" in (log / "profile.txt").read_text()
    assert (log / "profile.json").stat().st_size < 50e6
    assert list(log.glob("csv/version_0/metrics.csv")) and list(log.glob("tensorboard/version_0/events*"))


@pytest.mark.parametrize("options", [["--strategy", "ddp"], ["--strategy", "fsdp"]])
def test_a_strategy_is_lightnings_and_one_device_is_not(standards, tmp_path, monkeypatch, options):
    from geonode.training.lightning import standards as module

    def under_lightning(*arguments, **given):
        raise InputError(f"Lightning was asked for {arguments[5]}.")

    monkeypatch.setattr(module, "train_under_lightning", under_lightning)
    result = _fit(standards, tmp_path / "m", *options)
    assert result.exit_code == 2 and f"Lightning was asked for {options[1]}." in result.output
    assert _fit(standards, tmp_path / "m").exit_code == 0


def test_compiled_losses_train_as_they_are(standards, tmp_path, monkeypatch):
    """Traced whole and run by torch's own operators: the generated code takes half a minute to build."""
    called, build = [], torch.compile

    def compiled(function, **options):
        called.append(function.__name__)
        return build(function, backend="aot_eager", fullgraph=True, **options)

    monkeypatch.setattr(torch, "compile", compiled)
    for name, options in (("a", ["--compile"]), ("b", [])):
        result = _fit(standards, tmp_path / name, "--precision", "64-true", "--margin", "0", *options)
        assert result.exit_code == 0, result.output
    assert called == ["losses"]
    one, other = (load(tmp_path / name).history for name in "ab")
    assert len(one) == 2
    for a, b in zip(one, other, strict=True):
        assert a == pytest.approx(b, rel=1e-6)


def test_what_cannot_be_is_refused(standards, tmp_path):
    result = _fit(standards, tmp_path / "m", "--profile")
    assert result.exit_code == 2 and "--profile needs --log" in result.output
    result = _fit(standards, tmp_path / "m", "--batch", "largest")
    assert result.exit_code == 2 and "--batch largest" in result.output


@pytest.mark.parametrize(
    "options",
    [
        ["--checkpoint", "run"],
        ["--log", "log"],
        ["--strategy", "ddp"],
        ["--batch", "auto"],
        ["--compile"],
        ["--recompute", "2"],
        ["--log", "log", "--wandb"],
    ],
)
def test_where_nothing_is_trained_options_of_a_training_are_refused(standards, tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    out = ["--out", str(tmp_path / "m"), "--predictor", "gp", "--device", "cpu"]
    result = CliRunner().invoke(app, ["fit", str(standards), *out, *options])
    assert result.exit_code == 2 and "would have no effect: --predictor gp trains nothing" in result.output
    assert list(tmp_path.iterdir()) == []
