"""The result as tables in a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

_COLOUR = {"green": "green", "red": "bold red", "failed": "bold red", "skipped": "yellow"}


def show(result: dict[str, Any], console: Console) -> None:
    """Everything but the raw samples."""
    host, device = result["host"], result["device"]
    where = device.get("card") or f"{host['cpu']}, {host['cores']} cores"
    console.print(f"[bold]geonode.bench[/] {result['suite']} on {escape(where)}, {result['seconds']:.0f} s")
    console.print(f"activity: {result['activity']['title']}", highlight=False)
    for problem in (*result.get("broken", []), *result.get("problems", [])):
        console.print(problem, style="yellow", highlight=False, markup=False)
    _cases(result, console)
    _steps(result, console)
    _peers(result, console)
    _targets(result, console)
    if result["energy_check"]:
        e = result["energy_check"]
        console.print(
            f"energy over {e['seconds']:.1f} s: counter {e['counter_j']:.0f} J, integrated {e['integrated_j']:.0f} J "
            f"({100 * e['difference']:+.1f} %); {e['trusted']}"
        )
    if result.get("left_out"):
        console.print(f"left to --suite full: {'; '.join(result['left_out'])}", highlight=False)
    for sentence in result["advice"]:
        console.print(f"• {sentence}", highlight=False, markup=False)


def _cases(result: dict[str, Any], console: Console) -> None:
    gpu = result["setting"]["device"] == "cuda"
    table = Table(title="Cases", title_justify="left")
    for name in ("case", "size", "", "ms", "20–80 %", "noise", "per second", "floor"):
        table.add_column(name, justify="left" if name in ("case", "size", "") else "right")
    if gpu:
        for name in ("SM act.", "occup.", "tensor", "fp32", "DRAM", "W", "peak GB", "host µs"):
            table.add_column(name, justify="right")
    for row in result["rows"]:
        colour = _COLOUR[row["status"]]
        if row["status"] != "green":
            table.add_row(
                escape(row["case"]),
                row["label"],
                f"[{colour}]{row['status']}[/]",
                f"[{colour}]{row['status']}: {escape(row['reason'])}[/]",
            )
            continue
        share = f"{100 * row['floor']['share']:.0f} % {row['floor']['binding']}" if "floor" in row else "–"
        cells = [
            escape(row["case"]), row["label"], f"[{colour}]green[/]", number(row["ms"]),
            f"{number(row['q20_ms'])}–{number(row['q80_ms'])}", percent(row["noise"]), rate(row), share,
        ]  # fmt: skip
        if gpu:
            seen = row.get("activity", {})
            names = ("sm_activity", "sm_occupancy", "tensor_activity", "fp32_activity", "dram_activity", "power_w")
            cells += [f"{seen[n]:.0f}" if n in seen else "–" for n in names]
            cells += [
                f"{row['peak_gb']:.2f}" if "peak_gb" in row else "–",
                f"{row['host_us']:.0f}" if "host_us" in row else "–",
            ]
        table.add_row(*cells)
    console.print(table)


def _steps(result: dict[str, Any], console: Console) -> None:
    """What training steps spend beside their work."""
    rows = step_rows(result)
    if not rows:
        return
    table = Table(title=f"Training steps under the profiler: {STEP_CLOCK}", title_justify="left")
    for name in STEP_HEAD:
        table.add_column(name, justify="left" if name in ("case", "size", "longest gap") else "right")
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)


STEP_CLOCK = "the host is slower there, so dead time is an upper bound"
STEP_HEAD = ("case", "size", "ms", "busy ms", "dead", "launches", "copies", "synchronisations", "longest gap")


def step_rows(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """`STEP_HEAD` of every case whose step was profiled."""
    rows = []
    for r in result["rows"]:
        if (s := r.get("step")) is None:
            continue
        copies = [
            f"{one['count']:.3g} {kind}" + ("" if one["bytes"] is None else f" ({one['bytes'] / 1e3:.3g} kB)")
            for kind, one in s["copies"].items()
        ]
        waits = s["synchronisations"]
        gap = f"{s['gaps'][0]['us'] / 1e3:.3g} ms: {s['gaps'][0]['during']}" if s["gaps"] else "–"
        rows.append((
            r["case"], r["label"], number(s["step_us"] / 1e3), number(s["busy_us"] / 1e3), percent(s["idle_share"]),
            f"{s['launches']:.0f}", ", ".join(copies) or "none", f"{waits['count']:.3g} ({waits['us'] / 1e3:.3g} ms)",
            gap,
        ))  # fmt: skip
    return rows


def _peers(result: dict[str, Any], console: Console) -> None:
    if not result["peers"]:
        return
    title = f"Peers on the geodesic initial-value problem, {PEERS_CLOCK}"
    table = Table(title=title, title_justify="left")
    for name in ("library", "size", "ms", "÷ ours", "error", "evaluations", "note"):
        table.add_column(name)
    for peer in result["peers"]:
        if peer["status"] != "green":
            table.add_row(peer["library"], peer["label"], escape(f"{peer['status']}: {peer['reason']}"))
        for row in peer.get("rows", []):
            name = f"{peer['library']} {peer['version']}"
            times = number(row["ms"]), over_ours(result, peer, row)
            table.add_row(name, peer["label"], *times, error(row), str(row["evaluations"]), escape(row["note"]))
    console.print(table)


def _targets(result: dict[str, Any], console: Console) -> None:
    table = Table(title="Targets", title_justify="left")
    for name in ("target", "measured", "", "how", "an A100, on paper"):
        table.add_column(name)
    for row in result["targets"]:
        colour = {"pass": "green", "fail": "red"}.get(row["verdict"], "yellow")
        table.add_row(
            row["target"],
            row["measured"] or "–",
            f"[{colour}]{row['verdict']}[/]",
            escape(row["how"]),
            row["a100_on_paper"] or "–",
        )
    console.print(table)


def show_comparison(comparison: dict[str, Any], console: Console) -> None:
    """The baseline beside this run."""
    for warning in comparison["warnings"]:
        console.print(f"[yellow]baseline: {escape(warning)}[/]")
    if not comparison["rows"]:
        return
    table = Table(title="Against the baseline", title_justify="left")
    for name in ("case", "size", "then ms", "now ms", "ratio", "noise", ""):
        table.add_column(name)
    for r in comparison["rows"]:
        colour = {"same": "white", "noise unknown": "white", "faster": "green"}.get(r["verdict"], "red")
        new = [number(r["new_ms"]), f"{r['ratio']:.3f}", percent(r["allowed"])] if "new_ms" in r else ["–", "–", "–"]
        table.add_row(escape(r["case"]), r["label"], number(r["old_ms"]), *new, f"[{colour}]{r['verdict']}[/]")
    console.print(table)
    judged = [r["verdict"] for r in comparison["rows"] if r["verdict"] != "noise unknown"]
    if judged:
        same = judged.count("same")
        console.print(f"{same} of {len(judged)} rows differ from the baseline by no more than the noise")


def number(x: float) -> str:
    """Three figures, never in powers of ten."""
    return f"{x:,.0f}" if x >= 100 else f"{x:.3g}" if x >= 1e-3 else f"{x:.5f}"


def percent(x: float | None) -> str:
    """A share as per cent."""
    return "–" if x is None else f"{100 * x:.1f} %"


PEERS_CLOCK = "by the wall clock from call to result; ours as its case is timed (on a GPU a replayed graph)"


def error(row: dict[str, Any]) -> str:
    """A peer's error; a word where it is not finite."""
    return "not finite" if row["error"] is None else f"{row['error']:.1e}"


def over_ours(result: dict[str, Any], peer: dict[str, Any], row: dict[str, Any]) -> str:
    """A peer's time over ours, in the case and at the size that it stands beside."""
    for ours in result["rows"]:
        if (ours["case"], ours["label"], ours["status"]) == (peer["case"], peer["label"], "green"):
            return f"{row['ms'] / ours['ms']:.3g} ×"
    return "–"


def rate(row: dict[str, Any]) -> str:
    """The throughput that says most about the case."""
    names = ("assays", "assays"), ("gradient_steps", "steps"), ("samples", "spectra"), ("odes", "ODEs")
    for name, text in (*names, ("points", "points")):
        if name in row["rates"]:
            value = row["rates"][name]
            return f"{value:,.3g} {text}" if value < 1e4 else f"{value:.2e} {text}"
    return "–"
