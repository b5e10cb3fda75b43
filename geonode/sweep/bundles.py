"""Trained models of a sweep: kept one file a job where they are asked for, and merged: the seeds of one fold and one
setting are one ensemble."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from geonode.errors import InputError
from geonode.model import GeodesicModel, load
from geonode.sweep.jobs import Job
from geonode.sweep.results import settings_of
from geonode.training.leave_out import build_stack, restore
from geonode_runtime.files import write_atomically
from geonode_runtime.wording import either

FOLDER = "bundles"


def bundle_path(folder: str | Path, key: str) -> Path:
    """Where a sweep keeps the model of a job."""
    return Path(folder) / FOLDER / f"{key}.bundle"


def as_bytes(model: GeodesicModel) -> bytes:
    """What `GeodesicModel.save` writes: how a worker elsewhere hands its model over."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "model.bundle"
        model.save(path)
        return path.read_bytes()


def write_bundle(folder: str | Path, job: Job, content: bytes) -> None:
    """Keep a job's model, whole or not at all."""
    path = bundle_path(folder, job.key)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda place: Path(place).write_bytes(content))


def merge_bundles(folders: Iterable[str | Path], rows: Sequence[dict[str, Any]], out: str | Path) -> list[Path]:
    """Merge the models that sweeps kept: one bundle for each set of standards, fold and setting, with the members of
    every seed.

    Args:
        folders: of sweeps that kept their bundles.
        rows: their merged results; each gets the name of its bundle.
        out: folder to write into; it is made.

    Returns:
        The files written.

    Raises:
        InputError: a job whose model nobody kept. BundleError: a bundle that cannot be read.
    """
    folders = list(folders)
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(_name(row), []).append(row)
    written = []
    for name, group in groups.items():
        models = [load(_find(folders, row)) for row in group]
        path = Path(out) / f"{name}.bundle"
        path.parent.mkdir(parents=True, exist_ok=True)
        merge_models(models).save(path)
        written.append(path)
        for row in group:
            row["bundle"] = path.name
    return written


def merge_models(models: Sequence[GeodesicModel]) -> GeodesicModel:
    """One model with the members of several, which differ in their seeds alone: a larger ensemble.

    Raises:
        InputError: they were fitted to other standards, or with other settings.
    """
    first = models[0]
    if len(models) == 1:
        return first
    common = first.config.replace(seed=0, members=1)
    for other in models[1:]:
        if other.config.replace(seed=0, members=1) != common:
            raise InputError("Models of other settings than seed and members do not merge into one ensemble.")
        same = other.dataset.spectra.shape == first.dataset.spectra.shape and all(
            np.array_equal(getattr(other.dataset, name), getattr(first.dataset, name))
            for name in ("spectra", "concentrations", "wavelengths")
        )
        if not same:
            raise InputError("Models of other standards do not merge into one ensemble.")
    config = first.config.replace(members=sum(model.config.members for model in models))
    if first.ode is None or first.problem is None:
        return first  # the process alone: there is nothing that seeds change
    states = [dict(model.ode.named_parameters()) for model in models if model.ode is not None]
    state = {name: torch.cat([one[name].detach() for one in states]) for name in states[0]}
    problem = build_stack(first.gp, None, first.dataset.wavelengths, config).to("cpu", first.problem.target.dtype)
    ode = restore(problem, config, state)
    merged = GeodesicModel(first.dataset, config, first.gp, problem, ode)
    merged.made = {**first.made, "seeds": [model.config.seed for model in models]}
    return merged


def _find(folders: Sequence[str | Path], row: dict[str, Any]) -> Path:
    for folder in folders:
        path = bundle_path(folder, row["job"])
        if path.is_file():
            return path
    raise InputError(
        f"No folder keeps the model of job {row['job']} (fold {row['fold']:g}, seed {row['seed']}); run the sweep "
        f"again with {either('--keep-bundles', 'keep_bundles=True')}, which trains what is missing."
    )


def _name(row: dict[str, Any]) -> str:
    """A file name that says what the models of a row are, without the seed."""
    parts = [str(row["set"])] if "set" in row else []
    parts += [f"fold-{row['fold']:g}", *(f"{k}-{json.dumps(v)}" for k, v in sorted(settings_of(row).items()))]
    return re.sub(r"[^\w.+-]+", "-", "_".join(parts)).strip("-")[:200]
