"""INT8 and distillation: measured, reported, refused above their limit; what the command refuses."""

from __future__ import annotations

import builtins

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

import geonode
from geonode.cli import app
from geonode.errors import InputError
from geonode.export import export
from geonode.export.closed_form import GPSpectra
from geonode.export.distill import distilled, evaluated
from geonode.export.export import LIMITS, export_onnx
from geonode.export.node import spectral_range
from geonode_runtime import load
from tests.calibration.assays import LEVELS, monotone, noisy


@pytest.fixture(scope="module")
def forms(gp):
    return distilled(gp.model, GPSpectra(gp.model.gp).eval(), 0.0, 75.0)


@pytest.mark.parametrize("form", ["table", "network"])
def test_distilled_forms_follow_the_full_model(gp, forms, form):
    c = np.unique(np.concatenate([np.random.default_rng(0).uniform(0, 75, 200), LEVELS]).astype(np.float32)).astype(
        float
    )
    mean, std = evaluated(forms[form], c)
    expected = gp.model.predict_spectra(c)
    for mine, theirs in zip((mean, std), expected, strict=True):
        assert np.abs(mine - theirs.values).max() <= 1e-2 * spectral_range(gp.model)
    if form == "table":
        assert np.abs(mean - expected[0].values).max() <= 1e-4 * spectral_range(gp.model)


@pytest.fixture
def traced(gp, monkeypatch):
    """The full graph is the one that the command wrote: to trace the same formulas again takes seconds."""
    real = export.onnx_model
    full = lambda module: isinstance(getattr(module, "spectra_half", None), GPSpectra)  # noqa: E731
    monkeypatch.setattr(export, "onnx_model", lambda m, width: onnx.load(gp.path) if full(m) else real(m, width))


@pytest.mark.slow
@pytest.mark.usefixtures("traced")
def test_reduced_models_keep_their_stated_error_and_every_verdict(gp, tmp_path):
    path = tmp_path / "small.onnx"
    report = export_onnx(gp.model, path, distill=True, int8=True)
    runtime = load(path)
    c = np.random.default_rng(3).uniform(0.0, 75.0, 300)
    mean, _ = runtime.predict(c)
    error = np.abs(mean - gp.model.predict_spectra(c)[0].values).max() / spectral_range(gp.model)
    assert error <= LIMITS["int8"] and report.mean_error <= LIMITS["int8"] and report.products > 0
    assert f"{report.mean_error:.2g}" in report.sentence() and runtime.facts["mean_error"] == report.mean_error
    x = noisy(monotone, c[:50], 4)
    assert [a.verdict for a in runtime.quantify_many(x)] == [a.verdict for a in gp.model.calibration.quantify_many(x)]
    with pytest.raises(InputError, match="lies outside"):
        runtime.predict([90.0])
    before = path.read_bytes()
    with pytest.raises(InputError, match="above the allowed 1e-06, so nothing was written"):
        export_onnx(gp.model, path, int8=True, max_error=1e-6)
    assert path.read_bytes() == before


def test_the_command_writes_and_says_its_error(gp):
    assert f"{gp.path}: full: spectra differ from the library's by at most" in gp.said and gp.runtime.unit == "ppb"


def test_the_command_refuses_in_one_sentence(gp, tmp_path):
    bundle = tmp_path / "m.bundle"
    gp.model.save(bundle)
    (tmp_path / "text").write_text("no bundle")
    for arguments, said in (
        ([str(bundle)], "Nothing to write"),
        ([str(bundle), "--onnx", str(tmp_path)], "is a folder"),
        ([str(bundle), "--onnx", str(bundle)], "is read by this command"),
        ([str(bundle), "--onnx", str(tmp_path / "m.onnx"), "--pt2", str(tmp_path / "m.onnx")], "name the same file"),
        ([str(bundle), "--onnx", str(tmp_path / "none" / "m.onnx")], "does not exist"),
        ([str(tmp_path / "text"), "--onnx", str(tmp_path / "m.onnx")], "not a geonode bundle"),
        ([str(bundle), "--onnx", str(tmp_path / "m.onnx"), "--predictor", "node"], "has no neural flow"),
        ([str(bundle), "--onnx", str(tmp_path / "m.onnx"), "--max-error", "-1"], "positive fraction"),
    ):
        result = CliRunner().invoke(app, ["export", *arguments])
        assert result.exit_code == 2, result.output
        assert said in result.output
    assert not (tmp_path / "m.onnx").exists() and geonode.load(bundle)


def test_a_missing_extra_is_named(gp, tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "onnxscript":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"pip install 'geodesic-node\[export\]'"):
        export_onnx(gp.model, tmp_path / "m.onnx")


@pytest.mark.parametrize("kind", ["free", "velocity", "one's own"])
def test_flows_without_a_closed_form_are_refused(node, tmp_path, kind):
    """The blueprint's flow, the one that sees the velocity, and a subclass whose formula is another."""
    import copy

    from geonode.flow import FreeFlow, SpectralFlow, VelocityFlow

    class Own(SpectralFlow):
        def forward(self, point):
            return 2.0 * super().forward(point)

    model = copy.copy(node.model)
    assert node.model.ode is not None
    ode = model._ode = copy.copy(node.model.ode)
    ode._modules = dict(ode._modules)
    if kind == "free":
        ode.flow = FreeFlow(ode.wavelength, 8, 8, ode.models, 0)
    else:
        flow = VelocityFlow if kind == "velocity" else Own
        ode.flow = flow(len(ode.wavelength), 8, 8, ode.models, 0)
    with pytest.raises(InputError, match="depends on its path and has no closed form to export; export the Gaussian"):
        export_onnx(model, tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []
