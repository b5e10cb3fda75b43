"""Kernels on a CPU run in Triton's interpreter (tests/interpreter.py); on a GPU the same tests run compiled and at full
size."""

from __future__ import annotations

import pytest
import torch

CUDA = torch.cuda.is_available()


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
