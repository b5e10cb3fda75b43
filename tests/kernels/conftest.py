"""Kernels on a CPU run in Triton's interpreter (tests/interpreter.py); on a GPU the same tests run compiled and at full
size."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

CUDA = torch.cuda.is_available()


@pytest.hookimpl(tryfirst=True)  # before -m looks at the markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where there is a card, every test that asks where kernels run is one of its tests: what the compiler makes of a
    kernel, the interpreter does not show."""
    for item in items:
        if CUDA and "device" in getattr(item, "fixturenames", ()) and Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.gpu)


@pytest.fixture
def device() -> str:
    """Where the kernels run in this session."""
    return "cuda" if CUDA else "cpu"


@pytest.fixture
def poisoned(monkeypatch):
    """Every fresh floating-point buffer starts as NaN, so that an element nobody writes is seen."""
    empty, empty_like = torch.empty, torch.empty_like

    def poison(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.fill_(torch.nan) if tensor.is_floating_point() else tensor.fill_(-77)

    monkeypatch.setattr(torch, "empty", lambda *a, **k: poison(empty(*a, **k)))
    monkeypatch.setattr(torch, "empty_like", lambda *a, **k: poison(empty_like(*a, **k)))
