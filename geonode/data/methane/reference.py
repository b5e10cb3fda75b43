"""The same absorption by HAPI, HITRAN's own program: what `absorption` is compared with, slow and line by line."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from geonode.data.checks import Floats
from geonode.data.methane.lines import LineList, write_hitran
from geonode.errors import InputError


def hapi_absorption_coefficient(
    wavenumber: Floats, fraction: float, temperature: float, pressure: float, lines: LineList
) -> Floats:
    """Absorption coefficient ``[S]`` in cm⁻¹ of methane in air, by HAPI's Voigt profiles.

    Args as for `absorption_coefficient`, for one state of the gas; ``wavenumber`` ascends.

    Raises:
        InputError: the package hitran-api is not installed.
    """
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it greets
            import hapi
    except ImportError:
        raise InputError(
            "HAPI comes in the package hitran-api; install it with pip install 'geodesic-node[simulate]'."
        ) from None
    program: Any = hapi
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        write_hitran(lines, Path(folder) / "CH4.data")
        header = {**program.HITRAN_DEFAULT_HEADER, "table_name": "CH4", "number_of_rows": len(lines)}
        (Path(folder) / "CH4.header").write_text(json.dumps(header))
        before = os.getcwd()
        program.db_begin(folder)
        try:
            _, coefficient = program.absorptionCoefficient_Voigt(
                SourceTables="CH4",
                Environment={"p": pressure, "T": temperature},
                Diluent={"air": 1 - fraction, "self": fraction},
                OmegaGrid=np.asarray(wavenumber, dtype=np.float64),
                WavenumberWing=1e3,  # no cut-off, as in `absorption`
                HITRAN_units=False,
            )
        finally:
            os.chdir(before)
            program.LOCAL_TABLE_CACHE.clear()
    return fraction * np.asarray(coefficient, dtype=np.float64)
