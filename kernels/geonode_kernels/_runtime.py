"""What every launch shares: names and codes of precisions and outputs, contiguous float32, grids."""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from ._dispatch import KernelError

PRECISIONS = {"fp32": 0, "tf32": 1, "bf16": 2}
OUTPUTS = {"softplus": 0, "exp": 1}


def padded(width: int) -> int:
    """The power of two a hidden width is padded to; 16 is the least a tile product takes."""
    return max(16, 1 << (width - 1).bit_length())


def plain(tensor: Tensor) -> Tensor:
    """Contiguous float32: what every kernel reads."""
    if tensor.dtype is torch.float32 and tensor.is_contiguous():
        return tensor
    return tensor.to(torch.float32).contiguous()


def unrounded(tensor: Tensor) -> torch.autocast:
    """A context without autocast on the tensor's device: for products whose rounding would be the result's."""
    return torch.autocast(tensor.device.type, enabled=False)


def precision_code(precision: str) -> int:
    """Code of a precision name.

    Raises:
        KernelError: an unknown name.
    """
    if precision not in PRECISIONS:
        raise KernelError(f"precision={precision!r} is unknown; choose one of {', '.join(PRECISIONS)}.")
    return PRECISIONS[precision]


def output_code(output: str) -> int:
    """Code of an output transform name.

    Raises:
        KernelError: an unknown name.
    """
    if output not in OUTPUTS:
        raise KernelError(f"output={output!r} is unknown; choose one of {', '.join(OUTPUTS)}.")
    return OUTPUTS[output]


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
    """One launch; untyped, since Triton turns numbers into constexprs and takes options of its own besides."""
    kernel[grid](*arguments, **options)


def wants_gradient(tensors: list[Tensor]) -> bool:
    """Whether autograd would record an operation on these."""
    return torch.is_grad_enabled() and any(t.requires_grad for t in tensors)


def undispatched(tensors: list[Tensor]) -> bool:
    """Whether a call needs nothing of torch's dispatcher: no gradient, no compiler, no mode, plain tensors.

    The dispatcher costs a Python operator 0.1 ms, a third of a small integration.
    """
    return not (
        torch.compiler.is_compiling()
        or wants_gradient(tensors)
        or torch._C._len_torch_dispatch_stack()
        or any(type(t) not in (Tensor, torch.nn.Parameter) for t in tensors)
    )


@cache
def processors(device: torch.device) -> int:
    """Multiprocessors of the device; 2 under the interpreter, so that the striding loop is exercised."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 2
