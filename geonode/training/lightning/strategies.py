"""Strategies that cut parameters across devices, FSDP and DeepSpeed's ZeRO, as geonode uses them.

Lightning would cast the whole module to one type, and with it the tables of arc length that must stay float64; and
after training each device would be left with its own part of the weights.
"""

from __future__ import annotations

import importlib.util
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from lightning.pytorch.plugins.precision import DeepSpeedPrecision, FSDPPrecision, Precision
from lightning.pytorch.strategies import DeepSpeedStrategy, FSDPStrategy, Strategy
from torch import nn

from geonode.config import GeodesicConfig
from geonode.errors import DeviceError, InputError
from geonode.training.launch import SHARDED, launched, require_strategy
from geonode_runtime.wording import argument


class _FSDPPrecision(FSDPPrecision):
    """Every tensor keeps its type: float32 or float64 parameters, float64 tables."""

    mixed_precision_config = None  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]

    def convert_module(self, module: nn.Module) -> nn.Module:
        return module

    def forward_context(self) -> AbstractContextManager[Any]:
        return nullcontext()


class _DeepSpeedPrecision(DeepSpeedPrecision):
    """Every tensor keeps its type: float32 parameters (DeepSpeed knows no float64), float64 tables."""

    def convert_module(self, module: nn.Module) -> nn.Module:
        return module


class _FSDP(FSDPStrategy):
    """A subclass because Lightning refuses its own class on CPUs, where torch's FSDP works through gloo."""

    def _setup_model(self, model: nn.Module) -> nn.Module:
        from torch.distributed.fsdp import FullyShardedDataParallel

        return FullyShardedDataParallel(model, device_id=self.root_device, **self.kwargs)


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
                raise DeviceError(
                    f"{argument('strategy', strategy)} needs CUDA devices, and this is {kind}; use 'ddp'."
                )
            if importlib.util.find_spec("deepspeed") is None:
                raise DeviceError(
                    f"{argument('strategy', strategy)} needs DeepSpeed: pip install 'geodesic-node[deepspeed]'."
                )
        settings["strategy"], precision = sharded_settings(strategy, config)
        settings["plugins"] = [precision]
    return settings


def sharded_settings(strategy: str, config: GeodesicConfig) -> tuple[Strategy, Precision]:
    """The strategy and its precision plugin for `lightning.Trainer`.

    Args:
        strategy: one of `geonode.training.launch.SHARDED`.

    Raises:
        InputError: settings that need a model's whole gradient on one device, or a type the strategy does not have.
    """
    if config.training.metric_clip or config.training.flow_clip:
        raise InputError(
            f"{argument('strategy', strategy)} cuts parameters across models, so no device has a model's gradient "
            "norm; "
            f"set {argument('metric_clip', 0)} and {argument('flow_clip', 0)}, or use 'ddp'."
        )
    known = ("32-true", "64-true") if strategy == "fsdp" else ("32-true",)
    if config.training.precision not in known:
        raise InputError(
            f"{argument('strategy', strategy)} trains in {' or '.join(known)}, not {config.training.precision}; "
            "change precision, "
            "or use 'ddp'."
        )
    if strategy == "fsdp":
        return _FSDP(), _FSDPPrecision("32-true")
    # its logs want a batch size, and the loader here has none
    return DeepSpeedStrategy(stage=int(strategy[-1]), logging_batch_size_per_gpu=1), _DeepSpeedPrecision("32-true")


def is_sharded(strategy: Strategy) -> bool:
    """True where a device holds a part of the parameters, of their gradients or of the optimiser's state."""
    return isinstance(strategy, (FSDPStrategy, DeepSpeedStrategy))


def whole_parameters(strategy: Strategy) -> AbstractContextManager[Any]:
    """Inside, every parameter is whole on every device, to be read. All processes must enter."""
    if isinstance(strategy, FSDPStrategy):
        from torch.distributed.fsdp import FullyShardedDataParallel

        return FullyShardedDataParallel.summon_full_params(strategy.model, writeback=False)  # pyright: ignore
    if isinstance(strategy, DeepSpeedStrategy):
        import deepspeed  # pyright: ignore[reportMissingImports] - an extra, on Linux alone

        return deepspeed.zero.GatheredParameters(list(strategy.deepspeed_engine.parameters()))
    return nullcontext()
