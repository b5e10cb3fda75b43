"""Cases that belong to parts of geonode not built yet: listed, and skipped with the reason."""

from __future__ import annotations

from importlib.util import find_spec

from geonode.bench.case import Case, Setting, Size, Work, register


def _not_built(setting: Setting, size: Size) -> Work:
    raise NotImplementedError


def _onnx(setting: Setting) -> str | None:
    if find_spec("geonode.export") is None:
        return "geonode has no ONNX export yet"
    return "geonode.export is there but registers no case; import its module with --import"


register(Case("infer-onnx", "inference through ONNX Runtime", _not_built, lambda setting: [Size(1, 601)], absent=_onnx))
