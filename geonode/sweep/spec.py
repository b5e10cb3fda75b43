"""What a sweep is to do, as a YAML file: standards, folds, seeds, and a grid of settings."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from geonode.config import GeodesicConfig
from geonode.errors import InputError
from geonode.sweep.jobs import Job, load_data


@dataclass(frozen=True)
class Spec:
    """A sweep.

    Attributes:
        data: files of standards, relative to the spec's own folder. select, unit, concentrations, column: as for
            `geonode.load_standards`.
        folds: levels to be left out, one per fold; None for every level.
        seeds: seeds, or how many (0, 1, …).
        config: settings of `GeodesicConfig` common to all jobs.
        grid: setting → values to try; all combinations.
        folder: what relative paths start from.
    """

    data: list[str]
    folder: str
    select: str | None = None
    unit: str | None = None
    concentrations: str | None = None
    column: list[str] | None = None
    folds: list[float] | None = None
    seeds: list[int] = field(default_factory=lambda: [0])
    config: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, list[Any]] = field(default_factory=dict)

    def jobs(self) -> list[Job]:
        """Every job: settings outermost, folds innermost. Reads the standards.

        Raises:
            InputError: a fold that is no level, an unknown setting; ReaderError: unreadable standards.
        """
        source = {
            name: getattr(self, name) for name in ("data", "folder", "select", "unit", "concentrations", "column")
        }
        text = json.dumps(source, sort_keys=True)
        dataset = load_data(text)
        levels = [float(level) for level in dataset.levels]
        folds = levels if self.folds is None else self.folds
        if not folds or not self.seeds:
            raise InputError("The sweep has no job: give at least one seed, and folds either some levels or none.")
        for fold in folds:
            if fold not in levels:
                raise InputError(f"folds: {fold:g} is not a level; levels are {', '.join(f'{v:g}' for v in levels)}.")
        content = hashlib.sha256(dataset.spectra.tobytes() + dataset.concentrations.tobytes()).hexdigest()
        jobs = []
        for values in itertools.product(*self.grid.values()):
            setting = dict(zip(self.grid, values, strict=True))
            config = GeodesicConfig.from_json(json.dumps({**self.config, **setting})).to_json()
            for seed, fold in itertools.product(self.seeds, folds):
                key = hashlib.sha256(json.dumps([content, config, seed, fold]).encode()).hexdigest()[:16]
                jobs.append(Job(key, text, config, seed, fold, setting))
        if len({job.key for job in jobs}) < len(jobs):
            raise InputError("The sweep names a job twice; give each fold, seed and grid value once.")
        return jobs


def read_spec(path: str | Path) -> Spec:
    """A `Spec` from a YAML file.

    Raises:
        InputError: not readable, not YAML, unknown or missing keys, values of the wrong kind.
    """
    import yaml

    path = Path(path)
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path} cannot be read as YAML ({' '.join(str(error).split())}); correct it.") from None
    if not isinstance(values, dict):
        raise InputError(f"{path} must be a mapping with the key data; see docs/scale.md.")
    known = {f.name for f in dataclasses.fields(Spec)} - {"folder"}
    unknown = sorted(set(map(str, values)) - known)
    if unknown:
        raise InputError(f"{path}: unknown key {unknown[0]!r}; known are {', '.join(sorted(known))}.")
    if not values.get("data"):
        raise InputError(f"{path}: data is missing; name the file(s) of standards.")
    for name in ("data", "column"):
        if isinstance(values.get(name), str):
            values[name] = [values[name]]
    if isinstance(values.get("seeds"), int) and not isinstance(values["seeds"], bool):
        values["seeds"] = list(range(values["seeds"]))
    for name, kind in (("data", list), ("seeds", list), ("folds", list), ("config", dict), ("grid", dict)):
        if values.get(name) is not None and not isinstance(values[name], kind):
            raise InputError(f"{path}: {name} must be a {'list' if kind is list else 'mapping'}.")
    for name, options in (values.get("grid") or {}).items():
        if not isinstance(options, list) or not options:
            raise InputError(f"{path}: grid.{name} must be a list of values; a single value belongs under config.")
    given = {name: value for name, value in values.items() if value is not None}
    for name, kind, what in (
        ("data", str, "file names"),
        ("column", str, "column names"),
        ("seeds", int, "whole numbers"),
        ("folds", (int, float), "numbers"),
    ):
        for value in given.get(name, []):
            if isinstance(value, bool) or not isinstance(value, kind):
                raise InputError(f"{path}: {name} must be {what}, and {value!r} is none.")
    if "folds" in given:
        given["folds"] = [float(fold) for fold in given["folds"]]
    return Spec(folder=str(path.resolve().parent), **given)
