"""Block sizes: a fixed table for training, and an opt-in search for everything else, remembered on disk.

Sums are reduced in an order that depends on the block sizes, so a run that must resume bitwise uses the table and
records it (`block_table`). `tune` searches a short list outside training and writes the winner to the cache folder
($GEONODE_CACHE or ~/.cache/geonode); `use_tuned` loads what was found for this device.
"""

import json
import os
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

# op → launch options. Measured on an H100; right everywhere, fast there.
TABLE: dict[str, dict[str, Any]] = {
    "metric_forward": {"BLOCK": 64, "num_warps": 4, "per_sm": 4},
    "metric_backward": {"BLOCK": 32, "num_warps": 4, "per_sm": 2},
    "rk4_forward": {"BLOCK": 64, "num_warps": 4, "maxnreg": None},
    "rk4_reverse": {"BLOCK": 128, "num_warps": 4},
    "shoot": {"BLOCK": 64, "num_warps": 4},
    "flow_forward": {"BLOCK": 32, "num_warps": 4},
    "flow_backward": {"BLOCK": 8, "num_warps": 4, "per_program": 512},
    "path_points": {"BLOCK": 64, "num_warps": 4},
    "arc_length": {"BLOCK_P": 32, "BLOCK_W": 64, "num_warps": 4},
    "adamw": {"BLOCK": 2048, "num_warps": 16},
    "elementwise": {"BLOCK": 1024, "num_warps": 4},
}
_tuned: dict[str, dict[str, Any]] = {}


def block_table() -> dict[str, dict[str, Any]]:
    """The block sizes in force, to be recorded in a checkpoint."""
    return {op: dict(_tuned.get(op, options)) for op, options in TABLE.items()}


def options(op: str) -> dict[str, Any]:
    """Launch options of one op; entries of None are left to the compiler."""
    return {k: v for k, v in _tuned.get(op, TABLE[op]).items() if v is not None}


def cache_file(device: str) -> Path:
    """Where the search's winners for one device are kept."""
    folder = Path(os.environ.get("GEONODE_CACHE", Path.home() / ".cache" / "geonode"))
    return folder / f"blocks-{device.replace(' ', '-')}.json"


def use_table() -> None:
    """Back to the fixed table (training)."""
    _tuned.clear()


def use_tuned(device: str | None = None) -> bool:
    """Use what `tune` found on this device before; False where nothing was."""
    name = device or torch.cuda.get_device_name()
    path = cache_file(name)
    if not path.is_file():
        return False
    _tuned.update({k: v for k, v in json.loads(path.read_text(encoding="utf-8")).items() if k in TABLE})
    return True


def tune(op: str, candidates: list[dict[str, Any]], run: Callable[[], Any], repeats: int = 5) -> dict[str, Any]:
    """Time ``run`` under each candidate, keep the fastest for this process and on disk; never inside a capture.

    A candidate that needs more registers, shared memory or threads than this device has is passed over; any other
    error is the caller's to see, and leaves the block sizes as they were.

    Args:
        op: a key of TABLE. candidates: launch options to try, over the table's. run: launches the op once.
        repeats: timed runs of each candidate, of which the median counts.

    Returns:
        The launch options now in force.

    Raises:
        RuntimeError: inside CUDA-graph capture, or where no candidate runs.
    """
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError("Block sizes are not searched inside a graph capture; tune before, or use the table.")
    before = _tuned.get(op)
    try:
        times = _times(op, candidates, run, repeats)
    finally:
        _put(op, before)
    if not times:
        raise RuntimeError(f"No candidate block size of {op} runs on this device.")
    _tuned[op] = {**TABLE[op], **candidates[min(times)[1]]}
    _remember()
    return dict(_tuned[op])


def _times(op: str, candidates: list[dict[str, Any]], run: Callable[[], Any], repeats: int) -> list[tuple[float, int]]:
    """(median ms, index) of every candidate that runs here."""
    times: list[tuple[float, int]] = []
    for index, candidate in enumerate(candidates):
        _tuned[op] = {**TABLE[op], **candidate}
        try:
            run()
            torch.cuda.synchronize()
        except _resource_errors():  # too many registers or too much shared memory for this device: not a candidate
            continue
        measured = []
        for _ in range(repeats):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            run()
            end.record()
            end.synchronize()
            measured.append(start.elapsed_time(end))
        times.append((statistics.median(measured), index))
    return times


def _put(op: str, options: dict[str, Any] | None) -> None:
    if options is None:
        _tuned.pop(op, None)
    else:
        _tuned[op] = options


def _resource_errors() -> tuple[type[Exception], ...]:
    """What Triton raises where a block size asks for more than the device has."""
    from triton.runtime.errors import OutOfResources, PTXASError

    return OutOfResources, PTXASError


def _remember() -> None:
    path = cache_file(torch.cuda.get_device_name())
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps(_tuned, indent=1), encoding="utf-8")
    temporary.replace(path)
