"""Recommendations in words, each from a measurement of this run and naming it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from geonode.bench.case import Setting

_UNIT = {
    "copy": "memory bandwidth",
    "special": "the special-function units",
    "fp16": "the tensor cores (three fp16 products each)",
}


def sentences(result: dict[str, Any]) -> list[str]:
    """Everything there is to say."""
    gpu = result["setting"]["device"] == "cuda"
    text = [
        *_batch(result),
        *_precision(result, gpu),
        *_bound(result, gpu),
        *_fuse(result),
        *_card(result),
        *_solver(result),
    ]
    text += (
        _crossover(result) if gpu else ["This run was on a CPU; run it on a GPU node to see whether one is worth it."]
    )
    return text


def _batch(result: dict[str, Any]) -> list[str]:
    sweeps: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for point in result.get("sweep", []):
        if "odes" in point["counts"]:
            sweeps[point["case"]].append(point)
    text = []
    for case, points in sweeps.items():
        rate = lambda p: p["counts"]["odes"] / p["ms"]  # noqa: E731
        best = max(points, key=rate)
        enough = min((p for p in points if rate(p) >= 0.9 * rate(best)), key=lambda p: p["counts"]["odes"])
        top = " (the largest tried: more may help)" if enough is points[-1] else ""
        text.append(
            f"Batch size, {case}: {enough['size'][0]} pairs of {enough['size'][1]} wavelengths reach 90 % of the best "
            f"throughput seen, {1e3 * rate(best):,.3g} ODEs/s{top}."
        )
    return text


def _precision(result: dict[str, Any], gpu: bool) -> list[str]:
    fused = {
        p["precision"]: p for p in result.get("curve", [])
        if p["solver"].startswith("geonode fused RK4") and p["label"] == "20 steps"
    }  # fmt: skip
    if not gpu or "fp32" not in fused:
        return []
    base, text = fused["fp32"], []
    for name in ("tf32", "bf16"):
        if name in fused and None not in (fused[name]["error"], base["error"]):
            p = fused[name]
            text.append(
                f"Precision: {name} is {base['ms'] / p['ms']:.2f} times as fast as fp32 in the fused RK4 and errs by "
                f"{p['error']:.1e} instead of {base['error']:.1e}."
            )
    return text


def _bound(result: dict[str, Any], gpu: bool) -> list[str]:
    text = []
    for row in (r for r in result["rows"] if r["status"] == "green"):
        name = f"{row['case']} {row['label']}"
        if gpu and _launch_bound(row):
            launch = f"the host needs {1e-3 * row['host_us']:.3g} ms to launch it"
            if "eager_ms" in row:
                gain = f"its graph replays in {row['ms']:.3g} ms instead of {row['eager_ms']:.3g}"
                text.append(f"{name} is launch-bound without a graph: {launch}; {gain}.")
            else:
                text.append(f"{name} is launch-bound: {launch}.")
        if row.get("floor", {}).get("share", 0.0) >= 0.25:
            unit = _UNIT.get(row["floor"]["binding"], row["floor"]["binding"])
            kind = "memory-bound" if row["floor"]["binding"] == "copy" else "compute-bound"
            text.append(f"{name} is {kind}, at {100 * row['floor']['share']:.0f} % of the floor set by {unit}.")
    return text


def _launch_bound(row: dict[str, Any]) -> bool:
    """Whether the device waits for the host: a graph's replay is much faster, or, without one, it is mostly idle."""
    if "eager_ms" in row:
        return row["ms"] < 0.7 * row["eager_ms"]
    idle = row.get("activity", {}).get("sm_activity", 0.0) < 50.0
    return idle and row.get("host_us", 0.0) > 0.7e3 * row["ms"]


def _fuse(result: dict[str, Any]) -> list[str]:
    rows = {(r["case"], r["label"]): r for r in result["rows"] if r["status"] == "green"}
    text = []
    for (case, label), row in rows.items():
        if case != "node-step-closed-form" or ("train-step", label) not in rows:
            continue
        ratio = row["ms"] / _per_step(rows["train-step", label])
        if ratio > 1.2:
            text.append(
                f"Fuse: the training step at {label} takes {ratio:.1f} times as long step by step from Python as in "
                "geonode.training.train, which records it as a CUDA graph; use that."
            )
    for case in ("node-step-rk4", "node-step-dopri5", "node-step-adjoint", "blueprint-step"):
        for (name, label), row in rows.items():
            busy = row.get("activity", {}).get("sm_activity")
            if name == case and busy is not None and busy < 60.0:
                text.append(
                    f"{case} {label} keeps the multiprocessors {busy:.0f} % busy: "
                    "its many small launches would gain from fusing."
                )
    return text


def _per_step(row: dict[str, Any]) -> float:
    return row["ms"] / row["counts"]["gradient_steps"]


def _card(result: dict[str, Any]) -> list[str]:
    """Whether a card with more multiprocessors would help the training step at its largest size."""
    rows = [r for r in result["rows"] if r["case"] == "train-step" and r.get("activity", {}).get("sm_activity")]
    if not rows:
        return []
    row = max(rows, key=lambda r: r["counts"]["odes"])
    busy = row["activity"]["sm_activity"]
    verdict = (
        "a card with more multiprocessors shortens it"
        if busy > 80.0
        else "a bigger card gains little before the batch does"
    )
    return [f"A bigger card: train-step {row['label']} keeps the multiprocessors {busy:.0f} % busy; {verdict}."]


def _solver(result: dict[str, Any]) -> list[str]:
    good = [
        p
        for p in result.get("curve", [])
        if p["problem"] == "initial value" and p["error"] is not None and p["error"] <= 1e-5
    ]
    if not good:
        return []
    best = min(good, key=lambda p: p["ms"])
    return [
        f"Solver: for a relative error of 1e-5 the fastest tried is {best['solver']}, {best['label']}: "
        f"{best['ms']:.3g} ms."
    ]


def _crossover(result: dict[str, Any]) -> list[str]:
    times: dict[str, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for p in result.get("crossover", []):
        times[p["case"]][p["size"][0] * p["size"][1]][p["device"]] = p["ms"]
    text = []
    for case, sizes in times.items():
        slower = [n for n, t in sorted(sizes.items()) if len(t) == 2 and t["cpu"] < t["cuda"]]
        if not slower:
            n = min(sizes)
            t = sizes[n]
            text.append(
                f"CPU or GPU, {case}: the GPU is faster from the smallest size tried, {n} ODEs "
                f"({t['cuda']:.3g} against {t['cpu']:.3g} ms)."
            )
        else:
            text.append(
                f"CPU or GPU, {case}: up to {max(slower)} ODEs this host's CPU is the faster choice; "
                "the crossover lies above."
            )
    return text


def left_out(setting: Setting, restarts: int, peers: bool) -> list[str]:
    """What a quick run leaves to ``--suite full``, in words; nothing for a full one."""
    if setting.suite == "full":
        return []
    text = [
        "2 s of samples a case instead of 0.2",
        "the largest sizes",
        "dopri8, bf16, the finer steps and the training gradient in the curves",
    ]
    text.append("the third process for the noise" + (" of long calls" if restarts > 2 else ""))
    if peers and setting.device == "cuda":
        text.append("torch.compile at the second size")
    return text
