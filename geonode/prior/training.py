"""Pre-training with PyTorch Lightning: every process draws its own assays on its own device, step by step.

Nothing is read from disk and nothing travels from the host: a batch is a function of (seed, lane, step), and a step is
the same however many processes share its lanes. A run resumes from a checkpoint exactly where it stopped, also with
another number of them. What is shipped are averaged weights (EMA).
"""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import lightning
import torch
from lightning.pytorch.strategies import DDPStrategy
from torch import Tensor
from torch.optim.swa_utils import get_ema_multi_avg_fn
from torch.utils.data import DataLoader, IterableDataset

from geonode.errors import InputError
from geonode.prior.captured import CapturedLoss
from geonode.prior.examples import Examples, draw_examples
from geonode.prior.feed import Batch, make, sized, with_features
from geonode.prior.flat import FlatNetwork
from geonode.prior.lanes import Lanes, lanes_of
from geonode.prior.loss import Errors, errors, total
from geonode.prior.network import Network
from geonode.prior.settings import PretrainSettings
from geonode.prior.stopping import Stopping, Vote, told
from geonode.training.launch import launched, require_devices
from geonode.training.lightning.checkpoints import SafetensorsIO
from geonode.training.lightning.trainer import quiet_lightning

_LOG_EVERY = 50
_LOOK_EVERY = 10  # steps between looks at the clock, at which all ranks agree
_VALIDATION_SEED = 7_777_777


class Numbers(IterableDataset):
    """The numbers of the batches from ``start`` on, without end."""

    def __init__(self, start: int = 0) -> None:
        self.start = start

    def __iter__(self) -> Iterator[int]:
        return itertools.count(self.start)


class PretrainModule(lightning.LightningModule):
    """The network, its averaged copy, and one step: draw, features, network, loss.

    ``report(line)`` is called with every line of the log; ``history`` holds its numbers.
    """

    def __init__(self, settings: PretrainSettings, report: Callable[[dict[str, Any]], None] | None = None) -> None:
        super().__init__()
        self.settings = settings
        self.report = report
        self.network = FlatNetwork(Network(settings.size))
        if settings.precision == "64-true":  # Lightning would load a checkpoint into float32 and convert it afterwards
            self.network.double()
        self.average = copy.deepcopy(self.network).requires_grad_(False)
        self.history: list[dict[str, Any]] = []
        self._window: list[Tensor] = []
        self._assays, self._since = 0, time.perf_counter()
        self._lost: Tensor | int = 0
        self._loss: Callable[[Examples], tuple[Tensor, Tensor]] = partial(loss_of, settings, self.network)
        self.seen = 0
        self.until: float | None = None
        self.checkpoint: Path | None = None
        self.stopping: Stopping | None = None

    def begin_with(self, network: Network) -> None:
        """Take another network's weights.

        Raises:
            InputError: a network of another size.
        """
        if network.size != self.settings.size:
            raise InputError(
                f"The weights are of a network of {network.size}, and this one is of {self.settings.size}."
            )
        for own in (self.network, self.average):
            own.take(network)

    # ------------------------------------------------------------------ data

    def train_dataloader(self) -> DataLoader:
        """Numbers of this process's batches, going on where a checkpoint stopped."""
        return DataLoader(Numbers(self.trainer.global_step * self.trainer.accumulate_grad_batches), batch_size=None)

    def on_train_start(self) -> None:
        """The batches of this process; on a GPU the loss is compiled and captured."""
        step, ranks = self.trainer.global_step, self.trainer.world_size
        self.lanes = Lanes(self.settings, step, self.global_rank, ranks, self.device)
        self._vote = Vote(self.device)
        if self.stopping is not None:
            self.stopping.listen()
        # float16 needs the scaled loss in the backward pass, which a captured one has behind it.
        if self.device.type == "cuda" and self.trainer.precision != "16-mixed":
            self._loss = self._captured()
        self._since = time.perf_counter()

    def _captured(self) -> CapturedLoss:
        shapes = [sized(self.settings, levels) for levels in sorted(self.settings.levels)]
        batches = (draw_examples(shape, seed=0, device=self.device) for shape in shapes)
        with self.trainer.precision_plugin.forward_context():
            return CapturedLoss(partial(loss_of, self.settings), self.network, batches)

    # ------------------------------------------------------------------ training

    def training_step(self, number: int, _: int) -> Tensor:
        """Loss of one batch, by its weight in the step."""
        batch, weight = self.lanes.batch(int(number))
        loss, summary = self._loss(batch)
        if weight:
            self._window.append(summary)
            self._assays += len(batch.levels)
        return loss * weight

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Clip the gradient; one that is not finite becomes zero (and is counted in the log)."""
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.clip)
        finite = torch.isfinite(norm)
        for parameter in self.network.parameters():
            if parameter.grad is not None:
                parameter.grad.masked_fill_(~finite, 0.0)
        self._lost = self._lost + (~finite).long()

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Average the weights, log, validate."""
        if (batch_idx + 1) % self.trainer.accumulate_grad_batches:
            return
        step = self.trainer.global_step
        if step % _LOOK_EVERY == 0:
            late = self.until is not None and time.perf_counter() > self.until
            over = late or (self.stopping is not None and self.stopping.asked)
            self.trainer.should_stop = self._vote.take(over) or self.trainer.should_stop
        # Early on the average forgets its start quickly: 0.9 after ten steps, 0.99 after a hundred.
        decay = min(self.settings.ema, (1.0 + step) / (10.0 + step))
        get_ema_multi_avg_fn(decay)(list(self.average.parameters()), list(self.network.parameters()), step)
        kept = step % self.settings.validate_every == 0 or step == self.settings.steps
        if kept or step % _LOG_EVERY == 0:
            self._log_window(step)
        if kept:
            self._say({"step": step, "validation": self.validate()})
            if self.checkpoint is not None:
                self.trainer.save_checkpoint(self.checkpoint)

    def on_train_end(self) -> None:
        """What is left of the last window."""
        if self._window:
            self._log_window(self.trainer.global_step)

    def _log_window(self, step: int) -> None:
        sums = torch.stack(self._window).sum(0)
        counts = torch.tensor([len(self._window), self._assays]).to(sums)
        reduced = self.trainer.strategy.reduce(torch.cat([sums, counts]).double(), reduce_op="sum")
        *totals, batches, assays = reduced.tolist()  # waits for the device
        means = [total / batches for total in totals]
        now = time.perf_counter()
        self.seen += round(assays)
        rate = assays / (now - self._since)
        self._window, self._assays, self._since = [], 0, now
        names = ("held out", "held out, start", "truth", "truth, start", "surprise")
        line = {
            "step": step,
            "assays": self.seen,
            "assays/s": round(rate, 1),
            "lr": self._lr(),
            "lost": int(self._lost),
        }
        self._say({**line, **{name: round(value, 4) for name, value in zip(names, means, strict=True)}})

    def _lr(self) -> float:
        return float(self.trainer.optimizers[0].param_groups[0]["lr"])

    def _say(self, line: dict[str, Any]) -> None:
        self.history.append(line)
        if self.report is not None and self.trainer.is_global_zero:
            self.report(line)

    # ------------------------------------------------------------------ validation

    @torch.no_grad()
    def validate(self) -> dict[str, dict[str, float]]:
        """Averaged weights on fresh assays of the families trained on, and of those left out (same batches each time):
        log error less the start's, at the level taken out and against the truth, and the surprise."""
        s = self.settings
        kinds: dict[str, dict[str, Any]] = {"known families": {"exclude": s.exclude, **s.assays}}
        if s.exclude:
            kinds["families left out"] = {"families": s.exclude, **s.assays}
        found = {}
        autocast = torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.device.type == "cuda")
        for name, kind in kinds.items():
            rows = []
            for number in range(s.validation_batches):
                levels = sorted(s.levels)[number % len(s.levels)]
                batch = make(sized(s, levels), seed=_VALIDATION_SEED, step=number, device=self.device, **kind)
                with autocast:
                    rows.append(_summary(_errors(self.average, s.anchors, batch)))
            held, held_start, truth, truth_start, surprise = torch.stack(rows).mean(0).tolist()
            changes = {"held out": held - held_start, "truth": truth - truth_start, "surprise": surprise}
            found[name] = {key: round(value, 4) for key, value in changes.items()}
        return found

    # ------------------------------------------------------------------ optimiser and checkpoints

    def configure_optimizers(self) -> dict[str, Any]:
        """AdamW with warm-up, plateau and decay of the learning rate; vectors have no weight decay."""
        s = self.settings
        groups = [
            {"params": [self.network.matrices], "weight_decay": s.weight_decay},
            {"params": [self.network.vectors], "weight_decay": 0.0},
        ]
        optimiser = torch.optim.AdamW(groups, lr=s.lr, betas=(0.9, 0.98), fused=self.device.type == "cuda")
        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, s.learning_rate)
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Log and settings travel with the weights."""
        checkpoint |= {"history": self.history, "seen": self.seen, "settings": self.settings.as_dict()}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Go on with the log, and count batches as this number of processes does.

        Raises:
            InputError: a checkpoint of a version that kept every tensor apart.
        """
        if "network.matrices" not in checkpoint["state_dict"]:
            raise InputError(
                "The checkpoint was written by a version of geonode that kept weights in another way, and cannot be "
                "gone on from; begin a new run with the weights that it gave (--start)."
            )
        self.history, self.seen = list(checkpoint["history"]), checkpoint["seen"]
        progress = checkpoint["loops"]["fit_loop"]["epoch_loop.batch_progress"]
        done = checkpoint["global_step"] * self.trainer.accumulate_grad_batches
        for counts in (progress["current"], progress["total"]):
            counts.update(dict.fromkeys(("ready", "started", "processed", "completed"), done))


def loss_of(settings: PretrainSettings, network: Network | FlatNetwork, batch: Examples) -> tuple[Tensor, Tensor]:
    """What is minimised, and its summary without a gradient."""
    e = _errors(network, settings.anchors, with_features(batch))
    return total(e, settings.likelihood), _summary(e).detach()


def _errors(network: Network | FlatNetwork, anchors: int, batch: Batch) -> Errors:
    if next(network.parameters()).dtype == torch.float64:  # precision 64-true; the corpus draws float32
        batch = batch.double()
    output = network(batch.features, anchors)
    with torch.autocast(output.change.device.type, enabled=False):
        return errors(batch.features, output, batch.examples)


def _summary(e: Errors) -> Tensor:
    """Means over the batch: level taken out (network, start), truth elsewhere (network, start), surprise."""
    held = [values[:, 0].mean() for values in (e.measured, e.start_measured)]
    return torch.stack([*held, e.truth[:, 1:].mean(), e.start_truth[:, 1:].mean(), e.surprise.mean()]).float()


def pretrain(
    settings: PretrainSettings,
    folder: str | Path,
    *,
    accelerator: str = "auto",
    devices: int = 1,
    resume: str | Path | None = None,
    start: Network | None = None,
    max_seconds: float | None = None,
    report: Callable[[dict[str, Any]], None] | None = None,
    callbacks: Sequence[lightning.Callback] = (),
) -> PretrainModule:
    """Pre-train a network on simulated assays.

    Several processes train by DDP, each on lanes of its own (see `geonode.prior.lanes`), where torchrun or SLURM
    started them or where ``devices`` are more than one.

    Args:
        settings: see :class:`PretrainSettings`.
        folder: where ``last.ckpt`` is written at every validation and at the end (safetensors and JSON, no pickle).
        accelerator, devices: as Lightning takes them; a launcher's processes come before ``devices``.
        resume: a checkpoint to go on from, exactly as if it had not stopped, with as many processes as there are now.
        start: a network whose weights a new run begins with; None for a fresh one, the Gaussian process itself.
        max_seconds: stop after so many seconds, whatever the step.
        report: called with every line of the log, a dictionary of numbers, in the first process.
        callbacks: of Lightning, which see every step.

    Returns:
        The trained module; ``average.as_network()`` is the network to ship.

    Raises:
        InputError: more processes than batches in a step or than this machine has devices, or weights of another size.
        Interrupted: SIGTERM stopped it; its state is in ``folder``.
        TrainingError: another process was lost.
    """
    lightning.seed_everything(settings.seed, verbose=False)
    module = PretrainModule(settings, report)
    if start is not None:
        module.begin_with(start)
    module.until = None if max_seconds is None else time.perf_counter() + max_seconds
    with quiet_lightning():
        trainer = _trainer(settings, _accelerator(accelerator), devices, callbacks)
    Path(folder).mkdir(parents=True, exist_ok=True)
    module.checkpoint = Path(folder) / "last.ckpt"
    module.stopping = Stopping(module.checkpoint, trainer.world_size)
    with module.stopping, quiet_lightning():
        try:
            trainer.fit(module, ckpt_path=None if resume is None else str(resume))
            trainer.save_checkpoint(module.checkpoint)
        except RuntimeError as error:
            raise told(error, module.checkpoint) from error
    if module.stopping.asked:
        raise module.stopping.stopped(trainer.global_step)
    return module


def _trainer(
    settings: PretrainSettings, accelerator: str, devices: int, callbacks: Sequence[lightning.Callback]
) -> lightning.Trainer:
    job = launched() if devices == 1 else None
    if job is None:
        require_devices(devices, accelerator)
    _, processes, here = job or (0, devices, devices)
    trainer = lightning.Trainer(
        accelerator=accelerator,
        devices=here,
        num_nodes=max(1, processes // here),
        strategy=DDPStrategy(gradient_as_bucket_view=True) if processes > 1 else "auto",
        precision=cast(Any, settings.precision or ("bf16-mixed" if accelerator == "cuda" else "32-true")),
        max_steps=settings.steps,
        max_epochs=-1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
        num_sanity_val_steps=0,
        plugins=[SafetensorsIO()],
        callbacks=list(callbacks),
    )
    lanes_of(settings.accumulate, 0, trainer.world_size)  # refuses here, before processes wait for each other
    trainer.accumulate_grad_batches = -(-settings.accumulate // trainer.world_size)
    return trainer


def _accelerator(name: str) -> str:
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return "cuda" if name == "gpu" else name


def card_of(module: PretrainModule) -> dict[str, Any]:
    """A model card of a pre-training: settings, what was seen, the loss curve and the validations."""
    settings = module.settings
    return {
        "what": "geodesic flow pre-trained on simulated assays of geonode.corpus; no real spectra",
        "families left out": list(settings.exclude),
        "seed": settings.seed,
        "steps": module.trainer.global_step,
        "assays": module.seen,
        "settings": settings.as_dict(),
        "loss curve": [line for line in module.history if "validation" not in line][::10],
        "validation (log error less the start)": [line for line in module.history if "validation" in line],
    }
