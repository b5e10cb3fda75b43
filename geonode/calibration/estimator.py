"""The calibrator as a scikit-learn regressor.

This module imports scikit-learn; ``import geonode`` does not.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from geonode.bundle import PLAIN, read_bundle, write_bundle
from geonode.calibration.assessment.coverage import coverage
from geonode.calibration.calibration import Calibration
from geonode.calibration.columns import in_order_of, wavelengths_of
from geonode.calibration.estimator_input import validated
from geonode.errors import BundleError, InputError
from geonode_runtime.given_paths import as_path
from geonode_runtime.verdicts import Quantification

_KIND = "geodesic_calibrator"
MISMATCHES = ("nan", "nearest")
MOST_ROWS = 10
"""A warning names so many rows."""


class MismatchWarning(UserWarning):
    """Some spectra match the standards at no concentration."""


class GeodesicCalibrator(RegressorMixin, BaseEstimator):
    """Concentration from spectra, by distance to the geodesic process's curve.

    Works in pipelines, ``cross_val_predict`` and ``GridSearchCV``. Nothing is random.

    Args:
        concentration_std: standard uncertainty of every standard's concentration, in units of ``y``; 0 for exact.
        level: nominal coverage of ``predict_interval``, 0 < level < 1.
        method: as for :meth:`geonode.calibration.Calibration.quantify`.
        mismatch: what ``predict`` gives for a spectrum that no concentration of the standards explains (verdict ``does
            not match``): ``"nan"``, or the ``"nearest"`` concentration, for steps that take no NaN (a scorer by name in
            ``cross_val_score``). A `MismatchWarning` names the rows either way.

    Attributes:
        calibration_: the fitted :class:`~geonode.calibration.calibration.Calibration`.
        n_features_in_: W.
        feature_names_in_: the names of the columns, where they had some that are text; spectra whose columns are named
            otherwise, or stand in another order, are refused.
        wavelengths_in_: ``[W]`` of the columns of a DataFrame or the coordinate of a DataArray, where those are
            numbers, else None. Spectra that name theirs too are put into this order; other wavelengths are refused.
    """

    calibration_: Calibration
    n_features_in_: int
    feature_names_in_: np.ndarray
    wavelengths_in_: np.ndarray | None

    def __init__(
        self, concentration_std: float = 0.0, level: float = 0.8, method: str | None = None, mismatch: str = "nan"
    ) -> None:
        self.concentration_std = concentration_std
        self.level = level
        self.method = method
        self.mismatch = mismatch

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Fit standards.

        Args:
            X: ``[N, W]`` spectra.
            y: ``[N]`` concentrations; equal values are replicates of one level.
            groups: ``[N]`` labels of replicates, for standards whose concentrations were written down more finely than
                they were prepared: the concentration of a group is its mean. None: equal ``y`` are a group.

        Raises:
            InputError: fewer than two levels, not one group label per spectrum, values that are not finite, fewer than
                three spectra, X that is not ``[N, W]`` or y that is not ``[N]``.
            ValueError: (of scikit-learn) anything else that it refuses.
        """
        self.wavelengths_in_ = wavelengths_of(X)
        X, y = validated(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=3)
        y = np.asarray(y, dtype=np.float64)
        if groups is not None:
            y = _group_means(y, groups)
        self.calibration_ = Calibration(y, X, concentration_std=self.concentration_std or None, minimum_levels=2)
        return self

    def predict(
        self, X: Any, return_interval: bool = False, level: float | None = None
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """The estimate ``[U]`` that ``quantify`` gives for each row of ``X [U, W]``; for one that does not match, what
        ``mismatch`` says, and one `MismatchWarning` for all of them.

        Where several concentrations explain a spectrum, that of the most probable piece; ``quantify`` says so. Where
        the standards lie on no curve and PLS is much better, it is PLS's, as in ``quantify``.

        Args:
            X: ``[U, W]``.
            return_interval: give ``predict_interval`` beside it, ``([U], [U, 2])``. A pipeline hands this on:
                ``pipeline.predict(X, return_interval=True)``.
            level: of the interval; None for that of the constructor.

        Raises:
            InputError: a ``mismatch`` that is neither of the two, and as `quantify`.
        """
        if self.mismatch not in MISMATCHES:
            raise InputError(f"mismatch={self.mismatch!r} is not known; choose from {', '.join(MISMATCHES)}.")
        found = self._answers(X, level, self.method, genuine=True)
        estimates = np.array([one.nearest if one.matches or self.mismatch == "nearest" else np.nan for one in found])
        self._warn(found)
        return (estimates, self._intervals(found)) if return_interval else estimates

    def predict_interval(self, X: Any, level: float | None = None) -> np.ndarray:
        """``[U, 2]`` lower and upper end of the whole set at ``level`` (None: that of the constructor).

        The ends enclose every component of the set; an end the data do not set is infinite. Both are infinite where the
        standards cannot vouch for ``level``: with fewer than four, or above n/(n + 1) (six standards: 85.7 %). What the
        model says there all the same is ``quantify(X, level)[i].model_interval``. ``coverage_`` says how often held-out
        standards were covered. Both are NaN for a spectrum that does not match.
        """
        return self._intervals(self._answers(X, level, self.method, genuine=True))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the nearest concentrations: a spectrum that is refused counts by where it lies nearest, so that
        refusing makes no score better.

        Args:
            X: ``[U, W]``. y: ``[U]`` true concentrations. sample_weight: ``[U]`` or None.

        Raises:
            InputError: y of another length, and as `quantify`.
        """
        found = self._answers(X, None, self.method, genuine=True)
        if np.shape(y)[:1] != (len(found),):
            raise InputError(f"y must have one concentration for each of the {len(found)} spectra of X.")
        return float(r2_score(y, [one.nearest for one in found], sample_weight=sample_weight))

    @property
    def coverage_(self) -> dict[str, Any]:
        """How often held-out standards lay inside their 80 % sets, and inside the 80 % bands of the spectrum, apart for
        responding and silent wavelengths (see :func:`geonode.calibration.assessment.coverage.coverage`)."""
        check_is_fitted(self)
        return coverage(self.calibration_, self.method)

    def predict_spectra(self, concentrations: Any) -> np.ndarray:
        """Mean spectra ``[C, W]`` at ``concentrations [C]``."""
        check_is_fitted(self)
        return self.calibration_.gp.predict_mean(concentrations)

    def quantify(self, X: Any, level: float | None = None, method: str | None = None) -> list[Quantification]:
        """Verdict, components and intervals of each row of ``X [U, W]`` at ``level`` by ``method`` (None: those of the
        constructor).

        Raises:
            NotFittedError: (of scikit-learn) before `fit`.
            InputError: values that are not finite, another number of wavelengths, or X that is not ``[U, W]``.
        """
        return self._answers(X, level, method or self.method)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and JSON metadata from which :meth:`from_state` restores the fitted calibrator, without pickle."""
        check_is_fitted(self)
        arrays, meta = self.calibration_.state()
        names = getattr(self, "feature_names_in_", None)
        kept = {} if names is None else {"feature_names": [str(name) for name in names]}
        if self.wavelengths_in_ is not None:
            kept["wavelengths"] = self.wavelengths_in_.tolist()
        return arrays, {"calibration": meta, "parameters": self.get_params(), **kept}

    @classmethod
    def from_state(cls, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> GeodesicCalibrator:
        """Restore from the ``arrays`` and ``meta`` of :meth:`state`."""
        made = cls(**meta["parameters"])
        made.calibration_ = Calibration.from_state(arrays, meta["calibration"])
        made.n_features_in_ = arrays["spectra"].shape[1]
        made.wavelengths_in_ = np.array(meta["wavelengths"]) if "wavelengths" in meta else None
        if "feature_names" in meta:
            # scikit-learn then refuses columns that come in another order or under other names.
            made.feature_names_in_ = np.array(meta["feature_names"], dtype=object)
        return made

    def save(self, path: str | Path) -> None:
        """Write the fitted calibrator to the file ``path``: tensors in safetensors with a JSON header, versioned, whole
        or not at all.

        Raises:
            NotFittedError: (of scikit-learn) before `fit`.
            InputError: the folder does not exist, or ``path`` is a folder.
        """
        arrays, meta = self.state()
        tensors = {name: torch.from_numpy(np.array(value)) for name, value in arrays.items()}
        write_bundle(as_path(path, "the bundle"), tensors, {_KIND: meta}, PLAIN)

    @classmethod
    def load(cls, path: str | Path) -> GeodesicCalibrator:
        """Read what :meth:`save` wrote to ``path``.

        Raises:
            BundleError: missing, truncated, altered, of a later version, or no calibrator.
        """
        tensors, meta = read_bundle(as_path(path, "the bundle"))
        if _KIND not in meta:
            raise BundleError(f"{path} holds no GeodesicCalibrator; read it with geonode.load, or save one anew.")
        return cls.from_state({name: value.numpy() for name, value in tensors.items()}, meta[_KIND])

    def _checked(self, X: Any) -> np.ndarray:
        named = hasattr(self, "feature_names_in_") and all(isinstance(v, str) for v in getattr(X, "columns", [0]))
        if not named:  # names that are text on both sides are scikit-learn's to compare
            X = in_order_of(self.wavelengths_in_, X)
        return np.asarray(validated(self, X, dtype=np.float64, reset=False))

    def _answers(self, X: Any, level: float | None, method: str | None, genuine: bool = False) -> list[Quantification]:
        """``genuine``: no value is asked whether it may be in another unit, as scikit-learn's own data are not."""
        check_is_fitted(self)
        level = self.level if level is None else level
        return list(self.calibration_.quantify_many(self._checked(X), level, genuine=genuine, method=method))

    def _intervals(self, found: list[Quantification]) -> np.ndarray:
        level = found[0].level
        claimed = self.calibration_.checked and level <= self.calibration_.attainable
        ends = [_ends(one.components) if claimed else (-np.inf, np.inf) for one in found]
        return np.array([end if one.matches else (np.nan, np.nan) for end, one in zip(ends, found, strict=True)])

    def _warn(self, found: list[Quantification]) -> None:
        rows = [i for i, one in enumerate(found) if not one.matches]
        if not rows:
            return
        said = ", ".join(map(str, rows[:MOST_ROWS]))
        said += f" and {len(rows) - MOST_ROWS} more" if rows[MOST_ROWS:] else ""
        given = "NaN" if self.mismatch == "nan" else "the nearest concentration"
        warnings.warn(
            f"{len(rows)} of {len(found)} spectra match the standards at no concentration (rows {said}, counted from "
            f"0): predict gives {given} there, and quantify(X) says why",
            MismatchWarning,
            stacklevel=3,
        )


def _group_means(y: np.ndarray, groups: Any) -> np.ndarray:
    labels = np.asarray(groups)
    if labels.shape != y.shape:
        raise InputError(f"groups must have one label per spectrum ({len(y)}), but have shape {labels.shape}.")
    _, index = np.unique(labels, return_inverse=True)
    return (np.bincount(index, weights=y) / np.bincount(index))[index]


def _ends(components: Any) -> tuple[float, float]:
    low = -np.inf if any(c.open_low for c in components) else min(c.low for c in components)
    high = np.inf if any(c.open_high for c in components) else max(c.high for c in components)
    return low, high
