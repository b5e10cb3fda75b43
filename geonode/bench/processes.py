"""The measuring processes as seen from their parent: started, watched, and gone on after where one dies."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from geonode.bench import host
from geonode.bench.case import Setting
from geonode.bench.worker import MARK


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
    def left(self) -> float:
        """Seconds until the time limit."""
        return float("inf") if self.limit is None else self.limit - (time.monotonic() - self.started)

    @property
    def late(self) -> bool:
        """Whether the time limit has passed."""
        return self.left <= 0.0

    def __post_init__(self) -> None:
        if self.setting.suite == "full":
            self.patience = 600.0
        elif self.setting.device == "cuda":
            self.patience = 90.0  # a network of the pre-training is compiled for the better part of a minute
        if not self.budget:
            self.budget = 0.2 if self.setting.suite == "quick" else 2.0


def events(todo: list[dict[str, Any]], options: Options, first: bool) -> Generator[dict[str, Any], None, None]:
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
        with closing(_worker(plan, options)) as lines:
            for event in lines:
                if event["kind"] == "begin":
                    current = [event["case"], event["size"]]
                elif event["kind"] == "row":
                    remaining = [r for r in remaining if r != [event["case"], event["size"]]]
                    current = None
                    if event["status"] != "green":  # nothing beside it is timed either
                        names = [name for name in names if name != event["case"]]
                elif event["kind"] == "end":
                    ended = True
                elif event["kind"] == "died":
                    tail = event["tail"]
                yield event
        if ended or options.late:
            return
        if current is None:  # it died outside a case: say so, and do not try for ever
            yield {"kind": "broken", "text": f"a worker ended early: {tail}"}
            return
        yield {"kind": "row", "case": current[0], "size": current[1], "status": "failed", "reason": tail or "killed"}
        remaining = [r for r in remaining if r != current]
        names = [name for name in names if name != current[0]]


def _worker(plan: dict[str, Any], options: Options) -> Generator[dict[str, Any], None, None]:
    """Lines of one worker as dictionaries; ``died`` with the end of its stderr where it did not finish."""
    with tempfile.TemporaryFile("w+") as errors:
        command = [sys.executable, "-m", "geonode.bench.worker", json.dumps(plan)]
        inherited = host.of_process(options.setting.device)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=inherited)
        assert process.stdout is not None
        watch = _Watchdog(process, options)
        try:
            for line in process.stdout:
                watch.pat()
                if line.startswith(MARK):
                    yield json.loads(line[len(MARK) :])
        except BaseException:  # interrupted, or nobody asks for more: it must not go on measuring
            process.kill()
            raise
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
            yield {"kind": "died", "tail": _last_words(process.returncode, errors.read())}


def _last_words(code: int, errors: str) -> str:
    """Why a worker ended: the signal that killed it, or the last line of its errors."""
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    lines = [line for line in errors.splitlines() if line.strip()]
    return lines[-1][:400] if lines else f"exit code {code}"


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
