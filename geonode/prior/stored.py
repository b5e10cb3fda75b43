"""Weights that travel with geonode: safetensors beside a model card that says how they were made."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor

from geonode.bundle import read_tensors, write_tensors
from geonode.errors import InputError, cause
from geonode.prior.network import Network, NetworkSize
from geonode_runtime.files import write_text

SHIPPED = Path(__file__).parent / "weights"
NAME = "prior-6"
"""The default; `prior-1` is kept for bundles that were made with it."""


def save_network(
    network: Network, card: dict[str, Any], folder: str | Path, name: str = NAME, *, half: bool = False
) -> Path:
    """Write ``name.safetensors`` and its card ``name.json`` into ``folder``; give the weights' path back.

    Args:
        network: a :class:`Network`.
        card: what its users should know; the network's size is added. Where it has a ``base`` (name and SHA-256), the
            weights are adapted ones, and say so themselves.
        folder: made if it is not there.
        name: of both files.
        half: store float16, half the size: each weight is rounded by up to 1/2000 of itself, a quarter of the rounding
            of bfloat16, in which training multiplies.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.safetensors"
    kind = torch.float16 if half else torch.float32
    state = {key: value.detach().to("cpu", kind).contiguous() for key, value in network.state_dict().items()}
    header = {"size": json.dumps(network.size.as_dict())}
    if "base" in card:
        header["base"] = json.dumps(card["base"])
    write_tensors(path, state, header)
    card = {"name": name, "size": network.size.as_dict(), **card}
    write_text(path.with_suffix(".json"), json.dumps(card, indent=1) + "\n")
    return path


def load_network(path: str | Path | None = None) -> Network:
    """The network of a file of weights; not to be trained on (shared).

    Args:
        path: a safetensors file, or the name of weights that come with geonode; None for the default ones.

    Raises:
        InputError: no such file, or not weights of this network.
    """
    path = require_weights(weights_path(path))
    return _loaded(path, path.stat().st_mtime_ns, path.stat().st_size)


@functools.lru_cache(maxsize=4)
def _loaded(path: Path, written: int, length: int) -> Network:
    """Read once, and again where the file was written anew."""
    try:
        tensors, header = read_tensors(path)
        network = Network(_size(header))
        network.load_state_dict(_checked(network, tensors))
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} holds no weights of this network ({cause(error)}); make them with `geonode pretrain` or "
            "`geonode adapt`, or copy the file anew."
        ) from None
    return network.requires_grad_(False).eval()


def _size(header: Mapping[str, str]) -> NetworkSize:
    if "size" not in header:
        raise ValueError("its header does not say how large the network is")
    size = NetworkSize(**json.loads(header["size"]))
    if min(size.width, size.blocks, size.heads, size.expansion) < 1 or size.width % size.heads:
        raise ValueError(f"its header names an impossible size, {header['size']}")
    return size


def _checked(network: Network, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors, where they are those of the network by name and shape and are finite numbers."""
    wanted = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    for name in sorted(wanted.keys() ^ tensors.keys()):
        raise ValueError(f"the tensor {name} {'is missing' if name in wanted else 'does not belong to it'}")
    for name, value in tensors.items():
        if tuple(value.shape) != wanted[name]:
            raise ValueError(
                f"the tensor {name} has shape {list(value.shape)} instead of {list(wanted[name])}: weights of a "
                "network of another size, or of another version of geonode"
            )
        if not bool(torch.isfinite(value).all()):
            raise ValueError(f"the tensor {name} has values that are not finite")
    return tensors


def require_weights(path: Path) -> Path:
    """The path, where there is a file.

    Raises:
        InputError: there is none.
    """
    if not path.is_file():
        raise InputError(
            f"The weights {path} are not there; give a file that `geonode adapt` or `geonode pretrain` wrote, or one "
            f"of the names {', '.join(shipped_names())}."
        )
    return path


def shipped_names() -> list[str]:
    """Names of the weights that come with geonode."""
    return sorted(path.stem for path in SHIPPED.glob("*.safetensors"))


def weights_path(name: str | Path | None = None) -> Path:
    """Where weights lie: ``name`` is that of weights that come with geonode (None: the default ones), or a file."""
    shipped = SHIPPED / f"{NAME if name is None else name}.safetensors"
    return shipped if name is None or shipped.is_file() else Path(name)


def weights_of(options: Mapping[str, Any]) -> Path:
    """The file of weights that the options of the pre-trained flow name.

    Raises:
        InputError: another option than ``weights`` and ``smooth``, or weights that are no text.
    """
    unknown = sorted(set(options) - {"weights", "smooth"})
    if unknown:
        raise InputError(f"The flow 'pretrained' takes no option {unknown[0]!r}; it takes weights and smooth.")
    name = options.get("weights")
    if name is not None and not isinstance(name, str):
        raise InputError(f"weights={name!r} must be the name of a file of weights, or {NAME!r}.")
    return weights_path(name)


def smooth_of(options: Mapping[str, Any]) -> bool:
    """Whether the pre-trained flow takes noise along the wavelengths from what it predicts; without a word it does.

    Raises:
        InputError: neither true nor false.
    """
    smooth = options.get("smooth", True)
    if not isinstance(smooth, bool):
        raise InputError(f"smooth={smooth!r} must be true or false.")
    return smooth


def weights_record(path: Path) -> dict[str, str]:
    """Name and SHA-256 of a file of weights, and the name of those they were adapted from: what a bundle says of them.

    Raises:
        InputError: no such file, or no weights.
    """
    path = require_weights(path)
    return dict(_record(path, path.stat().st_mtime_ns, path.stat().st_size))


@functools.lru_cache(maxsize=8)
def _record(path: Path, written: int, length: int) -> dict[str, str]:
    try:
        _, header = read_tensors(path)
        base = json.loads(header["base"])["name"] if "base" in header else None
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} holds no weights ({cause(error)}); make them with `geonode pretrain`.") from None
    return {"name": path.stem, "sha256": _digest(path)} | ({} if base is None else {"base": base})


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def weights_at_hand(record: Mapping[str, str] | None, options: Mapping[str, Any]) -> Path | None:
    """The file that ``record`` (of `weights_record`) tells of, named by the flow's options or one that comes with
    geonode; None where it is not here, or is another file by now."""
    if record is None:
        return None
    paths = (weights_of(options), weights_path(record["name"]))
    return next((path for path in paths if path.is_file() and _digest(path) == record["sha256"]), None)


def model_card(path: str | Path | None = None) -> dict[str, Any]:
    """The model card beside a file of weights, None for those that come with geonode.

    Raises:
        InputError: there is none.
    """
    card = weights_path(path).with_suffix(".json")
    try:
        return json.loads(card.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"The model card {card} cannot be read ({cause(error)}); it lies beside the weights."
        ) from None


def untrained_network(seed: int = 0) -> Network:
    """A network at its start, whose predictions are the evidence-averaged geodesic Gaussian process.

    Args:
        seed: of the initial weights, which change no prediction before training.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Network().requires_grad_(False).eval()
