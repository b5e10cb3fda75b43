"""What a sweep is to do, as a YAML file: standards, folds, seeds, and a grid of settings. Whatever it says is done, or
refused."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from geonode.config import GeodesicConfig
from geonode.errors import InputError, cause
from geonode.flow import FLOWS
from geonode.settings import said_once
from geonode.sweep.jobs import Job, content_of, load_data, name_of
from geonode_runtime.wording import argument


@dataclass(frozen=True)
class DataSet:
    """Standards of a sweep.

    Attributes:
        data: files, relative to the spec's own folder.
        select: as for `geonode.load_standards`, and so are ``unit``, ``concentrations`` and ``column``.
        unit: of concentration.
        concentrations: table of concentrations, relative to the spec's own folder.
        column: columns of that table.
        folds: levels to be left out, one per fold; None for every level.
    """

    data: list[str]
    select: str | None = None
    unit: str | None = None
    concentrations: str | None = None
    column: list[str] | None = None
    folds: list[float] | None = None

    def source(self, folder: str) -> str:
        """Where the standards are, as JSON: what a worker reads them by."""
        where = {name: getattr(self, name) for name in ("data", "select", "unit", "concentrations", "column")}
        return json.dumps({**where, "folder": folder}, sort_keys=True)


@dataclass(frozen=True)
class Spec:
    """A sweep.

    Attributes:
        sets: name → standards; "" is the name of standards that are the only ones.
        folder: what relative paths start from.
        seeds: of initial weights and draws; None takes the one of ``config``.
        config: settings of `GeodesicConfig` common to all jobs; what ``grid`` says goes before.
        grid: setting → values to try; all combinations.
    """

    sets: dict[str, DataSet]
    folder: str
    seeds: list[int] | None = None
    config: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, list[Any]] = field(default_factory=dict)

    def jobs(self) -> list[Job]:
        """Every job: sets of standards outermost, then settings, seeds and folds. Reads the standards.

        Settings that a job's predictor does not have (the Gaussian process has no seed and nothing of the flow's) make
        no further jobs: it is done once for each fold.

        Raises:
            InputError: a fold that is no level, a setting that is unknown or that no job could honour.
            ReaderError: unreadable standards.
        """
        jobs: dict[str, Job] = {}
        for name, one in self.sets.items():
            text = one.source(self.folder)
            dataset = load_data(text)
            content, folds = content_of(dataset), self._folds(name, one)
            for (config, setting), fold in itertools.product(self._settings(), folds):
                process = config.predictor == "gp"
                kept = {"predictor": "gp"} if process and "predictor" in setting else {} if process else setting
                seed = 0 if process else config.seed
                described = GeodesicConfig(predictor="gp").to_json() if process else config.to_json()
                key = name_of(content, described, seed, fold)
                if key in jobs and not (process and jobs[key].data_set == name):
                    raise InputError("The sweep names a job twice; give each fold, seed, grid value and file once.")
                jobs.setdefault(key, Job(key, text, described, seed, fold, kept, name, content))
        if not jobs:
            raise InputError("The sweep has no job: give at least one seed, and folds either some levels or none.")
        self._require_effect(list(jobs.values()))
        return list(jobs.values())

    def _folds(self, name: str, one: DataSet) -> list[float]:
        levels = [float(level) for level in load_data(one.source(self.folder)).levels]
        folds = levels if one.folds is None else one.folds
        where = f"sets.{name}.folds" if name else "folds"
        for fold in folds:
            if fold not in levels:
                known = ", ".join(f"{v:g}" for v in levels)
                raise InputError(f"{where}: {fold:g} is not a level; levels are {known}.")
        if len(set(folds)) < len(folds):
            raise InputError("The sweep names a job twice; give each fold, seed, grid value and file once.")
        return folds

    def _settings(self) -> list[tuple[GeodesicConfig, dict[str, Any]]]:
        """(whole settings, what the grid says of them) of every combination and seed."""
        base = GeodesicConfig.from_json(json.dumps(self.config), "path_independent")
        seeds, training = self.seeds, self.config.get("training")
        of_config = self.config | (training if isinstance(training, dict) else {})
        if "seed" in of_config and seeds is not None:
            raise InputError("The seed stands under config and under seeds, and one would be ignored; give it once.")
        if both := sorted(self.grid.keys() & of_config.keys()):
            raise InputError(f"{both[0]!r} stands under config and under grid, and one would be ignored; give it once.")
        found = []
        for values in itertools.product(*self.grid.values()):
            setting = dict(zip(self.grid, values, strict=True))
            GeodesicConfig.from_json(json.dumps(setting), "path_independent")  # an unknown name is refused as one
            config = base.replace(**setting)
            if config.seed != base.seed:
                raise InputError("The seed stands under grid; list the seeds under seeds.")
            if not FLOWS[config.flow.name].needs_training:
                raise InputError(
                    f"{argument('flow', config.flow.name)} is not trained, so a sweep over its settings has "
                    "nothing to vary; "
                    "leave it out, or compare it by geonode evaluate."
                )
            if config.folds:
                raise InputError(
                    f"{argument('folds', True)} is for the bands of one calibration, and a sweep scores mean "
                    "spectra: leave it out of "
                    "config and grid. Levels to leave out stand under folds, beside data."
                )
            found += [(config.replace(seed=s), setting) for s in ([base.seed] if seeds is None else seeds)]
        return found

    def _require_effect(self, jobs: list[Job]) -> None:
        """Refuse what no job has: settings of the flow, or several seeds, where every predictor is the process."""
        for name in self.grid:
            if all(name not in job.setting for job in jobs):
                raise InputError(
                    f"grid.{name} would be ignored: with {argument('predictor', 'gp')} nothing but the standards "
                    "counts; leave it out."
                )
        if all(GeodesicConfig.from_json(job.config).predictor == "gp" for job in jobs):
            asked = [name for name in self.config if name != "predictor"]
            if asked or self.seeds is not None:
                raise InputError(
                    f"{asked[0] if asked else 'seeds'} would be ignored: with "
                    f"{argument('predictor', 'gp')} nothing but the standards "
                    "counts; leave it out."
                )


def read_spec(path: str | Path) -> Spec:
    """A `Spec` from a YAML file.

    Raises:
        InputError: not readable, not YAML, unknown or missing keys, values of the wrong kind.
    """
    import yaml

    class Once(yaml.SafeLoader):
        """Refuses what stands twice, of which YAML would take the last."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            said_once([(str(self.construct_object(key, deep=True)), None) for key, _ in node.value])
            return super().construct_mapping(node, deep)

    path = Path(path)
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), Once)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read ({cause(error)}); check the name.") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path} cannot be read as YAML ({' '.join(str(error).split())}); correct it.") from None
    if not isinstance(values, dict):
        raise InputError(f"{path} must be a mapping with the key data; see docs/scale.md.")
    values = {str(name): value for name, value in values.items() if value is not None}
    of_set = {f.name for f in dataclasses.fields(DataSet)}
    known = {"sets", "seeds", "config", "grid"} | of_set
    unknown = sorted(set(values) - known)
    if unknown:
        raise InputError(f"{path}: unknown key {unknown[0]!r}; known are {', '.join(sorted(known))}.")
    if isinstance(values.get("seeds"), int) and not isinstance(values["seeds"], bool):
        values["seeds"] = list(range(values["seeds"]))
    _require_kinds(path, values, {"seeds": list, "config": dict, "grid": dict, "sets": dict})
    _require_items(path, "", values, "seeds", int, "whole numbers")
    for name, options in values.get("grid", {}).items():
        if not isinstance(options, list) or not options:
            raise InputError(f"{path}: grid.{name} must be a list of values; a single value belongs under config.")
    rest = {name: value for name, value in values.items() if name not in of_set | {"sets"}}
    return Spec(sets=_sets(path, values, of_set), folder=str(path.resolve().parent), **rest)


def _sets(path: Path, values: Mapping[str, Any], of_set: set[str]) -> dict[str, DataSet]:
    """The standards by name: those under ``sets``, or the only ones, which stand beside seeds and grid."""
    beside = {name: values[name] for name in of_set if name in values}
    if "sets" not in values:
        return {"": _data_set(path, "", beside)}
    if beside:
        raise InputError(f"{path}: {sorted(beside)[0]} stands beside sets; give it within each set.")
    if not values["sets"]:
        raise InputError(f"{path}: sets is empty; name at least one set of standards.")
    sets = {}
    for name, one in values["sets"].items():
        if not isinstance(one, dict):
            one = {"data": one}
        unknown = sorted(set(map(str, one)) - of_set)
        if unknown:
            known = ", ".join(sorted(of_set))
            raise InputError(f"{path}: unknown key 'sets.{name}.{unknown[0]}'; known are {known}.")
        sets[str(name)] = _data_set(path, f"sets.{name}.", {k: v for k, v in one.items() if v is not None})
    return sets


def _data_set(path: Path, where: str, values: dict[str, Any]) -> DataSet:
    if not values.get("data"):
        raise InputError(f"{path}: {where}data is missing; name the file(s) of standards.")
    for name in ("data", "column"):
        if isinstance(values.get(name), str):
            values[name] = [values[name]]
    _require_kinds(path, values, {"data": list, "column": list, "folds": list}, where)
    _require_kinds(path, values, {"select": str, "unit": str, "concentrations": str}, where)
    _require_items(path, where, values, "data", str, "file names")
    _require_items(path, where, values, "column", str, "column names")
    _require_items(path, where, values, "folds", (int, float), "numbers")
    if "folds" in values:
        values["folds"] = [float(fold) for fold in values["folds"]]
    return DataSet(**values)


def _require_kinds(path: Path, values: Mapping[str, Any], kinds: Mapping[str, type], where: str = "") -> None:
    words = {list: "list", dict: "mapping", str: "text"}
    for name, kind in kinds.items():
        if name in values and not isinstance(values[name], kind):
            article = "" if kind is str else "a "
            raise InputError(f"{path}: {where}{name} must be {article}{words[kind]}.")


def _require_items(path: Path, where: str, values: Mapping[str, Any], name: str, kind: Any, what: str) -> None:
    for value in values.get(name, []):
        if isinstance(value, bool) or not isinstance(value, kind):
            raise InputError(f"{path}: {where}{name} must be {what}, and {value!r} is none.")
