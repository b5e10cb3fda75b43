"""What scikit-learn refuses of a calibrator's input, told with the argument, the place and what to do.

The words that scikit-learn's own checks of estimators look for are kept in the sentences.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from geonode.calibration.columns import wavelengths_of
from geonode.errors import InputError


def validated(estimator: Any, *data: Any, **options: Any) -> Any:
    """What `sklearn.utils.validation.validate_data` gives.

    Args:
        estimator: whose input it is. data: X, or X and y. options: of that function.

    Raises:
        InputError: values that are not finite or no real numbers, one spectrum that is no row, another number of
            wavelengths, too few spectra, X and y of different lengths.
        ValueError, TypeError: (of scikit-learn) anything else that it refuses.
    """
    try:
        return validate_data(estimator, *data, **options)
    except ValueError as error:
        said = _told(str(error), dict(zip("Xy", data, strict=False)))
        if said is None:
            raise
        raise InputError(said) from None


def _told(text: str, data: dict[str, Any]) -> str | None:
    """A sentence in the place of ``text``, None where it is clear as it is."""
    first = text.splitlines()[0].rstrip(".:")
    if found := re.match(r"Input (X|y) contains (?:NaN|infinity)", first):
        return _not_finite(found[1], data[found[1]])
    if "Expected 2D array, got 1D array" in first:
        return (
            f"X must be 2-d, [N, W] with a spectrum a row, and is 1-d with {np.size(data['X'])} values. Reshape your "
            "data: X.reshape(1, -1) is one spectrum."
        )
    remedy = next((one for pattern, one in _REMEDIES if re.search(pattern, first)), None)
    return None if remedy is None else f"{first}: {remedy}."


_REMEDIES = (
    (
        r"X has \d+ features, but",
        "give X on the wavelengths of the standards that it was fitted to, a column each (numpy.interp brings it "
        "there), or fit it again on these",
    ),
    (r"minimum of 1 is required|Found array with dim", "give X as [N, W], a spectrum a row and a wavelength a column"),
    (r"sample\(s\)", "give X and y three standards at least, of different concentrations"),
    (r"inconsistent numbers of samples", "X has a spectrum a row, and y one concentration for each of them"),
    (
        r"y should be a 1d array",
        "one concentration a spectrum is taken; fit a calibrator for each analyte, y[:, 0] first",
    ),
    (r"requires y to be passed", "give y, the concentration of each spectrum"),
    (r"Complex data", "give X as real numbers, X.real or numpy.abs(X)"),
    (r"could not convert string", "X and y must be numbers; leave out columns of names, or convert them"),
)
"""What of scikit-learn's first line → what to do."""


def _not_finite(argument: str, values: Any) -> str | None:
    """Of the first value that is not finite: where it stands; None where none is found."""
    numbers = np.asarray(values, dtype=np.float64)
    wrong = np.argwhere(~np.isfinite(numbers))
    if not len(wrong):
        return None
    what = "NaN" if np.isnan(numbers[tuple(wrong[0])]) else "infinity"
    count = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    if argument == "y":
        return f"Input y contains {what} at row {wrong[0][0]} (counted from 0){count}: leave those standards out."
    row, column = (int(k) for k in wrong[0])
    axis = wavelengths_of(values)
    where = f"column {column}" if axis is None else f"wavelength {axis[column]:g}"
    return (
        f"Input X contains {what} at row {row} (counted from 0), {where}{count}: repair that spectrum or leave it out, "
        "or leave that wavelength out of all spectra, in fit and in predict."
    )
