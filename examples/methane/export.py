"""Stage 4: export both for machines without geonode or torch, and check that they say the same there."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from common import PPM, VoltagesToFraction, apparent_absorbance, arguments, load_network, network_input, run

import geonode_runtime
from geonode import load
from geonode.data.methane import ScanSet, load_scans
from geonode.export.export import export_onnx
from geonode_runtime.files import write_atomically

SAME = 5e-4  # decades, a hundredth of what the network errs: the exported network against itself
AGREED = 1e-3  # relative difference of estimates, exported against library


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--scan", type=int, default=0, help="a scan that the exported calibrator answers")
    options = parser.parse_args()
    scans = load_scans(options.project / "scans.h5", 0, 64)
    export_network(options.project, scans.voltages)
    one = load_scans(options.project / "scans.h5", options.scan, options.scan + 1)
    export_calibrator(options.project, scans, one)


def export_network(project: Path, voltages: np.ndarray) -> None:
    """The network as a torch.export program and as ONNX, from voltages to ppm, each for a batch of any size."""
    network, described = load_network(project)
    whole = VoltagesToFraction(network, described["samples"]).eval()
    x = torch.from_numpy(voltages)
    with torch.inference_mode():
        expected, direct = whole(x)[0], network(network_input(voltages))
    if float((expected - direct).abs().max()) > SAME:
        raise SystemExit("the scans are not prepared as in training; nothing was written.")
    batch = {0: torch.export.Dim("batch", min=1, max=4096)}
    program = torch.export.export(whole, (x[:2],), dynamic_shapes=(batch,))
    module = program.module()

    def by_torch(part: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return module(torch.from_numpy(part))[0].numpy()

    worst = largest("cnn.pt2", by_torch, voltages, expected.numpy())
    data = io.BytesIO()
    torch.export.save(program, data)
    write(project / "cnn.pt2", data.getvalue(), described, worst)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it misses torchvision, which is not needed
    model = torch.onnx.export(
        whole, (x[:2],), dynamo=True, dynamic_shapes=(batch,), input_names=["voltages"],
        output_names=["log10_fraction", "ppm"], external_data=False, verbose=False,
    )  # fmt: skip
    onnx = model.model_proto.SerializeToString()
    session = onnxruntime.InferenceSession(onnx, providers=["CPUExecutionProvider"])

    def by_runtime(part: np.ndarray) -> np.ndarray:
        return session.run(["log10_fraction"], {"voltages": part})[0]

    write(project / "cnn.onnx", onnx, described, largest("cnn.onnx", by_runtime, voltages, expected.numpy()))


def largest(name: str, answer: Callable[[np.ndarray], np.ndarray], voltages: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference over batches of several sizes, in decades."""
    worst = max(float(np.abs(answer(voltages[:n]) - expected[:n]).max()) for n in (1, 3, len(voltages)))
    if not worst <= SAME:
        raise SystemExit(f"the exported network differs by {worst:g} decades; {name} was not written.")
    return worst


def write(path: Path, data: bytes, described: dict[str, Any], worst: float) -> None:
    write_atomically(path, lambda place: Path(place).write_bytes(data))
    what = f"{len(data) / 1024:.0f} KiB, {described['samples']} readings, any batch"
    print(f"{path.name}: {what}; differs by at most {worst:.1e} decades")


def export_calibrator(project: Path, scans: ScanSet, one: ScanSet) -> None:
    """The calibrator as ``geonode export`` writes it, and its answers by geonode_runtime."""
    model = load(project / "calibrator.bundle")
    report = export_onnx(model, project / "calibrator.onnx")
    print(f"calibrator.onnx: {report.sentence()}")
    exported = geonode_runtime.load(project / "calibrator.onnx")
    offset = scans.settings["instrument"]["offset"]
    spectra = apparent_absorbance(scans.voltages, offset)
    theirs, ours = (
        np.array([answer.nearest for answer in m.quantify_many(spectra, method="profile")])
        for m in (exported, model.calibration)
    )
    worst = float(np.max(np.abs(theirs - ours) / np.maximum(np.abs(ours), 1.0)))
    if worst > AGREED:
        raise SystemExit(f"the exported calibrator's estimates differ by {worst:.1e}; do not use calibrator.onnx.")
    print(f"geonode_runtime and geonode agree on {len(spectra)} scans to {worst:.0e}")
    answer = exported.quantify(apparent_absorbance(one.voltages, offset)[0], method="profile")  # as infer.py
    print(f"truth    {PPM * one.fraction[0]:.4g} ppm")
    print(f"runtime  {answer.sentence(exported.unit)}")


if __name__ == "__main__":
    run(main)
