"""Where there is no GPU, Triton's interpreter runs the kernels.

Triton chooses when it is itself imported and when a kernel is, so both happen here, before any test imports what
imports Triton in turn (Lightning, torch.export), with the variable set only meanwhile: what the tests compile never
sees it.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import pkgutil

import torch


def import_kernels() -> None:
    """Import Triton and every kernel, interpreted where there is no GPU; nothing where there is no Triton."""
    if importlib.util.find_spec("triton") is None:
        return
    import geonode  # noqa: F401  (finds geonode_kernels beside a bare checkout)
    import geonode_kernels

    before = os.environ.get("TRITON_INTERPRET")
    if not torch.cuda.is_available():
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
