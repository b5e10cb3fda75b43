"""The plots of a run as inline SVG."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

Result = dict[str, Any]


def all_plots(result: Result) -> list[tuple[str, str, str]]:
    """(name, title, SVG or a sentence why there is none) of every plot."""
    plots: list[tuple[str, str, Callable[[Result, Axes], str | None]]] = [
        ("roofline", "Roofline", _roofline),
        ("work-precision", "Work–precision, initial-value problem", lambda r, a: _curves(r, a, "initial value")),
        ("two-points", "Work–precision, two-point problem", lambda r, a: _curves(r, a, "two points")),
        ("coupled", "Work–precision, coupled neural ODE", lambda r, a: _curves(r, a, "coupled NODE")),
        ("throughput", "Throughput against batch size", _throughput),
        ("activity", "Activity over time", _activity),
    ]
    return [(name, title, _draw(name, draw, result)) for name, title, draw in plots]


def _draw(name: str, draw: Callable[[Result, Axes], str | None], result: Result) -> str:
    # a salt of its own keeps the ids of several SVGs in one page apart
    with plt.rc_context(
        {"svg.hashsalt": name, "svg.fonttype": "none", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3}
    ):
        figure, axes = plt.subplots(figsize=(8.5, 4.8), layout="constrained")
        reason = draw(result, axes)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        plt.close(figure)
    if reason:
        return f"<p>{reason}</p>"
    text = buffer.getvalue()
    return text[text.index("<svg") :].replace("<svg ", f'<svg role="img" id="plot-{name}" ', 1)


def _roofline(result: Result, axes: Axes) -> str | None:
    ceilings = result["ceilings"]
    rows = [
        r
        for r in result["rows"]
        if r["status"] == "green" and r["bytes"] and any(k != "special" for k in r["operations"])
    ]
    if not rows or "copy" not in ceilings:
        return "No case with counted operations was measured."
    xs = []
    for row in rows:
        operations = sum(v for k, v in row["operations"].items() if k != "special")
        x, y = operations / row["bytes"], operations / (1e-3 * row["ms"])
        xs.append(x)
        axes.plot(x, y, "o")
        axes.annotate(f"{row['case']} {row['label']}", (x, y), xytext=(4, 4), textcoords="offset points", fontsize=7)
    low, high = 0.1 * min(xs), 10 * max(xs)
    for name in ("fp32", "tf32", "bf16", "fp16"):
        if name in ceilings:
            knee = ceilings[name] / ceilings["copy"]
            axes.plot(
                [low, max(low, knee), high],
                [min(low * ceilings["copy"], ceilings[name]), ceilings[name], ceilings[name]],
                lw=1,
                label=f"{name} {ceilings[name] / 1e12:.3g} T/s",
            )
    axes.set(xscale="log", yscale="log", xlabel="least operations per byte of device memory", ylabel="operations/s")
    axes.set_title("matrix and fp32 operations alone: special functions, which bind some cases, are not drawn", size=8)
    axes.legend(title=f"copy {ceilings['copy'] / 1e9:.4g} GB/s", fontsize=7)
    return None


def _curves(result: Result, axes: Axes, problem: str) -> str | None:
    curves: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for point in result.get("curve", []):
        if point["problem"] == problem and point["error"]:  # neither 0 nor, where it was not finite, None
            curves[point["solver"]].append(point)
    if not curves:
        return "No work–precision curve was measured in this run."
    for k, (solver, points) in enumerate(curves.items()):  # joined as measured: by steps, nodes or tolerance
        for p in points:
            place = {"xytext": (3, 3), "textcoords": "offset points", "fontsize": 5, "alpha": 0.7}
            axes.annotate(p["label"], (p["ms"], p["error"]), **place)
        axes.plot(
            [p["ms"] for p in points], [p["error"] for p in points], "os^Dv<>P"[k % 8] + "-", ms=4, lw=1, label=solver
        )
    axes.set(xscale="log", yscale="log", xlabel="ms", ylabel="relative error")
    axes.legend(fontsize=6.5, ncols=2)
    return None


def _throughput(result: Result, axes: Axes) -> str | None:
    sweeps: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for p in result.get("sweep", []):
        if "odes" in p["counts"]:
            sweeps[p["case"]].append((p["counts"]["odes"], 1e3 * p["counts"]["odes"] / p["ms"]))
    if not sweeps:
        return "No case with a sweep of batch sizes was measured."
    for case, points in sweeps.items():
        axes.plot(*zip(*sorted(points), strict=True), "o-", label=case)
    axes.set(xscale="log", yscale="log", xlabel="trajectories in the batch", ylabel="trajectories/s")
    axes.legend()
    return None


def _activity(result: Result, axes: Axes) -> str | None:
    line = result["timeline"]
    names = [n for n in ("sm_activity", "tensor_activity", "dram_activity", "coarse_busy", "cpu_busy") if n in line]
    if "sm_activity" in names and "coarse_busy" in names:
        names.remove("coarse_busy")
    if not names or not line["t"]:
        return f"No activity was recorded: {result['activity']['title']}."
    for name in names:
        axes.plot(
            line["t"], [float("nan") if v is None else v for v in line[name]], lw=0.8, label=name.replace("_", " ")
        )
    room, named = 0.03 * (line["t"][-1] - line["t"][0]), float("-inf")
    for window in line["windows"]:
        axes.axvspan(window["begin"], window["end"], alpha=0.08, color="k")
        if window["begin"] - named >= room:  # names closer than this would lie on one another
            axes.annotate(window["case"], (window["begin"], 101), fontsize=4.5, rotation=60)
            named = window["begin"]
    axes.set(xlabel="s", ylabel="%", ylim=(0, 130), title=result["activity"]["title"])
    axes.legend(loc="upper right", fontsize=7)
    if "power_w" in line:
        power = axes.twinx()
        power.grid(False)
        power.plot(line["t"], [float("nan") if v is None else v for v in line["power_w"]], color="tab:red", lw=0.7)
        power.set_ylabel("W (red)")
    return None
