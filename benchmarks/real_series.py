"""The real concentration series that judge: their names, where they lie, and how figures over them are put together.

Nothing is fitted, tuned or chosen on them. The first rules were, on "the seven", so every figure is given over all of
them and over the seven and the seventeen others apart. `nir_gasoline` and `nist_np_time` are not scored: octane
numbers are a property of the sample, and the scalar of the other is time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent

SEVEN = (
    "aunp_dmsa_nacl",
    "flu_quinine",
    "h148g_cl_ph74",
    "nttA04_cl_em",
    "clariostar_dye",
    "nanodrop_anisaldehyde",
    "rhodamine6g_meoh",
)
SEVENTEEN = (
    "h148g_cl_ph52",
    "nttA04_cl_ex",
    "nttG10_ph_ex",
    "cmos_metal",
    "diy_cyan_ink_abs",
    "diy_cyan_ink_counts",
    "metal_co",
    "metal_cr",
    "metal_cu",
    "metal_ni",
    "nanodrop_methoxychalcone",
    "mb_german",
    "uvmini_phenol",
    "uvmini_benzoquinone",
    "uvmini_h2o2",
    "ir_fermentation_glucose",
    "nir_yarn",
)
GROUPS = {"all 24": (*SEVEN, *SEVENTEEN), "the seven": SEVEN, "the seventeen": SEVENTEEN}


def data_folder(argument: str | None) -> Path:
    """The folder that holds ``series/``: ``argument``, else $GEONODE_SHARED/data, else ../shared/data."""
    shared = Path(os.environ.get("GEONODE_SHARED", ROOT.parent / "shared"))
    return Path(argument) if argument else shared / "data"


def require_series(argument: str | None) -> Path:
    """``data_folder`` with its ``series/`` in place; ends the program with a sentence where it is not there."""
    data = data_folder(argument)
    if not (data / "series").is_dir():
        raise SystemExit(f"{data / 'series'} is not there; name the data folder with --data.")
    return data


def geometric_means(ratios: Mapping[str, np.ndarray], names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Geometric mean over the series ``names`` of ``ratios`` by series, and the factor that is one standard error.

    Series that ``ratios`` lacks are left out; with fewer than two the factor is NaN.
    """
    logs = np.array([np.log(ratios[name]) for name in names if name in ratios])
    mean = np.exp(logs.mean(axis=0))
    if len(logs) < 2:
        return mean, np.full_like(mean, np.nan)
    return mean, np.exp(logs.std(axis=0, ddof=1) / np.sqrt(len(logs)))
