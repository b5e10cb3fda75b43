"""What follows from the raw samples of a run: headlines, noise, throughput, floors, energy, and the timeline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from geonode.bench import activity
from geonode.bench.ceilings import floor
from geonode.bench.noise import figure, noise
from geonode.bench.timing import quantiles


def finish(rows: list[dict[str, Any]], extras: dict[str, Any], idle: dict[str, Any]) -> None:
    """Headline, quantiles, noise, throughput, floors and energy of every green row; no time on any other."""
    green = [r for r in rows if r["status"] == "green"]
    for row in rows:
        if row["status"] != "green":
            for name in ("samples_ms", "eager_samples_ms", "restarts_ms", "activity", "window", "step"):
                row.pop(name, None)
    processes = [[r["samples_ms"], *r.get("restarts_ms", [])] for r in green]
    found = [[quantiles(samples) for samples in each] for each in processes]
    medians = [[q["median"] for q in each] for each in found]
    for row, each, middle, spread in zip(green, found, medians, noise(medians), strict=True):
        row.update(
            ms=figure(middle),
            q20_ms=figure([q["q20"] for q in each]),  # as the headline is made, so that it lies between them
            q80_ms=figure([q["q80"] for q in each]),
            process_medians_ms=middle,
            noise=spread,
        )
        row["rates"] = {name: 1e3 * count / row["ms"] for name, count in row["counts"].items()}
        limit = floor(row["operations"], row["bytes"], extras.get("ceilings", {}))
        if limit:
            row["floor"] = {**limit, "share": limit["ms"] / row["ms"]}
        if "eager_samples_ms" in row:
            row["eager_ms"] = quantiles(row["eager_samples_ms"])["median"]
        _energy(row, idle)


def finite(value: Any) -> Any:
    """The same lists and dictionaries with None for every number that is not finite: JSON has no word for it."""
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _energy(row: dict[str, Any], idle: dict[str, Any]) -> None:
    seen = row.get("activity", {})
    if "energy_counter_j" not in seen or not row.get("window"):
        return
    seconds = row["window"]["end"] - row["window"]["begin"]
    gross = seen["energy_counter_j"] / seen["energy_seconds"] * seconds / row["window"]["calls"]
    rest = idle.get("power_w", 0.0) * seconds / row["window"]["calls"]
    counts = {"call": 1.0, **row["counts"]}
    unit = next(name for name in ("samples", "odes", "points", "call") if name in counts)
    row["energy"] = {
        "per_call_gross_j": gross, "per_call_net_j": gross - rest, "unit": unit,
        "per_unit_gross_j": gross / counts[unit], "per_unit_net_j": (gross - rest) / counts[unit],
    }  # fmt: skip


def energy_check(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Energy counter against integrated power over the longest window; None where there is no counter."""
    seen = [r for r in rows if r.get("activity", {}).get("energy_counter_j")]
    if not seen:
        return None
    row = max(seen, key=lambda r: r["activity"]["energy_seconds"])
    a = row["activity"]
    difference = a["energy_counter_j"] / a["energy_integrated_j"] - 1.0
    trusted = "both agree within 10 %; energies here are the counter's"
    if abs(difference) > 0.1:
        trusted = "they differ; trust the counter, which integrates on the card, over power sampled ten times a second"
    return {
        "case": f"{row['case']} {row['label']}", "seconds": a["energy_seconds"], "counter_j": a["energy_counter_j"],
        "integrated_j": a["energy_integrated_j"], "difference": difference, "trusted": trusted,
    }  # fmt: skip


def timeline(monitor: activity.Monitor, rows: Sequence[dict[str, Any]], begin: float) -> dict[str, Any]:
    """Every sample of the counters and every row's window, in seconds since ``begin``."""
    names = (
        "power_w",
        "sm_activity",
        "tensor_activity",
        "dram_activity",
        "sm_clock_mhz",
        "temperature_c",
        "coarse_busy",
        "cpu_busy",
    )
    samples = monitor.timeline()
    series = {name: [r.get(name) for r in samples] for name in names if any(r.get(name) is not None for r in samples)}
    windows = [
        {"case": r["case"], "label": r["label"], **{edge: r["window"][edge] - begin for edge in ("begin", "end")}}
        for r in rows
        if "window" in r
    ]
    return {"t": [round(r["t"] - begin, 3) for r in samples], **series, "windows": windows}
