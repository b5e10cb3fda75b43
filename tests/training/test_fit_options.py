"""Options of `geonode fit` that concern scale reach the training."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from geonode.cli import app
from geonode.data import simulate_assay


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
        app, ["fit", str(standards), "--out", str(out), "--epochs", "2", "--device", "cpu", *options]
    )


def test_batch_recompute_and_profile_reach_the_training(standards, tmp_path, monkeypatch):
    from geonode.training.lightning import trainer

    seen, real = [], trainer._train_once

    def watched(data, config, device, seed, resume, checkpoint, compiled, recompute, **options):
        seen.append((compiled, recompute, options.get("profiler")))
        return real(data, config, device, seed, resume, checkpoint, compiled, recompute, **options)

    monkeypatch.setattr(trainer, "_train_once", watched)
    log = tmp_path / "log"
    result = _fit(standards, tmp_path / "m", "--batch", "auto", "--recompute", "3", "--log", str(log), "--profile")
    assert result.exit_code == 0, result.output
    assert seen[0][:2] == (False, 3) and (tmp_path / "m").exists()
    assert list(log.glob("*profile*")), "the profiler left nothing"


def test_compiled_losses_train_as_they_are(standards, tmp_path, monkeypatch):
    """Traced whole and run by torch's own operators: the generated code takes half a minute to build."""
    from geonode.training.lightning import trainer

    called, trained, build, real = [], [], torch.compile, trainer._train_once

    def compiled(function, **options):
        called.append(function.__name__)
        return build(function, backend="aot_eager", fullgraph=True, **options)

    def watched(*arguments, **options):
        trained.append(real(*arguments, **options))
        return trained[-1]

    monkeypatch.setattr(torch, "compile", compiled)
    monkeypatch.setattr(trainer, "_train_once", watched)
    for name, options in (("a", ["--compile"]), ("b", [])):
        result = _fit(standards, tmp_path / name, "--precision", "64-true", "--margin", "0", *options)
        assert result.exit_code == 0, result.output
    assert called == ["losses"]
    one, other = (module.history for module in trained)
    assert len(one) == 2
    for a, b in zip(one, other, strict=True):
        assert a == pytest.approx(b, rel=1e-6)


def test_what_cannot_be_is_refused(standards, tmp_path):
    result = _fit(standards, tmp_path / "m", "--profile")
    assert result.exit_code == 2 and "--profile needs --log" in result.output
    result = _fit(standards, tmp_path / "m", "--batch", "largest")
    assert result.exit_code == 2 and "batch='largest'" in result.output
