"""Programs in processes of their own that begin with torch loaded: forks of one server, which has loaded it once.

For tests of what only a process has: signals, exit codes, streams, partners. A start of Python that loads torch and
Lightning takes five seconds of a processor, a fork none. The server is a process of its own too, started by the first
test of a worker that needs it, so that nothing of that worker is in the forks.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

LOADED = [
    "torch",
    "lightning",
    "tensorboard",
    "torch.distributed.run",
    "geonode.commands",
    "geonode.training.lightning",
]
"""And Triton with Lightning: a program that wants its interpreter is none for here."""
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([*LOADED, __name__])


class Program:
    """A running ``python …``, much as `subprocess.Popen` has it.

    Args:
        words: as after ``python``: ``-m module …`` or a script's path and its arguments.
        env: the environment; None for this process's.
        cwd: where it works; None for here.
    """

    def __init__(
        self, words: Sequence[object], env: Mapping[str, str] | None = None, cwd: str | Path | None = None
    ) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._streams = [os.path.join(self._folder.name, name) for name in ("out", "err")]
        for stream in self._streams:
            Path(stream).touch()
        arguments = [os.fspath(word) if isinstance(word, (str, bytes, Path)) else str(word) for word in words]
        given = arguments, dict(os.environ if env is None else env), os.fspath(cwd or os.getcwd()), self._streams
        self._process = _CONTEXT.Process(target=_run, args=given)
        self._process.start()
        self.pid: int = self._process.pid or 0

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._process.exitcode

    def kill(self) -> None:
        """By SIGKILL."""
        self._process.kill()

    def terminate(self) -> None:
        """By SIGTERM."""
        self._process.terminate()

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it wrote, when it has ended; bytes that are no UTF-8 come as \\x….

        Raises:
            subprocess.TimeoutExpired: it has not ended; it is killed.
        """
        self._process.join(timeout)
        if self._process.exitcode is None:
            self.kill()
            raise subprocess.TimeoutExpired("python", timeout or 0.0)
        out, err = (Path(s).read_bytes().decode("utf-8", "backslashreplace") for s in self._streams)
        return out, err

    @property
    def returncode(self) -> int | None:
        """As `poll`."""
        return self.poll()


def python(
    *words: object, env: Mapping[str, str] | None = None, cwd: str | Path | None = None, timeout: float = 300.0
) -> subprocess.CompletedProcess[str]:
    """``python *words``, to its end."""
    program = Program(words, env, cwd)
    out, err = program.communicate(timeout)
    return subprocess.CompletedProcess(words, program.returncode or 0, out, err)


def _run(words: list[str], environment: dict[str, str], folder: str, streams: list[str]) -> None:
    """In the fork: become the program."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, stream in zip((1, 2), streams, strict=True):
        file = os.open(stream, os.O_WRONLY | os.O_APPEND)
        os.dup2(file, number)
        os.close(file)
    encoding, _, errors = environment.get("PYTHONIOENCODING", "utf-8:strict").partition(":")
    sys.stdout = open(1, "w", encoding=encoding, errors=errors or "strict", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding=encoding, errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    os._exit(_outcome(words))


def _outcome(words: list[str]) -> int:
    """The exit code of the program, once all that Python does at its end is done."""
    code: Any = 0
    sys.path[:0] = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    try:
        if words[0] == "-m":
            sys.argv = words[1:]
            sys.path.insert(0, os.getcwd())
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = words
            sys.path.insert(0, os.path.dirname(os.path.abspath(words[0])))
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr, flush=True)
    return 1
