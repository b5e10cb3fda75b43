"""The methane pipeline of the examples, small, as a user runs it: simulate, train, infer, export."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from geonode.data.methane import ScanFile, Spectrometer, load_scans, simulate_scans
from geonode.data.methane.scans import BLOCK
from geonode.errors import InputError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def stage(example, monkeypatch, capsys):
    """Runs a script of the example as `python NAME.py` does, in this process, and gives what it prints."""

    def run(name: str, project: Path, *options: str, device: str = "cpu") -> str:
        script = ROOT / "examples" / "methane" / f"{name}.py"
        monkeypatch.setattr(sys, "argv", [str(script), "--project", str(project), "--device", device, *options])
        monkeypatch.chdir(project.parent)
        capsys.readouterr()
        runpy.run_path(str(script), run_name="__main__")
        return capsys.readouterr().out

    return run


@pytest.mark.slow
def test_the_whole_pipeline_small(tmp_path, stage):
    project = tmp_path / "methane"
    assert "1200 scans" in stage("simulate", project, "--n", "1200", "--samples", "256", "--workers", "1")
    trained = stage("train", project, "--epochs", "4", "--width", "8", device="auto")
    error = float(trained.split("network: ")[1].split(" decades")[0])
    assert error < 1.0, "better than the 1.4 decades of no network at all"
    table = trained.split("geonode, from its standards alone")[1].splitlines()[1:6]
    assert [line.split()[0] for line in table] == ["2", "10", "100", "1000", "10000"], "from where the draws begin"
    moved = tmp_path / "elsewhere"
    project.rename(moved)  # nothing in a project knows where it was
    answer = stage("infer", moved, "--scan", "5")
    assert {line.split()[0] for line in answer.splitlines()} == {"truth", "network", "geonode"}
    exported = stage("export", moved, "--scan", "5")
    assert exported.count("any batch") == 2 and "calibrator.onnx: full" in exported
    assert "geonode_runtime and geonode agree on 64 scans" in exported
    library = next(line for line in answer.splitlines() if line.startswith("geonode")).split(None, 1)[1]
    runtime = next(line for line in exported.splitlines() if line.startswith("runtime")).split(None, 1)[1]
    assert library.startswith(runtime), "the same sentence by both"
    assert {p.name for p in moved.iterdir()} == {
        "scans.h5", "standards.nc", "cnn.safetensors", "cnn.json", "training.csv", "training.checkpoint", "cnn.pt2",
        "cnn.onnx", "calibrator.bundle", "calibrator.onnx",
    }  # fmt: skip
    _network_says_the_same_without_torch(moved)


def _network_says_the_same_without_torch(project: Path) -> None:
    import onnxruntime

    scans = load_scans(project / "scans.h5", 1000, 1100)
    session = onnxruntime.InferenceSession(project / "cnn.onnx", providers=["CPUExecutionProvider"])
    decades, ppm = session.run(None, {"voltages": scans.voltages})
    np.testing.assert_allclose(ppm, 1e6 * 10.0 ** decades.astype(float), rtol=1e-5)
    rmse = float(np.sqrt(np.mean((decades - np.log10(scans.fraction)) ** 2)))
    assert rmse < 1.2, "a network that was trained, behind what is done to scans before it"


def test_the_readmes_own_scan_is_answered(example):
    """Its number and seed; the standards are those of the project that the README makes."""
    from simulate import prepare_standards

    from geonode import GeodesicConfig, fit

    readme = (ROOT / "examples/methane/README.md").read_text()
    number = int(re.search(r"infer\.py .*--scan (\d+)", readme)[1])
    block = simulate_scans(BLOCK, example / "scans.h5", seed=0, workers=1)  # the first block of any longer file
    scan = load_scans(block, number, number + 1)
    model = fit(prepare_standards(Spectrometer(), 8, 0), GeodesicConfig(predictor="gp"))
    absorbance = example_common().apparent_absorbance(scan.voltages)[0]
    answer = model.calibration.quantify(absorbance, method="profile")  # as infer.py does
    assert answer.verdict == "quantified"
    assert answer.estimate == pytest.approx(1e6 * scan.fraction[0], rel=0.1)


@pytest.fixture
def example(tmp_path, monkeypatch):
    """A folder, with the example's modules importable."""
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "methane"))
    yield tmp_path
    for name in ("common", "simulate", "stream", "train"):
        sys.modules.pop(name, None)


def example_common():
    import common

    return common


@pytest.fixture
def scans(example):
    with ScanFile(simulate_scans(1300, example / "scans.h5", workers=1, instrument=SMALL)) as file:
        yield file


SMALL = Spectrometer(samples=256)


@pytest.mark.parametrize("batch", [1, 64, 700])
def test_an_epoch_sees_every_scan_once_in_an_order_of_its_own(batch, scans):
    from stream import shuffled, split

    rows, validation, test = split(len(scans))
    assert [*rows, *validation, *test] == list(range(1300)) and len(validation) == len(test) == 130
    truth = np.sort(np.log10(scans.read(0, len(rows)).fraction).astype(np.float32))
    epochs = []
    for epoch in (0, 0, 1):
        batches = list(shuffled(scans, rows, batch, seed=3, epoch=epoch))
        assert {len(x) for x, _ in batches[:-1]} <= {batch} and len(batches[-1][0]) <= batch
        epochs.append(np.concatenate([y.numpy() for _, y in batches]))
        np.testing.assert_array_equal(np.sort(epochs[-1]), truth)
    np.testing.assert_array_equal(epochs[0], epochs[1])
    assert not np.array_equal(epochs[0], epochs[2]) and not np.array_equal(epochs[0], truth)


@pytest.mark.parametrize("done", [1, 2, 3])
def test_a_training_that_goes_on_ends_as_one_that_was_never_stopped(done, scans, example, one_thread):
    import torch
    from stream import split
    from train import namespace, train

    rows, validation, _ = split(len(scans))
    options = namespace(epochs=4, batch=32, width=4, rate=1e-2)

    def stop(path, after):
        """A training of so many epochs, of the four that its schedule is for."""
        import train as module

        real, count = module.save_checkpoint, 0

        def save(tree, place):
            nonlocal count
            real(tree, place)
            count += 1
            if count == after:
                raise KeyboardInterrupt

        module.save_checkpoint = save
        try:
            with pytest.raises(KeyboardInterrupt):
                train(scans, rows, validation, options, torch.device("cpu"), path)
        finally:
            module.save_checkpoint = real

    whole = train(scans, rows, validation, options, torch.device("cpu"), example / "whole")
    stop(example / "part", done)
    options.resume = True
    resumed = train(scans, rows, validation, options, torch.device("cpu"), example / "part")
    assert resumed.history == whole.history and resumed.best_epoch == whole.best_epoch
    for name, value in whole.best_state.items():
        assert torch.equal(value, resumed.best_state[name]), name
    options.rate = 2e-2
    with pytest.raises(InputError, match="state of another training"):
        train(scans, rows, validation, options, torch.device("cpu"), example / "part")


def test_the_best_state_is_kept_not_the_last(scans, example, monkeypatch):
    import torch
    import train as module
    from stream import split

    rows, validation, _ = split(len(scans))
    errors = iter([0.9, 0.4, 0.7])
    seen = []

    def rmse(network, *_):
        seen.append({k: v.clone() for k, v in network.state_dict().items()})
        return next(errors)

    monkeypatch.setattr(module, "rmse", rmse)
    options = module.namespace(epochs=3, batch=256, width=4, rate=1e-2)
    trained = module.train(scans, rows, validation, options, torch.device("cpu"))
    assert (trained.best, trained.best_epoch) == (0.4, 1)
    best = trained.best_network().state_dict()
    assert all(torch.equal(best[k], v) for k, v in seen[1].items())
    assert any(not torch.equal(best[k], v) for k, v in seen[2].items())


def tiled(path: Path, count: int) -> Path:
    """A file of so many scans, those of another over and over: nothing is simulated anew."""
    import h5py

    out = path.with_name(f"{count}.h5")
    with h5py.File(path) as one, h5py.File(out, "w") as many:
        many.attrs["settings"] = json.dumps({**json.loads(one.attrs["settings"]), "scans": count})
        for name, dataset in one.items():
            if name == "wavenumbers":
                many.create_dataset(name, data=dataset[:])
                continue
            chunks = (len(dataset), *dataset.shape[1:])
            copy = many.create_dataset(name, (count, *dataset.shape[1:]), dataset.dtype, chunks=chunks)
            copy.attrs.update(dataset.attrs)
            for start in range(0, count, len(dataset)):
                copy[start : start + len(dataset)] = dataset[:]
    return out


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this system does not tell a process's peak memory")
def test_memory_does_not_depend_on_how_many_scans_there_are(example):
    """Streaming an epoch of 40 000 scans more, 80 MB as they are read and as the network sees them."""
    code = """
import re, sys
sys.path.insert(0, sys.argv[2])
from stream import shuffled, split
from geonode.data.methane import ScanFile
with ScanFile(sys.argv[1]) as scans:
    for x, y in shuffled(scans, split(len(scans))[0], 64, 0, 0):
        pass
print(int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024)
"""
    peaks = []
    for count in (20_000, 60_000):
        path = tiled(simulate_scans(500, example / "one.h5", workers=1, instrument=SMALL), count)
        done = subprocess.run(
            [sys.executable, "-c", code, str(path), str(ROOT / "examples" / "methane")],
            capture_output=True, text=True, timeout=200, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        peaks.append(float(done.stdout))
    assert peaks[1] - peaks[0] < 20.0, f"{peaks} MB"
