"""The process that measures: reads a plan, prints one line of JSON per result. Started by `suite`, never by hand.

python -m geonode.bench.worker '{"rows": [["geodesic-ivp", [30, 601]]], "setting": {"device": "cpu"}, …}'
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

MARK = "@geonode.bench "


def tell(kind: str, **values: Any) -> None:
    """One line to the parent."""
    sys.stdout.write(f"{MARK}{json.dumps({'kind': kind, **values})}\n")
    sys.stdout.flush()


def main(text: str) -> None:
    """Carry out the plan: ``first`` measures everything, else time alone; ``once`` is one call each for a profiler."""
    plan = json.loads(text)
    from geonode.bench.case import Setting, Size, load

    setting = Setting(**plan["setting"])
    cases = load(plan.get("imports", ()))
    if setting.device == "cuda":
        import torch

        torch.cuda.init()
    if plan.get("first"):
        from geonode.bench import ceilings

        tell("ceilings", values=ceilings.measure(setting.device))
    for name, size in plan["rows"]:
        case, size = cases[name], Size(*size)
        tell("begin", case=name, size=list(size))
        if plan.get("once"):
            _once(case, setting, size)
            continue
        begin = time.perf_counter()
        row = measure(case, setting, size, plan)
        tell("row", case=name, size=list(size), wall_s=time.perf_counter() - begin, **row)
    if plan.get("first"):
        _extras(plan, cases, setting)
    tell("end")


def measure(case: Any, setting: Any, size: Any, plan: dict[str, Any]) -> dict[str, Any]:
    """One case at one size: correctness, and only where that is green time, activity window and memory."""
    from geonode.bench.ceilings import floor  # noqa: F401 - fail early where torch is missing

    work = case.build(setting, size)
    row: dict[str, Any] = {"title": case.title, "notes": work.notes, "counts": work.counts}
    if plan.get("first"):
        checks = work.check()
        row["checks"] = [c._asdict() for c in checks]
        wrong = [c for c in checks if not c.ok]
        if wrong:
            worst = wrong[0]
            return {
                **row,
                "status": "red",
                "reason": f"{worst.name}: error {worst.error:.3g}, allowed {worst.limit:.3g}",
            }
    row.update(status="green", operations=work.operations, bytes=work.bytes, **_times(work, setting, plan))
    return row if not plan.get("first") else {**row, **_rest(case, size, work, row, setting, plan)}


def _times(work: Any, setting: Any, plan: dict[str, Any]) -> dict[str, Any]:
    """Raw samples of the headline, and beside it what the host's launches cost."""
    from geonode.bench import timing

    budget = plan["budget"]
    if setting.device != "cuda" or work.latency:
        return {
            "mode": "wall clock",
            "samples_ms": timing.wall_samples(work.run, work.rotations, setting.device, budget),
        }
    eager = timing.event_samples(work.run, work.rotations, budget)
    if not work.capture:
        result = {"mode": "events", "samples_ms": eager}
    else:
        work.replay = timing.captured(work.run, work.rotations, work.state)
        result = {"mode": "graph replay", "samples_ms": timing.event_samples(work.replay, work.rotations, budget)}
        result["eager_samples_ms"] = eager
    if plan.get("first") and min(eager) < 1e3:
        result["host_us"] = timing.host_cost(work.run, work.rotations, 3 if min(eager) > 100.0 else 15)
    return result


def _rest(case: Any, size: Any, work: Any, row: dict[str, Any], setting: Any, plan: dict[str, Any]) -> dict[str, Any]:
    """Peak memory, and a window of unbroken work for the parent's monitor."""
    import statistics

    from geonode.bench import timing

    extra: dict[str, Any] = {}
    if setting.device == "cuda":
        import torch

        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        work.run(0)
        torch.cuda.synchronize()
        extra["peak_gb"] = torch.cuda.max_memory_allocated() / 1e9
    if plan.get("windows"):
        run = getattr(work, "replay", work.run)
        seconds = min(case.window(size), plan["longest_window"])
        call = 1e-3 * statistics.median(row["samples_ms"])
        begin, end, calls = timing.sustain(run, work.rotations, setting.device, seconds, call)
        extra["window"] = {"begin": begin, "end": end, "calls": calls}
    return extra


def _once(case: Any, setting: Any, size: Any) -> None:
    """One call between the profiler's start and stop."""
    import torch

    work = case.build(setting, size)
    for _ in range(2):
        work.run(0)
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    work.run(0)
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


def _extras(plan: dict[str, Any], cases: Any, setting: Any) -> None:
    """Throughput against batch size, work–precision curves, the CPU beside the GPU, the sequential loop."""
    from geonode.bench import extras

    names = set(plan["names"])
    chosen = [cases[name] for name in cases if name in names]
    for kind, values in extras.all_of(chosen, setting, plan):
        tell(kind, **values)


if __name__ == "__main__":
    main(sys.argv[1])
