"""The process that measures: reads a plan, prints one line of JSON per result. Started by `suite`, never by hand.

python -m geonode.bench.worker '{"rows": [["geodesic-ivp", [30, 601]]], "setting": {"device": "cpu"}, …}'
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

MARK = "@geonode.bench "
LONG_CALLS = "wall clock, long calls"
SHORTER = 0.45
"""Of a case's window, in the quick suite: still ten samples of the counters."""


def tell(kind: str, **values: Any) -> None:
    """One line to the parent."""
    sys.stdout.write(f"{MARK}{json.dumps({'kind': kind, **values})}\n")
    sys.stdout.flush()


def main(text: str) -> None:
    """Carry out the plan: ``first`` measures everything, else time alone; ``once`` is one call each for a profiler."""
    plan = json.loads(text)
    from geonode.bench.case import Setting, Size, load

    setting = Setting(**plan["setting"])
    from geonode.device import setup_device

    setup_device(setting.device)  # nothing but what a case asks for: no TF32 that some environment switched on
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
        if row["status"] != "green":  # nothing beside it is timed either
            plan["names"] = [other for other in plan["names"] if other != name]
    if plan.get("first"):
        _extras(plan, cases, setting)
    tell("end")


def measure(case: Any, setting: Any, size: Any, plan: dict[str, Any]) -> dict[str, Any]:
    """One case at one size: correctness, and only where that is green time, activity window and memory."""
    work = case.build(setting, size)
    row: dict[str, Any] = {"title": case.title, "notes": work.notes, "counts": work.counts}
    if plan.get("first"):
        checks = work.check()
        row["checks"] = [c._asdict() for c in checks]
        wrong = [c for c in checks if not c.ok]
        if wrong:
            worst = wrong[0]
            reason = f"{worst.name}: error {worst.error:.3g}, allowed {worst.limit:.3g}"
            return {**row, "status": "red", "reason": reason}
    row.update(status="green", operations=work.operations, bytes=work.bytes)
    seconds = min(case.window(size), plan["longest_window"]) if plan.get("windows") else 0.0
    if setting.suite == "quick":
        seconds *= SHORTER
    row.update(_measured(work, setting, plan, seconds))
    if plan.get("first") and "gradient_steps" in work.counts:
        row["step"] = _step(work, setting, row["mode"])
    return row


def _step(work: Any, setting: Any, mode: str) -> dict[str, Any]:
    """Copies, synchronisations and dead time of a training step, by torch.profiler, after everything was timed.

    Of a long step one is enough: it may be of a hundred thousand launches, whose trace takes longer than the step.
    """
    from geonode.bench import profiler, step_trace

    one = setting.device == "cpu" or mode == LONG_CALLS
    _, events = profiler.traced(work, setting, *((1, 0) if one else ()))
    return step_trace.breakdown(events)


def _measured(work: Any, setting: Any, plan: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Raw samples of the headline; in the first process also host cost, peak memory and a window for the monitor."""
    from geonode.bench import timing

    first, device = bool(plan.get("first")), setting.device
    if work.drive is not None:
        reset_peak(device)
        steps = timing.Steps(seconds if first else plan["budget"])
        work.drive(steps)
        found = {"mode": "events, its own loop", **steps.result(), **peak(device)}
        return found if first else {"samples_ms": found["samples_ms"]}
    if timing.warm_up(work.run, work.rotations, device) > timing.LONG:
        reset_peak(device)
        found = timing.long_calls(work.run, work.rotations, device, seconds)
        if found is not None:
            if device == "cpu":
                del found["host_us"]  # no launch to tell from the work
            if not first:
                return {"samples_ms": found["samples_ms"]}
            return {"mode": LONG_CALLS, **found, **peak(device)}
    result, run = _times(work, setting, plan["budget"], first)
    if not first:
        return result
    if device == "cuda" and not work.latency:
        long = result["samples_ms"][0] > 100.0
        result["host_us"] = timing.host_cost(work.run, work.rotations, 3 if long else 15)
    reset_peak(device)
    work.run(0)
    result.update(peak(device))
    if seconds:
        call = 1e-3 * statistics.median(result["samples_ms"])
        begin, end, calls = timing.sustain(run, work.rotations, device, seconds, call)
        result["window"] = {"begin": begin, "end": end, "calls": calls}
    return result


def _times(work: Any, setting: Any, budget: float, eager_too: bool) -> tuple[dict[str, Any], Any]:
    """Raw samples of the headline, and of the eager call where that is not the headline; and the call measured."""
    from geonode.bench import timing

    if setting.device != "cuda" or work.latency:
        samples = timing.wall_samples(work.run, work.rotations, setting.device, budget)
        return {"mode": "wall clock", "samples_ms": samples}, work.run
    if not work.capture:
        return {"mode": "events", "samples_ms": timing.event_samples(work.run, work.rotations, budget)}, work.run
    eager = {"eager_samples_ms": timing.event_samples(work.run, work.rotations, budget)} if eager_too else {}
    replay = timing.captured(work.run, work.rotations, work.state)
    samples = timing.event_samples(replay, work.rotations, budget)
    return {"mode": "graph replay", "samples_ms": samples, **eager}, replay


def reset_peak(device: str) -> None:
    """Forget the device's peak memory so far."""
    if device == "cuda":
        import torch

        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()


def peak(device: str) -> dict[str, float]:
    """Peak memory allocated since `reset_peak`, in GB; nothing on a CPU."""
    if device != "cuda":
        return {}
    import torch

    torch.cuda.synchronize()
    return {"peak_gb": torch.cuda.max_memory_allocated() / 1e9}


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
