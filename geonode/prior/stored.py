"""Weights that travel with geonode: safetensors beside a model card that says how they were made."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from geonode.bundle import write_tensors
from geonode.errors import InputError
from geonode.prior.network import Network, NetworkSize
from geonode_runtime.files import write_text

SHIPPED = Path(__file__).parent / "weights"
NAME = "prior-2"
"""The default; those before it are kept for bundles that were made with them."""


def save_network(
    network: Network, card: dict[str, Any], folder: str | Path, name: str = NAME, *, half: bool = False
) -> Path:
    """Write ``name.safetensors`` and its card ``name.json`` into ``folder``; give the weights' path back.

    Args:
        network: a :class:`Network`.
        card: what its users should know; the network's size is added.
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
    write_tensors(path, state, {"size": json.dumps(network.size.as_dict())})
    card = {"name": name, "size": network.size.as_dict(), **card}
    write_text(path.with_suffix(".json"), json.dumps(card, indent=1) + "\n")
    return path


@functools.lru_cache(maxsize=4)
def load_network(path: str | Path | None = None) -> Network:
    """The network of a safetensors file, None for the weights that come with geonode; not to be trained on (shared).

    Raises:
        InputError: no such file, or not weights of this network.
    """
    from safetensors import SafetensorError, safe_open

    path = weights_path(path)
    if not path.is_file():
        raise InputError(f"{path} is not there; give a file of weights as `geonode pretrain` writes it.")
    try:
        with safe_open(path, "pt") as stored:
            size = NetworkSize(**json.loads((stored.metadata() or {})["size"]))
            state = {key: stored.get_tensor(key) for key in stored.keys()}  # noqa: SIM118 - not a dictionary
        network = Network(size)
        network.load_state_dict(state)
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"{path} holds no weights of this network ({error}); make them with `geonode pretrain`."
        ) from None
    return network.requires_grad_(False).eval()


def weights_path(name: str | Path | None = None) -> Path:
    """Where weights lie: ``name`` is that of weights that come with geonode (None: the default ones), or a file."""
    shipped = SHIPPED / f"{NAME if name is None else name}.safetensors"
    return shipped if name is None or shipped.is_file() else Path(name)


def weights_of(options: Mapping[str, Any]) -> Path:
    """The file of weights that the options of the pre-trained flow name.

    Raises:
        InputError: another option than ``weights``, or weights that are no text.
    """
    unknown = sorted(set(options) - {"weights"})
    if unknown:
        raise InputError(f"The flow 'pretrained' takes no option {unknown[0]!r}; it takes weights.")
    name = options.get("weights")
    if name is not None and not isinstance(name, str):
        raise InputError(f"weights={name!r} must be the name of a file of weights, or {NAME!r}.")
    return weights_path(name)


@functools.lru_cache(maxsize=8)
def weights_record(path: Path) -> dict[str, str]:
    """Name and SHA-256 of a file of weights: what a bundle says of them."""
    with open(path, "rb") as file:
        return {"name": path.stem, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def weights_at_hand(record: Mapping[str, str] | None, options: Mapping[str, Any]) -> Path | None:
    """The file that ``record`` (of `weights_record`) tells of, named by the flow's options or one that comes with
    geonode; None where it is not here, or is another file by now."""
    if record is None:
        return None
    paths = (weights_of(options), weights_path(record["name"]))
    return next((path for path in paths if path.is_file() and weights_record(path) == record), None)


def model_card(path: str | Path | None = None) -> dict[str, Any]:
    """The model card beside a file of weights, None for those that come with geonode."""
    path = weights_path(path)
    return json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))


def untrained_network(seed: int = 0) -> Network:
    """A network at its start, whose predictions are the evidence-averaged geodesic Gaussian process.

    Args:
        seed: of the initial weights, which change no prediction before training.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Network().requires_grad_(False).eval()
