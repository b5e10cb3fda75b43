"""AdamW over a flat buffer: per-model gradient clipping in two groups and the update, one launch for all of it."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from .. import _blocks
from .._dispatch import dispatch
from .._runtime import launch
from . import reference

__all__ = ["FlatAdamW"]


class FlatAdamW:
    """AdamW for parameters with a leading model axis, moved into one flat buffer; capturable in a CUDA graph.

    The update is torch.optim.AdamW's; before it, each model's gradient of each group is scaled to a norm of at most
    ``clip`` (0: not at all). What a captured step follows lives on the device: learning rates ``rates`` [M, 2] (of each
    model and group), ``scale`` [M] that gradients are divided by (loss scaling), ``active`` [M] (0: the model stays as
    it is). A model whose gradient is not finite skips the step alone.

    Args:
        groups: one or two dicts with ``params`` (each [M, …], float32), ``lr`` and optionally ``clip``.
        weight_decay, betas, eps: as in torch.optim.AdamW.
        backend: auto, triton or torch.

    Raises:
        ValueError: more than two groups, or parameters without a common model axis.
    """

    def __init__(
        self,
        groups: Sequence[dict],
        weight_decay: float = 0.01,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        backend: str = "auto",
    ) -> None:
        if not 1 <= len(groups) <= 2:
            raise ValueError(f"FlatAdamW takes one or two parameter groups, got {len(groups)}.")
        self.parameters: list[nn.Parameter] = []
        self.layout: list[tuple[int, int, int, int]] = []
        offset = 0
        for index, group in enumerate(groups):
            for p in group["params"]:
                self.parameters.append(p)
                self.layout.append((offset, p[0].numel(), index, p.numel()))
                offset += -(-p.numel() // 4) * 4  # every parameter starts at 16 bytes
        first = self.parameters[0]
        self.models = first.shape[0]
        if any(p.shape[0] != self.models for p in self.parameters):
            raise ValueError("Every parameter needs the same leading model axis.")
        self.betas, self.eps, self.decay = betas, eps, weight_decay
        self.clips = float(groups[0].get("clip", 0.0)), float(groups[-1].get("clip", 0.0))
        new = lambda *shape, dtype=first.dtype: torch.zeros(shape, dtype=dtype, device=first.device)  # noqa: E731
        self.flat, self.gradient, self.mean, self.square = (new(offset) for _ in range(4))
        self.powers = new(self.models, 2, dtype=torch.float64) + 1.0
        self.rates = new(self.models, 2)
        self.set_rates([g["lr"] for g in groups])
        self.scale, self.active = new(self.models) + 1.0, new(self.models) + 1.0
        self.norms = new(self.models, 2)
        self.slots = self._slots(first.device)
        self._gradients = self._move_in()
        self._kernel = dispatch("adamw", [self.flat], backend=backend)
        if self._kernel:
            self._map = self._element_map(first.device)
            self._betas = torch.tensor(betas, dtype=torch.float64).to(first.device)

    def _move_in(self) -> list[Tensor]:
        """Make every parameter a view of the flat buffer; returns the same views of the gradient buffer."""
        views = []
        with torch.no_grad():
            for p, (offset, _, _, total) in zip(self.parameters, self.layout, strict=True):
                view = self.flat[offset : offset + total].view(p.shape)
                view.copy_(p)
                p.data = view
                views.append(self.gradient[offset : offset + total].view(p.shape))
        return views

    def _element_map(self, device: torch.device) -> Tensor:
        """[3, elements a model]: place for model 0, distance between models, group."""
        rows = [
            torch.stack([torch.arange(o, o + n), torch.full((n,), n), torch.full((n,), g)])
            for o, n, g, _ in self.layout
        ]
        return torch.cat(rows, 1).to(torch.int32).contiguous().to(device)

    def _slots(self, device: torch.device) -> Tensor:
        """2·model + group of every element of the flat buffers (padding: 0)."""
        slots = torch.zeros(len(self.flat), dtype=torch.long)
        for offset, size, group, total in self.layout:
            slots[offset : offset + total] = 2 * torch.arange(total // size).repeat_interleave(size) + group
        return slots.to(device)

    def set_rates(self, rates: Iterable[float]) -> None:
        """New learning rates, one of ``rates`` for each group, the same for all models (a copy to the device: not
        inside a capture).
        """
        values = [float(rate) for rate in rates]
        self.rates.copy_(torch.tensor((values * 2)[:2], dtype=self.rates.dtype))

    def views(self, buffer: Tensor) -> list[Tensor]:
        """Each parameter's part [M, n] of a flat buffer (``flat``, ``gradient``, ``mean``, ``square``)."""
        return [buffer[o : o + total].view(self.models, n) for o, n, _, total in self.layout]

    def state_tensors(self) -> list[Tensor]:
        """Everything a step changes, for saving and for undoing a warm-up."""
        return [self.flat, self.mean, self.square, self.powers]

    @torch.no_grad()
    def gather(self, gradients: Sequence[Tensor], add: bool = False) -> None:
        """Put gradients, in the order of `parameters`, where `update` finds them; ``add`` to what is there."""
        put = torch._foreach_add_ if add else torch._foreach_copy_  # pyright: ignore[reportPrivateImportUsage]
        put(self._gradients, list(gradients))

    def step(self, gradients: Sequence[Tensor]) -> Tensor:
        """One update from the gradients of `parameters`, in that order; returns norms [M, 2] before clipping."""
        self.gather(gradients)
        return self.update()

    @torch.no_grad()
    def update(self) -> Tensor:
        """One update from the gradients gathered; returns norms [M, 2] before clipping."""
        if not self._kernel:
            self.norms.copy_(
                reference.step(
                    self.flat, self.gradient, self.mean, self.square, self.powers, self.rates, self.scale, self.active,
                    self.layout, self.slots, self.betas, self.eps, self.decay, self.clips,
                )
            )  # fmt: skip
            return self.norms
        from . import _triton

        launch(
            _triton.step_kernel, (self.models,),
            self.flat, self.gradient, self.mean, self.square, self.powers, self.rates, self.scale, self.active,
            self.norms, *self._map, self._map.shape[1], self._betas, self.eps, self.decay, *self.clips,
            **_blocks.options("adamw"),
        )  # fmt: skip
        return self.norms
