"""What a recorded run foretells for an A100: per kernel, from the share of each ceiling that was measured.

Work that a ceiling binds takes as much longer as that ceiling is lower; the rest of the time (latency, instructions
that no ceiling counts, imperfect overlap) as much longer as there are fewer multiprocessors at a lower clock. With
share s of the binding ceiling, ratio r of that ceiling, and ratio i of multiprocessors × clock:

    time on an A100 = time measured · (s·r + (1 − s)·i)

Only what keeps the device busy is foretold: below a share of `LEAST` the host sets the pace, and its speed is unknown.
"""

from __future__ import annotations

from typing import Any

from geonode.bench.targets import A100

# 108 multiprocessors at 1410 MHz by the A100's datasheet, and 16 results a cycle of each, as in `ceilings`
A100_SPECIAL = 16 * 108 * 1.41e9
LIMITS = {**A100, "special": A100_SPECIAL}
LEAST = 0.02
HEADS = ("work", "measured", "ceiling that binds, share", "arithmetic", "an A100, on paper")
_NAMES = {
    "copy": "memory",
    "fp16": "fp16 products",
    "fp32": "fp32 products",
    "tf32": "tf32 products",
    "bf16": "bf16 products",
    "special": "special functions",
}


def ratios(record: dict[str, Any]) -> dict[str, float]:
    """How many times higher each measured ceiling is than an A100's published one."""
    return {name: record["ceilings"][name] / limit for name, limit in LIMITS.items() if name in record["ceilings"]}


def foretold(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Per green row of a run on a GPU whose least work was counted: the shares, the ratios, and ms on an A100."""
    higher, rows = ratios(record), []
    for row in record["rows"]:
        floor = row.get("floor") or {}
        share, binding = floor.get("share", 0.0), floor.get("binding")
        if row["status"] != "green" or share < LEAST or binding not in higher or "special" not in higher:
            continue
        share = min(share, 1.0)
        longer = share * higher[binding] + (1.0 - share) * higher["special"]
        shares = {name: ms / row["ms"] for name, ms in floor["by_ceiling_ms"].items()}
        rows.append(
            {
                "case": row["case"], "label": row["label"], "title": row["title"], "ms": row["ms"], "binding": binding,
                "share": share, "shares": shares, "ratio": higher[binding], "others": higher["special"],
                "a100_ms": row["ms"] * longer,
            }
        )  # fmt: skip
    return rows


def left_out(record: dict[str, Any]) -> list[str]:
    """The green rows of which nothing is foretold."""
    told = {(r["case"], r["label"]) for r in foretold(record)}
    green = [r for r in record["rows"] if r["status"] == "green"]
    return [f"{r['case']} {r['label']}" for r in green if (r["case"], r["label"]) not in told]


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """One row of `foretold` as text, under `HEADS`."""
    share, rest = row["share"], 1.0 - row["share"]
    sum_ = f"{share:.2f}·{row['ratio']:.2f} + {rest:.2f}·{row['others']:.2f}"
    others = [f"{_NAMES.get(n, n)} {s:.0%}" for n, s in row["shares"].items() if n != row["binding"] and s >= 0.01]
    beside = f" ({', '.join(others)})" if others else ""
    return (
        f"{row['title']}, {row['label']}",
        f"{row['ms']:.3g} ms",
        f"{_NAMES.get(row['binding'], row['binding'])} {share:.0%}{beside}",
        f"{row['ms']:.3g} · ({sum_})",
        f"{row['a100_ms']:.3g} ms",
    )


def lines(record: dict[str, Any]) -> list[str]:
    """The whole as Markdown."""
    higher = ratios(record)
    said = ", ".join(f"{_NAMES.get(name, name)} {ratio:.2f}" for name, ratio in higher.items())
    table = [HEADS, ("---",) * len(HEADS), *map(cells, foretold(record))]
    silent = left_out(record)
    return [
        f"{record['device']['card']} ÷ A100, by ceiling: {said}.",
        "",
        *("| " + " | ".join(line) + " |" for line in table),
        "",
        *([f"Not foretold, for the host or uncounted work sets the pace: {', '.join(silent)}."] if silent else []),
    ]
