"""The table of ONNX's operators, made once: torch makes it anew at every export, half a second of a processor."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def made_once() -> Iterator[None]:
    """Exports inside share what torch makes of its library of operators, each with a table of its own to write into."""
    try:
        from torch.onnx._internal.exporter._registration import ONNXRegistry
    except ImportError:  # torch's own affair, which another release may have elsewhere
        yield
        return
    make, made = ONNXRegistry.from_torchlib, {}

    def kept(*version: Any, **options: Any) -> Any:
        key = version, tuple(sorted(options.items()))
        if key not in made:
            made[key] = make(*version, **options)
        table = copy.copy(made[key])
        table.functions = {name: list(known) for name, known in table.functions.items()}
        return table

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ONNXRegistry, "from_torchlib", staticmethod(kept))
        yield
