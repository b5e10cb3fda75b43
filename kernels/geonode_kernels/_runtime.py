"""What runs where: backends, precisions, fixed block sizes, and the one place that decides between them."""

from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

PRECISIONS = {"fp32": 0, "tf32": 1, "bf16": 2}
OUTPUTS = {"softplus": 0, "exp": 1}
BACKENDS = ("auto", "triton", "torch")
WIDEST = 128  # hidden units whose weights stay in shared memory beside the tiles
WIDEST_FLOW = 256  # hidden units of a flow that fit a program's registers


_TRITON = find_spec("triton") is not None


class KernelError(RuntimeError):
    """A kernel, precision or backend asked for explicitly that cannot be had for these arguments."""


_taken: dict[str, str] = {}


def paths_taken() -> dict[str, str]:
    """For each op used so far under ``backend="auto"``: the path last taken and why (`geonode doctor` shows it)."""
    return dict(_taken)


def triton_available() -> bool:
    """Whether Triton is installed; it is imported only when a kernel is asked for."""
    return _TRITON


def interpreted() -> bool:
    """Whether the kernels run in Triton's interpreter; settled by the first call, or when a kernel is imported."""
    from ._interpreter import INTERPRETED

    return INTERPRETED


def kernel_obstacle(tensors: list[Tensor], explicit: bool = False) -> str | None:
    """Why these tensors cannot go through a kernel, or None. The interpreter is for ``explicit`` requests alone."""
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


def use_kernel(op: str, backend: str, tensors: list[Tensor], refusal: str | None = None) -> bool:
    """True for the kernel, False for plain torch. ``refusal``: a reason known to the op itself.

    Raises:
        KernelError: ``backend="triton"`` and something stands in the way, or an unknown backend.
    """
    if backend not in BACKENDS:
        raise KernelError(f"backend={backend!r} is unknown; choose one of {', '.join(BACKENDS)}.")
    if backend == "torch":
        return False
    reason = refusal or kernel_obstacle(tensors, backend == "triton")
    if backend == "triton":
        if reason:
            raise KernelError(f'{op} cannot run with backend="triton": {reason}; use backend="auto" or "torch".')
        return True
    if not torch.compiler.is_compiling():
        _taken[op] = "triton" if reason is None else f"torch: {reason}"
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
