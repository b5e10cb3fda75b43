"""The one place that decides between a kernel and plain torch, and says why.

`verify` names what stands in a kernel's way, `dispatch` decides and keeps the reason, `paths_taken` shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

import torch
from torch import Tensor

BACKENDS = ("auto", "triton", "torch")
WIDEST = 128  # hidden units whose weights stay in shared memory beside the tiles
WIDEST_FLOW = 256  # hidden units of a flow that fit a program's registers
_TRITON = find_spec("triton") is not None
# tf32 has the mantissa of fp16
_AUTOCAST = {torch.bfloat16: "bf16", torch.float16: "tf32"}


class KernelError(RuntimeError):
    """A kernel, precision or backend asked for explicitly that cannot be had for these arguments."""


# op → the kernel, if it was taken, then plain torch with the last reason for it, if that was taken
_taken: dict[str, dict[str, str]] = {}


def paths_taken() -> dict[str, str]:
    """For each op asked for under ``backend="auto"``: ``triton``, ``torch: why``, or where both were taken, ``triton;
    torch: why`` with the last reason (`geonode doctor` shows it)."""
    return {op: "; ".join(paths[kind] for kind in ("triton", "torch") if kind in paths) for op, paths in _taken.items()}


def record(op: str, reason: str | None) -> None:
    """Keep what `paths_taken` shows: the kernel (no ``reason``), or plain torch and why."""
    if not torch.compiler.is_compiling():
        kind, path = ("triton", "triton") if reason is None else ("torch", f"torch: {reason}")
        _taken.setdefault(op, {})[kind] = path


def triton_available() -> bool:
    """Whether Triton is installed; it is imported only when a kernel is asked for."""
    return _TRITON


def interpreted() -> bool:
    """Whether the kernels run in Triton's interpreter; settled by the first call, or when a kernel is imported."""
    from ._interpreter import INTERPRETED

    return INTERPRETED


def verify(tensors: Sequence[Tensor], explicit: bool = False) -> str | None:
    """Why these tensors cannot go through a kernel, or None.

    Args:
        tensors: every tensor that the kernel would read.
        explicit: the kernel was asked for by name: then Triton's interpreter will do where there is no CUDA device.
    """
    if not triton_available():
        return "Triton is not installed"
    device = tensors[0].device
    for t in tensors:
        if t.device != device:
            return "the arguments are on different devices"
        if t.dtype is torch.float64:
            return "an argument is float64, and kernels work in float32"
    if device.type != "cuda" and not (explicit and interpreted()):
        return f"the arguments are on {device.type}, and kernels need a CUDA device"
    if torch.compiler.is_compiling():
        return None  # the compiler traces transforms itself, and its own state looks like one
    if torch._C._functorch.peek_interpreter_stack() is not None:  # pyright: ignore[reportAttributeAccessIssue]
        return "the call is inside a torch.func transform, which kernels do not support"
    dual = torch.autograd.forward_ad._current_level >= 0  # outside a dual level nothing has a tangent
    if dual and any(torch.autograd.forward_ad.unpack_dual(t).tangent is not None for t in tensors):
        return "an argument carries a forward-mode tangent, which kernels do not propagate"
    return None


def dispatch(op: str, tensors: Sequence[Tensor], *, backend: str = "auto", refusal: str | None = None) -> bool:
    """True for the kernel, False for plain torch; `paths_taken` says which, and why.

    Args:
        op: the name under which `paths_taken` shows the decision.
        tensors: every tensor that the kernel would read.
        backend: ``auto``; ``triton``: the kernel or an error; ``torch``: never the kernel.
        refusal: a reason against the kernel that the caller knows, or None.

    Raises:
        KernelError: ``backend="triton"`` and something stands in the way, or an unknown backend.
    """
    if backend not in BACKENDS:
        raise KernelError(f"backend={backend!r} is unknown; choose one of {', '.join(BACKENDS)}.")
    if backend == "torch":
        return False
    reason = refusal or verify(tensors, backend == "triton")
    if backend == "triton":
        if reason:
            raise KernelError(f'{op} cannot run with backend="triton": {reason}; use backend="auto" or "torch".')
        return True
    record(op, reason)
    return reason is None


def width_refusal(*hidden: int) -> str | None:
    """Why a metric network of these widths cannot stay on chip."""
    if max(hidden) > WIDEST:
        return f"a hidden layer has {max(hidden)} units, and its weights stay on chip only up to {WIDEST}"
    return None


def flow_refusal(hidden: int) -> str | None:
    """Why a flow of this width does not fit one program."""
    if hidden > WIDEST_FLOW:
        return f"{hidden} hidden units do not fit a program's registers ({WIDEST_FLOW} do)"
    return None


def autocast_precision() -> str:
    """Precision of a kernel's matrix products: that of the autocast that is on now, ``tf32`` or ``bf16``; else ``tf32``
    where torch's own products are allowed it, and ``fp32``."""
    if not torch.is_autocast_enabled("cuda"):
        return "tf32" if torch.backends.cuda.matmul.allow_tf32 else "fp32"
    return _AUTOCAST.get(torch.get_autocast_dtype("cuda"), "fp32")
