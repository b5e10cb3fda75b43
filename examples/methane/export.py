"""Stage 4: export both for machines without geonode or torch, and check that they say the same there."""

from __future__ import annotations

import numpy as np
import torch
from common import PPM, apparent_absorbance, arguments, load_network, network_input, run

import geonode_runtime
from geonode import load
from geonode.data.methane import ScanSet, load_scans
from geonode.export.export import export_onnx

AGREED = 1e-3  # relative difference of estimates, exported against library


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--scan", type=int, default=0, help="a scan that the exported calibrator answers")
    options = parser.parse_args()
    scans = load_scans(options.project / "scans.h5", 0, 64)
    export_network(options.project, network_input(scans.voltages))
    one = load_scans(options.project / "scans.h5", options.scan, options.scan + 1)
    export_calibrator(options.project, scans, one)


def export_network(project, x: torch.Tensor) -> None:
    """The network as a torch.export program for a batch of any size."""
    network, described = load_network(project)
    batch = torch.export.Dim("batch", min=1, max=4096)
    program = torch.export.export(network, (x[:2],), dynamic_shapes=({0: batch},))
    module = program.module()
    with torch.inference_mode():
        worst = max(float((module(x[:n]) - network(x[:n])).abs().max()) for n in (1, 3, len(x)))
    if worst > 1e-5:
        raise SystemExit(f"the exported network differs by {worst:g} decades; it was not written.")
    part = project / "part.pt2"
    torch.export.save(program, part)
    part.replace(project / "cnn.pt2")
    size = (project / "cnn.pt2").stat().st_size / 1024
    print(
        f"cnn.pt2: {size:.0f} KiB, {described['samples']} readings, any batch; differs by at most {worst:.1e} decades"
    )


def export_calibrator(project, scans: ScanSet, one: ScanSet) -> None:
    """The calibrator as ``geonode export`` writes it, and its answers by geonode_runtime."""
    model = load(project / "calibrator.bundle")
    report = export_onnx(model, project / "calibrator.onnx")
    print(f"calibrator.onnx: {report.sentence()}")
    exported = geonode_runtime.load(project / "calibrator.onnx")
    offset = scans.settings["instrument"]["offset"]
    spectra = apparent_absorbance(scans.voltages, offset)
    theirs, ours = (
        np.array([answer.estimate for answer in m.quantify_many(spectra)]) for m in (exported, model.calibration)
    )
    worst = float(np.max(np.abs(theirs - ours) / np.maximum(np.abs(ours), 1.0)))
    if worst > AGREED:
        raise SystemExit(f"the exported calibrator's estimates differ by {worst:.1e}; do not use calibrator.onnx.")
    print(f"geonode_runtime and geonode agree on {len(spectra)} scans to {worst:.0e}")
    answer = exported.quantify(apparent_absorbance(one.voltages, offset)[0])
    print(f"truth    {PPM * one.fraction[0]:.4g} ppm")
    print(f"runtime  {answer.sentence(exported.unit)}")


if __name__ == "__main__":
    run(main)
