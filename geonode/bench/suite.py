"""The order of a run: monitor, workers (one measuring everything, the rest restarts for the noise), peers, verdicts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from geonode.bench import SCHEMA_VERSION, activity, activity_ncu, advice, host, peers, targets
from geonode.bench.case import Case, Setting
from geonode.bench.ceilings import floor
from geonode.bench.noise import figure, noise
from geonode.bench.timing import quantiles
from geonode.bench.worker import MARK

Say = Callable[[str], None]
_ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass
class Options:
    """What a run does; ``restarts`` counts worker processes, the first included."""

    setting: Setting
    imports: Sequence[str] = ()
    restarts: int = 3
    peers: bool = True
    windows: bool = True
    longest_window: float = 10.5
    rung: str | None = None
    patience: float = 40.0  # seconds a worker may be silent before its row is given up
    budget: float = field(default=0.0)
    limit: float | None = None  # seconds after which nothing new is started
    started: float = field(default_factory=time.monotonic)

    @property
    def late(self) -> bool:
        """Whether the time limit has passed."""
        return self.limit is not None and time.monotonic() - self.started > self.limit

    def __post_init__(self) -> None:
        if self.setting.suite == "full":
            self.patience = 600.0
        if not self.budget:
            self.budget = 0.2 if self.setting.suite == "quick" else 2.0


def run(cases: Sequence[Case], options: Options, say: Say = lambda text: None) -> dict[str, Any]:
    """The whole run as one JSON-able result."""
    begin, setting = time.monotonic(), options.setting
    monitor = activity.Monitor(setting.device, options.rung)
    try:
        idle = _idle(monitor, setting)
        rows, extras = _measure(cases, options, monitor, say)
        found = _peers(rows, options, say) if options.peers else []
    finally:
        monitor.stop()
    _finish(rows, extras, idle)
    if monitor.rung == "ncu":
        _ask_ncu(rows, options, say)
    result: dict[str, Any] = {
        "schema": SCHEMA_VERSION,
        "schema_version": SCHEMA_VERSION,
        "suite": setting.suite,
        "setting": {
            "device": setting.device,
            "seed": setting.seed,
            "restarts": options.restarts,
            "budget_s": options.budget,
        },
        "host": host.describe(),
        "device": extras.pop("device", {}),
        "activity": {
            "rung": monitor.rung,
            "title": activity.TITLES[monitor.rung],
            "passed_over": monitor.reasons,
            "idle": idle,
        },
        "ceilings": extras.pop("ceilings", {}),
        "rows": rows,
        "peers": found,
        **extras,
        "timeline": _timeline(monitor, rows, begin),
        "left_out": advice.left_out(setting, options.restarts, options.peers),
        "seconds": time.monotonic() - begin,
    }
    result["curve"] = [*result.get("curve", []), *(p for peer in found for p in peer.get("curve", []))]
    result["energy_check"] = energy_check(rows)
    result["targets"] = targets.verdicts(result)
    result["advice"] = advice.sentences(result)
    return result


def failed(result: dict[str, Any]) -> list[str]:
    """Names of the rows that are red or broke, peers that broke included."""
    names = [f"{r['case']} {r['label']}" for r in result["rows"] if r["status"] in ("red", "failed")]
    return names + [f"peer {p['library']}" for p in result["peers"] if p["status"] == "failed"]


# ---------------------------------------------------------------------- workers


def _idle(monitor: activity.Monitor, setting: Setting) -> dict[str, Any]:
    """The device at rest, before anything of ours runs on it: the power that is not ours."""
    begin = time.monotonic()
    time.sleep(1.2 if setting.device == "cuda" else 0.3)
    return monitor.window(begin, time.monotonic())


def _measure(
    cases: Sequence[Case], options: Options, monitor: activity.Monitor, say: Say
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    setting = options.setting
    rows: list[dict[str, Any]] = []
    for case in cases:
        reason = case.absent(setting)
        for size in case.sizes(setting):
            row = {"case": case.name, "title": case.title, "size": list(size), "label": size.label}
            rows.append({**row, "status": "skipped", "reason": reason} if reason else row)
    extras: dict[str, Any] = {"sweep": [], "crossover": [], "curve": [], "sequential": None}
    by_key = {(r["case"], tuple(r["size"])): r for r in rows}
    for pass_number in range(options.restarts):
        first = pass_number == 0
        todo = [r for r in rows if r.get("status") in ((None,) if first else ("green",))]
        say(
            f"process {pass_number + 1} of {options.restarts}: {len(todo)} rows"
            + (", correctness first" if first else ", time alone")
        )
        for event in _events(todo, options, first, say):
            _take(event, by_key, extras, monitor, first, say)
    for row in (r for r in rows if "status" not in r):
        row["status"] = "skipped" if options.late else "failed"
        row["reason"] = "the time limit passed before it" if options.late else "the worker ended before it"
    return rows, extras


def _events(todo: list[dict[str, Any]], options: Options, first: bool, say: Say):
    """Results of worker processes; one that dies takes one row with it, and the next goes on after it."""
    remaining = [[r["case"], r["size"]] for r in todo]
    full, names = first, sorted({r["case"] for r in todo})
    while True:  # a last worker without rows still measures what stands beside the cases
        plan = {
            "setting": vars(options.setting), "imports": list(options.imports),
            "rows": remaining, "names": names, "first": full,
            "budget": options.budget if full else 0.5 * options.budget, "windows": options.windows and full,
            "longest_window": options.longest_window,
        }  # fmt: skip
        current: list[Any] | None = None
        ended, tail = False, ""
        for event in _worker(plan, options):
            if event["kind"] == "begin":
                current = [event["case"], event["size"]]
            elif event["kind"] == "row":
                remaining = [r for r in remaining if r != [event["case"], event["size"]]]
                current = None
            elif event["kind"] == "end":
                ended = True
            elif event["kind"] == "died":
                tail = event["tail"]
            yield event
        if ended or options.late:
            return
        if current is None:  # it died outside a case: say so, and do not try for ever
            yield {"kind": "note", "text": f"a worker ended early: {tail}"}
            return
        yield {"kind": "row", "case": current[0], "size": current[1], "status": "failed", "reason": tail or "killed"}
        remaining = [r for r in remaining if r != current]


def _worker(plan: dict[str, Any], options: Options):
    """Lines of one worker as dictionaries; ``died`` with the end of its stderr where it did not finish."""
    paths = [str(_ROOT), str(_ROOT / "kernels"), *sys.path]
    environment = host.environment(options.setting.device)
    environment["PYTHONPATH"] = os.pathsep.join(p for p in paths if p)
    with tempfile.TemporaryFile("w+") as errors:
        command = [sys.executable, "-m", "geonode.bench.worker", json.dumps(plan)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
        assert process.stdout is not None
        watch = _Watchdog(process, options)
        try:
            for line in process.stdout:
                watch.pat()
                if line.startswith(MARK):
                    yield json.loads(line[len(MARK) :])
        finally:
            watch.end()
            process.wait(timeout=30)
        if watch.bit:
            yield {
                "kind": "died",
                "tail": "time limit" if options.late else f"no result within {options.patience:.0f} s",
            }
        elif process.returncode:
            errors.seek(0)
            lines = [line for line in errors.read().splitlines() if line.strip()]
            yield {"kind": "died", "tail": lines[-1][:400] if lines else f"exit code {process.returncode}"}


class _Watchdog:
    """Kills a process that prints nothing for too long."""

    def __init__(self, process: subprocess.Popen[str], options: Options) -> None:
        self._process, self._options, self.bit = process, options, False
        self._last, self._ended = time.monotonic(), threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self._ended.wait(0.5):
            if self._options.late or time.monotonic() - self._last > self._options.patience:
                self.bit = True
                self._process.kill()
                return

    def pat(self) -> None:
        """It lives."""
        self._last = time.monotonic()

    def end(self) -> None:
        """Stop watching."""
        self._ended.set()


def _take(
    event: dict[str, Any],
    by_key: dict[Any, dict[str, Any]],
    extras: dict[str, Any],
    monitor: activity.Monitor,
    first: bool,
    say: Say,
) -> None:
    """File one event of a worker."""
    kind = event.pop("kind")
    if kind == "row":
        row = by_key[(event.pop("case"), tuple(event.pop("size")))]
        if first:
            row.update(event)
            if "window" in row:
                row["activity"] = monitor.window(row["window"]["begin"], row["window"]["end"])
            say(
                f"  {row['case']} {row['label']}: {row['status']}"
                + (f" – {row['reason']}" if row.get("reason") else "")
            )
        elif event["status"] == "green":
            row.setdefault("restarts_ms", []).append(event["samples_ms"])
        else:
            row.update(status=event["status"], reason=f"in a restart: {event.get('reason')}")
    elif kind == "ceilings":
        extras["ceilings"] = event["values"]
        if monitor._gpu is not None:
            extras["device"] = monitor._gpu.describe()
    elif kind == "note":
        say(event["text"])
        extras.setdefault("problems", []).append(event["text"])
    elif kind == "sequential":
        extras["sequential"] = event
    elif kind in ("sweep", "crossover", "curve"):
        extras[kind].append(event)


# ---------------------------------------------------------------------- what follows from the samples


def _finish(rows: list[dict[str, Any]], extras: dict[str, Any], idle: dict[str, Any]) -> None:
    """Headline, quantiles, noise, throughput, floors and energy of every green row; no time on any other."""
    green = [r for r in rows if r["status"] == "green"]
    for row in rows:
        if row["status"] != "green":
            for name in ("samples_ms", "eager_samples_ms", "restarts_ms", "activity", "window"):
                row.pop(name, None)
    processes = [[r["samples_ms"], *r.get("restarts_ms", [])] for r in green]
    medians = [[quantiles(samples)["median"] for samples in each] for each in processes]
    for row, each, middle, spread in zip(green, processes, medians, noise(medians), strict=True):
        everything = quantiles([x for samples in each for x in samples])
        row.update(
            ms=figure(middle),
            q20_ms=everything["q20"],
            q80_ms=everything["q80"],
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


def _energy(row: dict[str, Any], idle: dict[str, Any]) -> None:
    seen = row.get("activity", {})
    if "energy_counter_j" not in seen or not row.get("window"):
        return
    seconds = row["window"]["end"] - row["window"]["begin"]
    gross = seen["energy_counter_j"] / seen["energy_seconds"] * seconds / row["window"]["calls"]
    rest = idle.get("power_w", 0.0) * seconds / row["window"]["calls"]
    unit = "samples" if "samples" in row["counts"] else "odes"
    row["energy"] = {
        "per_call_gross_j": gross, "per_call_net_j": gross - rest, "unit": unit,
        "per_unit_gross_j": gross / row["counts"][unit], "per_unit_net_j": (gross - rest) / row["counts"][unit],
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


def _timeline(monitor: activity.Monitor, rows: Sequence[dict[str, Any]], begin: float) -> dict[str, Any]:
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


# ---------------------------------------------------------------------- peers and Nsight Compute


def _peers(rows: Sequence[dict[str, Any]], options: Options, say: Say) -> list[dict[str, Any]]:
    """Every peer at every size of the case they stand beside; work–precision at the first size alone."""
    beside = [r for r in rows if r["case"] == peers.CASE and r["status"] == "green"]
    found = []
    for name in peers.PEERS:
        once = name == "compile" and options.setting.suite == "quick"  # compiling takes longer than all else together
        for k, row in enumerate(beside[:1] if once else beside):
            if options.late:
                found.append(
                    {
                        "library": name,
                        "status": "skipped",
                        "reason": "time limit",
                        "case": row["case"],
                        "label": row["label"],
                    }
                )
                continue
            n = row["size"][0] * row["size"][1]
            answer = peers.run(name, n, options.setting.device, options.budget, curve=k == 0)
            answer.update(case=row["case"], label=row["label"])
            say(
                f"  peer {name} {row['label']}: {answer['status']}"
                + (f" – {answer['reason']}" if "reason" in answer else "")
            )
            found.append(answer)
            if answer["status"] == "skipped":
                break
    return found


def _ask_ncu(rows: Sequence[dict[str, Any]], options: Options, say: Say) -> None:
    for row in rows:
        if row["status"] != "green":
            continue
        plan = {
            "setting": vars(options.setting),
            "imports": list(options.imports),
            "rows": [[row["case"], row["size"]]],
            "once": True,
        }
        try:
            row.setdefault("activity", {}).update(activity_ncu.measure(json.dumps(plan), row["ms"]))
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            row.setdefault("activity", {})["ncu_failed"] = str(error)[:300]
            say(f"  {row['case']} {row['label']}: {error}")
