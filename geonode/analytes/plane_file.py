"""A calibration of two analytes as a bundle, in the format of `geonode.bundle`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from geonode.analytes.ensemble import SurfaceEnsemble
from geonode.analytes.plane_calibration import PlaneCalibration, usable_wavelengths
from geonode.analytes.surface_gp import SurfaceGP
from geonode.bundle import VERSION, read_bundle, write_bundle
from geonode.data.bundled import dataset_arrays, dataset_from, dataset_metadata
from geonode.errors import BundleError
from geonode_runtime.given_paths import as_path

KIND = "plane"
"""What `kind` says in the metadata of such a bundle; bundles of one analyte have no `kind`."""


def save_plane(plane: PlaneCalibration, path: str | Path) -> None:
    """Write ``plane`` to ``path``, whole or not at all.

    Raises:
        InputError: the folder does not exist, or ``path`` is a folder.
    """
    arrays, settings = plane.gp.state()
    tensors = {f"gp/{name}": value for name, value in arrays.items()}
    tensors |= {f"members/{name}": value for name, value in plane.ensemble.state().items()}
    data = dataset_arrays(plane.dataset)
    tensors |= {f"dataset/{name}": torch.from_numpy(np.array(value)) for name, value in data.items()}
    metadata: dict[str, Any] = {
        "kind": KIND,
        "dataset": dataset_metadata(plane.dataset),
        "files": list(plane.dataset.files),
        "gp": settings,
        "learned": [plane.widening, plane.q_limit, plane.t2_limit, plane.left_out],
    }
    write_bundle(as_path(path, "the bundle"), tensors, metadata, VERSION)


def load_plane(path: str | Path) -> PlaneCalibration:
    """Read what `save_plane` wrote.

    Raises:
        BundleError: missing, truncated, altered, of a later version, of an earlier rule, or of one analyte.
    """
    path = as_path(path, "the bundle")
    tensors, metadata = read_bundle(path)
    if metadata.get("kind") != KIND:
        raise BundleError(f"{path} is a calibration of one analyte; read it with geonode.load.")
    members = {name.removeprefix("members/"): v for name, v in tensors.items() if name.startswith("members/")}
    if not members:
        raise BundleError(
            f"{path} was written by an earlier geonode, whose regions of two analytes were too narrow; fit again and "
            "save anew."
        )
    try:
        arrays = {
            name.removeprefix("dataset/"): v.numpy() for name, v in tensors.items() if name.startswith("dataset/")
        }
        dataset = dataset_from(arrays, metadata["dataset"], metadata.get("files"))
        state = {name.removeprefix("gp/"): value for name, value in tensors.items() if name.startswith("gp/")}
        means = np.array(dataset.level_means())[:, usable_wavelengths(dataset)]
        gp = SurfaceGP.from_state(np.array(dataset.levels), means, state, metadata["gp"])
        widening, q_limit, t2_limit, left_out = metadata["learned"]
        return PlaneCalibration(
            dataset, gp, SurfaceEnsemble.from_state(gp, members), (widening, q_limit, t2_limit, left_out)
        )
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise BundleError(f"{path} is not a complete geonode bundle ({error}); fit again and save anew.") from error


def is_plane(path: str | Path) -> bool:
    """Whether the bundle at ``path`` is of two analytes.

    Raises:
        BundleError: it cannot be read.
    """
    return read_bundle(as_path(path, "the bundle"))[1].get("kind") == KIND
