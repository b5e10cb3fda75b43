"""Lightning checkpoints as safetensors with JSON: written whole or not at all, loaded without pickle."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins.io.checkpoint_io import CheckpointIO
from safetensors import SafetensorError, safe_open

from geonode.bundle import checksum, write_tensors
from geonode.errors import BundleError

_KEY, _SUM = "geonode_checkpoint", "checksum"


class SafetensorsIO(CheckpointIO):
    """A checkpoint is a tree of dicts, lists, numbers, strings and tensors: tensors go to safetensors, the rest to its
    JSON header."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        """Write ``checkpoint`` to ``path`` atomically (temporary name in the same folder, then renamed).

        Raises:
            OutputError: it cannot be written. BundleError: it holds what has no place in a checkpoint.
        """
        tensors: dict[str, torch.Tensor] = {}
        tree = _encode(checkpoint, tensors)
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(tree)
        header = {_KEY: text, _SUM: checksum(tensors, {_KEY: text})}
        write_tensors(path, tensors, header)

    def load_checkpoint(self, path: str | Path, map_location: Any = None, weights_only: bool | None = None) -> Any:
        """Read a checkpoint written by `save_checkpoint`.

        Raises:
            BundleError: the file is missing, truncated, altered or not a geonode checkpoint.
        """
        device = map_location if isinstance(map_location, (str, torch.device)) else "cpu"
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

    def remove_checkpoint(self, path: str | Path) -> None:
        """Delete a checkpoint; a missing one is not an error."""
        Path(path).unlink(missing_ok=True)


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
