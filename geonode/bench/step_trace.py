"""What a step spends beside its work: copies, synchronisations and dead time, from a torch.profiler trace.

Times are those under the profiler, which slows the host: dead time is an upper bound, device times are not affected.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from geonode.errors import InputError, cause

STEP = "geonode.step"
"""Name of the annotation around a step; those of `torch.profiler`'s own schedule (ProfilerStep#N) count too."""
LONGEST = 5
"""So many gaps are named."""
_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
_HOST = ("cpu_op", "cuda_runtime", "cuda_driver")
_COPY = "aten::copy_"
_ASKS = "aten::_local_scalar_dense"  # a value asked for by Python: `item`, `tolist`, `float(tensor)`

Event = dict[str, Any]
Span = tuple[float, float]


def read(path: str | Path) -> list[Event]:
    """The events of a trace, gzipped or not.

    Raises:
        InputError: no such file, or no trace.
    """
    try:
        raw = Path(path).read_bytes()
        found = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
        return [event for event in found["traceEvents"] if isinstance(event, dict)]
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is no torch.profiler trace ({cause(error)}); write one with --profile.") from None


def breakdown(events: Iterable[Event]) -> dict[str, Any]:
    """Of the steps in a trace, per step: work, copies, synchronisations, and the time in which nothing ran.

    On a GPU what runs are kernels, copies and fills of the device; on a CPU operators, and the rest is Python's. The
    window begins with the first step and ends with the last, or with the device's work for it.

    Args:
        events: of the trace, those that have a duration (``ph`` X).

    Returns:
        ``device`` (cuda or cpu), ``steps``, and per step ``step_us``, ``busy_us``, ``idle_us``, ``launches`` (kernels,
        or operators), ``copies`` (by kind: count, bytes where they are told, us), ``synchronisations`` (count, us);
        ``idle_share`` of the window; ``gaps``, the longest: ``us``, and ``during``: what the host did meanwhile.

    Raises:
        InputError: a trace without steps.
    """
    timed = [e for e in events if e.get("ph") == "X" and "ts" in e and "dur" in e]
    steps = [e for e in timed if e.get("cat") == "user_annotation" and _is_step(str(e.get("name", "")))]
    if not steps:
        raise InputError("The trace holds no steps; record it with --profile, here or of geonode fit.")
    device = [e for e in timed if e.get("cat") in _DEVICE]
    host = [e for e in timed if e.get("cat") in _HOST]
    begin, end = min(e["ts"] for e in steps), max(map(_end, steps))
    if device:
        end = max(end, max(map(_end, device)))
    work = [e for e in (device or host) if begin <= e["ts"] < end]
    busy = union([(e["ts"], min(_end(e), end)) for e in work])
    gaps = _gaps(busy, (begin, end))
    count, idle = len(steps), sum(b - a for a, b in gaps)
    host = [e for e in host if begin <= e["ts"] < end]
    return {
        "device": "cuda" if device else "cpu",
        "steps": count,
        "step_us": (end - begin) / count,
        "busy_us": sum(b - a for a, b in busy) / count,
        "idle_us": idle / count,
        "idle_share": idle / (end - begin),
        "launches": (sum(e["cat"] == "kernel" for e in work) if device else _calls(work)) / count,
        "copies": _copies(work, bool(device), count),
        "synchronisations": _synchronisations(host, bool(device), count),
        "gaps": [
            {"us": b - a, "during": _during(host, a, b)} for a, b in sorted(gaps, key=lambda g: g[0] - g[1])[:LONGEST]
        ],
    }


def union(spans: Sequence[Span]) -> list[Span]:
    """Disjoint spans that cover the same time, in order."""
    merged: list[Span] = []
    for a, b in sorted(spans):
        if merged and a <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], b))
        else:
            merged.append((a, b))
    return merged


def sentences(found: dict[str, Any]) -> list[str]:
    """The breakdown for people."""
    what = "kernels" if found["device"] == "cuda" else "operators"
    lines = [
        f"a step takes {_time(found['step_us'])} under the profiler: {found['launches']:.0f} {what} in "
        f"{_time(found['busy_us'])}, dead time {_time(found['idle_us'])} ({found['idle_share']:.0%})"
    ]
    for kind, one in found["copies"].items():
        size = "" if one["bytes"] is None else f" of {_size(one['bytes'])}"
        lines.append(f"copies {kind}: {one['count']:.3g}{size}, {_time(one['us'])}")
    if not found["copies"]:
        lines.append("no copies")
    waits = found["synchronisations"]
    lines.append(f"synchronisations: {waits['count']:.3g}, {_time(waits['us'])}")
    for gap in found["gaps"]:
        lines.append(f"nothing ran for {_time(gap['us'])}: {gap['during']}")
    return lines


def _is_step(name: str) -> bool:
    return name == STEP or name.startswith("ProfilerStep#")


def _end(event: Event) -> float:
    return event["ts"] + event["dur"]


def _gaps(busy: Sequence[Span], window: Span) -> list[Span]:
    edges = [(window[0], window[0]), *busy, (window[1], window[1])]
    return [(a[1], b[0]) for a, b in pairwise(edges) if b[0] > a[1]]


def _calls(operators: Sequence[Event]) -> int:
    """Operators that no other operator of their thread called."""
    ends: dict[Any, float] = {}
    count = 0
    for e in sorted(operators, key=lambda e: (e["ts"], -e["dur"])):
        if e["ts"] >= ends.get(e.get("tid"), -float("inf")):
            count += 1
            ends[e.get("tid")] = _end(e)
    return count


def _copies(work: Sequence[Event], cuda: bool, steps: int) -> dict[str, Any]:
    """Copies by kind: "HtoD", "DtoH", "DtoD" as the device names them; on a CPU operators that copy."""
    found: dict[str, dict[str, Any]] = {}
    for e in work:
        if cuda and e["cat"] == "gpu_memcpy":
            words = str(e["name"]).split()
            kind, size = words[1] if len(words) > 1 else words[0], (e.get("args") or {}).get("bytes", 0)
        elif not cuda and e["name"] == _COPY:
            kind, size = str(e["name"]), None
        else:
            continue
        one = found.setdefault(kind, {"count": 0.0, "bytes": None if size is None else 0.0, "us": 0.0})
        one["count"] += 1 / steps
        one["us"] += e["dur"] / steps
        if size is not None:
            one["bytes"] += float(size) / steps
    return found


def _synchronisations(host: Sequence[Event], cuda: bool, steps: int) -> dict[str, float]:
    """Where the host waits for the device; on a CPU the places at which it would, on a GPU."""
    waits = [
        e for e in host
        if (cuda and e["cat"] != "cpu_op" and "Synchronize" in str(e["name"])) or (not cuda and e["name"] == _ASKS)
    ]  # fmt: skip
    return {"count": len(waits) / steps, "us": sum(e["dur"] for e in waits) / steps}


def _during(host: Sequence[Event], begin: float, end: float) -> str:
    """What filled most of a gap on the host's side, or Python where no operator and no call of the driver did."""
    filled: Counter[str] = Counter()
    for e in host:
        overlap = min(_end(e), end) - max(e["ts"], begin)
        if overlap > 0:
            filled[str(e["name"])] += overlap
    if not filled:
        return "Python"
    name, most = filled.most_common(1)[0]
    return name if most >= 0.5 * (end - begin) else f"Python, {name} among it"


def _time(us: float) -> str:
    return f"{us / 1e6:.3g} s" if us >= 1e6 else f"{us / 1e3:.3g} ms" if us >= 1e3 else f"{us:.3g} µs"


def _size(count: float) -> str:
    return f"{count / 1e6:.3g} MB" if count >= 1e6 else f"{count / 1e3:.3g} kB" if count >= 1e3 else f"{count:.0f} B"
