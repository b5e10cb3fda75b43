"""Weights of the posterior that travel with geonode: safetensors beside a model card."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from geonode.bundle import write_tensors
from geonode.calibration.posterior.network import PosteriorNetwork
from geonode.errors import InputError
from geonode_runtime.files import write_text
from geonode_runtime.posterior.network import Weights

SHIPPED = Path(__file__).parent / "weights"
NAME = "posterior-3"


def save_posterior(network: PosteriorNetwork, card: dict[str, Any], folder: str | Path) -> Path:
    """Write weights and card into ``folder`` (made if it is not there); give the weights' path back."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{NAME}.safetensors"
    state = {key: value.detach().float().cpu().contiguous() for key, value in network.state_dict().items()}
    write_tensors(path, state, {})
    write_text(path.with_suffix(".json"), json.dumps({"name": NAME, **card}, indent=1) + "\n")
    return path


@functools.lru_cache(maxsize=4)
def load_posterior(path: str | Path | None = None) -> PosteriorNetwork:
    """The network of a safetensors file, None for the weights that come with geonode; not to be trained on (shared).

    Raises:
        InputError: no such file, or not weights of this network.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = SHIPPED / f"{NAME}.safetensors" if path is None else Path(path)
    if not path.is_file():
        raise InputError(f"{path} is not there; make it with `python -m geonode.calibration.posterior.training`.")
    network = PosteriorNetwork()
    try:
        network.load_state_dict(load_file(path))
    except (SafetensorError, RuntimeError) as error:
        raise InputError(
            f"{path} holds no weights of this posterior ({error}); make them with "
            "`python -m geonode.calibration.posterior.training`."
        ) from None
    return network.requires_grad_(False).eval()


@functools.lru_cache(maxsize=1)
def posterior_weights() -> Weights:
    """The parameters that come with geonode, as numpy evaluates them; shared, not to be written to."""
    return weights_of(load_posterior())


def weights_of(network: PosteriorNetwork) -> Weights:
    """Parameters of a ``network`` by name, float64."""
    return {name: value.detach().double().numpy() for name, value in network.state_dict().items()}


@functools.lru_cache(maxsize=1)
def posterior_card() -> dict[str, Any]:
    """The model card of the weights that come with geonode."""
    return json.loads((SHIPPED / f"{NAME}.json").read_text(encoding="utf-8"))


def simulated_coverage() -> float:
    """Share of simulated unknowns inside the range, of families that training did not have, whose 80 % set held the
    truth, as the model card has it."""
    return posterior_card()["80 % sets cover"]["families left out"]
