"""What adapting the shipped weights to an instrument's own calibrations is worth, on made-up instruments.

    python benchmarks/adapting.py  # all faults, some minutes on two cores; writes benchmarks/results/adapting.*

Six earlier calibrations of six standards are given to `geonode.adapt`; its judgement (each left out in turn) stands
beside what the adapted weights do on twelve later calibrations, which nothing has seen.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from geonode.adaptation import Judgement, adapt, gather_series  # noqa: E402
from geonode.adaptation.judgement import compare  # noqa: E402
from geonode.prior.stored import load_network  # noqa: E402
from geonode_runtime.files import write_text  # noqa: E402
from tests.adaptation.instrument import FAULTS, series  # noqa: E402

EARLIER, LATER, WIDTH = 6, 12, 201


def measure(fault: str) -> dict[str, Any]:
    """Judgement, later calibrations and seconds for one fault."""
    started = time.perf_counter()
    adapted = adapt([series(seed, fault=fault, width=WIDTH) for seed in range(EARLIER)])
    seconds = time.perf_counter() - started
    later = gather_series([series(1000 + seed, fault=fault, width=WIDTH) for seed in range(LATER)])
    base = load_network()
    unseen = Judgement(tuple(compare(base, adapted.network, one, ()) for one in later))
    judged = {"judged": adapted.judgement, "later": unseen}
    return {
        "fault": fault,
        "helped": adapted.helped,
        "seconds": round(seconds, 1),
        **{
            name: {"ratio": found.ratio, "factor": found.factor, "better": found.better, "coverage": found.coverage}
            for name, found in judged.items()
        },
    }


def page(rows: list[dict[str, Any]]) -> str:
    """The table."""
    lines = [
        "# Adapting to an instrument",
        "",
        f"`python benchmarks/adapting.py`: {EARLIER} earlier calibrations of 6 standards × {WIDTH} wavelengths,",
        f"{LATER} later ones; error after ÷ before (× one standard error), and what 80 % bands hold before → after.",
        "",
        "| fault | verdict | series left out | bands | later series | bands | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [row["fault"], "helped" if row["helped"] else "did not help"]
        for name in ("judged", "later"):
            found = row[name]
            before, after = found["coverage"]
            cells += [f"{found['ratio']:.2f} (× {found['factor']:.2f})", f"{before:.0%} → {after:.0%}"]
        lines.append("| " + " | ".join([*cells, f"{row['seconds']:.0f}"]) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure the faults that are named, and write the record of all that were measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fault", action="append", choices=list(FAULTS), help="only this one; repeatable")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/adapting")
    args = parser.parse_args()
    record = args.out.with_suffix(".json")
    found = {row["fault"]: row for row in json.loads(record.read_text())["rows"]} if record.is_file() else {}
    for fault in args.fault or FAULTS:
        found[fault] = measure(fault)
        print(found[fault], flush=True)
        rows = [found[name] for name in FAULTS if name in found]
        write_text(
            record, json.dumps({"earlier": EARLIER, "later": LATER, "width": WIDTH, "rows": rows}, indent=1) + "\n"
        )
        write_text(args.out.with_suffix(".md"), page(rows))


if __name__ == "__main__":
    main()
