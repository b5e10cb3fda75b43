"""The order of a run: monitor, a worker that measures everything, peers, restarts for the noise, verdicts.

Restarts come last of what is measured: where a time limit cuts a run short, the noise is what it misses least.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from geonode.bench import SCHEMA_VERSION, activity, activity_ncu, advice, host, peers, targets
from geonode.bench.case import Case, Setting
from geonode.bench.finish import energy_check, finish, finite, timeline
from geonode.bench.processes import Options, events
from geonode.bench.worker import LONG_CALLS

LATE = "the time limit passed before it; --time-limit gives more"
DEAR = 6.0
"""Seconds of a row (compilation and checks included) from which on the quick suite measures it in one process alone; of
long calls, which say the same twice, it takes two."""
Say = Callable[[str], None]
Row = dict[str, Any]


def run(cases: Sequence[Case], options: Options, say: Say = lambda text: None) -> dict[str, Any]:
    """The whole run as one JSON-able result."""
    begin, setting = time.monotonic(), options.setting
    monitor = activity.Monitor(setting.device, options.rung)
    try:
        idle = _idle(monitor, setting)
        rows = _rows(cases, setting)
        extras: dict[str, Any] = {"sweep": [], "crossover": [], "curve": [], "sequential": None}
        taker = _Taker(rows, extras, monitor, say)
        _process(0, taker, options)
        found = _peers(rows, options, say) if options.peers else []
        for number in range(1, options.restarts):
            _process(number, taker, options)
    finally:
        monitor.stop()
    finish(rows, extras, idle)
    if monitor.rung == "ncu":
        _ask_ncu(rows, options, say)
    result: dict[str, Any] = {
        "schema": SCHEMA_VERSION, "schema_version": SCHEMA_VERSION,
        "suite": setting.suite, "setting": _setting(options),
        "host": host.describe(), "device": extras.pop("device", {}),
        "activity": {
            "rung": monitor.rung, "title": activity.TITLES[monitor.rung], "passed_over": monitor.reasons, "idle": idle,
        },
        "ceilings": extras.pop("ceilings", {}), "rows": rows, "peers": found, **extras,
        "timeline": timeline(monitor, rows, begin),
        "left_out": advice.left_out(setting, options.restarts, options.peers),
        "seconds": time.monotonic() - begin,
    }  # fmt: skip
    result["curve"] = [*result.get("curve", []), *(p for peer in found for p in peer.get("curve", []))]
    result = finite(result)
    result["energy_check"] = energy_check(result["rows"])
    result["targets"] = targets.verdicts(result)
    result["advice"] = advice.sentences(result)
    return result


def failed(result: dict[str, Any]) -> list[str]:
    """Names of the rows that are red or broke, and of peers and of workers between the rows that broke."""
    names = [f"{r['case']} {r['label']}" for r in result["rows"] if r["status"] in ("red", "failed")]
    names += [f"peer {p['library']}" for p in result["peers"] if p["status"] == "failed"]
    return names + result.get("broken", [])


def _setting(options: Options) -> dict[str, Any]:
    setting = options.setting
    return {
        "device": setting.device, "seed": setting.seed, "restarts": options.restarts, "budget_s": options.budget,
    }  # fmt: skip


def _idle(monitor: activity.Monitor, setting: Setting) -> dict[str, Any]:
    """The device at rest, before anything of ours runs on it: the power that is not ours."""
    begin = time.monotonic()
    time.sleep(1.2 if setting.device == "cuda" else 0.3)
    return monitor.window(begin, time.monotonic())


def _rows(cases: Sequence[Case], setting: Setting) -> list[Row]:
    """A row for every case and size; those that cannot be measured here say why."""
    rows: list[Row] = []
    for case in cases:
        reason = case.absent(setting)
        for size in dict.fromkeys(case.sizes(setting)):  # a row is found by its case and size
            row = {"case": case.name, "title": case.title, "size": list(size), "label": size.label}
            rows.append({**row, "status": "skipped", "reason": reason} if reason else row)
    return rows


def _process(number: int, taker: _Taker, options: Options) -> None:
    """What one worker measures: the first everything, correctness before all, the others time alone."""
    rows, first = taker.rows, number == 0
    todo = [r for r in rows if r.get("status") in ((None,) if first else ("green",))]
    if not first and options.setting.suite == "quick":
        todo = [r for r in todo if r["wall_s"] < DEAR and (number == 1 or r["mode"] != LONG_CALLS)]
    if not options.late:
        kind = "correctness first" if first else "time alone"
        taker.say(f"process {number + 1} of {options.restarts}: {len(todo)} rows, {kind}")
        with closing(events(todo, options, first)) as stream:
            for event in stream:
                taker.take(event, first)
    for row in (r for r in rows if "status" not in r):
        row["status"] = "skipped" if options.late else "failed"
        row["reason"] = LATE if options.late else "the worker ended before it"


class _Taker:
    """Files the events of workers: rows in place, everything else in ``extras``."""

    def __init__(self, rows: list[Row], extras: dict[str, Any], monitor: activity.Monitor, say: Say) -> None:
        self.rows = rows
        self.by_key = {(r["case"], tuple(r["size"])): r for r in rows}
        self.extras, self.monitor, self.say = extras, monitor, say

    def take(self, event: dict[str, Any], first: bool) -> None:
        """One event of the first worker or of a restart."""
        kind = event.pop("kind")
        if kind == "row":
            row = self.by_key[event.pop("case"), tuple(event.pop("size"))]
            self._first(row, event) if first else self._restart(row, event)
        elif kind == "ceilings":
            self.extras["ceilings"] = event["values"]
            self.extras["device"] = self.monitor.describe()
        elif kind in ("note", "broken"):
            self.say(event["text"])
            self.extras.setdefault("problems" if kind == "note" else "broken", []).append(event["text"])
        elif kind == "sequential":
            self.extras["sequential"] = event
        elif kind in ("sweep", "crossover", "curve"):
            self.extras[kind].append(event)

    def _first(self, row: Row, event: dict[str, Any]) -> None:
        row.update(event)
        if "window" in row:
            row["activity"] = self.monitor.window(row["window"]["begin"], row["window"]["end"])
        reason = f" – {row['reason']}" if row.get("reason") else ""
        self.say(f"  {row['case']} {row['label']}: {row['status']}{reason}")

    def _restart(self, row: Row, event: dict[str, Any]) -> None:
        if event["status"] == "green":
            row.setdefault("restarts_ms", []).append(event["samples_ms"])
        else:
            row.update(status=event["status"], reason=f"in a restart: {event.get('reason')}")


def _peers(rows: Sequence[Row], options: Options, say: Say) -> list[dict[str, Any]]:
    """Every peer at every size of the case they stand beside; work–precision at the first size alone."""
    beside = [r for r in rows if r["case"] == peers.CASE and r["status"] == "green"]
    found: list[dict[str, Any]] = []
    for name in peers.PEERS if beside else ():
        once = name == "compile" and options.setting.suite == "quick"  # compiling takes longer than all else together
        chosen = beside[:1] if once else beside
        if options.late:
            answers = [{"library": name, "status": "skipped", "reason": LATE}]
        else:
            counts = [r["size"][0] * r["size"][1] for r in chosen]
            answers = peers.run(name, counts, options.setting.device, options.budget, min(150.0, options.left))
            if options.late:  # cut short, not broken
                answers = [
                    {**answer, "status": "skipped", "reason": LATE} if answer["status"] == "failed" else answer
                    for answer in answers
                ]
        for row, answer in zip(chosen, answers, strict=False):  # an absent library answers once
            answer.update(case=row["case"], label=row["label"])
            reason = f" – {answer['reason']}" if "reason" in answer else ""
            say(f"  peer {name} {row['label']}: {answer['status']}{reason}")
            found.append(answer)
    return found


def _ask_ncu(rows: Sequence[Row], options: Options, say: Say) -> None:
    """The Nsight Compute rung: each green case once more, under the profiler."""
    for row in rows:
        if row["status"] != "green":
            continue
        plan = {
            "setting": vars(options.setting), "imports": list(options.imports), "rows": [[row["case"], row["size"]]],
            "once": True,
        }  # fmt: skip
        try:
            row.setdefault("activity", {}).update(
                activity_ncu.measure(json.dumps(plan), row["ms"], host.of_process("cuda"))
            )
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            row.setdefault("activity", {})["ncu_failed"] = str(error)[:300]
            say(f"  {row['case']} {row['label']}: {error}")
