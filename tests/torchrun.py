"""``torchrun --standalone --nproc-per-node N SCRIPT …`` whose processes are forks: a program.

    python -m tests.torchrun N SCRIPT …

The agent is torch's own, and so is what it tells its processes; they begin with what this one has loaded.
"""

from __future__ import annotations

import os
import runpy
import sys
import traceback
import uuid

from torch.distributed.launcher.api import LaunchConfig, elastic_launch


def script(path: str, words: list[str]) -> None:
    """One process: the script, its errors told and its exit code kept."""
    sys.argv = [path, *words]
    sys.path.insert(0, os.path.dirname(path))
    try:
        runpy.run_path(path, run_name="__main__")
    except Exception:
        traceback.print_exc()
        sys.exit(1)
    finally:
        sys.stdout.flush()


if __name__ == "__main__":
    count, path, *words = sys.argv[1:]
    config = LaunchConfig(
        min_nodes=1, max_nodes=1, nproc_per_node=int(count), run_id=str(uuid.uuid4()), rdzv_backend="c10d",
        rdzv_endpoint="localhost:0", max_restarts=0, monitor_interval=0.1, start_method="fork",
    )  # fmt: skip
    elastic_launch(config, script)(path, words)
