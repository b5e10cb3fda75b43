"""`Calibration`: everything a lab asks of its standards, fitted in well under a second and without the neural flow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from geonode.calibration.asking import questions
from geonode.calibration.assessment.curve_check import CurveCheck
from geonode.calibration.assessment.held_out import HeldOut, hold_out
from geonode.calibration.assessment.match_limits import match_limits
from geonode.calibration.assessment.response import Response, response_of
from geonode.calibration.causes.explained import Explained
from geonode.calibration.causes.of_calibration import ExplainingCalibration
from geonode.calibration.facts import facts_of
from geonode.calibration.gp.geodesic_gp import GeodesicGP
from geonode.calibration.gp.node_process import NodeEnsemble
from geonode.calibration.inverse.model import InverseModel
from geonode.calibration.levels import level_std, merged_levels
from geonode.calibration.measured_standards import MeasuredStandards
from geonode.calibration.notebook import ShownCalibration
from geonode.calibration.posterior.quantifier import own_levels_of, posterior_of, unfit_for
from geonode.calibration.remarks import method_of, remarks_on
from geonode.data.given import given_spectra
from geonode.data.preprocessing import Preprocessing
from geonode.errors import InputError
from geonode_runtime.answers import Facts, answer, answer_many, check_options, without_matrix
from geonode_runtime.given_numbers import as_numbers
from geonode_runtime.replicates import require_one_sample
from geonode_runtime.standard_spectra import StandardSpectra
from geonode_runtime.unknowns import Unknown
from geonode_runtime.verdicts import FEWEST_CHECKED

if TYPE_CHECKING:
    from geonode.calibration.assessment.standing import Standing
    from geonode.calibration.posterior.own_levels import OwnLevels
    from geonode_runtime.posterior.answers import LearnedPosterior


class Calibration(ShownCalibration, ExplainingCalibration):
    """Standards turned into a calibration: forward model, inverse model and what held-out standards say about both.

    Args:
        concentrations: ``[N]``, user units; equal values are replicates of one level.
        spectra: ``[N, W]``, finite.
        wavelengths: ``[W]`` ascending, None for 0, 1, 2, …
        concentration_std: standard uncertainty of the standards' concentrations, user units: one number, or ``[n]``
            per level (ascending). None: they count as exact.
        unit: of the concentrations, for texts.
        preprocessing: what made ``spectra`` of the standards as measured (fitted on them, in the same order); unknowns
            then come as measured. None: spectra are as measured.
        ensemble: the neural flow with its folds, on which everything then rests in place of the Gaussian process.
        minimum_levels: 3; with 2 there is nothing to leave out, so nothing checks the sets and no limit is learned.
        names: ``[N]`` of the standards, for what is said of single ones.

    Attributes:
        gp, inverse, held_out, curve_check: the parts. own_limits: of Q and T², learned from all standards.
        levels, level_index, spectra, wavelengths: the standards, ``[n]``, ``[N]``, ``[N, W]``, ``[W]``.
        signal, wavelength_label: what axes of figures are called: the signal and the wavelength with their units.
        wavelength_unit: that unit alone, empty where it is not known.
        measured: the standards before preprocessing, to which unknowns are brought.
        notes: sentences on the standards (no blank, merged levels, a curve that does not describe them).

    Raises:
        InputError: fewer than three levels, values that are not finite, shapes or uncertainties that do not fit.
    """

    def __init__(
        self,
        concentrations: Any,
        spectra: Any,
        wavelengths: Any = None,
        *,
        concentration_std: Any = None,
        unit: str = "",
        preprocessing: Preprocessing | None = None,
        ensemble: NodeEnsemble | None = None,
        minimum_levels: int = 3,
        names: Sequence[str] = (),
    ) -> None:
        c, x = as_numbers(concentrations, "concentrations"), as_numbers(spectra, "spectra")
        if c.ndim != 1 or x.ndim != 2 or len(c) != len(x):
            raise InputError(
                f"a calibration needs concentrations [N] and spectra [N, W], but got shapes {c.shape} and {x.shape}."
            )
        if not np.isfinite(c).all() or not np.isfinite(x).all():
            raise InputError("the standards contain NaN or infinite values; mask or remove them first.")
        self.unit = unit
        self.signal, self.wavelength_label, self.wavelength_unit = "signal", "wavelength", ""
        notes: list[str] = []
        self.names, self.prepared = tuple(names), c
        c = merged_levels(c, notes)
        self.wavelengths = as_numbers(np.arange(x.shape[1]) if wavelengths is None else wavelengths, "wavelengths")
        self.concentrations, self.spectra = c, x
        self.levels, self.level_index = np.unique(c, return_inverse=True)
        if len(self.levels) < max(minimum_levels, 2):
            raise InputError(
                f"a calibration needs at least {max(minimum_levels, 2)} concentration levels, but there are "
                f"{len(self.levels)}; measure more standards."
            )
        self.concentration_std = level_std(concentration_std, len(self.levels))
        self.ensemble = ensemble
        self.gp = GeodesicGP().fit(c, x) if ensemble is None else ensemble.process
        self.preprocessing = preprocessing
        self.measured = MeasuredStandards(c, x, self.wavelengths, self.gp, preprocessing)
        without = self.measured.spectra_without(self.level_index)
        folds = None if ensemble is None else ensemble.folds
        self.held_out: HeldOut = hold_out(self.gp, x, self.level_index, self.concentration_std, folds, without)
        self.inverse = InverseModel(
            self.gp, self.deviations, self.concentration_std, curve_scale=self.held_out.curve_scale
        )
        own = None if self.unfit_for_posterior else partial(getattr, self, "own_levels")
        self.curve_check = CurveCheck(self.gp, self.held_out, c, x, self.deviations, without, own)
        self.own_limits = (_, self.t2_limit) = match_limits(self.inverse, self.held_out, x)
        self.notes = (*notes, *remarks_on(self))

    @classmethod
    def from_dataset(
        cls,
        dataset: Any,
        concentration_std: Any = None,
        preprocessing: Preprocessing | None = None,
        ensemble: NodeEnsemble | None = None,
    ) -> Calibration:
        """From a :class:`geonode.SpectralDataset` with one analyte; wavelengths masked in any standard are left out.

        ``preprocessing`` is what gave ``dataset`` by ``fit_transform``, if anything did; ``concentration_std`` and
        ``ensemble`` are those of the constructor.

        Raises:
            InputError: as the constructor, several analytes, or every wavelength masked in some standard.
        """
        c = np.asarray(dataset.concentrations)
        if c.ndim != 1:
            raise InputError(
                f"a calibration is for one analyte, but this dataset has {c.shape[1]}; select the samples in which "
                "only one of them varies."
            )
        usable = np.asarray(np.isfinite(dataset.spectra).all(axis=0))
        if not usable.any():
            raise InputError("every wavelength is masked in some standard, so nothing is left to calibrate with.")
        made = cls(
            c,
            dataset.spectra[:, usable],
            dataset.wavelengths[usable],
            concentration_std=concentration_std,
            unit=dataset.units["concentration"],
            preprocessing=preprocessing,
            ensemble=ensemble,
            names=dataset.names,
        )
        units = dataset.units
        made.signal = f"{dataset.signal} / {units['signal']}" if units["signal"] else dataset.signal or "signal"
        made.wavelength_unit = units["wavelength"]
        if units["wavelength"]:
            made.wavelength_label = f"wavelength / {units['wavelength']}"
        if not usable.all():
            made.notes += (
                f"{int((~usable).sum())} of {len(usable)} wavelengths are masked in some standard: left out",
            )
        return made

    # ------------------------------------------------------------------ the standards

    @cached_property
    def of_process(self) -> Calibration:
        """The same standards with the Gaussian process: this calibration itself unless it rests on a neural ensemble.
        What looks at standards one by one (`check_standards`, `suggest_standard`) asks it."""
        if self.ensemble is None:
            return self
        return Calibration(
            self.concentrations,
            self.spectra,
            self.wavelengths,
            concentration_std=self.concentration_std,
            unit=self.unit,
            preprocessing=self.preprocessing,
            names=self.names,
        )

    @cached_property
    def standing(self) -> Standing:
        """What the standards deserve: wrong replicates, levels that contradict the others, whether they are usable."""
        from geonode.calibration.assessment.standing import Standing

        return Standing(self)

    @property
    def q_limit(self) -> float:
        """Upper limit of Q for genuine spectra, learned from the standards that are trusted."""
        return self.standing.q_limit

    @property
    def deviations(self) -> np.ndarray | None:
        """``[N, W]`` spectra less their level means; None without replicates."""
        if len(self.spectra) == len(self.levels):
            return None
        return self.spectra - self.gp.level_means[self.level_index]

    @property
    def range(self) -> tuple[float, float]:
        """Lowest and highest standard, user units."""
        return float(self.levels[0]), float(self.levels[-1])

    @property
    def has_blank(self) -> bool:
        """Whether a standard of concentration zero was measured."""
        return bool((self.levels == 0.0).any())

    @property
    def attainable(self) -> float:
        """n/(n + 1): the highest coverage that n held-out scores can guarantee without a model (split conformal,
        Lei et al. 2018, J. Am. Stat. Assoc. 113, 1094); six standards end at 85.7 %."""
        return len(self.levels) / (len(self.levels) + 1.0)

    @property
    def checked(self) -> bool:
        """Whether there are standards enough to check the curve with, so that intervals can be claimed at all."""
        return len(self.levels) >= FEWEST_CHECKED

    @cached_property
    def response(self) -> Response:
        """What changes with concentration, and whether anything does."""
        return response_of(self.curve_check, self.inverse.projection, self.wavelengths)

    # ------------------------------------------------------------------ unknowns

    def quantify(
        self,
        spectra: Any,
        wavelengths: Any = None,
        *,
        replicates: bool | Sequence[Any] = False,
        level: float = 0.8,
        dilution: float = 1.0,
        dilution_std: float = 0.0,
        blank: Any = None,
        blank_wavelengths: Any = None,
        mask: Any = None,
        saturation: float | None = None,
        name: str = "the unknown",
        method: str | None = None,
    ) -> Any:
        """The concentration of one unknown, or of several.

        Args:
            spectra: ``[V]`` of one unknown, or ``[k, V]``, a sample a row, as numbers, torch tensor, xarray or pandas
                (`geonode.data.given.given_spectra` lists what there is); wavelengths that they have are honoured. As
                measured: they are preprocessed here as the standards were.
            wavelengths: ``[V]``, None where they have their own or are those of the standards.
            replicates: True where the rows are replicates of one unknown, which are combined; or ``k`` labels, equal
                ones for replicates of one unknown. A coordinate (column) named ``group`` says the same.
            level: nominal coverage of the set, 0 < level < 1.
            dilution: factor by which the unknown was diluted before measuring (≥ 1 for a diluted sample).
            dilution_std: its standard uncertainty, same scale.
            blank: ``[V]`` or ``[b, V]`` spectra of the unknown's own matrix without analyte: replaces the matrix of the
                standards, x − blank + predicted spectrum at zero. blank_wavelengths: None for those of the unknown.
            mask: True where a value is unusable. saturation: values at or above it are masked.
            name: of the unknown, for messages.
            method: ``"posterior"`` (learned on simulated unknowns) or ``"profile"`` (likelihood of the curve); None for
                the posterior, and for the profile where the posterior cannot answer, which a note then says.

        Returns:
            A `Quantification` for one spectrum ``[V]`` and for ``replicates=True``; else a list, one for each row or
            group.

        Raises:
            InputError: see :func:`geonode_runtime.unknowns.prepare_unknown`; also a level, dilution or
                uncertainty out of range, replicates that are different samples, or a method that cannot answer.
        """
        method, said = method_of(self, method)
        check_options(level, dilution, dilution_std)
        asked, single = questions(
            spectra,
            wavelengths,
            replicates=replicates,
            mask=mask,
            name=name,
            unit=self.wavelength_unit,
            standards=self.measured.wavelengths,
        )
        answers = []
        for one in asked:
            unknown = self.measured.aligned(
                one.spectra, wavelengths=one.wavelengths, mask=one.mask, saturation=saturation, name=one.name
            )
            unknown = replace(unknown, notes=(*said, *one.notes, *unknown.notes))
            effective = float(len(unknown.spectra))
            if blank is not None:
                grid = one.wavelengths if blank_wavelengths is None else blank_wavelengths
                unknown, effective = self._without_matrix(unknown, blank, grid)
            prepared = self.measured.preprocessed(unknown, one.name)
            usable = None if prepared.usable.all() else prepared.usable
            facts = self.facts if method == "posterior" else self.facts_of_profile
            if facts.pls is None:  # the curve's word on what is one sample counts only where there is a curve
                require_one_sample(self.inverse, self.range, prepared.spectra, usable, one.name, self.unit, one.labels)
            how = (self.inverse, facts, prepared, effective, level, dilution, dilution_std)
            found = self.posterior.answer(*how) if method == "posterior" else answer(*how)
            answers.append(Explained.of(found, self, unknown, one.name))
        return answers[0] if single else answers

    def _without_matrix(self, unknown: Unknown, blank: Any, grid: np.ndarray | None) -> tuple[Unknown, float]:
        """The unknown with its matrix taken off, and the replicates its mean is then worth."""
        own = given_spectra(blank, name="the matrix blank")
        axis, _ = own.in_unit(self.wavelength_unit, self.measured.wavelengths, "the matrix blank")
        how: dict[str, Any] = {"wavelengths": grid if axis is None else axis, "mask": own.mask}
        matrix = self.measured.aligned(own.values, check_units=False, name="the matrix blank", **how)
        at_zero = self.measured.gp.predict_mean([0.0])[0]
        return without_matrix(unknown, matrix, at_zero, self.has_blank)

    def quantify_many(
        self, spectra: Any, level: float = 0.8, genuine: bool = False, method: str | None = None
    ) -> list[Explained]:
        """One answer per row of ``spectra [U, V]``, as measured on the standards' wavelengths, computed together.

        Args:
            spectra: ``[U, V]``.
            level, method: as for `quantify`.
            genuine: they are this assay's own standards, never judged to be in another unit or no spectra at all.

        Raises:
            InputError: as `quantify`, or masked values that a step needs.
        """
        method, said = method_of(self, method)
        rows = np.atleast_2d(as_numbers(spectra, "spectra"))
        names = [f"unknown {i + 1}" for i in range(len(rows))]
        aligned = [
            self.measured.aligned(row, name=name, genuine=genuine) for row, name in zip(rows, names, strict=True)
        ]
        unknowns = [self.measured.preprocessed(one, name) for one, name in zip(aligned, names, strict=True)]
        unknowns = [replace(one, notes=(*said, *one.notes)) for one in unknowns]
        by_posterior = method == "posterior"
        many, facts = (self.posterior.answer_many, self.facts) if by_posterior else (answer_many, self.facts_of_profile)
        found = many(self.inverse, facts, unknowns, level)
        return [Explained.of(f, self, u, name) for f, u, name in zip(found, aligned, names, strict=True)]

    @cached_property
    def posterior(self) -> LearnedPosterior:
        """What answers with ``method="posterior"``."""
        return posterior_of(self)

    @cached_property
    def own_levels(self) -> OwnLevels:
        """What the standards, each level left out, say of the posterior."""
        return own_levels_of(self)

    @property
    def unfit_for_posterior(self) -> str:
        """Why the learned posterior cannot answer here; empty where it can."""
        return unfit_for(self)

    @cached_property
    def facts(self) -> Facts:
        """What answers need to know of the standards besides the curve."""
        return facts_of(self, self.curve_check)

    @cached_property
    def facts_of_profile(self) -> Facts:
        """The same for ``method="profile"``, where PLS has to be better than the curve alone to answer."""
        return facts_of(self, self.curve_check.of_curve)

    @cached_property
    def standard_spectra(self) -> StandardSpectra:
        """The standards' spectra, as they are recognised among unknowns."""
        return self.inverse.projection.standard_spectra(self.spectra, self.level_index, self.concentrations)

    # ------------------------------------------------------------------ state

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and JSON metadata from which :meth:`from_state` restores the calibration by refitting it."""
        arrays = {"concentrations": self.concentrations, "spectra": self.spectra, "wavelengths": self.wavelengths}
        if self.concentration_std is not None:
            arrays["concentration_std"] = self.concentration_std
        meta: dict[str, Any] = {"unit": self.unit}
        if self.preprocessing is not None:
            meta["preprocessing"], learned = self.preprocessing.state()
            arrays |= {f"preprocessing/{name}": value for name, value in learned.items()}
        return arrays, meta

    @classmethod
    def from_state(cls, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> Calibration:
        """Restore from the ``arrays`` and ``meta`` of :meth:`state`."""
        chain = None
        if "preprocessing" in meta:
            learned = {name: arrays[f"preprocessing/{name}"] for name in ("spectra", "wavelengths")}
            chain = Preprocessing.from_state(meta["preprocessing"], learned)
        return cls(
            arrays["concentrations"],
            arrays["spectra"],
            arrays["wavelengths"],
            concentration_std=arrays.get("concentration_std"),
            unit=meta["unit"],
            preprocessing=chain,
            minimum_levels=2,
        )
