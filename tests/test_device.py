"""`geonode.setup_device`: one call, the same state whatever came before, and refusals that say what to leave out."""

from __future__ import annotations

import pytest
import torch

import geonode
from geonode.device import DeviceSetup, current_setup, device_setup, resolve_device, setup_device
from geonode.errors import DeviceError, InputError


@pytest.fixture(autouse=True)
def restored():
    with device_setup("cpu"):
        yield


def test_setup_is_what_was_asked_for_and_nothing_else():
    setup_device("cpu", deterministic=True)
    assert current_setup() == DeviceSetup(deterministic=True)
    setup_device("cpu", cudnn_benchmark=True)
    assert current_setup() == DeviceSetup(cudnn_benchmark=True)
    assert geonode.setup_device("cpu") == torch.device("cpu")
    assert current_setup() == DeviceSetup()


def test_deterministic_has_an_effect():
    index, rows = torch.tensor([0, 0, 1]), torch.ones(3, 2)
    with device_setup("cpu", deterministic=True):
        assert torch.are_deterministic_algorithms_enabled()
        with pytest.raises(RuntimeError, match="deterministic"):
            torch.zeros(2, 2).put_(torch.tensor([0, 0]), torch.ones(2), accumulate=False)
    assert not torch.are_deterministic_algorithms_enabled()
    torch.zeros(2, 2).index_add_(0, index, rows)


def test_a_block_leaves_everything_as_it_was():
    setup_device("cpu", cudnn_benchmark=True)
    with pytest.raises(ZeroDivisionError), device_setup("cpu", deterministic=True):
        raise ZeroDivisionError
    assert current_setup() == DeviceSetup(cudnn_benchmark=True)


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"tf32": True}, DeviceError, "tf32 is a setting of CUDA devices"),
        ({"memory_fraction": 0.5}, DeviceError, "memory_fraction is a setting of CUDA devices"),
        ({"memory_fraction": 1.5}, InputError, "above 0 and at most 1"),
        ({"memory_fraction": 0.0}, InputError, "above 0 and at most 1"),
        ({"cudnn_benchmark": True, "deterministic": True}, InputError, "leave deterministic out"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(settings, error, said):
    with pytest.raises(error, match=said):
        setup_device("cpu", **settings)
    assert current_setup() == DeviceSetup()


def test_unknown_and_absent_devices_are_refused():
    with pytest.raises(DeviceError, match="choose one of auto, cpu, cuda, mps"):
        resolve_device("gpu")
    if not torch.cuda.is_available():
        with pytest.raises(DeviceError, match="no CUDA device is usable"):
            setup_device("cuda")


def test_the_text_names_every_setting():
    text = str(DeviceSetup(tf32=True, memory_fraction=0.8))
    assert text == "TF32 on, cuDNN benchmark off, deterministic off, memory up to 80%"


@pytest.mark.gpu
def test_tf32_rounds_products_and_off_again_does_not():
    x = torch.randn(512, 512, device="cuda")
    exact = (x.double() @ x.double()).float()
    errors = []
    for tf32 in (False, True, False):
        setup_device("cuda", tf32=tf32)
        errors.append(float(((x @ x) - exact).norm() / exact.norm()))
    setup_device("cuda")
    assert errors[0] < 1e-6 < 1e-5 < errors[1] < 1e-3
    assert errors[2] == errors[0]
