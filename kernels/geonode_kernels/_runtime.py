"""What every launch shares: names and codes of precisions and outputs, contiguous float32, grids."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import torch
from torch import Tensor

from ._dispatch import KernelError, record

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


def unrounded(tensor: Tensor) -> AbstractContextManager[Any]:
    """A context without autocast on the tensor's device and without TF32: for products whose rounding would be the
    result's. Their gradients are taken outside of it."""
    plain = torch.autocast(tensor.device.type, enabled=False)
    return _WithoutTF32(plain) if torch.backends.cuda.matmul.allow_tf32 else plain


class _WithoutTF32:
    """Another context, and in it no TF32. A class, for torch.compile does not trace a generator."""

    def __init__(self, inner: torch.autocast) -> None:
        self.inner = inner

    def __enter__(self) -> None:
        torch.backends.cuda.matmul.allow_tf32 = False
        self.inner.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.inner.__exit__(*error)
        torch.backends.cuda.matmul.allow_tf32 = True


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


def require_counts(**counts: int) -> None:
    """Refuse a count, by its name, that leaves nothing to do.

    Raises:
        ValueError: one below one.
    """
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}.")


def output_name(output: int) -> str:
    """The transform with this code."""
    return next(name for name, code in OUTPUTS.items() if code == output)


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
    """One launch; untyped, since Triton turns numbers into constexprs and takes options of its own besides."""
    kernel[grid](*arguments, **options)


def wants_gradient(tensors: list[Tensor]) -> bool:
    """Whether autograd would record an operation on these."""
    return torch.is_grad_enabled() and any(t.requires_grad for t in tensors)


def plain_vjp(
    op: str, function: Callable[..., Any], tensors: Sequence[Tensor], grads: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """The gradient of ``function(*tensors)`` by plain torch: it has a gradient in its turn, which a kernel's has not.

    A backward pass takes it while it is itself recorded (``create_graph=True``), and `paths_taken` says so.

    Args:
        op: of which this is the gradient.
        function: the op's reference.
        tensors: as they were saved, with their graphs.
        grads: of each result; None for one that nothing came back to.
    """
    record(op, "a second derivative is asked for, and the kernel's gradient has none")
    own = [t.view_as(t) for t in tensors]  # or what one tensor owes to another would be counted twice
    results = function(*own)
    results = results if isinstance(results, tuple) else (results,)
    pairs = [(r, g) for r, g in zip(results, grads, strict=True) if g is not None and r.requires_grad]
    wanted = [t for t in own if t.requires_grad]
    if not pairs or not wanted:
        return [None] * len(own)
    outputs, ups = zip(*pairs, strict=True)
    found = iter(torch.autograd.grad(outputs, wanted, ups, create_graph=True, allow_unused=True))
    return [next(found) if t.requires_grad else None for t in own]


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
