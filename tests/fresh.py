"""Code in a fresh process in which torch is loaded and nothing of geonode is: forks of one that has loaded it once.

For laws of ``import geonode`` itself; a start of Python that loads torch takes two seconds of a processor, a fork none.
Programs, which may begin with geonode loaded, begin faster still: `tests.forks`.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

_SERVER = """
import json, os, sys, traceback, torch
for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if child:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    code = 1
    try:
        os.environ.clear()
        os.environ.update(asked["environment"])
        os.chdir(asked["folder"])
        sys.path[:0] = asked["path"]
        sys.stdin = open(os.devnull)
        for stream, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(asked[name], os.O_WRONLY), stream)
        exec(compile(asked["code"], "<code>", "exec"), {"__name__": "__main__"})
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
"""
_servers: list[subprocess.Popen[str]] = []


def fresh(code: str, folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """``python -c code`` in ``folder``, to its end.

    Args:
        environment: whole; its PYTHONPATH is searched, as at a start.
    """
    if not _servers:
        _servers.append(_start())
    server = _servers[0]
    assert server.stdin is not None and server.stdout is not None
    with tempfile.TemporaryDirectory() as scratch:
        out, err = Path(scratch, "out"), Path(scratch, "err")
        out.touch()
        err.touch()
        path = [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
        asked = {"code": code, "folder": str(folder), "environment": dict(environment), "path": path}
        print(json.dumps({**asked, "out": str(out), "err": str(err)}), file=server.stdin, flush=True)
        answer = server.stdout.readline()
        assert answer, "the process that has torch loaded has ended"
        return subprocess.CompletedProcess(code, int(answer), out.read_text(), err.read_text())


def _start() -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("PYTHONPATH", None)
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    atexit.register(server.kill)
    return server
