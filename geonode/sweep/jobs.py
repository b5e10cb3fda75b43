"""Jobs of a sweep: what a worker needs for one, which of them train together, and whose they are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from geonode.config import GeodesicConfig
from geonode.data import SpectralDataset, load_standards
from geonode.data.given_standards import prepared
from geonode.errors import GeonodeError, InputError


@dataclass(frozen=True)
class Job:
    """A level left out and the rest trained on.

    Attributes:
        key: names the job by content: standards, settings, seed and fold.
        source: where the standards are, as JSON.
        config: whole settings, the seed among them, as JSON of a `GeodesicConfig`.
        seed: of initial weights and draws.
        fold: the level left out, in the unit of the standards.
        setting: what the sweep's grid says of the settings.
        data_set: name of the standards in the spec; "" where they are the only ones.
        content: SHA-256 of the standards that the spec was read with.
    """

    key: str
    source: str
    config: str
    seed: int
    fold: float
    setting: dict[str, Any]
    data_set: str = ""
    content: str = ""


@lru_cache(maxsize=32)
def load_data(source: str) -> SpectralDataset:
    """The standards of a spec, without masked wavelengths; read once a process.

    Raises:
        InputError: several analytes, or fewer than four levels. ReaderError: unreadable standards.
    """
    where = json.loads(source)
    folder = Path(where["folder"])
    tables = where["concentrations"]
    dataset = load_standards(
        [folder / name for name in where["data"]],
        select=where["select"],
        concentration_unit=where["unit"],
        concentrations=None if tables is None else folder / tables,
        column=where["column"],
    )
    return prepared(dataset).require_levels(4)  # three of them are left to learn from


def data_of(job: Job) -> SpectralDataset:
    """The job's standards, which must be those that the spec was read with.

    Raises:
        InputError: the files here hold other standards.
    """
    dataset = load_data(job.source)
    if job.content and content_of(dataset) != job.content:
        names = ", ".join(json.loads(job.source)["data"])
        raise InputError(f"{names} holds other standards here than where the sweep was started; copy the files anew.")
    return dataset


def content_of(dataset: SpectralDataset) -> str:
    """SHA-256 of spectra and concentrations."""
    return hashlib.sha256(dataset.spectra.tobytes() + dataset.concentrations.tobytes()).hexdigest()


def name_of(content: str, config: str, seed: int, fold: float) -> str:
    """A job's key."""
    return hashlib.sha256(json.dumps([content, config, seed, fold]).encode()).hexdigest()[:16]


def stacks(jobs: Sequence[Job], most: int) -> list[list[Job]]:
    """Jobs in lists of up to ``most`` that one stacked training can hold.

    Those of the same standards whose settings differ in learning rates alone; and of one seed, where it draws what all
    models of a stack share (wavelengths, pairs).
    """
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        config = GeodesicConfig.from_json(job.config)
        common = config.replace(metric_lr=1.0, flow_lr=1.0, seed=0).to_json()
        width = load_data(job.source).shape[1]
        drawn = not config.all_pairs or (config.wavelengths_per_step or width) < width
        key = json.dumps([job.source, common, job.seed if drawn else None], sort_keys=True)
        groups.setdefault(key, []).append(job)
    return [group[i : i + most] for group in groups.values() for i in range(0, len(group), most)]


def share(jobs: Sequence[Job], number: int, weights: Sequence[float]) -> list[Job]:
    """The jobs of worker ``number`` of several that share nothing: every job goes to exactly one of them.

    Each job in turn goes to the worker who would be done with it first, so that work is shared as ``weights`` (speeds)
    say; with equal workers and jobs, every N-th job.
    """
    busy = np.zeros(len(weights))
    speed = np.asarray(weights, dtype=float)
    mine = []
    for job in jobs:
        done = busy + cost(job) / speed
        first = int(np.flatnonzero(done <= done.min() * (1.0 + 1e-12))[0])
        busy[first] = done[first]
        if first == number:
            mine.append(job)
    return mine


def cost(job: Job) -> float:
    """How long a job takes beside others: steps × models × spectra × wavelengths; the process alone next to nothing."""
    config, (levels, width) = GeodesicConfig.from_json(job.config), load_data(job.source).shape
    drawn = min(width, config.wavelengths_per_step or width)
    return 1.0 if config.predictor == "gp" else 1.0 + config.epochs * config.members * levels * drawn


def sentence(job: Job, cause: BaseException) -> str:
    """Which job failed and why: one sentence without its full stop."""
    where = [f"fold {job.fold:g}", f"seed {job.seed}", *(f"{name}={value}" for name, value in job.setting.items())]
    if job.data_set:
        where.insert(0, job.data_set)
    why = " ".join(str(cause).split("\n")[0].split()).rstrip(".")
    if not isinstance(cause, GeonodeError):  # its text alone need not say what it is, and may be empty
        why = f"{type(cause).__name__}: {why}" if why else type(cause).__name__
    return f"{', '.join(where)}: {why}"
