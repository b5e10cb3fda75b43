"""`TrainingConfig`: what a model is trained on, for how long, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from geonode.errors import InputError
from geonode.settings import Settings, setting
from geonode_runtime.wording import argument

PRECISIONS = ("32-true", "64-true", "tf32", "bf16-mixed", "16-mixed")


@dataclass(frozen=True)
class TrainingConfig(Settings):
    """Settings of the training.

    The flow starts at its least-squares optimum (`geonode.flow.Flow.start_from`), so few epochs suffice.

    Args:
        teacher: train on spectra of the geodesic GP as well as on the measured pairs.
        collocation: concentrations between the standards at which the teacher speaks.
        margin: the range to be asked for reaches this fraction of the calibrated range beyond it.
        epochs: passes over all pairs.
        batch_size: pairs per optimiser step; None for every ordered pair at once.
        micro_batch: pairs per backward pass; None for the whole batch.
        wavelengths_per_step: drawn anew at each step; None for all.
        metric_lr, flow_lr: learning rates.
        metric_clip, flow_clip: largest norm of a gradient; 0 clips nothing.
        weight_decay: of AdamW.
        precision: 32-true, 64-true, tf32 (float32, with the networks' products in TF32; CUDA, Ampere or newer),
            bf16-mixed or 16-mixed (CUDA).
        scaler_init, scaler_backoff: of the loss scaling in 16-mixed.
        members: members of the ensemble (seeds), trained as one batch.
        seed: of initial weights and draws.
        folds: train every seed without each standard too: bands, `quantify` and report then rest on the flow.

    Raises:
        InputError: a value of another kind or out of range, or a batch that is no multiple of its micro-batch.
    """

    component: ClassVar[str] = "training"

    teacher: bool = True
    collocation: int = setting(24, minimum=0)
    margin: float = setting(0.25, minimum=0.0)
    epochs: int = setting(60, minimum=1)
    batch_size: int | None = setting(None, minimum=1)
    micro_batch: int | None = setting(None, minimum=1)
    wavelengths_per_step: int | None = setting(128, minimum=1)
    metric_lr: float = setting(3e-3, minimum=0.0)
    flow_lr: float = setting(1e-3, minimum=0.0)
    metric_clip: float = setting(1.0, minimum=0.0)
    flow_clip: float = setting(1.0, minimum=0.0)
    weight_decay: float = setting(0.0, minimum=0.0)
    precision: str = setting("32-true", choices=PRECISIONS)
    scaler_init: float = 2.0**16
    scaler_backoff: float = 0.5
    members: int = setting(2, minimum=1)
    seed: int = 0
    folds: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_size and self.micro_batch and self.batch_size % self.micro_batch:
            raise InputError(
                f"{argument('batch_size', self.batch_size)} must be a multiple of "
                f"{argument('micro_batch', self.micro_batch)}; change either."
            )

    @property
    def accumulate(self) -> int:
        """Micro-batches per optimiser step (gradient accumulation)."""
        return self.batch_size // self.micro_batch if self.batch_size and self.micro_batch else 1
