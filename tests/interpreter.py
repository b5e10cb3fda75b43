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
from types import SimpleNamespace

import torch

from tests.interpreter_types import keep_types


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
        if os.environ.get("TRITON_INTERPRET") == "1":
            _prepare_once_a_launch()
            keep_types()
    finally:
        if before is None:
            os.environ.pop("TRITON_INTERPRET", None)
        else:
            os.environ["TRITON_INTERPRET"] = before


def _prepare_once_a_launch() -> None:
    """The interpreter replaces what it finds in Triton's language, some two hundred names, at a launch and again at
    every call of a function in a kernel, where all are replaced already: more than half of its time."""
    from triton.runtime import interpreter

    replace, language = interpreter._patch_lang, interpreter.tl
    nothing = getattr(interpreter, "_LangPatchScope", None)
    if nothing is None:  # a release of Triton that does it in another way
        return
    everything = SimpleNamespace(__globals__={"tl": language, "core": language.core})

    def once(function: object) -> object:
        return replace(everything) if language.core.is_builtin(language.core.load) else nothing()

    interpreter._patch_lang = once
