"""One training over several processes: which strategies there are, what the launcher says, and how a step is shared.

Every loss term is a mean over wavelengths, so a step is shared by wavelength: each rank takes every world-th of those
the step uses, without overlap, and the average of the ranks' gradients is the gradient of the whole step.
"""

from __future__ import annotations

import importlib.util
import os
from typing import Any

from torch import Tensor

from geonode.config import GeodesicConfig
from geonode.errors import DeviceError, InputError

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


def require_strategy(strategy: str, checkpoints: bool = False) -> None:
    """Nothing, where ``strategy`` is one of STRATEGIES, and one that keeps ``checkpoints`` where these are wanted.

    Raises:
        InputError: it is not.
    """
    if strategy not in STRATEGIES:
        raise InputError(f"strategy={strategy!r} is not known; choose one of {', '.join(STRATEGIES)}.")
    if checkpoints and strategy in SHARDED:
        raise InputError(f"strategy={strategy!r} keeps no checkpoints here; leave them out, or use 'ddp'.")


def trainer_settings(strategy: str, kind: str, config: GeodesicConfig) -> dict[str, Any]:
    """``strategy``, ``devices``, ``num_nodes`` for `lightning.Trainer`, and ``plugins`` where the strategy needs one.

    Args:
        strategy: one of STRATEGIES; ``auto`` is one device, or DDP where torchrun or SLURM launched several processes.
        kind: device type.

    Raises:
        InputError: an unknown strategy, or settings that one which cuts parameters cannot follow.
        DeviceError: a strategy that needs CUDA or a package that is not here.
    """
    require_strategy(strategy)
    job = launched()
    _, world, local = job or (0, 1, 1)
    if strategy == "auto":
        strategy = "ddp" if world > 1 else "auto"
    settings: dict[str, Any] = {"strategy": strategy, "devices": local, "num_nodes": max(1, world // max(local, 1))}
    if strategy in SHARDED:
        if strategy.startswith("deepspeed"):
            if kind != "cuda":
                raise DeviceError(f"strategy={strategy!r} needs CUDA devices, and this is {kind}; use 'ddp'.")
            if importlib.util.find_spec("deepspeed") is None:
                raise DeviceError(f"strategy={strategy!r} needs DeepSpeed: pip install 'geodesic-node[deepspeed]'.")
        from geonode.training.sharded import sharded_settings  # brings Lightning, which the stacked loop does without

        settings["strategy"], precision = sharded_settings(strategy, config)
        settings["plugins"] = [precision]
    return settings


def shard(index: Tensor, rank: int, world: int) -> tuple[Tensor, float]:
    """This rank's part of the wavelengths ``index`` [K], and the factor that makes ranks' averages those of the whole.

    Raises:
        InputError: fewer wavelengths than processes.
    """
    if len(index) < world:
        raise InputError(
            f"A step uses {len(index)} wavelengths, fewer than the {world} processes that share it; start fewer."
        )
    part = index[rank::world]
    return part, len(part) * world / len(index)
