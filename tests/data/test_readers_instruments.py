"""Every raw file of every instrument: what is read, and that it is the tidy series where there is one."""

from __future__ import annotations

import numpy as np
import pytest

import geonode
from geonode.data import inspect_file
from geonode.data.readers import read_file
from geonode.errors import InputError, ReaderError
from tests.data import readers_table

# file: (format, spectra, most wavelengths, lowest, highest, unit of wavelength, signal, masked)
RAW = {
    "aunp_cary60/example.csv": ("Agilent Cary export", 10, 601, 199.9992, 799.9915, "nm", "absorbance", 0),
    "clariostar/calibration.csv": ("BMG CLARIOstar export", 27, 291, 220, 800, "nm", "absorbance", 455),
    "clariostar/sample.csv": ("BMG CLARIOstar export", 6, 291, 220, 800, "nm", "absorbance", 61),
    "flu_quinine/flu1.txt": ("PerkinElmer PEDS ASCII", 1, 181, 405, 495, "nm", "fluorescence", 0),
    "flu_quinine/flu6.txt": ("PerkinElmer PEDS ASCII", 1, 181, 405, 495, "nm", "fluorescence", 0),
    "fmt_jcamp/compound.jdx": ("JCAMP-DX", 5, 3951, 450, 4400, "cm-1", "transmittance", 0),
    "fmt_jcamp/pacdec1.jdx": ("JCAMP-DX", 1, 3301, 700, 4000, "cm-1", "transmittance", 0),
    "fmt_jcamp/sqzdupd1.jdx": ("JCAMP-DX", 1, 18669, 499.955, 5000.0323, "cm-1", "transmittance", 0),
    "fmt_oceanoptics/OO_comma.txt": ("Ocean Optics text", 1, 2048, 178.23, 884.34, "nm", "signal", 0),
    "fmt_oceanoptics/OceanView_nonEN.txt": ("Ocean Optics text", 1, 2048, 190.74, 889.44, "nm", "signal", 0),
    "fmt_oceanoptics/spec.csv": ("delimited text", 1, 1994, 299.99, 700.03, "nm", "signal", 0),
    "fmt_spc/nir.spc": ("Thermo/Galactic SPC", 20, 700, 1100, 2498, "nm", None, 0),
    "fmt_spc/s_evenx.spc": ("Thermo/Galactic SPC", 1, 1844, 447.484, 4002.282, "cm-1", "absorbance", 0),
    "fmt_spc/s_xy.spc": ("Thermo/Galactic SPC", 1, 512, 1.08667, 6.01717, None, None, 0),
    "fmt_spc/m_xyxy.spc": ("Thermo/Galactic SPC", 512, None, None, None, None, None, 0),
    "fmt_uvvispy/sa281-02-280K.txt": ("Shimadzu UVProbe text", 1, 601, 300, 900, "nm", "absorbance", 0),
    "fp_h148g/h148g-spettroC.csv": ("PerkinElmer EnSpire export", 65, 229, 272, 500, "nm", "fluorescence", 0),
    "nanodrop_chalcone/calibration_of_all_components.csv": (
        "NanoDrop series export", 16, 381, 220, 600, "nm", "absorbance", 0,
    ),
    "rhodamine6g_meoh/Rhodamine_6G_in_methanol_A1.csv": (
        "Agilent Cary export", 1, 601, 200, 800, "nm", "absorbance", 0,
    ),
    "rhodamine6g_meoh/methanol_baseline.csv": ("Agilent Cary export", 1, 601, 200, 800, "nm", "absorbance", 0),
}  # fmt: skip


@pytest.mark.parametrize("name", RAW)
def test_every_raw_file_is_read_for_what_it_is(shared_data, name):
    found = inspect_file(shared_data / "raw" / name)
    kind, spectra, points, low, high, unit, signal, masked = RAW[name]
    assert found.format == kind and found.spectra == spectra and found.masked == masked
    assert points is None or found.points[1] == points
    assert low is None or found.wavelengths == pytest.approx((low, high), abs=1e-3)
    assert unit is None or found.wavelength_unit == unit
    assert signal is None or found.signal == signal
    assert found.lines()[0].endswith(kind)


def test_no_raw_file_is_forgotten(shared_data):
    """What is no spectrum is refused in one sentence; everything else is in the table above."""
    root = shared_data / "raw"
    for path in sorted(root.glob("*/*")):
        name = str(path.relative_to(root))
        if path.name.startswith(("SOURCE", "LICENSE")) or name in RAW:
            continue
        try:
            found = read_file(path)
        except ReaderError as error:
            assert str(error).startswith(f"{path}: ") and "\n" not in str(error)
            assert path.name in {
                "h148g-spettroC-nota.csv",
                "calibration_of_all_components.txt",
                "concentrations.csv",
                "sa281-02-280K.spc",
            }
        else:
            assert path.parent.name in {"flu_quinine", "rhodamine6g_meoh"} and len(found.traces) == 1


def test_ole2_is_named_for_what_it_is(shared_data):
    with pytest.raises(ReaderError, match=r"280K\.spc: an OLE2 compound file, .* export the spectra as text"):
        read_file(shared_data / "raw" / "fmt_uvvispy" / "sa281-02-280K.spc")


def assert_is_series(data, path, scale=1.0):
    """Equal to the tidy series at every wavelength that both have, to the eight digits with which it was written."""
    series = geonode.load_standards(path)
    np.testing.assert_allclose(data.levels * scale, series.levels, rtol=1e-12)
    np.testing.assert_array_equal(data.level_index, series.level_index)
    mine = {round(x, 4): i for i, x in enumerate(data.wavelengths)}
    columns = [mine.get(round(x, 4)) for x in series.wavelengths]
    assert None not in columns, "the raw file lacks a wavelength of the series"
    raw = data.spectra[:, columns]
    size = np.maximum(np.abs(series.spectra), 1e-300)
    half_a_digit = 0.5 * 10 ** (np.floor(np.log10(size)) - 7)
    assert (np.abs(raw - series.spectra) <= half_a_digit * (1 + 1e-6) + 1e-14).all()


def test_rhodamine_series(shared_data):
    folder = shared_data / "raw" / "rhodamine6g_meoh"
    files = sorted(folder.glob("Rhodamine*.csv"))
    data = geonode.load_standards(files, concentrations=folder / "concentrations.csv")
    assert data.concentration_unit == "mM" and data.shape == (12, 601)
    assert any("3 spectra of unknown concentration left out" in note for note in data.notes)
    assert_is_series(data, shared_data / "series" / "rhodamine6g_meoh.csv")
    with pytest.raises(ReaderError, match="no concentration is known for 'Rhodamine 6G in methanol1'"):
        geonode.load_standards(files)


def test_clariostar_series(shared_data):
    data = geonode.load_standards(shared_data / "raw" / "clariostar" / "calibration.csv")
    assert data.concentration_unit == "relative" and len(data.levels) == 9
    assert_is_series(data, shared_data / "series" / "clariostar_dye.csv")
    for part in ("1/dilution", "3 blanks taken as concentration 0", "455 values masked: at 5.287", "26 of 291"):
        assert any(part in note for note in data.notes), part
    sample = inspect_file(shared_data / "raw" / "clariostar" / "sample.csv")
    assert sum(point is None for _, point, _ in sample.samples) == 3, "samples marked X are unknowns"


def test_nanodrop_series(shared_data):
    path = shared_data / "raw" / "nanodrop_chalcone" / "calibration_of_all_components.csv"
    data = geonode.load_standards(path, select="anisaldehyde, solvent_ethanol", concentration_unit="M")
    assert_is_series(data, shared_data / "series" / "nanodrop_anisaldehyde.csv", scale=1000.0)
    assert any("calibration_of_all_components.txt, which lies beside the file" in note for note in data.notes)
    assert any("no entry in calibration_of_all_components.txt for '4'" in note for note in data.notes)
    with pytest.raises(ReaderError, match=r"4 series .*'anisaldehyde'.* choose one"):
        geonode.load_standards(path)


def test_enspire_series(shared_data):
    folder = shared_data / "raw" / "fp_h148g"
    path, note = folder / "h148g-spettroC.csv", folder / "h148g-spettroC-nota.csv"
    data = geonode.load_standards(path, concentrations=note, column="Cl", select="H148G & pH=7.4")
    assert_is_series(data, shared_data / "series" / "h148g_cl_ph74.csv")
    assert any("saturation in MEAS A: B06" in note for note in data.notes)
    grid = geonode.load_standards(path, concentrations=note, column=["pH", "Cl"], select="H148G")
    assert grid.dim == 2 and grid.analytes == ("pH", "Cl") and grid.levels.shape == (55, 2)
    for keywords, sentence in [
        ({}, "3 columns may be the concentration"),
        ({"column": "Cl"}, r"2 series \('H148G', 'buffer'\)"),
        ({"column": "Cl", "select": "H148G"}, r"differ in 'pH' \(5\.2, 6\.3, 7\.4, 8\.1, 8\.2\); keep one value"),
        ({"column": "chloride"}, "there is no column 'chloride'"),
        ({"column": "Cl", "select": "pH=9"}, "columns to select by, as column=value, are 'Cl', 'Labels'"),
    ]:
        with pytest.raises(ReaderError, match=sentence):
            geonode.load_standards(path, concentrations=note, **keywords)


def test_quinine_series(shared_data):
    files = sorted((shared_data / "raw" / "flu_quinine").glob("flu*.txt"))
    data = geonode.load_standards(
        files, concentrations={f"flu{i}": 0.05 * i for i in range(1, 7)}, concentration_unit="mg/L"
    )
    assert data.signal == "fluorescence"
    assert_is_series(data, shared_data / "series" / "flu_quinine.csv")
    with pytest.raises(InputError, match="none of the concentrations names a spectrum"):
        geonode.load_standards(files, concentrations={"other": 1.0})


def test_ocean_optics_wild_edges_are_noted(shared_data):
    found = inspect_file(shared_data / "raw" / "fmt_oceanoptics" / "OO_comma.txt")
    assert any("15 values between 179.37 and 185.09 nm" in note for note in found.notes)
    assert any("tabs, decimal comma" in note for note in found.notes)


def test_the_table_in_the_documentation_is_what_the_readers_say(shared_data):
    _, written, _ = readers_table.split(readers_table.DOCUMENT.read_text(encoding="utf-8"))
    assert written == readers_table.make(shared_data / "raw"), "run python -m tests.data.readers_table"
