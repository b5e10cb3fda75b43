"""What the bundle of a fitted model holds, and how a model comes back from it; `geonode.bundle` is the file itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from geonode.analytes.plane_file import KIND
from geonode.bundle import VERSION, read_bundle, write_bundle
from geonode.calibration.gp.geodesic_gp import GeodesicGP
from geonode.config import REGISTRIES, GeodesicConfig, implementations
from geonode.data import Preprocessing, SpectralDataset
from geonode.data.bundled import dataset_arrays, dataset_from, dataset_metadata
from geonode.errors import BundleError
from geonode.flow import CoupledSpectralODE
from geonode.flow.config import FlowConfig
from geonode.prior.flow import AssayFlow
from geonode.training.leave_out import Folds, build_stack, restore, select_rows
from geonode.training.problem import Problem
from geonode_runtime.given_paths import as_path

if TYPE_CHECKING:
    from geonode.model import GeodesicModel


@dataclass
class ModelParts:
    """The arguments of :class:`geonode.model.GeodesicModel`, as they come back from a bundle."""

    dataset: SpectralDataset
    config: GeodesicConfig
    gp: GeodesicGP
    problem: Problem | None
    ode: CoupledSpectralODE | None
    history: Sequence[dict[str, float]]
    concentration_std: np.ndarray | None
    preprocessing: Preprocessing | None
    standards: SpectralDataset
    folds: Folds | None
    flow: AssayFlow | None = None
    fold_flows: Sequence[AssayFlow] = ()
    weights: dict[str, str] | None = None


def write_model(model: GeodesicModel, path: str | Path) -> None:
    """Write a model's bundle, whole or not at all.

    Raises:
        InputError: the folder does not exist, or ``path`` is a folder or no name of a file.
    """
    path = as_path(path, "the bundle")
    metadata = {
        "dataset": dataset_metadata(model.standards),
        "files": list(model.standards.files),
        "config": model.config.to_json(),
        "implementations": implementations(model.config),
        "gp": model.gp.state()[1],
        "history": model.history,
        "made": {name: value for name, value in model.made.items() if name != "bundle"},
    }
    if model.preprocessing is not None:
        # What it learned follows from the standards, on which it is fitted again.
        metadata["preprocessing"] = model.preprocessing.describe()
    tensors = _tensors(model)
    if model.flow is not None:
        # What the network said of these standards, so that nobody needs the weights to predict what they predicted.
        states = {
            "flow": model.flow.state(),
            **{f"fold_flows/{k}": one.state() for k, one in enumerate(model.fold_flows)},
        }
        metadata["weights"] = model.weights
        metadata["flows"] = {name: meta for name, (_, meta) in states.items()}
        tensors |= {
            f"{name}/{key}": torch.from_numpy(value)
            for name, (arrays, _) in states.items()
            for key, value in arrays.items()
        }
    write_bundle(path, tensors, metadata, VERSION)


def _tensors(model: GeodesicModel) -> dict[str, torch.Tensor]:
    arrays = {f"dataset/{name}": value for name, value in dataset_arrays(model.standards).items()}
    if model.concentration_std is not None:
        arrays["concentration_std"] = model.concentration_std
    arrays |= {f"gp/{name}": value for name, value in model.gp.state()[0].items()}
    tensors = {name: torch.from_numpy(np.array(value)) for name, value in arrays.items()}
    if model.flow is None and model.ode is not None:
        tensors |= {f"ode/{name}": parameter.detach().cpu() for name, parameter in model.ode.named_parameters()}
    if model.folds is not None:
        tensors |= {f"folds/{name}": value for name, value in model.folds.state.items()}
    return tensors


def read_model(path: str | Path) -> tuple[ModelParts, dict[str, Any]]:
    """The parts of a model, and what it was made with.

    Raises:
        BundleError: missing, truncated, altered, foreign, or of a later version.
        InputError: ``path`` is no name of a file.
    """
    path = as_path(path, "the bundle")
    tensors, metadata = read_bundle(path)
    if metadata.get("kind") == KIND:
        raise BundleError(
            f"{path} is a calibration of two analytes, from which `geonode quantify` and "
            "geonode.analytes.load_plane answer; this needs one of a single analyte."
        )
    try:
        parts = _parts(path, tensors, metadata)
    except BundleError:
        raise
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise BundleError(f"{path} is not a complete geonode bundle ({error}); fit again and save anew.") from error
    bundle = {name: metadata[name] for name in ("version", "geonode", "checksum") if name in metadata}
    return parts, {**metadata.get("made", {}), "bundle": bundle}  # bundles of 0.1.0 and before do not say more


def _parts(path: Path, tensors: dict[str, torch.Tensor], metadata: dict[str, Any]) -> ModelParts:
    _require_registered(path, metadata.get("implementations", {}))
    # before version 5 a flow was trained, whether its name stood there or not
    flow = FlowConfig.name if metadata["version"] < 5 else None
    config = GeodesicConfig.from_json(metadata["config"], flow)
    arrays = {name: value.numpy() for name, value in _under("dataset", tensors)}
    standards = dataset_from(arrays, metadata["dataset"], metadata.get("files"))
    chain = None
    if "preprocessing" in metadata:
        chain = Preprocessing([(step["name"], step["parameters"]) for step in metadata["preprocessing"]])
    dataset = standards if chain is None else chain.fit_transform(standards)
    gp = GeodesicGP.from_state({name: value.numpy() for name, value in _under("gp", tensors)}, metadata["gp"])
    if chain is not None:
        _require_same_result(dataset, gp, path)
    std = tensors["concentration_std"].numpy() if "concentration_std" in tensors else None
    parts = ModelParts(dataset, config, gp, None, None, metadata["history"], std, chain, standards, None)
    if "flows" in metadata:
        return _with_flows(parts, tensors, metadata, chain)
    state = dict(_under("ode", tensors))
    if not state:
        return parts
    dtype = torch.float64 if config.precision == "64-true" else torch.float32
    folds = Folds.of(dataset, gp, chain) if config.folds else None
    stack = build_stack(gp, folds, dataset.wavelengths, config)
    parts.problem = select_rows(stack, config.members).to("cpu", dtype)
    parts.ode = restore(parts.problem, config, state)
    if folds is not None:
        folds.state = dict(_under("folds", tensors))
        lacking = sorted(set(state) - set(folds.state))
        if lacking:
            raise KeyError(f"the parameter {lacking[0]} of the folds")
    parts.folds = folds
    return parts


def _with_flows(
    parts: ModelParts, tensors: dict[str, torch.Tensor], metadata: dict[str, Any], chain: Preprocessing | None
) -> ModelParts:
    """The pre-trained flow, and those of its folds, as they were read."""

    def restored(name: str, gp: GeodesicGP) -> AssayFlow:
        arrays = {key: value.numpy() for key, value in _under(name, tensors)}
        return AssayFlow.restored(gp, arrays, metadata["flows"][name])

    parts.flow, parts.weights = restored("flow", parts.gp), metadata["weights"]
    if parts.config.training.folds:
        parts.folds = Folds.of(parts.dataset, parts.gp, chain)
        parts.fold_flows = [restored(f"fold_flows/{k}", gp) for k, gp in enumerate(parts.folds.gps)]
    return parts


def _require_registered(path: Path, made_of: dict[str, dict[str, str]]) -> None:
    """Refuse a model one of whose parts is not registered here, naming the module that defines it."""
    for kind, parts in made_of.items():
        for name, module in parts.items():
            if kind in REGISTRIES and name not in REGISTRIES[kind]:
                raise BundleError(
                    f"{path} was made with the {kind} {name!r}, which is not registered here; import the module that "
                    f"defines it ({module}) and load it again."
                )


def _under(name: str, tensors: dict[str, torch.Tensor]) -> list[tuple[str, torch.Tensor]]:
    """Tensors whose names begin with ``name/``, without that."""
    start = f"{name}/"
    return [(key.removeprefix(start), value) for key, value in tensors.items() if key.startswith(start)]


def _require_same_result(dataset: SpectralDataset, gp: GeodesicGP, path: Path) -> None:
    """Preprocessing, fitted again, must give the standards that the model was fitted to: another version of a library
    may compute a step differently, and then unknowns would no longer be comparable."""
    now, then = dataset.level_means(), gp.level_means
    if now.shape != then.shape or not np.allclose(now, then, rtol=1e-6, atol=1e-6 * float(np.abs(then).max())):
        raise BundleError(
            f"{path}: the preprocessing gives other spectra of the standards than when it was fitted, so the libraries "
            "that do it (chemotools, scikit-learn) have changed; fit again."
        )
