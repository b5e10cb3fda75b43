"""The numbers of a training to Weights & Biases, offline: nothing leaves the machine until ``wandb sync`` is called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from geonode.errors import InputError
from geonode_runtime.wording import argument


class WandbLog:
    """Numbers by name and step in an offline run, ``wandb/offline-run-…`` of a folder.

    Args:
        folder: made where it does not exist.
        settings: what the run is of, for its page.

    Raises:
        InputError: Weights & Biases is not installed.
    """

    def __init__(self, folder: str | Path, settings: dict[str, Any] | None = None) -> None:
        try:
            import wandb  # pyright: ignore[reportMissingImports] - an extra
        except ImportError:
            raise InputError(
                f"{argument('wandb', True)} needs Weights & Biases: pip install 'geodesic-node[wandb]', or leave "
                "it out; "
                "TensorBoard and CSV hold the same numbers."
            ) from None
        Path(folder).mkdir(parents=True, exist_ok=True)
        self._run: Any = wandb.init(project="geonode", dir=str(folder), mode="offline", config=settings or {})

    def add(self, step: int, values: dict[str, float]) -> None:
        """Numbers at an optimiser ``step``."""
        self._run.log(values, step=step)

    def close(self) -> None:
        """End the run; what was added is on the disk."""
        self._run.finish()
