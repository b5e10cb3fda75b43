"""What of a trained flow can be exported: those with a closed form, pruned; the others are refused with the reason."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from typer.testing import CliRunner

import geonode
from geonode.cli import app
from geonode.errors import InputError
from geonode.export.export import LIMITS, compiled, export_onnx, export_package
from geonode.export.node import NodeSpectra
from tests.export.conftest import DEAD, saturated, silent, with_dead
from tests.export.in_torch import in_torch

EXPORTED = LIMITS["full"]


def standards():
    return geonode.simulate_assay((0.0, 10.0, 30.0, 60.0), wavelengths=[400.0 + 20.0 * k for k in range(9)], seed=1)


QUICK = {"epochs": 1, "members": 1, "precision": "32-true"}
WITHOUT = {
    "velocity": lambda: geonode.GeodesicConfig(flow="velocity", **QUICK),
    "free": lambda: geonode.GeodesicConfig(flow="free", **QUICK),
    "the blueprint": lambda: geonode.GeodesicConfig.blueprint(
        **QUICK, newton_steps=1, ode_steps=2, batch_size=6, micro_batch=6
    ),
}


@pytest.fixture(scope="module", params=list(WITHOUT))
def without(request, tmp_path_factory):
    """A model, trained for one epoch, whose flow depends on its path, and its bundle."""
    model = geonode.fit(standards(), WITHOUT[request.param](), device="cpu")
    path = tmp_path_factory.mktemp("flow") / "m.bundle"
    model.save(path)
    return geonode.load(path), path


def test_a_flow_without_a_closed_form_is_refused_with_the_reason_and_what_to_do(without, tmp_path):
    model, path = without
    kind = model.config.flow.name
    reason = f"A flow of kind '{kind}' depends on its path and has no closed form to export"
    for refused in (
        lambda: export_onnx(model, tmp_path / "m.onnx"),
        lambda: export_onnx(model, tmp_path / "m.onnx", distill=True, int8=True),
        lambda: export_package(model, tmp_path / "m.pt2"),
        lambda: compiled(model),
    ):
        with pytest.raises(InputError, match=reason) as error:
            refused()
        assert "predictor='gp'" in str(error.value) and "flow='path_independent'" in str(error.value)
    done = CliRunner().invoke(app, ["export", str(path), "--onnx", str(tmp_path / "m.onnx")])
    assert done.exit_code == 2 and reason in " ".join(done.output.split())
    assert list(tmp_path.iterdir()) == []


def test_its_process_is_exported_as_the_sentence_says(without):
    model, _ = without
    asked = np.array([5.0, 20.0, 45.0])
    found = in_torch(model, "gp").predict(asked)[0]
    expected = model.predict_spectra(asked, predictor="gp")[0].values
    assert np.abs(found - expected).max() < EXPORTED * np.ptp(model.gp.level_means)


# ------------------------------------------------------------------------------------------------------- pruning


@pytest.fixture(scope="module")
def trained():
    return geonode.fit(standards(), geonode.GeodesicConfig(flow="path_independent", **QUICK), device="cpu")


def unmoved(flow, units):
    flow.omega[:, units] = 0.0


@pytest.mark.parametrize("kill", [silent, saturated, unmoved])
@pytest.mark.parametrize("units", [[0], [3, 5, 20], list(range(12))])
def test_dead_units_are_left_out_and_no_spectrum_changes(trained, kill, units):
    model = with_dead(trained, kill, units)
    lean, whole = NodeSpectra(model), NodeSpectra(model, prune=False)
    assert NodeSpectra(trained).pruned == whole.pruned == 0
    assert lean.pruned == len(units) and lean.omega.shape[2] == whole.omega.shape[2] - len(units)
    asked = torch.linspace(-3.0, 70.0, 33)
    with torch.no_grad():  # in single precision, and what is left out are large terms of sums
        found, expected = lean(asked)[0], whole(asked)[0]
    assert float((found - expected).abs().max()) < EXPORTED * float(expected.max() - expected.min())


def test_a_pruned_file_is_smaller_and_says_so(node):
    """That it answers alike is what everything in test_parity.py asks of it."""
    whole, members = NodeSpectra(node.model, prune=False), node.model.ode.models
    lean = node.report
    assert lean.pruned == DEAD * members and lean.units == whole.omega.shape[2] * members
    assert f"{lean.pruned} of {lean.units} hidden units were dead and left out" in lean.sentence()
    assert lean.mean_error < EXPORTED
    kept = {size for one in onnx.load(node.path).graph.initializer for size in one.dims}
    assert whole.omega.shape[2] - DEAD in kept and whole.omega.shape[2] not in kept
