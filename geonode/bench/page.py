"""The result as one HTML page that needs nothing else: styles, tables and plots inline, no script, no network."""

from __future__ import annotations

from html import escape
from typing import Any

from geonode.bench import plots
from geonode.bench.terminal import PEERS_CLOCK, error, number, over_ours, percent, rate
from geonode.report.shell import document, table

_STYLE = """
.green,.pass{color:#1a7f37}.red,.failed,.fail{color:#b42318;font-weight:600}.skipped,.not{color:#8a6100}
"""


def html(result: dict[str, Any]) -> str:
    """The page."""
    host, device = result["host"], result["device"]
    where = device.get("card") or f"{host['cpu']}, {host['cores']} cores"
    versions = ", ".join(f"{k} {v}" for k, v in host["versions"].items() if v)
    facts = [
        ("device", where), ("driver", device.get("driver") or "–"), ("activity counter", result["activity"]["title"]),
        ("host", f"{host['cpu']}, {host['cores']} cores, {host['system']}, threads {host['threads']}"),
        ("versions", f"geonode {host['geonode']}, python {host['python']}, {versions}"),
        ("commit", host["commit"]),
        ("when", f"{host['time']}, {result['seconds']:.0f} s, suite {result['suite']}"),
    ]  # fmt: skip
    advice = "".join(f"<li>{escape(s)}</li>" for s in result["advice"])
    figures = "".join(
        f"<figure><figcaption><h2>{escape(title)}</h2></figcaption>{svg}</figure>"
        for _, title, svg in plots.all_plots(result)
    )
    body = (
        f"<h1>geonode.bench: {escape(where)}</h1>"
        + table(("", ""), [tuple(escape(str(x)) for x in fact) for fact in facts])
        + _problems(result)
        + f"<h2>Targets</h2>{_targets(result)}<h2>Cases</h2>{_times(result)}{_device(result)}{_peers(result)}"
        + f"<h2>Recommendations</h2><ul>{advice}</ul>{_ceilings(result)}{figures}"
    )
    return document("geonode.bench", body, style=_STYLE)


def _problems(result: dict[str, Any]) -> str:
    """What broke or would not run between the rows; nothing where all did."""
    told = "".join(f"<li>{escape(s)}</li>" for s in (*result.get("broken", []), *result.get("problems", [])))
    return f"<h2>Problems</h2><ul>{told}</ul>" if told else ""


def _wide(text: str) -> str:
    return f'<div style="min-width:22rem">{escape(text)}</div>'


def _mark(kind: str) -> str:
    return f'<span class="{kind.split()[0]}">{escape(kind)}</span>'


def _targets(result: dict[str, Any]) -> str:
    rows = [
        tuple(x if k == 2 else escape(x) for k, x in enumerate(
            (r["target"], r["measured"] or "–", _mark(r["verdict"]), r["how"], r["a100_on_paper"] or "–")
        ))
        for r in result["targets"]
    ]  # fmt: skip
    return table(("target", "measured", "verdict", "how", "an A100, scaled on paper by ceilings"), rows)


def _times(result: dict[str, Any]) -> str:
    """Time, throughput and distance to the floor of every case."""
    rows = []
    for r in result["rows"]:
        start = f"{escape(r['case'])}<br><small>{escape(r['title'])}</small>", escape(r["label"]), _mark(r["status"])
        if r["status"] != "green":
            rows.append((*start, *[""] * 7, _wide(f"{r['status']}: {r['reason']}")))
            continue
        share = f"{100 * r['floor']['share']:.0f} % of {r['floor']['binding']}" if "floor" in r else "–"
        rows.append((
            *start, number(r["ms"]), f"{number(r['q20_ms'])}–{number(r['q80_ms'])}", percent(r["noise"]),
            number(r["eager_ms"]) if "eager_ms" in r else "–", number(r["host_us"]) if "host_us" in r else "–",
            rate(r), share, _wide(f"{r['mode']}; {r['notes']}" if r["notes"] else r["mode"]),
        ))  # fmt: skip
    head = ("case", "size", "", "ms", "20–80 %", "noise", "eager ms", "host µs", "per second", "floor", "how")
    return table(head, rows)


def _device(result: dict[str, Any]) -> str:
    """What the device did meanwhile; nothing where no counter was read."""
    seen = ("sm_activity", "sm_occupancy", "tensor_activity", "fp32_activity", "dram_activity", "power_w")
    rows = []
    for r in result["rows"]:
        a, e = r.get("activity", {}), r.get("energy")
        if not any(n in a for n in seen):
            continue
        energy = "–"
        if e:
            unit = _UNITS.get(e["unit"], e["unit"])
            energy = " / ".join(_joules(e[f"per_unit_{kind}_j"]) for kind in ("gross", "net")) + f" per {unit}"
        clock = f"{a['sm_clock_mhz']:.0f} MHz, {a['temperature_c']:.0f} °C" if "sm_clock_mhz" in a else "–"
        rows.append((
            escape(r["case"]), escape(r["label"]), *(f"{a[n]:.0f}" if n in a else "–" for n in seen), energy,
            f"{r['peak_gb']:.2f}" if "peak_gb" in r else "–", clock,
            escape(", ".join(a.get("throttle_reasons", [])) or "–"),
        ))  # fmt: skip
    head = (
        "case", "size", "SM %", "occupancy %", "tensor %", "fp32 %", "DRAM %", "W", "energy, gross / net", "peak GB",
        "clock", "throttled by",
    )  # fmt: skip
    return f"<h2>The device meanwhile</h2>{table(head, rows)}" if rows else ""


_UNITS = {"samples": "spectrum", "odes": "ODE", "points": "point"}


def _joules(x: float) -> str:
    """Three figures with a prefix of the unit."""
    for factor, unit in ((1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ")):
        if abs(x) >= factor:
            return f"{x / factor:.3g} {unit}"
    return f"{x / 1e-9:.3g} nJ"


def _peers(result: dict[str, Any]) -> str:
    rows = []
    for p in result["peers"]:
        if p["status"] != "green":
            rows.append((escape(p["library"]), escape(p["label"]), _mark(p["status"]), "", "", "", escape(p["reason"])))
        for r in p.get("rows", []):
            start = escape(f"{p['library']} {p['version']}"), escape(p["label"])
            times = number(r["ms"]), over_ours(result, p, r)
            rows.append((*start, *times, error(r), str(r["evaluations"]), escape(r["note"])))
    head = ("library", "size", "ms", "÷ ours", "error", "evaluations", "note")
    return f"<h2>Peers</h2><p>Times are {PEERS_CLOCK}.</p>{table(head, rows)}" if rows else ""


def _ceilings(result: dict[str, Any]) -> str:
    values = {k: v for k, v in result["ceilings"].items() if k != "how"}
    rows = [(k, f"{v / 1e9:,.4g} G{'B' if k == 'copy' else ' operations'}/s") for k, v in values.items()]
    rows += [(escape(k), escape(v)) for k, v in result["ceilings"].get("how", {}).items()]
    return f"<h2>Ceilings of this run</h2>{table(('ceiling', 'rate, and how it was got'), rows)}"
