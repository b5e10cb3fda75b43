"""Stage 4: export the network with a batch of any size, and the calibrator for the torch-free runtime; both are checked
against what they were made of."""

from __future__ import annotations

import torch
from common import arguments, load_network, network_input, run

import geonode
from geonode.data.methane import load_scans
from geonode.export.export import export_onnx


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    network, described = load_network(options.project)
    scans = load_scans(options.project / "scans.h5", 0, 64)
    x = network_input(scans.voltages)
    batch = torch.export.Dim("batch", min=1, max=4096)
    program = torch.export.export(network, (x[:2],), dynamic_shapes=({0: batch},))
    module = program.module()
    with torch.inference_mode():
        worst = max(float((module(x[:n]) - network(x[:n])).abs().max()) for n in (1, 3, len(x)))
    if worst > 1e-5:
        raise SystemExit(f"the exported network differs by {worst:g} decades; it was not written.")
    part = options.project / "part.pt2"
    torch.export.save(program, part)
    part.replace(options.project / "cnn.pt2")
    size = (options.project / "cnn.pt2").stat().st_size / 1024
    print(
        f"cnn.pt2: {size:.0f} KiB, {described['samples']} readings, any batch; differs by at most {worst:.1e} decades"
    )
    standards = geonode.load_standards(options.project / "standards.nc")
    calibrator = geonode.fit(standards, geonode.GeodesicConfig(predictor="gp"))
    report = export_onnx(calibrator, options.project / "calibrator.onnx")
    print(f"calibrator.onnx: {report.sentence()}")


if __name__ == "__main__":
    run(main)
