"""A folder whose name is no UTF-8 holds checkpoints, bundles, answers and exported models as any other does."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import geonode_runtime
from geonode.cli import app
from geonode.config import GeodesicConfig
from geonode.errors import BundleError, InputError
from geonode.export.export import export_onnx
from geonode.model import fit, load
from geonode.training.checkpoint import load_checkpoint, newest_checkpoint, save_checkpoint
from geonode.training.lightning.trainer import build_trainer
from geonode.training.monitoring import TrainingLog
from tests.forks import python

NAMES = {"latin-1": b"caf\xe9", "bytes": b"\xff\xfe", "latin-1 with a blank": b"M\xfcller \xb5M"}


@pytest.fixture(params=NAMES.values(), ids=NAMES)
def folder(tmp_path, request) -> Path:
    path = os.path.join(os.fsencode(tmp_path), request.param)
    try:
        os.mkdir(path)
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    return Path(os.fsdecode(path))


def test_checkpoints_are_written_read_and_found_and_torn_ones_passed_over(folder):
    tree = {"weights": torch.arange(5.0), "epoch": 3, "names": ["a", "b"]}
    for epoch in (1, 2):
        save_checkpoint({**tree, "epoch": epoch}, folder / f"epoch-{epoch:06d}.ckpt")
    assert torch.equal(load_checkpoint(folder / "epoch-000001.ckpt")["weights"], tree["weights"])
    assert newest_checkpoint(folder) == folder / "epoch-000002.ckpt"
    last = folder / "epoch-000002.ckpt"
    last.write_bytes(last.read_bytes()[:40])
    with pytest.raises(BundleError, match="not a readable checkpoint"):
        load_checkpoint(last)
    with pytest.warns(UserWarning, match="passed over"):
        assert newest_checkpoint(folder) == folder / "epoch-000001.ckpt"


def test_a_training_resumes_and_its_bundle_loads(folder, assay, small):
    config = small.replace(epochs=6)
    once = fit(assay, config, device="cpu", checkpoint=folder / "run")
    again = fit(assay, config, device="cpu", checkpoint=folder / "run", resume=True)
    assert again.history == once.history and len(once.history) == 6
    again.save(folder / "m.bundle")
    assert load(folder / "m.bundle").history == once.history


def test_answers_as_json_name_the_bundle(folder, assay, small):
    model = fit(assay, small, device="cpu")
    model.save(folder / "m.bundle")
    mean = model.predict_spectra([25.0])[0].values[0]
    unknown = folder / "unknown.csv"
    unknown.write_text("nm,a\n" + "\n".join(f"{w},{a}" for w, a in zip(assay.wavelengths, mean, strict=True)))
    answer = folder / "answer.json"
    done = CliRunner().invoke(app, ["quantify", str(folder / "m.bundle"), str(unknown), "--json", str(answer)])
    assert done.exit_code == 0, done.output
    assert json.loads(answer.read_text())["bundle"] == str(folder / "m.bundle")


@pytest.mark.parametrize("folder", [NAMES["bytes"]], indirect=True)  # one of them: an export takes seconds
def test_an_exported_model_is_written_and_read_there(folder, assay):
    few = assay.select_samples(np.arange(3))  # of low rank, whose graph is small
    export_onnx(fit(few, GeodesicConfig(predictor="gp"), device="cpu"), folder / "m.onnx")
    assert geonode_runtime.load(str(folder / "m.onnx")).predict([25.0])[0].shape == (1, 21)


@pytest.mark.parametrize("encoding", ["utf-8:strict", "ascii:strict", "latin-1:strict"])
def test_a_terminal_that_cannot_write_the_name_is_told_all_the_same(tmp_path, encoding):
    path = os.fsdecode(os.path.join(os.fsencode(tmp_path), b"caf\xe9.bundle"))
    standards = tmp_path / "standards.csv"
    standards.write_text(
        "nm,0,1,2,3\n" + "".join(f"{w},{0.1},{w / 1e3},{w / 6e2},{w / 4e2}\n" for w in range(400, 500, 9))
    )
    words = ["-m", "geonode", "fit", standards, "--predictor", "gp", "--out", path]
    done = python(*words, env={**os.environ, "PYTHONIOENCODING": encoding})
    assert done.returncode == 0 and "bundle written to" in done.stdout, done


def test_logs_that_tensorboard_cannot_write_there_are_refused(folder, small):
    for log in (TrainingLog, lambda where: build_trainer(small, 6, "cpu", log_dir=where)):
        with pytest.raises(InputError, match=r"log folder .* is no UTF-8, .*give log_dir"):
            log(folder / "log")
    assert list(folder.iterdir()) == []
