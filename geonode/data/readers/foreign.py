"""Parsers of other people's, run in a process of their own: what they loop over or allocate cannot hurt the caller.

The packages for Bruker OPUS and Renishaw WDF trust the lengths that a file states; on a damaged file they may never
return, or ask for all the memory there is. Here each runs in a child process with bounds on its time and memory, which
writes plain arrays to a file; nothing is pickled.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from geonode.data.checks import Floats
from geonode.data.readers import text
from geonode.data.readers.recording import Recording

SECONDS = 30
MEMORY = 2 * 2**30

# Runs in the child; the parser's code follows, which must set ``found``: [(name, x, y)], and ``meta``: a dict of text.
_BEFORE = """
import json, sys
import numpy as np
path, out = sys.argv[1:]
try:
    import resource
    pages = int(open('/proc/self/statm').read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + {memory},) * 2)
except (ImportError, OSError, ValueError):
    pass  # no such bound on this system; that on time remains
"""
_AFTER = """
arrays = {}
for k, (name, x, y) in enumerate(found):
    arrays[f'x{k}'] = np.asarray(x, dtype=np.float64)
    arrays[f'y{k}'] = np.asarray(y, dtype=np.float64)
np.savez(out, **arrays)
print(json.dumps({'names': [name for name, _, _ in found], 'meta': meta}))
"""


def parse(package: str, distribution: str, code: str, recording: Recording, else_do: str = "export it again"):
    """(``[(name, x, y)]``, metadata) of a file, by ``code`` that uses ``package``.

    Args:
        package: what the code imports. distribution: what pip calls it. code: see `_BEFORE`.
        recording: names the file and its format in errors. else_do: the remedy for a file that cannot be read.

    Raises:
        ReaderError: the package is not installed, the file is damaged, or the parser went beyond its bounds.
    """
    if importlib.util.find_spec(package) is None:
        raise recording.fail(
            f"{recording.format}, which is read through the package {distribution}; install it with "
            "pip install 'geodesic-node[readers]', or export the spectra as text."
        )
    text.read_bytes(recording.path)  # of a size that spectra have, and readable
    program = _BEFORE.replace("{memory}", str(MEMORY)) + code + _AFTER
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "found.npz"
        command = [sys.executable, "-I", "-c", program, str(recording.path.absolute()), str(out)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise recording.fail(
                f"{distribution} did not finish with it in {SECONDS} s; the file is damaged, so {else_do}."
            ) from None
        if done.returncode or not out.exists():
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
            reason = text.shorten(lines[-1] if lines else f"exit {done.returncode}", 120).rstrip(".")
            raise recording.fail(
                f"{recording.format}: {distribution} cannot read it ({reason}); the file is damaged, so {else_do}."
            )
        described = json.loads(done.stdout.decode("utf-8", "replace").strip().splitlines()[-1])
        with np.load(out, allow_pickle=False) as arrays:
            found: list[tuple[str, Floats, Floats]] = [
                (str(name), arrays[f"x{k}"], arrays[f"y{k}"]) for k, name in enumerate(described["names"])
            ]
    for name, x, y in found:
        if x.ndim != 1 or x.shape != y.shape or not x.size:
            raise recording.fail(f"'{text.shorten(name)}' has {x.size} abscissae and {y.size} values; export it again.")
    return found, {str(key): str(value) for key, value in described["meta"].items()}
