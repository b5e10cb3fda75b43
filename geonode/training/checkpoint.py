"""Checkpoints as safetensors with JSON: whole or not at all, loaded without pickle, known by what they belong to."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from geonode.bundle import checksum, write_tensors
from geonode.config import GeodesicConfig
from geonode.data import SpectralDataset
from geonode.errors import BundleError, InputError

PATTERN = "epoch-*.ckpt"
_KEY, _SUM = "geonode_checkpoint", "checksum"


def save_checkpoint(tree: dict[Any, Any], path: str | Path) -> None:
    """Write a tree of dicts, lists, numbers, text and tensors to ``path``, whole or not at all: tensors in safetensors,
    the rest in its JSON header.

    Raises:
        OutputError: it cannot be written. BundleError: it holds what has no place in a checkpoint.
    """
    tensors: dict[str, torch.Tensor] = {}
    text = json.dumps(_encode(tree, tensors))
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_tensors(path, tensors, {_KEY: text, _SUM: checksum(tensors, {_KEY: text})})


def load_checkpoint(path: str | Path, device: str | torch.device = "cpu") -> Any:
    """The tree that `save_checkpoint` wrote.

    Raises:
        BundleError: the file is missing, truncated, altered or not a geonode checkpoint.
    """
    try:
        with safe_open(path, framework="pt", device=str(device)) as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (OSError, SafetensorError) as error:
        raise BundleError(f"{path} is not a readable checkpoint ({error}); resume from an older one.") from error
    if _KEY not in metadata:
        raise BundleError(f"{path} holds tensors but no geonode checkpoint; give a file that training wrote.")
    if metadata.get(_SUM) != checksum(tensors, {_KEY: metadata[_KEY]}):
        raise BundleError(f"{path} was altered or only half reached the disk; resume from an older checkpoint.")
    return _decode(json.loads(metadata[_KEY]), tensors)


def fingerprint(dataset: SpectralDataset, config: GeodesicConfig, seed: int) -> str:
    """What a checkpoint belongs to: standards, settings and seed as one number in hexadecimal."""
    arrays = {name: torch.from_numpy(getattr(dataset, name).copy()) for name in ("spectra", "concentrations")}
    arrays["wavelengths"] = torch.from_numpy(dataset.wavelengths.copy())
    return hashlib.sha256(f"{checksum(arrays)} {config.to_json()} {seed}".encode()).hexdigest()


def newest_checkpoint(folder: str | Path, belongs_to: str | None = None) -> Path | None:
    """The checkpoint of the latest epoch in ``folder`` that can be read whole; None where there is none.

    A torn or altered file is passed over with a warning. ``belongs_to`` is the `fingerprint` it must bear.

    Raises:
        InputError: the newest intact checkpoint belongs to other standards, settings or another seed.
    """
    for path in sorted(Path(folder).glob(PATTERN), reverse=True):
        try:
            checkpoint = load_checkpoint(path)
        except BundleError as error:
            warnings.warn(f"passed over: {error}", stacklevel=2)
            continue
        mark = checkpoint.get("belongs_to")
        if belongs_to is not None and mark != belongs_to:
            raise InputError(
                f"{path} belongs to a training on other standards, settings or seed; repeat those, "
                "or give --checkpoint another folder."
            )
        return path
    return None


def _encode(value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        name = str(len(tensors))
        # a copy: safetensors refuses tensors that share memory
        tensors[name] = value.detach().cpu().contiguous().clone()
        return {"tensor": name}
    if isinstance(value, dict):
        return {"dict": [[_encode(k, tensors), _encode(v, tensors)] for k, v in value.items()]}
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_encode(v, tensors) for v in value]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise BundleError(f"A checkpoint cannot hold a {type(value).__name__}; keep numbers, text and tensors only.")


def _decode(tree: Any, tensors: dict[str, torch.Tensor]) -> Any:
    if not isinstance(tree, dict):
        return tree
    (kind, content), *_ = tree.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "dict":
        return {_decode(k, tensors): _decode(v, tensors) for k, v in content}
    items = [_decode(v, tensors) for v in content]
    return tuple(items) if kind == "tuple" else items
