"""The bundle file: safetensors with JSON metadata in its header, checksummed, written whole or not at all."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save, save_file

from geonode.errors import BundleError, InputError, cause
from geonode_runtime.files import write_atomically

VERSION = 5
"""The latest version that is read. 2: the checksum covers the metadata too; 3: spectra are preprocessed, which a reader
of 2 would not do; 4: a model's settings stand by component, which a reader of 3 would take for an incomplete
bundle; 5: the flow may be the pre-trained one as it read the standards, which a reader of 4 does not know."""
PLAIN = 2
"""Bundles without a model's settings (calibrations) are written as this, for earlier readers."""
_KEY = "geonode_bundle"
_EXPORTED = {
    ".onnx": "use it with `geonode-runtime predict` and `geonode-runtime quantify`, or give the bundle",
    ".pt2": "load it with torch.export.load, or give the bundle",
}
"""What to do with a model that `geonode export` wrote, by the suffix that it always has."""


def write_bundle(
    path: Path, tensors: dict[str, torch.Tensor], metadata: dict[str, Any], version: int | None = None
) -> None:
    """Write ``tensors`` and JSON-able ``metadata`` to ``path`` through a temporary file in the same folder.

    ``version`` is the one that a reader needs; None for the latest.

    Raises:
        InputError: the folder does not exist, or ``path`` is a folder or a file that holds anything but a bundle.
    """
    from geonode import __version__

    if path.is_dir():
        raise InputError(f"{path} is a folder; give the bundle a file name.")
    if path.is_file() and path.stat().st_size and not is_bundle(path):
        raise InputError(f"{path} is there already and is no bundle; give another name, or remove it first.")
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} does not exist; create the folder first.")
    tensors = {name: _plain(value) for name, value in tensors.items()}
    header = {
        "version": VERSION if version is None else version,
        "geonode": __version__,
        **metadata,
    }
    header["checksum"] = checksum(tensors, header)
    write_tensors(path, tensors, {_KEY: json.dumps(header)})


def is_bundle(path: Path) -> bool:
    """Whether the file at ``path`` was written by `write_bundle`, of whatever version and however damaged since."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")  # of the JSON header, by the format safetensors
        head = file.read(min(length, 2**24))
    return f'"{_KEY}"'.encode() in head


def write_tensors(path: Path, tensors: dict[str, torch.Tensor], header: dict[str, str]) -> None:
    """A safetensors file, whole or not at all.

    Raises:
        OutputError: it cannot be written; a full disk too, which safetensors reports by an error of its own.
    """

    def write(temporary: str) -> None:
        if not _utf8(temporary):
            Path(temporary).write_bytes(save(tensors, header))
            return
        try:
            save_file(tensors, temporary, header)
        except SafetensorError as error:
            raise OSError(str(error)) from error

    write_atomically(path, write)


def _is_text(path: Path) -> bool:
    """Whether a file begins as text does: something is printed, and no byte is zero."""
    with path.open("rb") as file:
        head = file.read(512)
    return bool(head.strip()) and b"\0" not in head


def read_bundle(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Tensors and metadata of a bundle.

    Raises:
        BundleError: missing, truncated, altered, foreign, or of a later version.
    """
    if path.suffix.lower() in _EXPORTED and path.is_file():
        raise BundleError(f"{path} is an exported model and no bundle; {_EXPORTED[path.suffix.lower()]}.")
    if not path.is_file():
        raise BundleError(f"{path} does not exist or is not a file; give the bundle that `geonode fit --out` wrote.")
    try:
        tensors, words = read_tensors(path)
        text = words.get(_KEY)
        header = json.loads(text) if text is not None else None
    except (OSError, SafetensorError, ValueError) as error:
        if not isinstance(error, OSError) and _is_text(path):  # what cannot be read once is not read again
            raise BundleError(
                f"{path} holds text and is not a geonode bundle; name the bundle that `geonode fit` wrote here, and "
                "spectra, where they are asked for, after it."
            ) from error
        raise BundleError(
            f"{path} is not a geonode bundle or is truncated ({cause(error)}); fit again or copy it anew."
        ) from error
    if not isinstance(header, dict) or not isinstance(header.get("version"), int):
        raise BundleError(f"{path} holds tensors but is no geonode bundle; give the file that `geonode fit` wrote.")
    if header["version"] > VERSION:
        raise BundleError(
            f"{path} is a bundle of version {header['version']}, and this geonode reads up to {VERSION}; upgrade it."
        )
    words = {name: value for name, value in header.items() if name != "checksum"}
    if header.get("checksum") != checksum(tensors, words if header["version"] > 1 else None):
        raise BundleError(f"{path} was altered after it was written (its checksum differs); copy it anew or fit again.")
    return tensors, header


def read_tensors(path: Path, device: str = "cpu") -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Tensors, on ``device``, and the header's words of a safetensors file; the inverse of `write_tensors`.

    Raises:
        OSError, safetensors.SafetensorError, ValueError: the file is missing, truncated or no safetensors file.
    """
    if _utf8(str(path)):
        with safe_open(path, framework="pt", device=device) as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    data = path.read_bytes()
    tensors = {name: value.to(device) for name, value in load(data).items()}
    length = int.from_bytes(data[:8], "little")  # of the JSON header, by the format
    return tensors, json.loads(data[8 : 8 + length]).get("__metadata__", {})


def _utf8(path: str) -> bool:
    """Whether safetensors can open a path of that name: it takes UTF-8 alone, and folders may be named otherwise."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _plain(value: torch.Tensor) -> torch.Tensor:
    """A copy in row-major order: a dimension of size one may carry any stride and still call itself contiguous."""
    return value.clone(memory_format=torch.contiguous_format)


def checksum(tensors: dict[str, torch.Tensor], words: dict[str, Any] | None = None) -> str:
    """SHA-256 of names, shapes, kinds and bytes of tensors, and of JSON-able ``words``."""
    digest = hashlib.sha256()
    if words is not None:
        digest.update(json.dumps(words, sort_keys=True).encode())
    for name in sorted(tensors):
        value = _plain(tensors[name].cpu())
        digest.update(f"{name} {tuple(value.shape)} {value.dtype}".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().tobytes() if value.numel() else b"")
    return digest.hexdigest()


def environment() -> dict[str, str]:
    """Versions of Python and of the libraries that a fit depends on, for the record beside it."""
    names = ("torch", "numpy", "scipy", "scikit-learn", "chemotools", "lightning")
    return {"python": platform.python_version()} | {name: found for name in names if (found := _installed(name))}


@functools.cache  # every lookup reads and parses a file, a tenth of the time of a fit
def _installed(name: str) -> str:
    """The version of a distribution; empty where there is none."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def checksums(names: Iterable[str]) -> dict[str, str]:
    """SHA-256 of each of the files ``names``; names that are no files are left out."""
    found = {}
    for name in names:
        if os.path.isfile(name):
            with open(name, "rb") as file:
                found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found
