"""Stage 4: export the network with a batch of any size, and check that the exported one says the same."""

from __future__ import annotations

import torch
from common import arguments, load_network, network_input, run

from geonode.data.methane import load_scans


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


if __name__ == "__main__":
    run(main)
