"""`GeodesicSpectralModule`: the training step under Lightning, with mixed precision, accumulation and resuming."""

from __future__ import annotations

from typing import Any

import lightning as L
import torch
from lightning.pytorch.strategies import SingleDeviceStrategy
from torch import Tensor

from geonode.config import GeodesicConfig
from geonode.training.batches import BatchSource, step_counts
from geonode.training.lightning.monitor import samples_in
from geonode.training.lightning.strategies import is_sharded, whole_parameters
from geonode.training.loss import build_losses, build_optimizer, clip_gradients, learning_rate, parameter_groups
from geonode.training.precision import dtype_of, require_precision
from geonode.training.problem import Problem, place
from geonode.training.steps import LossStep, use_captured
from geonode_kernels import CapturedStep


class GeodesicSpectralModule(L.LightningModule):
    """M coupled spectral ODEs trained on one problem.

    Batches are drawn on the device by key (seed, epoch, step), so the loader only counts steps. One optimiser with a
    parameter group for the metric and one for the flow, each with its own learning rate and gradient clipping.

    Args:
        problem: from `SpectralDataModule.problem` or `build_problem`.
        config: the same that built the problem.
        seed: of initial weights and draws; None takes ``config.seed``.
        compiled, recompute: see `geonode.training.loss.build_losses`.

    On one CUDA device forward and backward pass are one captured graph (not under ``16-mixed``, whose loss scale is
    Lightning's, nor compiled); clipping and AdamW follow as ever.

    Raises:
        DeviceError: ``16-mixed`` without a CUDA device, when training starts.
    """

    def __init__(
        self,
        problem: Problem,
        config: GeodesicConfig | None = None,
        seed: int | None = None,
        compiled: bool = False,
        recompute: int = 0,
    ) -> None:
        super().__init__()
        self.config = config or GeodesicConfig()
        self.seed = self.config.seed if seed is None else seed
        dtype = dtype_of(self.config)
        self.problem = problem.to("cpu", dtype)
        self.ode = self.problem.build_model(self.config, self.seed)
        self.history: list[dict[str, float]] = []
        self._losses: dict[int, dict[str, Tensor]] = {}  # of each epoch's last step, on the device until training ends
        self._source: BatchSource | None = None
        self._compiled, self._function = compiled, build_losses(compiled, recompute)
        self._loss: LossStep | None = None
        self._captured: dict[Any, CapturedStep] | None = None  # by shapes; None where steps are not captured
        self._gradients: list[Tensor] = []  # of the captured step just replayed
        self._share, self._world, self.samples_per_step = 1.0, 1, 0
        trained = {id(p) for group in parameter_groups(self.ode) for p in group["params"]}
        for parameter in self.ode.parameters():  # DDP waits for the gradient of everything that asks for one
            parameter.requires_grad_(id(parameter) in trained)

    def forward(self, source: Tensor, start: Tensor, end: Tensor) -> Tensor:
        """Transport spectra: arguments as for `geonode.flow.CoupledSpectralODE.forward`."""
        return self.ode(source, start, end)

    def on_fit_start(self) -> None:
        """Move the problem to the training device once.

        Raises:
            DeviceError: ``precision="16-mixed"`` without a CUDA device.
        """
        require_precision(self.config, self.device)
        dtype = self.problem.target.dtype
        self.ode = place(self.ode, self.device, dtype)
        rank, world = self.global_rank, self.trainer.world_size
        problem = self.problem.to(self.device, dtype)
        self._source = BatchSource(problem, self.ode.table, self.config, self.seed, rank, world)
        self._share, self._world = self._source.share, world
        self.samples_per_step = samples_in(self._source.batch(0, 0))
        self._loss = LossStep(self.ode, self._source, self.config, self._function)
        # gradients that are set by hand do not pass through the hooks of any other strategy
        alone = isinstance(self.trainer.strategy, SingleDeviceStrategy)
        alone = alone and not self._compiled and self.config.precision != "16-mixed"
        self._captured = {} if alone and use_captured("auto", self._source, self.config) else None

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        """Sum over models of the weighted loss; the terms are logged as means over models.

        ``batch`` is not used: the module makes its own from the epoch and ``batch_idx``, the step within it.

        Raises:
            RuntimeError: called before training started.
        """
        if self._source is None or self._loss is None:
            raise RuntimeError("training_step was called before training started.")
        inputs = self._loss.inputs(self.current_epoch, batch_idx)
        values = self._loss(*inputs) if self._captured is None else self._replay(self._captured, inputs)
        total = values.sum(0)
        terms = {**dict(zip(self._loss.names, values.unbind(), strict=True)), "total": total}
        row = {name: value.detach().mean() * self._share for name, value in terms.items()}
        if self._world > 1:
            means = self.trainer.strategy.reduce(torch.stack(list(row.values())), reduce_op="mean")
            row = dict(zip(row, means.unbind(), strict=True))  # pyright: ignore[reportAttributeAccessIssue]
        self._losses[self.current_epoch] = row
        self.log_dict({f"loss/{name}": value for name, value in row.items()}, batch_size=1)
        return total.sum() * self._share

    def _replay(self, captured: dict[Any, CapturedStep], inputs: list[Tensor]) -> Tensor:
        """The terms of a captured forward and backward pass; its gradients wait for `backward`."""
        shapes = tuple(tensor.shape for tensor in inputs)
        if shapes not in captured:
            captured[shapes] = CapturedStep(self._terms_and_gradients, inputs)
        terms, *self._gradients = captured[shapes](*inputs)
        return terms

    def _terms_and_gradients(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        assert self._loss is not None
        terms = self._loss(*inputs)
        gradients = torch.autograd.grad(terms.sum(), self._trained(), allow_unused=True, materialize_grads=True)
        return terms.detach(), *gradients

    def _trained(self) -> list[torch.nn.Parameter]:
        return [p for group in parameter_groups(self.ode) for p in group["params"]]

    def backward(self, loss: Tensor, *args: Any, **kwargs: Any) -> None:
        """Gradients of the step: by autograd, or those that the captured step has already found."""
        if self._captured is None:
            loss.backward(*args, **kwargs)
            return
        for parameter, gradient in zip(self._trained(), self._gradients, strict=True):
            part = gradient / self.trainer.accumulate_grad_batches
            parameter.grad = part if parameter.grad is None else parameter.grad + part

    def configure_optimizers(self) -> Any:
        """AdamW (not fused: the fused one would clip gradients that are still scaled) with a cosine schedule."""
        optimizer = build_optimizer(self.ode)
        batches, accumulate, _ = step_counts(self.problem.levels.shape[1], self.config)
        steps = self.config.epochs * -(-batches // accumulate)  # of the whole training, wherever this run ends
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: learning_rate(min(step / steps, 1.0)))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def configure_gradient_clipping(
        self, optimizer: Any, gradient_clip_val: Any = None, gradient_clip_algorithm: Any = None
    ) -> None:
        """Clip each group by its own limit, each model by its own norm; the norms are logged.

        Where parameters are cut across devices no device has a norm, and limits are zero.
        """
        if is_sharded(self.trainer.strategy):
            return
        for group in optimizer.param_groups:
            norm = clip_gradients(group["params"], getattr(self.config, f"{group['name']}_clip"))
            if norm.numel():
                self.log(f"gradient_norm/{group['name']}", norm.mean(), batch_size=1)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """The losses so far travel along, so that a resumed training reports all of them."""
        epochs: dict[str, list[int]] = {}
        for epoch, row in self._losses.items():
            for name in row:
                epochs.setdefault(name, []).append(epoch)
        checkpoint["losses"] = {
            name: (found, torch.stack([self._losses[epoch][name] for epoch in found])) for name, found in epochs.items()
        }

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """The inverse of `on_save_checkpoint`."""
        self._losses = {}
        for name, (found, values) in checkpoint.get("losses", {}).items():
            for epoch, value in zip(found, values, strict=True):
                self._losses.setdefault(epoch, {})[name] = value

    def on_train_end(self) -> None:
        """Turn the kept losses into numbers: one transfer, after the last step; and make a cut model whole."""
        self.history = [{name: float(value) for name, value in row.items()} for _, row in sorted(self._losses.items())]
        if is_sharded(self.trainer.strategy):
            with whole_parameters(self.trainer.strategy):
                weights = {name: value.detach().cpu().clone() for name, value in self.ode.state_dict().items()}
            self.ode = self.problem.build_model(self.config, self.seed)
            self.ode.load_state_dict(weights)
