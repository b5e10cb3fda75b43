"""`precision="tf32"`: refused with a sentence where there is none, and where there is, torch is set up for it, and only
for the length of the training. A processor has no TF32, so that a CUDA device is stood in for."""

from __future__ import annotations

import pytest
import torch
from typer.testing import CliRunner

import geonode
from geonode.cli import app
from geonode.device import DeviceSetup, current_setup, setup_device
from geonode.errors import DeviceError, InputError
from geonode.training import SpectralDataModule, build_problem, precision, train, train_module
from geonode.training.ensemble import rounding_of_tf32
from geonode.training.precision import dtype_of, set_up_for
from geonode_kernels._dispatch import autocast_precision
from geonode_kernels._runtime import unrounded

SENTENCE = "needs a CUDA device, and this is cpu, which has no TF32; use"


@pytest.fixture
def allowed():
    """Torch's switch, off again after the test whatever the test does."""
    yield torch.backends.cuda.matmul
    torch.backends.cuda.matmul.allow_tf32 = False


@pytest.mark.parametrize("engine", ["fit", "loop", "lightning", "evaluate", "command"])
def test_a_processor_refuses_it(assay, small, folds, tmp_path, engine):
    config = small.replace(precision="tf32")
    if engine == "command":
        rows = [f"{w},{0.1},{w / 1e3},{w / 6e2},{w / 4e2}" for w in range(400, 500, 9)]
        (tmp_path / "s.csv").write_text("\n".join(["nm,0,1,2,3", *rows]) + "\n")
        out = ["--out", str(tmp_path / "m"), "--device", "cpu", "--precision", "tf32", "--flow", "path_independent"]
        done = CliRunner().invoke(app, ["fit", str(tmp_path / "s.csv"), *out])
        assert done.exit_code == 2 and SENTENCE in done.output and not (tmp_path / "m").exists()
        return
    with pytest.raises(DeviceError, match=SENTENCE):
        if engine == "fit":
            geonode.fit(assay, config, device="cpu")
        elif engine == "evaluate":
            geonode.evaluate(assay, config, methods=["node", "linear"], inner=False, device="cpu")
        elif engine == "loop":
            train(build_problem(folds, assay.wavelengths, config).to("cpu", torch.float32), config)
        else:
            train_module(SpectralDataModule(assay, config), config, "cpu")


def test_parameters_and_loss_stay_float32(small):
    assert dtype_of(small.replace(precision="tf32")) is torch.float32
    assert precision.half_of(small.replace(precision="tf32")) is None


@pytest.mark.parametrize("before", [{}, {"deterministic": True}, {"cudnn_benchmark": True}])
@pytest.mark.parametrize(("name", "on"), [("tf32", True), ("32-true", False)])
def test_a_training_on_cuda_is_set_up_for_it_and_leaves_the_rest_as_it_was(small, monkeypatch, name, on, before):
    monkeypatch.setattr(geonode.device, "resolve_device", lambda device: torch.device(device))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (9, 0))
    try:
        setup_device("cpu", **before)
        torch.backends.cuda.matmul.allow_tf32 = not on
        with set_up_for(small.replace(precision=name), "cuda"):
            assert current_setup() == DeviceSetup(tf32=on, **before)
        assert current_setup() == DeviceSetup(tf32=not on, **before)
    finally:
        setup_device("cpu")


def test_an_older_card_refuses_it(small, monkeypatch):
    monkeypatch.setattr(geonode.device, "resolve_device", lambda device: torch.device(device))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (7, 5))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: "Tesla T4")
    with (
        pytest.raises(DeviceError, match="Tesla T4 has no TF32 units"),
        set_up_for(small.replace(precision="tf32"), "cuda"),
    ):
        pass


def test_kernels_follow_and_arc_length_does_not(allowed):
    assert autocast_precision() == "fp32"
    allowed.allow_tf32 = True
    assert autocast_precision() == "tf32"
    with unrounded(torch.ones(1)):
        assert not allowed.allow_tf32 and autocast_precision() == "fp32"
        with unrounded(torch.ones(1)):
            assert not allowed.allow_tf32
        assert not allowed.allow_tf32
    assert allowed.allow_tf32
    with pytest.raises(ZeroDivisionError), unrounded(torch.ones(1)):
        1 / 0  # noqa: B018
    assert allowed.allow_tf32


def test_its_rounding_is_reported(assay, small, folds):
    problem = build_problem(folds, assay.wavelengths, small).to("cpu", torch.float32)
    (sentence,) = rounding_of_tf32(problem.build_model(small, 0), problem)
    assert sentence == "precision='tf32' moves spectra at the standards by up to 0.0e+00 of their spread."
    with pytest.raises(InputError, match=r"torch\.compile does not see"):
        train(problem, small.replace(precision="tf32"), compiled=True)


@pytest.mark.gpu
def test_on_a_gpu_it_trains_within_its_rounding(assay, small, folds, away):
    spectra = []
    for name in ("32-true", "tf32"):
        config = small.replace(precision=name, epochs=6)
        problem = build_problem(folds, assay.wavelengths, config).to("cuda", torch.float32)
        if name == "tf32":
            with pytest.warns(UserWarning, match="moves spectra at the standards"):
                ode = train(problem, config, seed=3)
        else:
            ode = train(problem, config, seed=3)
        spectra.append(geonode.training.predict(ode, problem, problem.levels.cpu()))
    scale = (spectra[0] - problem.centre).abs().max()
    assert 0.0 < (spectra[0] - spectra[1]).abs().max() <= 2e-2 * scale
