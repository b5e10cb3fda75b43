"""Training on a GPU without launch overhead: a captured step, and the default flow's loss out of fused ops."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .adamw import FlatAdamW
from .arc_length import arc_length
from .embedded_linear import embedded_linear
from .flow_quadrature import flow_loss_of_ends
from .metric_christoffel import metric_density

__all__ = ["CapturedStep", "FlatAdamW", "default_flow_loss"]


class CapturedStep:
    """A training step recorded once as a CUDA graph and replayed; on a CPU it simply calls the function.

    ``step(*inputs)`` must do everything of a step on the device (loss, gradients, update), with fixed shapes, no
    ``.item()`` and no branch on data, and return tensors. Its result is overwritten by the next call.

    Args:
        step: the function.
        inputs: example inputs; copied, and refilled by each call.
        state: tensors the step changes; put back after the warm-up runs, so that capture leaves no trace.
        warm_up: runs before capture (compilation, library handles).
    """

    def __init__(
        self,
        step: Callable[..., Any],
        inputs: Sequence[Tensor] = (),
        state: Sequence[Tensor] = (),
        warm_up: int = 3,
    ) -> None:
        self._step = step
        self.inputs = [t.clone() for t in inputs]
        device = (self.inputs or list(state))[0].device
        self._graph: torch.cuda.CUDAGraph | None = None
        if device.type != "cuda":
            return
        before = [t.clone() for t in state]
        stream = torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            for _ in range(warm_up):
                step(*self.inputs)
            with torch.no_grad():
                for tensor, value in zip(state, before, strict=True):
                    tensor.copy_(value)
        torch.cuda.current_stream(device).wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self.result = step(*self.inputs)

    def __call__(self, *inputs: Tensor) -> Any:
        """One step; with arguments, their values replace the inputs first."""
        if inputs:
            torch._foreach_copy_(self.inputs, list(inputs))  # pyright: ignore[reportPrivateImportUsage]
        if self._graph is None:
            self.result = self._step(*self.inputs)
        else:
            self._graph.replay()
        return self.result


def default_flow_loss(
    metric: Sequence[Tensor],
    flow: Sequence[Tensor],
    u: Tensor,
    wavelength: Tensor,
    phi: Tensor,
    target: Tensor,
    weight: Tensor,
    *,
    nodes: int = 16,
    precision: str = "fp32",
    backend: str = "auto",
) -> Tensor:
    """Σ weight (A(b) − A(a) − target)² of the default flow, [M]: five launches forward, six back.

    Args:
        metric: W1, b1, W2, b2, W3, b3 of m_θ.
        flow: ω [M, H], embedding [M, W, E], weights [M, E, 2H + 1] and bias [M, 2H + 1] of (β | a | a₀).
        u, wavelength: [M, T·W] table nodes and wavelengths, the nodes slowest.
        phi: [M, 2B + 1, T] integration matrix of the B starts, the B ends, and u = 1.
        target: [M, B, W] measured change; weight: [M, B].
        nodes: of Gauss–Legendre. precision, backend: as in `metric_christoffel`.

    Raises:
        KernelError: an unknown name, or ``backend="triton"`` where a kernel cannot run.
    """
    omega, embedding, coefficient, bias = flow
    models, _, nodes_in_table = phi.shape
    density = metric_density(u, wavelength, *metric, precision=precision, backend=backend)
    ends = arc_length(phi, density.view(models, nodes_in_table, -1), backend=backend)
    ends = ends.view(models, 2, -1, ends.shape[-1])
    hidden = omega.shape[1]
    per_wavelength = embedded_linear(embedding, coefficient, bias, backend=backend)
    beta, a, a0 = per_wavelength.split([hidden, hidden, 1], -1)
    return flow_loss_of_ends(ends, omega, beta, a, a0[..., 0], target, weight, nodes, backend=backend)
