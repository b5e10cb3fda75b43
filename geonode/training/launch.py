"""Who launched this process, and the strategies by which several processes train one model."""

from __future__ import annotations

import os

import torch

from geonode.errors import InputError
from geonode.threads import cores
from geonode_runtime.wording import argument

SHARDED = ("fsdp", "deepspeed_stage_1", "deepspeed_stage_2", "deepspeed_stage_3")
"""Strategies that cut parameters across devices."""
STRATEGIES = ("auto", "ddp", *SHARDED)


def launched() -> tuple[int, int, int] | None:
    """(rank, processes in all, processes on this machine) as torchrun or SLURM says; None where neither launched us.

    Raises:
        InputError: WORLD_SIZE without RANK or LOCAL_RANK, or not numbers.
    """
    for world, rank, local in (
        ("WORLD_SIZE", "RANK", "LOCAL_WORLD_SIZE"),
        ("SLURM_NTASKS", "SLURM_PROCID", "SLURM_NTASKS_PER_NODE"),
    ):
        if world not in os.environ or (world == "SLURM_NTASKS" and rank not in os.environ):
            continue
        try:
            count = int(os.environ[world])
            return int(os.environ[rank]), count, int(os.environ.get(local, count))
        except (KeyError, ValueError) as error:
            raise InputError(
                f"{world} is set, but {rank} is not, or one is no number ({error}); use torchrun."
            ) from None
    return None


def is_main_process() -> bool:
    """True for rank 0, and where there is one process alone: who writes files and speaks."""
    job = launched()
    return job is None or job[0] == 0


def require_devices(devices: int, accelerator: str) -> None:
    """Nothing, where this machine has as many ``devices``: graphics cards, or processors on the CPU.

    Raises:
        InputError: it has not.
    """
    cuda = accelerator == "cuda"
    here = torch.cuda.device_count() if cuda else cores()
    if not 1 <= devices <= here:
        what = f"{here} graphics card" if cuda else f"{here} processor"
        raise InputError(
            f"{argument('devices', devices)} cannot be had: this process may use {what}{'s' * (here != 1)}; "
            f"give 1 to {here}, or start the processes of several machines by torchrun or SLURM."
        )


def require_strategy(strategy: str, checkpoints: bool = False) -> None:
    """Nothing, where ``strategy`` is one of STRATEGIES, and one that keeps ``checkpoints`` where these are wanted.

    Raises:
        InputError: it is not.
    """
    if strategy not in STRATEGIES:
        raise InputError(f"{argument('strategy', strategy)} is not known; choose one of {', '.join(STRATEGIES)}.")
    if checkpoints and strategy in SHARDED:
        raise InputError(f"{argument('strategy', strategy)} keeps no checkpoints here; leave them out, or use 'ddp'.")
