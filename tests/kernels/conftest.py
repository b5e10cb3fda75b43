"""Kernels on a CPU run in Triton's interpreter; on a GPU the same tests run compiled and at full size.

Triton chooses when a kernel is imported, so all of them are imported here, with the variable set only meanwhile: other
tests of the same worker, and what they compile, never see it.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pkgutil

import pytest
import torch

import geonode_kernels

CUDA = torch.cuda.is_available()


def _import_kernels() -> None:
    before = os.environ.get("TRITON_INTERPRET")
    if not CUDA:
        os.environ["TRITON_INTERPRET"] = "1"
    try:
        with contextlib.suppress(ImportError):  # the interpreter itself imports it, on the first launch
            importlib.import_module("triton.experimental.gluon")
        for module in pkgutil.walk_packages(geonode_kernels.__path__, "geonode_kernels."):
            if module.name.endswith("_triton"):
                importlib.import_module(module.name)
    finally:
        if before is None:
            os.environ.pop("TRITON_INTERPRET", None)
        else:
            os.environ["TRITON_INTERPRET"] = before


_import_kernels()


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
