"""`python -m geonode.bench`: measure, show, write.

Exit codes: 0 all green; 1 a case is red, a worker or a peer broke, or something got slower than --baseline beyond the
noise; 2 bad arguments, or a file that could not be written; 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

from geonode.errors import GeonodeError, InputError

LIMITS = {"cpu": 220.0, "cuda": 270.0}
"""Seconds of the quick suite by device, where no other limit is asked for: four and five minutes, less what starting
Python and the verdicts take."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(
        prog="python -m geonode.bench", description="How fast geonode is here, what limits it, and whether it is right."
    )
    p.add_argument(
        "--suite", choices=("quick", "full"), default="quick", help="quick: minutes; full: longer samples, more sizes"
    )
    p.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="cases whose name starts so; may be repeated"
    )
    p.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    p.add_argument("--json", metavar="FILE", help="write the result with every raw sample")
    p.add_argument("--html", metavar="FILE", help="write a self-contained page with plots")
    p.add_argument("--baseline", metavar="FILE", help="compare with a recorded result")
    p.add_argument(
        "--profile",
        metavar="DIR",
        help="write a torch.profiler trace of a few steps of the first chosen case, and measure nothing else",
    )
    p.add_argument(
        "--trace",
        metavar="FILE",
        help="say what a step of a trace spends (of --profile, or of geonode fit), and end",
    )
    p.add_argument("--on-a100", metavar="FILE", help="say what a recorded run on a GPU foretells for an A100, and end")
    p.add_argument("--list", action="store_true", help="name the cases and end")
    p.add_argument(
        "--restarts",
        type=int,
        metavar="R",
        help="worker processes the noise is estimated from (3; 2 for the quick suite)",
    )
    p.add_argument(
        "--activity",
        choices=("gpm", "dcgm", "ncu", "nvml"),
        help="a rung of the activity ladder instead of the first that works",
    )
    p.add_argument("--no-peers", action="store_true", help="leave other libraries out")
    p.add_argument("--no-windows", action="store_true", help="leave activity windows out (time and correctness only)")
    p.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        metavar="MODULE",
        help="a module that registers cases of its own",
    )
    p.add_argument(
        "--time-limit",
        type=float,
        metavar="S",
        help="cut off after so many seconds; the rest is skipped (of the quick suite "
        f"{LIMITS['cpu']:.0f} on a CPU, {LIMITS['cuda']:.0f} on a GPU)",
    )
    p.add_argument("--seed", type=int, default=0, help="of the inputs")
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = parser().parse_args(argv)
    os.environ.setdefault("KINETO_LOG_LEVEL", "5")  # torch's profiler is chatty
    try:
        _check(options)
        return _run(options)
    except KeyboardInterrupt:
        print("geonode.bench: interrupted.", file=sys.stderr)
        return 130
    except (GeonodeError, RuntimeError) as error:
        if not isinstance(error, GeonodeError) and not str(error).startswith("--"):
            raise
        print(f"geonode.bench: {error}", file=sys.stderr)
        return 2


def _check(options: argparse.Namespace) -> None:
    """Refuse before anything is measured what could only fail after it."""
    if options.restarts is not None and options.restarts < 1:
        raise InputError(f"--restarts {options.restarts}: at least one process must measure.")
    if options.time_limit is not None and not options.time_limit > 0:
        raise InputError(f"--time-limit {options.time_limit:g}: must be more than 0 seconds.")
    if options.seed < 0:
        raise InputError(f"--seed {options.seed}: must be 0 or more.")
    for option, path in (("--json", options.json), ("--html", options.html)):
        _require_writable(option, path)


def _require_writable(option: str, path: str | None) -> None:
    from geonode_runtime.files import require_replaceable

    if path is None:
        return
    require_replaceable(path)
    folder = os.path.dirname(os.path.realpath(path))
    if not os.access(folder, os.W_OK):
        raise InputError(f"{option} {path}: {folder} is no folder to write in; name one that is there and writable.")


def _device(name: str) -> str:
    import torch

    there = torch.cuda.is_available()
    if name == "cuda" and not there:
        raise InputError("--device cuda: no CUDA device is usable here; use --device cpu.")
    return "cuda" if there and name != "cpu" else "cpu"


def _run(options: argparse.Namespace) -> int:
    from rich.console import Console

    from geonode.bench import case, compare, on_paper, step_trace, suite, terminal

    console = Console(stderr=False, width=None if sys.stdout.isatty() else 200)
    if options.trace:
        for line in step_trace.sentences(step_trace.breakdown(step_trace.read(options.trace))):
            console.print(line, markup=False, highlight=False)
        return 0
    if options.on_a100:
        record = compare.read(options.on_a100, "--on-a100")
        if record["setting"]["device"] != "cuda":
            raise InputError(f"--on-a100 {options.on_a100} was recorded on a CPU; name a run on a GPU.")
        print("\n".join(on_paper.lines(record)))
        return 0
    sys.path.insert(0, "")  # a module named with --import may lie in the current folder
    setting = case.Setting(_device(options.device), options.suite, options.seed)
    restarts = options.restarts or (2 if setting.suite == "quick" else 3)
    cases = case.select(case.load(options.imports), options.only)
    if options.list:
        for one in cases:
            reason = one.absent(setting)
            sizes = ", ".join(s.label for s in one.sizes(setting))
            console.print(
                f"{one.name}: {one.title} ({'skipped: ' + reason if reason else sizes})", highlight=False, markup=False
            )
        return 0
    baseline = compare.read(options.baseline) if options.baseline else None
    if options.profile:
        return _profile(cases[0], setting, options.profile, console)
    plan = suite.Options(
        setting,
        options.imports,
        restarts,
        peers=not options.no_peers,
        windows=not options.no_windows,
        rung=options.activity,
        limit=options.time_limit or (LIMITS[setting.device] if setting.suite == "quick" else None),
    )
    if setting.device == "cpu":
        plan.longest_window = 0.5
    begin = time.monotonic()

    def say(text: str) -> None:
        console.print(f"{time.monotonic() - begin:6.1f} s  {text}", highlight=False, markup=False)

    result = suite.run(cases, plan, say)
    if baseline is not None:
        result["comparison"] = compare.compare(baseline, result)
    try:
        _write(options, result)
    finally:  # what was measured is shown even where it cannot be written
        terminal.show(result, console)
    if baseline is not None:
        terminal.show_comparison(result["comparison"], console)
    wrong = suite.failed(result) + (compare.regressions(result["comparison"]) if baseline is not None else [])
    if wrong:
        console.print(f"not green: {', '.join(wrong)}", style="bold red", markup=False, highlight=False)
    return 1 if wrong else 0


def _profile(case: Any, setting: Any, folder: str, console: Any) -> int:
    from geonode.bench import profiler, step_trace

    paths, found = profiler.record(case, setting, folder)
    for path in paths:
        console.print(str(path), markup=False)
    for line in step_trace.sentences(found):
        console.print(line, markup=False, highlight=False)
    if found["cut"]:
        console.print(f"the trace was cut to open in a viewer: {found['cut']} events are left out", markup=False)
    return 0


def _write(options: argparse.Namespace, result: dict[str, Any]) -> None:
    from geonode_runtime.files import write_text

    if options.json:
        write_text(options.json, json.dumps(result, allow_nan=False, default=str) + "\n")
    if options.html:
        from geonode.bench.page import html

        write_text(options.html, html(result))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C does: no worker is left running
    sys.exit(main())
