"""Axes that Python names as something else than wavelengths: kept with their own unit and said, or refused; never nm
without a word. The words are the file readers'."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from geonode.calibration import Calibration
from geonode.data import SpectralDataset, given_standards
from geonode.data.readers import read_file
from geonode.errors import InputError
from tests.calibration.assays import LEVELS, WAVE, monotone, noisy

Y = noisy(monotone, LEVELS, 0)
OTHER = {  # name of an axis → the unit that is kept
    "Time (s)": "s",
    "Zeit / min": "min",
    "time_s": "",
    "Field (mT)": "mT",
    "field_mT": "",
    "Temperature": "",
    "Temperature (°C)": "°C",
    "Potential / V": "V",
    "Potential vs Ag/AgCl (V)": "V",
    "2theta": "",
    "m/z": "",
    "Binding energy (eV)": "",
    "Distance (µm)": "",
    "Frequency (Hz)": "Hz",
    "Chemical shift [ppm]": "ppm",
}
WAYS = {
    "column": lambda name, axis: pd.DataFrame({name: axis, **{f"{c:g}": y for c, y in zip(LEVELS, Y, strict=True)}}),
    "index": lambda name, axis: pd.DataFrame(
        {f"{c:g} µM": y for c, y in zip(LEVELS, Y, strict=True)}, index=pd.Index(axis, name=name)
    ),
    "name of the columns": lambda name, axis: pd.DataFrame(
        Y, columns=pd.Index(axis, name=name), index=pd.Index(LEVELS, name="concentration")
    ),
    "column of concentrations": lambda name, axis: pd.DataFrame(Y, columns=pd.Index(axis, name=name)).assign(
        concentration=LEVELS
    ),
    "dimension": lambda name, axis: xr.DataArray(
        Y, dims=("concentration", name), coords={name: axis, "concentration": LEVELS}
    ),
    "Series": lambda name, axis: SpectralDataset(Y, LEVELS, pd.Series(axis, name=name)),
    "Index": lambda name, axis: SpectralDataset(Y, LEVELS, pd.Index(axis, name=name)),
    "coordinate": lambda name, axis: SpectralDataset(Y, LEVELS, xr.DataArray(axis, dims=name, name=name)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "unit"), OTHER.items(), ids=OTHER)
def test_standards_over_another_axis_keep_its_unit_and_say_so(way, name, unit):
    for axis in (WAVE, np.linspace(0.5, 60.0, len(WAVE))):  # as wavelengths lie, and as none do
        data = given_standards(WAYS[way](name, axis))
        assert data.wavelength_unit == unit
        np.testing.assert_array_equal(data.wavelengths, axis)
        np.testing.assert_array_equal(data.concentrations, LEVELS)
        assert any(name.replace("_", " ") in note and "is no wavelength" in note for note in data.notes)


@pytest.mark.parametrize(("name", "unit"), OTHER.items(), ids=OTHER)
def test_files_say_the_same(tmp_path, name, unit):
    path = tmp_path / "a.csv"
    WAYS["column"](name.replace("_", " "), WAVE).to_csv(path, index=False)
    found = read_file(path)
    assert found.wavelength_unit == unit and any("is no wavelength" in note for note in found.notes)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["pixel", "Channel", "index", "Pixel #", "Kanal"])
def test_what_only_counts_is_no_axis(way, name):
    for axis in (WAVE, np.arange(1.0, len(WAVE) + 1.0)):
        with pytest.raises(InputError, match=f"'{name}', which only counts; give the wavelengths"):
            given_standards(WAYS[way](name, axis))


ATTRIBUTES = {
    "s": ("time", {"units": "s"}, "s"),
    "mT": ("field", {"units": "mT"}, "mT"),
    "a wavelength in s": ("wavelength", {"units": "s"}, "s"),
    "V by its long name": ("x", {"units": "V", "long_name": "Potential vs NHE"}, "V"),
    "binding energy": ("binding_energy", {"units": "eV"}, ""),
    "ppm": ("wavelength", {"units": "ppm", "standard_name": "chemical shift"}, "ppm"),
}


@pytest.mark.parametrize(("dim", "attributes", "unit"), ATTRIBUTES.values(), ids=ATTRIBUTES)
def test_attributes_say_it_too(dim, attributes, unit):
    coordinate = xr.DataArray(WAVE, dims=dim, name=dim, attrs=attributes)
    found = [SpectralDataset(Y, LEVELS, coordinate)]
    if dim != "x":  # which of two dimensions x is, nothing says
        array = xr.DataArray(Y, dims=("concentration", dim), coords={dim: (dim, WAVE, attributes)})
        found.append(given_standards(array.assign_coords(concentration=LEVELS)))
    for data in found:
        assert data.wavelength_unit == unit and any("is no wavelength" in note for note in data.notes)


@pytest.mark.parametrize(
    ("name", "attributes", "unit"),
    [
        ("wavelength", {}, "nm"), ("wavelength_um", {}, "µm"), ("Wavenumber", {}, "cm-1"), ("energy (eV)", {}, "eV"),
        ("x", {"units": "nanometers"}, "nm"), ("wavelength", {"units": "um"}, "µm"), ("Raman shift (cm-1)", {}, "cm-1"),
        ("frequency", {"units": "THz"}, "THz"), ("x", {"units": "nm", "long_name": "Wavelength"}, "nm"),
    ],
)  # fmt: skip
def test_wavelengths_keep_the_unit_that_is_said(name, attributes, unit):
    array = xr.DataArray(Y, dims=("concentration", name), coords={name: (name, WAVE, attributes)})
    data = given_standards(array.assign_coords(concentration=LEVELS))
    assert data.wavelength_unit == unit and not data.notes
    again = given_standards(data.xarray["spectra"])
    assert again.wavelength_unit == unit


@pytest.mark.parametrize(
    ("axis", "unit"), [(WAVE, "nm"), (WAVE / 1000.0, ""), (10.0 * WAVE, ""), (WAVE - 350.0, "")], ids=str
)
def test_an_axis_without_a_name_is_nanometres_only_where_it_may_be_and_that_is_said(axis, unit):
    frame = pd.DataFrame(Y, columns=axis, index=pd.Index(LEVELS, name="concentration"))
    data = given_standards(frame)
    assert data.wavelength_unit == unit
    assert any("taken as wavelengths in nm" in n if unit else "none is assumed" in n for n in data.notes)
    assert given_standards(data.xarray["spectra"]).wavelength_unit == unit, "what is not known stays so"


@pytest.mark.parametrize("name", ["Time (s)", "pH", "Temperature"])
def test_an_index_beside_columns_that_are_wavelengths_is_that_of_the_samples(name):
    data = given_standards(pd.DataFrame(Y, columns=WAVE, index=pd.Index(LEVELS, name=name)))
    np.testing.assert_array_equal(data.concentrations, LEVELS)
    with pytest.raises(
        InputError, match=rf"index is '{re.escape(name)}'.*it cannot be told which of the two are samples"
    ):
        given_standards(pd.DataFrame(Y.T, index=pd.Index(WAVE, name=name), columns=LEVELS))


def test_columns_that_are_no_spectra_are_left_out_as_in_files():
    samples = {f"{c:g}": y for c, y in zip(LEVELS, Y, strict=True)}
    data = given_standards(
        pd.DataFrame({"pixel": np.arange(len(WAVE)), "wavelength": WAVE, "Temp (°C)": 25.0, **samples})
    )
    np.testing.assert_array_equal(data.spectra, Y)
    assert [note.split(" of ")[0] for note in data.notes] == ["column 'pixel'", "column 'Temp (°C)'"]
    with pytest.raises(InputError, match=r"columns of the standards only count \(1, 2, 3"):
        given_standards(pd.DataFrame(Y, columns=range(1, len(WAVE) + 1), index=pd.Index(LEVELS, name="concentration")))


@pytest.fixture(scope="module")
def model():
    return Calibration.from_dataset(SpectralDataset(Y, LEVELS, WAVE))


UNKNOWN = noisy(monotone, 25.0, 1)[0]
UNKNOWNS = {
    "Series": lambda name: pd.Series(UNKNOWN, index=pd.Index(WAVE, name=name)),
    "rows": lambda name: pd.DataFrame([UNKNOWN], columns=pd.Index(WAVE, name=name)),
    "columns": lambda name: pd.DataFrame({name: WAVE, "u": UNKNOWN}),
    "DataArray": lambda name: xr.DataArray(UNKNOWN, dims=name, coords={name: WAVE}),
}


@pytest.mark.parametrize("made", UNKNOWNS.values(), ids=UNKNOWNS)
@pytest.mark.parametrize("name", ["Time (s)", "Field (mT)", "Temperature", "pixel"])
def test_unknowns_over_another_axis_are_refused(model, made, name):
    with pytest.raises(InputError, match=r"is no wavelength of a known unit.* standards' are in nm|only counts"):
        model.quantify(made(name))


@pytest.mark.parametrize(
    "axis", [pd.Series(WAVE, name="Time (s)"), pd.Index(WAVE, name="Potential / V")], ids=["s", "V"]
)
def test_wavelengths_given_beside_numbers_are_held_to_their_name(model, axis):
    with pytest.raises(InputError, match=r"is no wavelength of a known unit"):
        model.quantify(UNKNOWN, axis)
    with pytest.raises(InputError, match="only counts"):
        model.quantify(UNKNOWN, pd.Series(WAVE, name="pixel"))


def test_another_axis_calibrates_what_is_measured_over_it():
    axis = pd.Index(WAVE, name="Time (s)")
    data = SpectralDataset(Y, LEVELS, axis)
    calibrated = Calibration.from_dataset(data)
    said = calibrated.quantify(pd.Series(UNKNOWN, index=axis))
    assert said.estimate == pytest.approx(25.0, abs=1.5)
    with pytest.raises(InputError, match="in nm and that of the standards in s, and the one does not convert"):
        calibrated.quantify(pd.Series(UNKNOWN, index=pd.Index(WAVE, name="nm")))
