"""What `geonode doctor` calls usable has been tried; what is not usable is said with its reason."""

from __future__ import annotations

import importlib
import os
import re
import sys
from types import SimpleNamespace

import pytest
import torch
from typer.testing import CliRunner

from geonode.cli import app
from geonode.commands import probes
from geonode.commands.doctor import _weights
from geonode.prior import model_card
from geonode.threads import cores


@pytest.fixture
def card(monkeypatch):
    """Pretend that this machine has cards of these compute capabilities; launches are as the test says."""

    def make(*capabilities: tuple[int, int], launch=lambda device: None) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(capabilities))
        monkeypatch.setattr(torch.cuda, "device_count", lambda: len(capabilities))
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda number: f"card {number}")
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda number: capabilities[number])
        monkeypatch.setattr(probes, "_launch", launch)

    monkeypatch.setitem(sys.modules, "triton", SimpleNamespace(__version__="3.5"))
    return make


@pytest.fixture
def without(monkeypatch):
    """Make a package impossible to import, as where it is not installed."""

    def forget(*names: str) -> None:
        real = importlib.import_module

        def find(name, package=None):
            if name in names:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            return real(name, package)

        monkeypatch.setattr(probes.importlib, "import_module", find)

    return forget


def fails(error):
    def launch(device):
        raise error

    return launch


def test_kernels_are_usable_where_one_ran(card):
    card((9, 0))
    assert probes.say(probes.kernels) == "usable: Triton 3.5 on cuda:0"
    card((9, 0), (7, 5))
    assert probes.say(probes.kernels) == (
        "usable: Triton 3.5 on cuda:0; cuda:1 card 1 has compute capability 7.5 < 8.0"
    )


@pytest.mark.parametrize(
    ("capabilities", "launch", "reason"),
    [
        ([], None, "without CUDA|no CUDA device|hides every device"),
        ([(7, 0)], None, r"cuda:0 card 0 has compute capability 7\.0 < 8\.0"),
        (
            [(9, 0)],
            fails(RuntimeError("Failed to find C compiler.\nSet CC")),
            "RuntimeError: Failed to find C compiler. Set",
        ),
        ([(8, 0)], fails(probes.Unusable("a kernel's result differs")), "a kernel's result differs"),
    ],
)
def test_kernels_are_not_usable_and_why(capabilities, launch, reason, card):
    card(*capabilities, **({} if launch is None else {"launch": launch}))
    said = probes.say(probes.kernels)
    assert said.startswith("not usable: ")
    assert re.search(reason, said), said


def test_kernels_without_triton_are_not_usable_on_any_card(card, without):
    card((9, 0))
    without("triton")
    said = probes.say(probes.kernels)
    assert said == "not usable: triton is not installed (pip install 'geodesic-node[gpu]')"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_this_machine_without_a_card_has_no_usable_kernels():
    output = " ".join(CliRunner().invoke(app, ["doctor"]).output.split())
    assert "kernels not usable: " in output and "kernels usable" not in output and "cuda not usable: " in output


def test_the_trial_compares_with_plain_torch(monkeypatch):
    import geonode_kernels

    real = geonode_kernels.metric_value
    factor = [1.0]

    def value(*arguments, backend):
        return real(*arguments, backend="torch") * (factor[0] if backend == "triton" else 1.0)

    monkeypatch.setattr(geonode_kernels, "metric_value", value)
    probes._launch(torch.device("cpu"))
    factor[0] = 1.01
    with pytest.raises(probes.Unusable, match="differs from plain torch by"):
        probes._launch(torch.device("cpu"))


@pytest.mark.gpu
def test_the_trial_runs_on_a_card():
    assert probes.say(probes.kernels).startswith("usable: Triton")


@pytest.mark.parametrize(
    ("probe", "package", "extra"),
    [
        (probes.onnx, "onnx", "export"),
        (probes.onnx, "onnxscript", "export"),
        (probes.onnx, "onnxruntime", "export"),
        (probes.ray, "ray", "cluster"),
    ],
)
def test_parts_whose_package_is_missing_name_it_and_the_extra(probe, package, extra, without):
    without(package)
    said = probes.say(probe)
    if package != "onnx" and said.startswith("not usable: onnx is not"):
        pytest.skip("onnx is not installed")
    assert said.startswith(f"not usable: {package} is not installed (pip install 'geodesic-node[{extra}]')")


def test_a_package_that_is_there_but_broken_is_not_usable(monkeypatch):
    def broken(name, package=None):
        raise ImportError("libcuda.so.1: cannot open shared object file")

    monkeypatch.setattr(probes.importlib, "import_module", broken)
    for probe in (probes.kernels, probes.onnx, probes.ray):
        assert probes.say(probe).startswith("not usable: ImportError: libcuda.so.1: cannot open")


@pytest.mark.parametrize(
    ("reason", "gpm", "said"),
    [
        ("NVML: Driver Not Loaded", False, "not usable: NVML: Driver Not Loaded"),
        (None, True, "usable: driver 550.1, power, memory, temperature, SM activity (GPM)"),
        (None, False, "usable: driver 550.1, power, memory, temperature, no SM activity (GPM came with Hopper)"),
    ],
)
def test_the_monitor_says_what_it_gives(reason, gpm, said, monkeypatch):
    from geonode.bench import nvml

    class Device:
        def __init__(self):
            if reason:
                raise RuntimeError(reason)

        has_gpm = staticmethod(lambda: gpm)
        describe = staticmethod(lambda: {"driver": "550.1"})

    monkeypatch.setattr(nvml, "Device", Device)
    assert probes.say(probes.nvml) == said


@pytest.mark.parametrize(
    ("compiler", "said"),
    [("nonexistent++", "not usable: it needs a C++ compiler"), ("false", "not usable: 'false' does not compile")],
)
def test_a_compiler_that_does_not_compile_is_not_usable(compiler, said, monkeypatch):
    monkeypatch.setenv("CXX", compiler)
    assert probes.say(probes.compiling).startswith(said)


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({"memory.max": "1073741824", "memory.current": "73741824"}, 1073741824),
        ({"memory/memory.limit_in_bytes": "536870912", "memory/memory.usage_in_bytes": "36870912"}, 536870912),
        ({"memory.max": "max", "memory.current": "5"}, None),
        ({"memory/memory.limit_in_bytes": "9223372036854771712", "memory/memory.usage_in_bytes": "5"}, None),
        ({}, None),
    ],
)
def test_memory_is_what_a_container_may_take(files, limit, tmp_path, monkeypatch):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    monkeypatch.setattr(probes, "_CGROUP", tmp_path)
    free, total = probes.memory()
    assert 0 < free <= total
    if limit is None:
        assert total == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    else:
        assert total == limit and free <= 1_000_000_000


def test_cores_are_those_this_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3}, raising=False)
    assert cores() == 1


def test_weights_are_told_with_all_assays_that_they_have_seen():
    """Those of the trainings that they went on from as well."""
    said, card = _weights(), model_card()
    assert card["assays with those before"] > card["assays"]
    assert said.startswith(f"{card['name']}, trained on {1e-6 * card['assays with those before']:.1f} million")
