"""What of a trained flow can be exported: those with a closed form, pruned; the others are refused with the reason."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import geonode
import geonode_runtime
from geonode.cli import app
from geonode.errors import InputError
from geonode.export.export import LIMITS, compiled, export_onnx, export_package
from geonode.export.node import NodeSpectra

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
        assert "predictor gp" in str(error.value) and "flow='path_independent'" in str(error.value)
    done = CliRunner().invoke(app, ["export", str(path), "--onnx", str(tmp_path / "m.onnx")])
    assert done.exit_code == 2 and reason in " ".join(done.output.split())
    assert list(tmp_path.iterdir()) == []


def test_its_process_is_exported_as_the_sentence_says(tmp_path):
    model = geonode.fit(standards(), WITHOUT["velocity"](), device="cpu")
    report = export_onnx(model, tmp_path / "m.onnx", predictor="gp")
    asked = np.array([5.0, 20.0, 45.0])
    found = geonode_runtime.load(tmp_path / "m.onnx").predict(asked)[0]
    expected = model.predict_spectra(asked, predictor="gp")[0].values
    assert report.mean_error < EXPORTED and np.abs(found - expected).max() < EXPORTED * np.ptp(model.gp.level_means)


# ------------------------------------------------------------------------------------------------------- pruning


@pytest.fixture(scope="module")
def trained():
    return geonode.fit(standards(), geonode.GeodesicConfig(flow="path_independent", **QUICK), device="cpu")


def silent(flow, units):
    flow.a_weight[:, :, units] = 0.0


def saturated(flow, units):
    flow.beta_bias[:, units] = 60.0


def unmoved(flow, units):
    flow.omega[:, units] = 0.0


def with_dead(model, kill, units):
    """A copy of which some hidden units do nothing over the served range."""
    changed = copy.copy(model)
    changed._ode = copy.deepcopy(model.ode)
    with torch.no_grad():
        kill(changed.ode.flow, units)
    return changed


@pytest.mark.parametrize("kill", [silent, saturated, unmoved])
@pytest.mark.parametrize("units", [[0], [3, 5, 20], list(range(12))])
def test_dead_units_are_left_out_and_no_spectrum_changes(trained, kill, units):
    model = with_dead(trained, kill, units)
    lean, whole = NodeSpectra(model), NodeSpectra(model, prune=False)
    assert NodeSpectra(trained).pruned == whole.pruned == 0
    assert lean.pruned == len(units) and lean.omega.shape[2] == whole.omega.shape[2] - len(units)
    asked = torch.linspace(-3.0, 70.0, 33)
    with torch.no_grad():
        torch.testing.assert_close(lean(asked)[0], whole(asked)[0], rtol=0, atol=2e-6)


def test_a_pruned_file_is_smaller_says_so_and_answers_alike(node, tmp_path):
    full, members = node.report, node.model.ode.models
    model = with_dead(with_dead(node.model, silent, list(range(30))), saturated, list(range(30, 48)))
    lean = export_onnx(model, tmp_path / "lean.onnx")
    assert (full.pruned, lean.pruned) == (0, 48 * members) and lean.units == full.units
    assert f"{lean.pruned} of {full.units} hidden units were dead and left out" in lean.sentence()
    assert lean.bytes < full.bytes and lean.mean_error < EXPORTED
    asked = np.array([4.0, 33.0, 57.0])
    found = geonode_runtime.load(tmp_path / "lean.onnx").predict(asked)[0]
    size = np.ptp(model.gp.level_means)
    assert np.abs(found - model.predict_spectra(asked)[0].values).max() < EXPORTED * size
