"""The host's share of one eager call of geodesic_rk4, part by part (median microseconds, nothing waited for)."""

from __future__ import annotations

import statistics
import sys
import time

import torch
from kernels_common import SMALL, geodesic_arguments

import geonode_kernels as gk


def host(run, repeats=200) -> float:
    """Median host time of ``run`` in µs; the device is drained before each, so that its queue is never full."""
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        run()
        times.append(1e6 * (time.perf_counter() - begin))
    return statistics.median(times)


def main() -> None:
    arguments = geodesic_arguments(SMALL)
    module = sys.modules["geonode_kernels.geodesic_rk4"]
    c, v, wavelength, *weights = arguments
    with torch.no_grad():
        whole = host(lambda: gk.geodesic_rk4(*arguments, steps=20, backend="triton"))
        checks = host(lambda: gk.dispatch("geodesic_rk4", arguments, backend="triton"))
        inner = host(lambda: module._launch(c, v, wavelength, weights, 20, 0, 0))
        empty = host(lambda: [torch.empty(1, SMALL, device="cuda") for _ in range(2)])
        op = host(lambda: module._rk4(*arguments, 20, 0, 0, False))
    print({"whole": whole, "checks": checks, "launch with allocation": inner, "two empties": empty, "operator": op})


if __name__ == "__main__":
    main()
