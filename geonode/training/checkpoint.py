"""Checkpoints as safetensors with JSON: whole or not at all, loaded without pickle, known by what they belong to."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
import warnings
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from geonode.bundle import checksum, read_tensors, write_tensors
from geonode.config import GeodesicConfig
from geonode.data import SpectralDataset
from geonode.errors import BundleError, InputError, Interrupted, cause
from geonode_runtime.wording import argument, either

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
        tensors, metadata = read_tensors(Path(path), str(device))
    except (OSError, SafetensorError, ValueError) as error:
        raise BundleError(f"{path} is not a readable checkpoint ({cause(error)}); resume from an older one.") from error
    if _KEY not in metadata:
        raise BundleError(f"{path} holds tensors but no geonode checkpoint; give a file that training wrote.")
    if metadata.get(_SUM) != checksum(tensors, {_KEY: metadata[_KEY]}):
        raise BundleError(f"{path} was altered or only half reached the disk; resume from an older checkpoint.")
    return _decode(json.loads(metadata[_KEY]), tensors)


def fingerprint(dataset: SpectralDataset, config: GeodesicConfig, seed: int) -> str:
    """What a checkpoint belongs to: standards, settings and seed as one number in hexadecimal.

    Without the micro-batch: it decides how a step is cut, not what it learns.
    """
    arrays = {name: torch.from_numpy(getattr(dataset, name).copy()) for name in ("spectra", "concentrations")}
    arrays["wavelengths"] = torch.from_numpy(dataset.wavelengths.copy())
    settings = config.replace(micro_batch=None).to_json()
    return hashlib.sha256(f"{checksum(arrays)} {settings} {seed}".encode()).hexdigest()


class CheckpointFolder:
    """The checkpoints of one training in one folder: ``epoch-000005.ckpt`` and so on, the last few of them.

    Args:
        folder: made where it does not exist.
        belongs_to: `fingerprint` of the training, which each checkpoint bears.
        kind: the engine that writes them, ``loop`` or ``lightning``; neither reads the other's.
        keep: how many are left standing.

    Raises:
        InputError: the folder holds checkpoints of another training, beside which these would not be kept.
    """

    def __init__(self, folder: str | Path, belongs_to: str | None = None, kind: str = "loop", keep: int = 3) -> None:
        if keep < 1:
            raise InputError(f"keep={keep} must be at least 1.")
        self.folder, self.belongs_to, self.kind, self.keep = Path(folder), belongs_to, kind, keep
        self.folder.mkdir(parents=True, exist_ok=True)
        self.newest()

    def path(self, epoch: int) -> Path:
        """Where the checkpoint after ``epoch`` epochs stands."""
        return self.folder / f"epoch-{epoch:06d}.ckpt"

    def newest(self) -> Path | None:
        """The newest intact one; arguments and errors as for `newest_checkpoint`."""
        return newest_checkpoint(self.folder, self.belongs_to, self.kind)

    def write(self, epoch: int, tree: dict[str, Any]) -> None:
        """Write the state after ``epoch`` epochs, and remove what is too old.

        Args:
            epoch: how many are done.
            tree: the state, as `save_checkpoint` takes it.
        """
        save_checkpoint({**tree, "belongs_to": self.belongs_to, "kind": self.kind, "epoch": epoch}, self.path(epoch))
        self.prune()

    def prune(self) -> None:
        """Remove all but the last few."""
        for old in sorted(self.folder.glob(PATTERN))[: -self.keep]:
            old.unlink(missing_ok=True)


def newest_checkpoint(folder: str | Path, belongs_to: str | None = None, kind: str | None = None) -> Path | None:
    """The checkpoint of the latest epoch in ``folder`` that can be read whole; None where there is none.

    A torn or altered file is passed over with a warning. ``belongs_to`` is the `fingerprint` it must bear, ``kind`` the
    engine that must have written it.

    Raises:
        InputError: the newest intact checkpoint belongs to other standards, settings or another seed, or was written by
            another engine.
    """
    for path in sorted(Path(folder).glob(PATTERN), reverse=True):
        try:
            tree = load_checkpoint(path)
        except BundleError as error:
            warnings.warn(f"passed over: {error}", stacklevel=2)
            continue
        if belongs_to is not None and tree.get("belongs_to") != belongs_to:
            raise InputError(
                f"{path} belongs to a training on other standards, settings or seed; repeat those, "
                f"or give {argument('checkpoint')} another folder."
            )
        if kind is not None and tree.get("kind") != kind:
            where = {"loop": "one device", "lightning": "several devices or a strategy"}
            raise InputError(
                f"{path} was written by a training on {where.get(str(tree.get('kind')), 'another engine')}, and this "
                f"one runs on {where[kind]}; go on there, or give {argument('checkpoint')} another folder."
            )
        return path
    return None


class StopOnSigterm:
    """Inside the block, SIGTERM no longer ends the process but is noted in ``asked``. Outside the main thread, where
    Python does not listen, nothing is changed."""

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> StopOnSigterm:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)

    def _note(self, *_: object) -> None:
        self.asked = True


def interrupted(epoch: int, folder: Path | None, kept_by: str = "") -> Interrupted:
    """What is raised after a training was stopped after ``epoch`` epochs, kept in ``folder`` or not at all; ``kept_by``
    says what would have kept it."""
    if folder is None:
        return Interrupted(
            f"Stopped by SIGTERM after epoch {epoch}, and nothing is kept; {kept_by}with {argument('checkpoint')} "
            "it would be."
        )
    return Interrupted(
        f"Stopped by SIGTERM after epoch {epoch}, which is kept in {folder}; "
        f"{either('give the same command with --resume', 'call again with resume=True')} to go on."
    )


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
