"""`import geonode` in a fresh process: quick beside torch, and nothing happens but the import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fresh import fresh

OPTIONAL = (
    "xarray", "pandas", "chemotools", "sklearn", "lightning", "matplotlib", "torchdiffeq", "triton", "typer", "rich",
    "pynvml", "ray", "onnx", "onnxruntime", "onnxscript", "accelerate", "deepspeed", "tensorboard", "jax",
    "h5py", "h5netcdf", "IPython",
)  # fmt: skip
SECONDS = 3.0
"""Of processor time, beyond torch's own: what else a machine does at the time does not count."""


def run(code: str, folder: Path, torch: bool = True, **more: str) -> str:
    """What the code prints, begun where torch is loaded, or from nothing at all."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", **more}
    if torch:
        result = fresh(code, folder, environment)
    else:
        result = subprocess.run(
            [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
        )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return result.stdout.strip()


@pytest.fixture(scope="module", autouse=True)
def findable():
    """The package under test, wherever it is, is found from any folder."""
    import geonode

    root = str(Path(geonode.__file__).resolve().parent.parent)
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [root, before]))
    yield
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before


@pytest.mark.smoke
def test_it_takes_little_time_beyond_torch(tmp_path):
    code = "import time; import torch; begin = time.process_time(); import geonode; print(time.process_time() - begin)"
    best = min(float(run(code, tmp_path)) for _ in range(2))
    assert best <= SECONDS


@pytest.mark.smoke
def test_nothing_optional_is_loaded_and_no_gpu_touched(tmp_path):
    code = f"""
import sys, geonode
print([m for m in {OPTIONAL!r} if m in sys.modules])
torch = sys.modules.get("torch")
print(torch is not None and torch.cuda.is_initialized())
"""
    assert run(code, tmp_path, torch=False) == "[]\nFalse"


def test_no_gpu_is_even_asked_for(tmp_path):
    """Whatever would start CUDA fails loudly here, whether or not there is a card."""
    code = """
import torch
def never(*arguments, **options): raise AssertionError("CUDA was touched")
for name in ("init", "_lazy_init", "is_available", "device_count", "current_device", "get_device_properties"):
    setattr(torch.cuda, name, never)
import geonode, geonode_kernels
geonode.fit, geonode.load, geonode.GeodesicConfig, geonode.shoot, geonode.Calibration
"""
    assert run(code, tmp_path) == ""


def test_no_thread_process_or_handler_is_started(tmp_path):
    code = """
import os, signal, threading, warnings, torch
def tasks(): return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0
handlers = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
before, seeds, environment = (threading.active_count(), tasks()), torch.random.get_rng_state(), dict(os.environ)
state = (torch.get_num_threads(), torch.get_default_dtype(), torch.is_grad_enabled(), list(warnings.filters))
import geonode
assert (threading.active_count(), tasks()) == before
assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)] == handlers
assert torch.equal(torch.random.get_rng_state(), seeds) and dict(os.environ) == environment
assert (torch.get_num_threads(), torch.get_default_dtype(), torch.is_grad_enabled(), list(warnings.filters)) == state
"""
    assert run(code, tmp_path) == ""


def test_no_file_is_written_or_socket_opened(tmp_path):
    """Python's audit events see every file opened to be written, every folder made, every socket and process."""
    code = """
import sys, torch
seen = []
def watch(event, arguments):
    if event == "open" and len(arguments) > 2:
        path, mode, flags = arguments[:3]
        if (isinstance(mode, str) and set(mode) & set("wax+")) or (isinstance(flags, int) and flags & 3):
            seen.append((event, path))
    elif event.split(".")[0] in ("socket", "subprocess", "shutil", "tempfile") or event in ("os.mkdir", "os.rename",
            "os.remove", "os.system", "os.posix_spawn", "os.fork", "os.putenv"):
        seen.append((event, arguments))
sys.addaudithook(watch)
import geonode
print(seen)
"""
    home = tmp_path / "home"
    home.mkdir()
    assert run(code, tmp_path, HOME=str(home), TMPDIR=str(home)) == "[]"
    assert list(tmp_path.rglob("*")) == [home]
