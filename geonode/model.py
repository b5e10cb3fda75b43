"""`fit` and the fitted model: standards in, predicted spectra out. `geonode.artifact` writes and reads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from geonode.artifact import read_model, write_model
from geonode.bundle import checksums, environment
from geonode.calibration import Calibration, GeodesicGP
from geonode.calibration.asked_files import asked_of_files
from geonode.calibration.assessment.coverage import coverage
from geonode.calibration.gp.node_process import NodeEnsemble
from geonode.calibration.levels import level_std
from geonode.config import GeodesicConfig
from geonode.data import Preprocessing, SpectralDataset
from geonode.data.given_standards import given_standards, prepared
from geonode.data.labelled import Labels, half_width
from geonode.device import resolve_device
from geonode.errors import InputError
from geonode.flow import FLOWS, CoupledSpectralODE, Flow, Solver
from geonode.metric import LogMetric, Metric
from geonode.on_device import PredictsOnDevice
from geonode.prior.flow import AssayFlow
from geonode.prior.standards import band_coverage, flow_ensemble, levels_to_read, read_all, with_weights
from geonode.report.answer import Answer
from geonode.report.conclusion import Conclusion
from geonode.report.notebook import model_html, model_text
from geonode.report.predictions_figure import draw_model
from geonode.training.effects import require_no_training, warn_of_idle_settings
from geonode.training.ensemble import arc_length, predict
from geonode.training.leave_out import Folds, node_ensemble, restore, select_rows, split
from geonode.training.problem import Problem, asked_range, fit_gp
from geonode_runtime.given_numbers import as_numbers
from geonode_runtime.reach import require_reach
from geonode_runtime.wording import argument

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

Progress = Callable[[str, int, int], None]


class GeodesicModel(PredictsOnDevice):
    """A fitted calibration: the standards, their geodesic GP, and (unless ``predictor="gp"``) a neural flow.

    Made by `fit` and `load`. Attributes: ``dataset``, ``config``, ``gp``, ``flow`` (a `geonode.prior.AssayFlow`, where
    the flow is the pre-trained one, else None), ``fold_flows`` (the same without each
    standard, with ``config.folds``), ``weights`` (name and SHA-256 of its weights, or None), ``ode`` (a
    `CoupledSpectralODE`: of ``config.members`` stacked models that were trained, or the pre-trained flow as one; None
    for the process alone), ``problem`` and ``history`` (what a flow was trained on, and its losses by epoch),
    ``concentration_std`` ([n] standard uncertainty of the standards' concentrations, or None),
    ``preprocessing`` (the fitted steps, or None) and ``standards`` (as measured). ``dataset`` is what was modelled:
    the standards behind the preprocessing. ``made`` says with what: ``environment`` (versions), ``files`` (SHA-256
    of the standards' files as they were), ``folds`` the flow without each standard (with ``config.folds``, else
    None), and for a bundle that was loaded ``bundle`` (its version, its geonode, its checksum).
    """

    def __init__(
        self,
        dataset: SpectralDataset,
        config: GeodesicConfig,
        gp: GeodesicGP,
        problem: Problem | None = None,
        ode: CoupledSpectralODE | None = None,
        history: Sequence[dict[str, float]] = (),
        concentration_std: np.ndarray | None = None,
        preprocessing: Preprocessing | None = None,
        standards: SpectralDataset | None = None,
        folds: Folds | None = None,
        flow: AssayFlow | None = None,
        fold_flows: Sequence[AssayFlow] = (),
        weights: dict[str, str] | None = None,
    ) -> None:
        self.preprocessing, self.standards = preprocessing, dataset if standards is None else standards
        self.dataset, self.config, self.gp = dataset, config, gp
        self.concentration_std = concentration_std
        self.problem, self.history = problem, list(history)
        self.folds, self.flow, self.fold_flows, self.weights = folds, flow, list(fold_flows), weights
        self._ode, self._device, self._labels = ode, torch.device("cpu"), Labels(dataset, preprocessing)
        self.made: dict[str, Any] = {}

    @property
    def ode(self) -> CoupledSpectralODE | None:
        """Metric and flow as a coupled ODE, for solvers, geodesics and Christoffel symbols; None for the process."""
        if self._ode is None and self.flow is not None:
            self._ode = self.flow.ode(self.dataset.wavelengths)
        return self._ode

    @property
    def calibrated_range(self) -> tuple[float, float]:
        """Lowest and highest standard, in the unit of concentration."""
        return float(self.gp.levels[0]), float(self.gp.levels[-1])

    @property
    def served_range(self) -> tuple[float, float]:
        """Concentrations the neural flow answers for: the calibrated range and ``config.margin`` of it beyond."""
        return asked_range(self.gp.levels, self.config.margin)

    @cached_property
    def calibration(self) -> Calibration:
        """The standards as a calibration: concentration from spectrum, verdicts, figures of merit."""
        return Calibration.from_dataset(self.dataset, self.concentration_std, self.preprocessing, self.ensemble)

    @cached_property
    def ensemble(self) -> NodeEnsemble | None:
        """What bands and `quantify` rest on where ``config.folds`` chose the neural ensemble; None for the GP."""
        if self.folds is not None and self.flow is not None:
            return flow_ensemble(self.gp, self.flow, self.folds, self.fold_flows)
        if self.folds is None or self.ode is None or self.problem is None:
            return None
        return node_ensemble(self.gp, self.ode, self.problem, self.folds, self.config)

    @cached_property
    def conclusion(self) -> Conclusion:
        """How good it is, what is wrong and what it can tell apart: ``print(*model.conclusion.lines(), sep="\\n")``."""
        return Conclusion(self.calibration)

    def coverage(self, predictor: str | None = None) -> dict[str, Any]:
        """How often held-out standards lay inside the 80 % bands of `predict_spectra` and the 80 % sets of `quantify`.

        The bands are those of the pre-trained flow, or of the neural ensemble with ``config.folds``, where
        ``predictor`` is "node" (None takes ``config.predictor``), else those of the Gaussian process. Those of a
        pre-trained flow are None where the weights that it was read with are not at hand.
        """
        of_node = (predictor or self.config.predictor) == "node"
        found = coverage(self.calibration if of_node else self.calibration.of_process)
        return {**found, **self._flow_bands} if of_node and self.flow is not None and self.folds is None else found

    @cached_property
    def _flow_bands(self) -> dict[str, Any]:
        return band_coverage(self.dataset, self.gp, self.config, self.weights)

    def quantify(self, spectra: Any, wavelengths: Any = None, *, select: str | None = None, **options: Any) -> Any:
        """The concentration of one unknown, or of several.

        Args:
            spectra: what `Calibration.quantify` takes ([V], or [k, V] with a sample a row; numbers, xarray, pandas); or
                a file of one spectrum, a list of files (a sample each), or what `geonode.load_unknowns` read.
            wavelengths: [V], None where they have their own or are those of the standards.
            select: of files, the spectra whose name contains this. options: those of `Calibration.quantify`.

        Returns:
            An `Answer` (a `Quantification` that can be printed, plotted and asked ``why``) for one spectrum and for
            ``replicates=True``; else a list, one for each sample. A file that cannot be answered among others costs
            them nothing: a `Refused` with verdict "refused" and its reason (``why``) stands in its place.

        Raises:
            InputError: spectra or files that do not suit the standards, several given as one, an option out of range.
        """
        asked = asked_of_files(spectra, self.standards, select=select, replicates=options.get("replicates", False))
        if asked is None:
            found = self.calibration.quantify(spectra, wavelengths, **options)
            many = isinstance(found, list)
            return [Answer.from_explained(one) for one in found] if many else Answer.from_explained(found)
        options = {name: value for name, value in options.items() if name != "replicates"}
        return asked.answered(lambda one: Answer.from_explained(self.calibration.quantify(one, **options)))

    def arc_length(self, concentrations: Sequence[float] | np.ndarray) -> np.ndarray | None:
        """Arc length of the full metric at ``concentrations`` [C] of the served range, [C, W], scaled to [−1, 1] on the
        calibrated range, mean over the members; None without a neural flow."""
        if self.flow is not None:
            return self.flow.arc_length(as_numbers(concentrations, "concentrations"))
        if self.ode is None:
            return None
        return arc_length(self.ode, as_numbers(concentrations, "concentrations"))

    def predict_spectra(
        self, concentrations: float | Sequence[float] | np.ndarray, predictor: str | None = None
    ) -> tuple[xr.DataArray, xr.DataArray]:
        """Mean and standard deviation of the spectrum at each concentration.

        Args:
            concentrations: a number or [C], in the unit of the standards; ``extrapolated`` flags what lies outside.
            predictor: ``"node"`` or ``"gp"``; None takes ``config.predictor``.

        Returns:
            (mean, std), each an xarray.DataArray with dims (concentration, wavelength), in the unit of the standards.
            std is that of one further measured spectrum: that of the pre-trained flow's Student t; for a flow that was
            trained on the standards the GP's calibrated Student-t band and the spread of its members besides; with
            ``config.folds`` that of the neural ensemble, calibrated by its own held-out errors. With a preprocessing
            both are preprocessed spectra; their attribute ``preprocessing`` says how.

        Raises:
            InputError: not finite, beyond what the flow serves, or over three ranges beyond the standards.
        """
        c = np.atleast_1d(as_numbers(concentrations, "concentrations"))
        if c.ndim != 1 or len(c) == 0 or not np.isfinite(c).all():
            raise InputError("concentrations must be a number or a list of finite numbers.")
        predictor = predictor or self.config.predictor
        if predictor not in ("node", "gp"):
            raise InputError(f"{argument('predictor', predictor)} is not known; choose node or gp.")
        if predictor == "node":
            self._require_flow()
        self._require_served(c, predictor)
        labelled = partial(self._labels, c)
        ensemble = self.ensemble if predictor == "node" else None
        there = self.on_device(predictor) if ensemble is None else None
        if there is not None:
            return labelled(*there(c), there.dof)
        reader = ensemble.process if ensemble is not None else self.flow if predictor == "node" else None
        if reader is not None:
            return labelled((found := reader.predict(c)).mean, found.std, found.dof)
        band = self.gp.predict(c)
        mean, variance = band.mean, band.std**2
        if predictor == "node":
            members = self._node_spectra(c)
            mean = members.mean(0)
            if len(members) > 1:
                variance = variance + members.var(0, ddof=1)
        return labelled(mean, np.sqrt(variance), band.dof)

    def predict_interval(
        self,
        concentrations: float | Sequence[float] | np.ndarray,
        level: float = 0.8,
        predictor: str | None = None,
    ) -> tuple[xr.DataArray, xr.DataArray]:
        """Between which values a further measured spectrum lies with probability ``level``, wavelength by wavelength.

        Args:
            concentrations: as for `predict_spectra`.
            level: probability that the interval holds, 0.8 for the bands of figures and reports.
            predictor: as for `predict_spectra`.

        Returns: (low, high), each as the mean of `predict_spectra`.

        Raises:
            InputError: as `predict_spectra`, or a level that is not between 0 and 1.
        """
        mean, std = self.predict_spectra(concentrations, predictor)
        half = half_width(std, level)
        return mean.copy(data=mean.values - half), mean.copy(data=mean.values + half)

    def plot(self, path: str | Path | None = None, concentrations: Any = None) -> Figure | Path:
        """Draw predicted spectra with their bands among the standards, and the response against concentration.

        Args:
            path: a figure's file (.png, .pdf, …), which is given back; None for matplotlib's figure itself.
            concentrations: [C] in the unit of the standards; None for the middles between standards, at most six.

        Raises:
            InputError: as `predict_spectra`, or a suffix that is no format of figures.
        """
        return draw_model(self, path, concentrations)

    def __repr__(self) -> str:
        return model_text(self)

    def _repr_html_(self) -> str:
        return model_html(self)

    def _require_flow(self) -> None:
        if self.flow is None and (self.ode is None or self.problem is None):
            raise InputError(f"This model has no neural flow ({argument('predictor', 'gp')}); fit again with 'node'.")

    def _node_spectra(self, c: np.ndarray) -> np.ndarray:
        """Spectra [members, C, W] of the neural ensemble."""
        assert self._ode is not None and self.problem is not None
        rows = torch.from_numpy(np.tile(c, (self.problem.models, 1)))
        return predict(self._ode, self.problem, rows).cpu().double().numpy()

    def _require_served(self, c: np.ndarray, predictor: str) -> None:
        (low, high), unit = self.served_range, self.dataset.units["concentration"]
        require_reach(c, *self.calibrated_range, unit)
        if predictor == "node" and len(outside := c[(c < low) | (c > high)]):
            margin = f"fit again with a larger margin ({argument('margin')}), or use {argument('predictor', 'gp')}"
            remedy = "there is no concentration below zero" if outside[0] < 0.0 <= low else margin
            said = f"Concentration {outside[0]:g} lies outside {low:g} … {high:g} {unit}"
            raise InputError(f"{said}, the range that the neural flow serves; {remedy}.")

    def save(self, path: str | Path) -> None:
        """Write the bundle to ``path``: one file, tensors in safetensors and metadata in its JSON header, whole or not
        at all.

        Raises:
            InputError: the folder does not exist, or ``path`` is a folder or a file that is no bundle.
        """
        write_model(self, path)


def fit(
    dataset: Any,
    config: GeodesicConfig | None = None,
    *,
    metric: Metric | LogMetric | type | str | None = None,
    flow: Flow | type | str | None = None,
    solver: Solver | type | str | None = None,
    weights: str | Path | None = None,
    device: str = "auto",
    seed: int | None = None,
    progress: Progress | None = None,
    log_dir: str | Path | None = None,
    concentration_std: Any = None,
    preprocessing: Preprocessing | str | Sequence[str] | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    strategy: str = "auto",
    callbacks: Sequence[Any] = (),
    **training: Any,
) -> GeodesicModel:
    """Fit a calibration to standards. By default nothing is trained: the pre-trained flow reads them, within a second.

    Args:
        dataset: at least three levels of one analyte: a `SpectralDataset`, or what `geonode.data.given_standards` makes
            one of (a file, a pandas DataFrame, an xarray.DataArray). Wavelengths with masked values are left out.
        config: None for the defaults.
        metric, flow, solver: objects, classes or registered names, in place of those that ``config`` names. Of an
            object its class and the arguments it was made with are taken, so that every member of the ensemble starts
            from a seed of its own and a bundle can say what it holds; its class must be registered. A `Metric` is taken
            as one of concentration, a `LogMetric` as the correction of the warp.
        weights: of the pre-trained flow, a file that `geonode.adapt` or `geonode pretrain` wrote; None for the default.
        device: ``auto``, ``cpu``, ``cuda`` or ``mps``, for the training; the fitted model lives on the CPU.
        seed: overrides ``config.seed``.
        progress: called as ``progress(what, done, total)``.
        log_dir: TensorBoard and CSV logs of the training; None writes none.
        concentration_std: standard uncertainty of the standards' concentrations in their unit, one number or one per
            level (ascending); it widens what the model says of unknowns, not the fit. None: they count as exact.
        preprocessing: steps applied to the standards before anything else, and to unknowns: ``"snv"``, ``["snv",
            "range:400-700"]`` or a `geonode.data.Preprocessing`; the model then is one of preprocessed spectra.
        checkpoint: folder for checkpoints of the training; None writes none.
        resume: go on from the newest intact checkpoint there; from the start where there is none.
        strategy: one of `geonode.training.launch.STRATEGIES`; ``auto`` is DDP under torchrun or SLURM.
        callbacks: Lightning callbacks, for example `geonode.training.lightning.monitor.Monitor`; with any, or with a
            ``strategy``, Lightning trains.
        training: further options of `geonode.training.standards.train_standards`: ``batch="auto"``, ``compiled``,
            ``recompute``, ``profile``, ``probe``, ``watcher``, ``wandb``.

    Raises:
        InputError: several analytes, fewer than three levels, uncertainties that do not fit the levels, preprocessing
            that cannot be done, weights that cannot be had, or a metric, flow or solver that is not registered.
        DeviceError: a device or precision that cannot be had.
        Interrupted: SIGTERM stopped the training; its state is in ``checkpoint``.
        TrainingError: the loss did not stay finite, roll-backs with smaller steps included.
    """
    given = {"metric": metric, "flow": flow, "solver": solver, "seed": seed}
    changes = {name: value for name, value in given.items() if value is not None}
    config = with_weights(GeodesicConfig.of(config).replace(**changes), weights)
    warn_of_idle_settings(config)
    resolve_device(device)
    chain = Preprocessing.of(preprocessing)
    standards = prepared(given_standards(dataset))
    dataset = standards if chain is None else chain.fit_transform(standards)
    std = level_std(concentration_std, levels_to_read(dataset.levels, config))
    made = {"environment": environment(), "files": checksums(dataset.files)}
    gp = fit_gp(dataset)
    folds = Folds.of(dataset, gp, chain) if config.training.folds else None
    if config.predictor == "gp" or not FLOWS[config.flow.name].needs_training:
        require_no_training(
            config, log_dir=log_dir, checkpoint=checkpoint, resume=resume, strategy=strategy, callbacks=callbacks,
            **training,
        )  # fmt: skip
        read = {} if config.predictor == "gp" else read_all(dataset, gp, folds, config)
        model = GeodesicModel(dataset, config, gp, None, None, (), std, chain, standards, folds, **read)
        model.made = made
        return model
    from geonode.training.standards import train_standards

    report = None if progress is None else lambda done, total: progress("training the flow", done, total)
    trained = train_standards(
        dataset,
        gp,
        config,
        folds,
        device=device,
        progress=report,
        log_dir=log_dir,
        checkpoint=checkpoint,
        resume=resume,
        strategy=strategy,
        callbacks=callbacks,
        **training,
    )
    problem, ode = trained.problem, trained.ode
    if folds is not None:
        state, folds.state = split(ode, config)
        problem = select_rows(problem, config.training.members)
        ode = restore(problem, config, state)
    model = GeodesicModel(dataset, config, gp, problem, ode, trained.outcome.history, std, chain, standards, folds)
    model.made = made
    return model


def load(path: str | Path) -> GeodesicModel:
    """Read a bundle written by `GeodesicModel.save` from the file ``path``.

    Raises:
        BundleError: missing, truncated, altered, foreign, or of a later version.
    """
    parts, made = read_model(path)
    model = GeodesicModel(**vars(parts))
    model.made = made
    return model
