"""Trained models of a sweep: kept on demand, the models that were scored, merged into one ensemble of all seeds."""

from __future__ import annotations

import csv
import shutil

import numpy as np
import pytest
from typer.testing import CliRunner

import geonode
from geonode.cli import app
from geonode.data import load_standards
from geonode.errors import InputError
from geonode.sweep import merge_models
from tests.sweep.sweep_spec import written
from tests.sweep.test_honoured import SMALL


def call(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A sweep that kept its models: an end and a middle level left out, two seeds, the flow and the process."""
    spec = written(tmp_path_factory.mktemp("swept"))
    spec.write_text(
        f"data: standards.csv\nfolds: [20, 60]\nseeds: 2\nconfig: {{{SMALL}, precision: 64-true}}\n"
        "grid: {predictor: [node, gp]}"
    )
    out = spec.parent / "out"
    call("sweep", spec, "--out", out, "--device", "cpu", "--shard", "0/1", "--keep-bundles")
    return spec, out


def error_of(model, data, fold):
    k = int(np.flatnonzero(data.levels == fold)[0])
    mean, _ = model.predict_spectra([fold])
    return float(np.sqrt(np.mean((mean.values[0] - data.level_means()[k]) ** 2)))


def test_the_models_kept_are_those_that_were_scored(swept, tmp_path):
    spec, out = swept
    data = load_standards(spec.parent / "standards.csv")
    call("merge", out, "--out", tmp_path / "results.csv")
    rows = list(csv.DictReader((tmp_path / "results.csv").open()))
    assert len(rows) == 6  # the process once a fold
    for row in rows:
        model = geonode.load(out / "bundles" / f"{row['job']}.bundle")
        fold = float(row["fold"])
        assert fold not in model.dataset.levels and len(model.dataset.levels) == 5
        assert model.made["left_out"] == fold and model.config.seed == int(row["seed"])
        assert (model.ode is None) == (row["predictor"] == "gp") == (model.config.predictor == "gp")
        # the range served, and with it the nodes of the table, is one that a bundle can state
        assert error_of(model, data, fold) == pytest.approx(float(row["rmse"]), rel=2e-3)
        assert model.quantify(data.spectra[data.concentrations == 30.0][0]).estimate == pytest.approx(30.0, abs=4.0)


def test_without_being_asked_nothing_is_kept_and_asked_later_it_is_trained_again(spec):
    spec.write_text(f"data: standards.csv\nfolds: [20]\nconfig: {{{SMALL}}}")
    out, options = spec.parent / "out", ("--device", "cpu", "--shard", "0/1")
    assert "0 done, 1 to run" in call("sweep", spec, "--out", out, *options)
    assert not (out / "bundles").exists()
    assert "1 done, 0 to run" in call("sweep", spec, "--out", out, *options)
    assert "0 done, 1 to run" in call("sweep", spec, "--out", out, *options, "--keep-bundles")
    assert "1 done, 0 to run" in call("sweep", spec, "--out", out, *options, "--keep-bundles")
    assert len(list((out / "bundles").iterdir())) == 1


def test_seeds_merge_into_one_ensemble(swept, tmp_path):
    _, out = swept
    said = call("merge", out, "--out", tmp_path / "results.csv", "--bundles", tmp_path / "models")
    assert "4 models in" in said and "6 results in" in said
    rows = list(csv.DictReader((tmp_path / "results.csv").open()))
    for fold in ("20.0", "60.0"):
        group = [row for row in rows if row["fold"] == fold and row["predictor"] == "node"]
        (name,) = {row["bundle"] for row in group}
        merged = geonode.load(tmp_path / "models" / name)
        parts = [geonode.load(out / "bundles" / f"{row['job']}.bundle") for row in group]
        assert merged.config.members == 2 == sum(part.config.members for part in parts)
        at = [5.0, 35.0]
        means = [part.predict_spectra(at)[0].values for part in parts]
        mean, std = merged.predict_spectra(at)
        np.testing.assert_allclose(mean.values, np.mean(means, axis=0), rtol=1e-9, atol=1e-9)
        assert np.abs(means[0] - means[1]).max() > 1e-6  # two seeds are two models
        # what one seed alone cannot have: the spread of the members is in the band
        assert (std.values >= parts[0].predict_spectra(at)[1].values - 1e-12).all()


def test_models_that_do_not_belong_together_do_not_merge(swept):
    _, out = swept
    models = [geonode.load(path) for path in sorted((out / "bundles").iterdir())]
    flows = [model for model in models if model.ode is not None]
    one, other = (next(m for m in flows if m.made["left_out"] == fold) for fold in (20.0, 60.0))
    with pytest.raises(InputError, match=r"other (standards|settings)"):
        merge_models([one, other])
    process = next(model for model in models if model.ode is None)
    with pytest.raises(InputError, match="other settings"):
        merge_models([one, process])
    assert merge_models([one]) is one


def test_a_model_that_nobody_kept_is_named(swept, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(swept[1], out)
    gone = next(iter((out / "bundles").iterdir()))
    gone.unlink()
    said = call("merge", out, "--out", tmp_path / "r.csv", "--bundles", tmp_path / "models", code=2)
    assert f"No folder keeps the model of job {gone.stem}" in said and "--keep-bundles" in said
    assert not (tmp_path / "r.csv").exists()
