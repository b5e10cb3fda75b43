"""Two small fitted models and their exported files, made once."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import geonode
from geonode.cli import app
from geonode.config import GeodesicConfig
from geonode.data import SpectralDataset
from geonode.export.export import ExportReport, export_onnx
from geonode_runtime import Model, load
from tests.calibration.assays import LEVELS, WAVE, folding, monotone, noisy
from tests.export.operators import made_once


@dataclass
class Pair:
    """A fitted model, its spectra as a function of concentration, and what was exported of it."""

    model: geonode.model.GeodesicModel
    truth: object
    path: Path
    report: ExportReport | None
    runtime: Model
    said: str = ""


def standards(truth, seed: int = 0) -> SpectralDataset:
    c = np.repeat(LEVELS, 2)
    names = [f"s{i}" for i in range(len(c))]
    return SpectralDataset(
        noisy(truth, c, seed), c, WAVE, analytes=["As"], concentration_unit="ppb", wavelength_unit="nm",
        signal="absorbance", signal_unit="1", names=names,
    )  # fmt: skip


def silent(flow, units):
    flow.a_weight[:, :, units] = 0.0


def saturated(flow, units):
    flow.beta_bias[:, units] = 60.0


def with_dead(model, kill, units):
    """A copy of which some hidden units do nothing over the served range."""
    changed = copy.copy(model)
    changed._ode = copy.deepcopy(model.ode)
    with torch.no_grad():
        kill(changed.ode.flow, units)
    return changed


DEAD = 24
"""Hidden units of the exported neural flow that do nothing, so that its file is a pruned one."""


def exported(folder: Path, truth, dead: int = 0, **options) -> Pair:
    config = GeodesicConfig(**{"flow": "path_independent", "epochs": 5, **options.pop("config", {})})
    model = geonode.fit(standards(truth), config, **options)
    if dead:
        model = with_dead(with_dead(model, silent, list(range(dead // 2))), saturated, list(range(dead // 2, dead)))
    path = folder / "model.onnx"
    report = export_onnx(model, path)
    return Pair(model, truth, path, report, load(path))


@pytest.fixture(scope="session", autouse=True)
def operators() -> Iterator[None]:
    with made_once():
        yield


@pytest.fixture(scope="session")
def gp(tmp_path_factory) -> Pair:
    """Written by the command, for one export costs ten seconds; ``said`` is what it printed."""
    folder = tmp_path_factory.mktemp("gp")
    model, path = geonode.fit(standards(monotone), GeodesicConfig(predictor="gp")), folder / "model.onnx"
    model.save(folder / "model.bundle")
    result = CliRunner().invoke(app, ["export", str(folder / "model.bundle"), "--onnx", str(path)])
    assert result.exit_code == 0, result.output
    return Pair(model, monotone, path, None, load(path), result.output)


@pytest.fixture(scope="session")
def node(tmp_path_factory) -> Pair:
    return exported(tmp_path_factory.mktemp("node"), folding, DEAD, config={"epochs": 2})


@pytest.fixture(params=["gp", "node"])
def pair(request) -> Pair:
    return request.getfixturevalue(request.param)
