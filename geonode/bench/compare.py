"""Two runs side by side: what changed by more than the larger of the two runs' noise."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from geonode.bench import SCHEMA_VERSION
from geonode.errors import InputError


def read(path: str | Path, option: str = "--baseline") -> dict[str, Any]:
    """A recorded run; ``option`` is what asked for it.

    Raises:
        InputError: no such file, no JSON, another schema version, or not a run of this benchmark.
    """
    try:
        result = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{option} {path}: {error.strerror}; name a file written with --json.") from None
    except ValueError:
        raise InputError(f"{option} {path} is not JSON; name a file written with --json.") from None
    if not isinstance(result, dict) or result.get("schema") != SCHEMA_VERSION:
        found = result.get("schema") if isinstance(result, dict) else None
        raise InputError(f"{option} {path} has schema {found}, this release reads {SCHEMA_VERSION}; record it again.")
    if not _complete(result):
        raise InputError(f"{option} {path} is not a run of geonode.bench; name a file written with --json.")
    return result


def _complete(result: dict[str, Any]) -> bool:
    """Whether everything is there that `compare` reads."""
    try:
        parts = [result["setting"]["device"], result["device"].keys(), result["host"].keys()]
        parts += [(r["case"], r["label"], float(r["ms"]) if r["status"] == "green" else 0.0) for r in result["rows"]]
    except (KeyError, TypeError, ValueError, AttributeError):
        return False
    return True


def compare(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Rows with the ratio new/old of times and a verdict, and what makes the two runs incomparable, if anything."""
    warnings = [
        f"{what} differs: {a!r} then, {b!r} now"
        for what, a, b in (
            ("device", old["setting"]["device"], new["setting"]["device"]),
            ("card", old["device"].get("card"), new["device"].get("card")),
            ("cpu", old["host"].get("cpu"), new["host"].get("cpu")),
            ("threads", old["host"].get("threads"), new["host"].get("threads")),
        )
        if a != b
    ]
    if not any(r.get("noise") for run in (old, new) for r in run["rows"]):
        warnings.append("neither run has measured its noise, so no change is judged; use --restarts 2 or more")
    before = {(r["case"], r["label"]): r for r in old["rows"]}
    rows = []
    for row in new["rows"]:
        past = before.get((row["case"], row["label"]))
        if past is None or past["status"] != "green":
            continue
        entry: dict[str, Any] = {"case": row["case"], "label": row["label"], "old_ms": past["ms"]}
        if row["status"] != "green":
            rows.append({**entry, "verdict": f"now {row['status']}"})
            continue
        allowed = max(past.get("noise") or 0.0, row.get("noise") or 0.0) or None
        change = math.log(row["ms"] / past["ms"])
        if allowed is None:
            verdict = "noise unknown"
        else:
            verdict = "same" if abs(change) <= allowed else "slower" if change > 0 else "faster"
        rows.append(
            {**entry, "new_ms": row["ms"], "ratio": row["ms"] / past["ms"], "allowed": allowed, "verdict": verdict}
        )
    if not rows:
        warnings.append("no case and size of this run is green in the baseline: nothing was compared")
    return {"warnings": warnings, "rows": rows}


def regressions(comparison: dict[str, Any]) -> list[str]:
    """Names of rows that got slower beyond the noise, or are no longer green."""
    return [
        f"{r['case']} {r['label']}"
        for r in comparison["rows"]
        if r["verdict"] == "slower" or r["verdict"].startswith("now")
    ]
