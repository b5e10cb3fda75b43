"""Jobs on Ray: started here or on a cluster, a lost worker's jobs run again, each row kept as it comes."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from geonode.errors import DeviceError, TrainingError
from geonode.sweep.bundles import as_bytes
from geonode.sweep.jobs import Job, sentence
from geonode.sweep.run import run_stack
from geonode_runtime.wording import argument

RETRIES = 5
"""How often a list of jobs whose worker is lost runs again before it counts as failed."""


def run_on_ray(
    stacks: Sequence[Sequence[Job]],
    keep: Callable[[dict[str, Any], bytes | None], None],
    address: str | None = None,
    device: str = "auto",
    cpus: int | None = None,
    bundles: bool = False,
    checkpoints: Path | None = None,
) -> list[str]:
    """Run jobs and hand every row, and its model where ``bundles`` asks for it, to ``keep``, in the order in which they
    end.

    Args:
        stacks: lists of jobs that are trained together (`geonode.sweep.stacks`). Where one of a list fails, each of
            them is run again alone.
        address: of a Ray cluster ("auto", "ray://host:10001"); None starts Ray on this machine and stops it again.
        device: passed on; with ``cuda`` each list asks Ray for a GPU. ``auto`` is CUDA where this machine, or with
            ``address`` the cluster, has some.
        cpus: of a local Ray; None for all.
        bundles: workers send the trained models along, as bundles.
        checkpoints: folder, the same for every worker, for the state of trainings; one whose worker is lost goes on
            from there. None keeps none.

    Returns:
        One sentence per job that failed, or whose worker was lost each of the ``RETRIES`` + 1 times it was tried.

    Raises:
        DeviceError: Ray is not installed, or cannot be reached.
    """
    try:
        import ray
        from ray.exceptions import RayError
    except ImportError:
        raise DeviceError(
            f"geonode sweep runs on Ray: pip install 'geodesic-node[cluster]', or use {argument('shard')}."
        ) from None
    if address is not None:
        _require_open(address)
    try:
        # "local", for without an address Ray joins whatever cluster it finds here
        local = {"address": "local", "num_cpus": cpus, "include_dashboard": False}
        options: dict[str, Any] = {"address": address} if address else local
        ray.init(log_to_driver=False, logging_level=logging.WARNING, **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise DeviceError(
            f"Ray cannot be reached ({' '.join(str(error).split())}); check {argument('address')}."
        ) from None
    try:
        device = _device(device, address, ray.cluster_resources())
        remote = ray.remote(num_cpus=1, num_gpus=int(device == "cuda"), max_retries=RETRIES)(_one_thread)
        running = {remote.remote(stack, device, bundles, checkpoints): stack for stack in stacks}
        failures = []
        while running:
            done, _ = ray.wait(list(running), num_returns=1)
            stack = running.pop(done[0])
            try:
                for row, bundle in ray.get(done[0]):
                    keep(row, bundle)
            except RayError as error:
                if len(stack) > 1:
                    running.update({remote.remote([job], device, bundles, checkpoints): [job] for job in stack})
                else:
                    failures.append(sentence(stack[0], _cause(error)))
        return failures
    finally:
        ray.shutdown()


def _require_open(address: str) -> None:
    """Refuse a HOST:PORT at which nothing listens: Ray itself tries for many minutes, and says nothing.

    Raises:
        DeviceError: naming the address.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():  # "auto"
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10.0).close()
    except (OSError, OverflowError) as error:
        raise DeviceError(f"Ray cannot be reached at {address} ({error}); check {argument('address')}.") from None


def _device(device: str, address: str | None, resources: Mapping[str, float]) -> str:
    """``auto`` decided here: from a task that asks for no GPU, Ray hides them all."""
    if device != "auto":
        return device
    if address is not None:
        return "cuda" if resources.get("GPU", 0.0) >= 1.0 else "cpu"
    from geonode.device import resolve_device

    return resolve_device().type


def _cause(error: Exception) -> BaseException:
    """What the training raised; of a worker that was lost, a sentence that says so."""
    from ray.exceptions import NodeDiedError, OutOfMemoryError, WorkerCrashedError

    if isinstance(error, (NodeDiedError, OutOfMemoryError, WorkerCrashedError)):
        return TrainingError(
            f"its worker was lost each of the {RETRIES + 1} times it was tried (killed, or out of memory?)"
        )
    return getattr(error, "cause", None) or error


def _one_thread(
    stack: Sequence[Job], device: str, bundles: bool, checkpoints: Path | None
) -> list[tuple[dict[str, Any], bytes | None]]:
    """Rows of a stack with their models; one core a stack, as Ray was told."""
    import torch

    torch.set_num_threads(1)
    kept: dict[str, bytes] = {}
    keep = (lambda job, model: kept.update({job.key: as_bytes(model)})) if bundles else None
    return [(row, kept.get(row["job"])) for row in run_stack(stack, device, keep, checkpoints=checkpoints)]
