"""The targets the project started from, as pass or fail of this run.

They were set for one A100. Figures for an A100 are scaled on paper only: time × the least favourable ratio of this
card's measured ceilings to the A100's published ones, and labelled so.
"""

from __future__ import annotations

from typing import Any

TRAIN, RECIPE, SOLVE = "train-step", "blueprint-step", "geodesic-ivp"
MANY = 1_230_000
# NVIDIA A100 80GB datasheet: bytes/s and dense operations/s
A100 = {"copy": 2.039e12, "fp32": 19.5e12, "tf32": 156e12, "fp16": 312e12, "bf16": 312e12}


def verdicts(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of (target, measured, verdict, how, on an A100 by paper)."""
    train, solve = _largest(result, TRAIN), _largest(result, SOLVE)
    slower = a100_factor(result)
    rows = [_parallel(train, solve)]
    if train is None:
        missing = f"{TRAIN} was not measured in this run"
        names = ("> 6 000 samples/s", "epoch < 3 s", "500 epochs < 30 min", "GPU utilisation > 90 %", "memory ≤ 12 GB")
        rows += [_row(name, None, None, missing) for name in names]
    else:
        rows += [_for_many(row, train) for row in _training(result, train, slower)]
    recipe = _largest(result, RECIPE)
    if recipe is not None:  # what the targets were written for, beside what the library does by default
        said = [_parallel(recipe, None), *(_for_many(row, recipe) for row in _training(result, recipe, slower))]
        rows += [{**row, "target": f"{row['target']}, the original recipe"} for row in said]
    rows.append(_sequential(result, solve))
    return rows


def _for_many(row: dict[str, Any], measured: dict[str, Any]) -> dict[str, Any]:
    """Not measured where the batch was small: it would pass, or fail, for the wrong reason."""
    if measured["counts"]["odes"] >= MANY or row["verdict"] == "not measured":
        return row
    how = f"{row['how']}; the target is for {MANY:,} trajectories or more"
    return {**row, "verdict": "not measured", "how": how}


def a100_factor(result: dict[str, Any]) -> float | None:
    """How many times slower an A100 is at worst, by ceilings; None on a CPU."""
    ceilings = result.get("ceilings", {})
    if result["setting"]["device"] != "cuda":
        return None
    ratios = [ceilings[name] / limit for name, limit in A100.items() if name in ceilings]
    return max(1.0, *ratios) if ratios else None


def _row(target: str, measured: str | None, passed: bool | None, how: str, a100: str | None = None) -> dict[str, Any]:
    verdict = "not measured" if passed is None else "pass" if passed else "fail"
    return {"target": target, "measured": measured, "verdict": verdict, "how": how, "a100_on_paper": a100}


def _largest(result: dict[str, Any], case: str) -> dict[str, Any] | None:
    rows = [r for r in result["rows"] if r["case"] == case and r["status"] == "green"]
    return max(rows, key=lambda r: r["counts"]["odes"], default=None)


def _parallel(train: dict[str, Any] | None, solve: dict[str, Any] | None) -> dict[str, Any]:
    both = [r for r in (train, solve) if r is not None]
    if not both:
        return _row("1.23 M parallel ODEs", None, None, f"neither {TRAIN} nor {SOLVE} was measured")
    count = min(r["counts"]["odes"] for r in both)
    times = ", ".join(f"{r['title']}: {r['counts']['odes']:,.0f} in {r['ms']:.3g} ms" for r in both)
    row = _row("1.23 M parallel ODEs", f"{count:,.0f} at once", count >= MANY, times)
    return _for_many(row, min(both, key=lambda r: r["counts"]["odes"]))


def _training(result: dict[str, Any], train: dict[str, Any], slower: float | None) -> list[dict[str, Any]]:
    pairs, width = train["size"]
    per_call = train["counts"]["gradient_steps"]
    rate, step = train["rates"]["samples"], 1e-3 * train["ms"] / per_call
    window = train.get("window")
    sustained = (window["end"] - window["begin"]) / window["calls"] / per_call if window else step
    paper = lambda text: None if slower is None else text  # noqa: E731
    what = f"a sample is one pair's spectrum of {width} wavelengths; {train['title']}, {pairs} pairs"
    mean = f"mean of {window['calls']} calls without a pause" if window else "500 times the median step"
    return [
        _row(
            "> 6 000 samples/s", f"{rate:,.0f} samples/s", rate > 6000, what,
            paper(f"{rate / (slower or 1):,.0f} samples/s"),
        ),
        _row(
            "epoch < 3 s", f"{step:.3g} s", step < 3.0, f"an epoch is the {pairs} pairs once",
            paper(f"{step * (slower or 1):.2g} s"),
        ),
        _row(
            "500 epochs < 30 min", f"{500 * sustained:.3g} s", 500 * sustained < 1800.0, mean,
            paper(f"{500 * sustained * (slower or 1):.2g} s"),
        ),
        _busy(result, train),
        _memory(train),
    ]  # fmt: skip


def _busy(result: dict[str, Any], train: dict[str, Any]) -> dict[str, Any]:
    target, title = "GPU utilisation > 90 %", result["activity"]["title"]
    busy = train.get("activity", {}).get("sm_activity")
    if busy is None:
        return _row(target, None, None, f"no counter of SM activity here ({title})")
    others = [
        f"{r['activity']['sm_activity']:.1f} % at {r['label']}"
        for r in result["rows"]
        if r["case"] == train["case"] and r is not train and r.get("activity", {}).get("sm_activity") is not None
    ]
    smaller = f"; smaller batches: {', '.join(others)}" if others else ""
    return _row(target, f"{busy:.1f} %", busy > 90.0, f"{title}, {train['title']}, {train['label']}{smaller}")


def _memory(train: dict[str, Any]) -> dict[str, Any]:
    target, peak = "memory ≤ 12 GB", train.get("peak_gb")
    if peak is None:
        return _row(target, None, None, "device memory is counted on a GPU only")
    return _row(target, f"{peak:.2f} GB", peak <= 12.0, "peak allocated, arguments included")


def _sequential(result: dict[str, Any], solve: dict[str, Any] | None) -> dict[str, Any]:
    target, loop = "400–500 × over sequential", result.get("sequential")
    if solve is None or not loop:
        return _row(target, None, None, f"{SOLVE} or the sequential loop was not measured")
    count = solve["counts"]["odes"]
    times = loop["seconds_each"] * count / (1e-3 * solve["ms"])
    ours = max((c["error"] for c in solve.get("checks", []) if c["error"] is not None), default=None)
    how = (
        f"{loop['method']}: {loop['problems']} problems at {1e3 * loop['seconds_each']:.2f} ms each (relative error "
        f"{loop['error']:.0e}), scaled to {count:,.0f}, against {solve['ms']:.3g} ms for all at once"
        f"{'' if ours is None else f' (relative error {ours:.0e})'}"
    )
    return _for_many(_row(target, f"{times:,.0f} ×", times >= 400.0, how), solve)
