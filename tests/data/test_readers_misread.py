"""Numbers and axes that once were read as something else without a word; each kind in several forms."""

from __future__ import annotations

import numpy as np
import pytest

import geonode
from geonode.data.readers import read_file, units
from geonode.data.readers.base import ReadingOptions
from geonode.errors import ReaderError
from tests.data import samples
from tests.data.small_tables import X, spectrum, table, write

# --- numbers misread --------------------------------------------------------------------------------------------------


def counts(mark: str, delimiter: str, x=None) -> str:
    x = [f"{a:g}" for a in X] if x is None else x
    values = [[f"{v:,.0f}".replace(",", mark) for v in 800 + 40 * k + 500 * spectrum(k)] for k in range(1, 4)]
    rows = [delimiter.join([a, *(v[i] for v in values)]) for i, a in enumerate(x)]
    return "\n".join([delimiter.join(["nm", "a", "b", "c"]), *rows])


@pytest.mark.parametrize(("mark", "delimiter"), [(",", "\t"), (".", ";"), (",", ";"), (".", "\t"), (".", ",")])
def test_thousands_beside_whole_numbers_are_refused_with_both_readings(tmp_path, mark, delimiter):
    path = write(tmp_path / "a.txt", counts(mark, delimiter))
    with pytest.raises(ReaderError, match=r"row \d+, column \d is '1.\d{3}', which is 1\d{3} or 1(\.\d+)?: three"):
        read_file(path)


@pytest.mark.parametrize(
    ("mark", "delimiter", "x"),
    [
        (",", "\t", [f"{a + 0.5:.1f}" for a in X]),  # a point is decimal in the first column
        (".", ";", [f"{a + 0.5:.1f}".replace(".", ",") for a in X]),
        (" ", "\t", None),
        ("'", ";", None),
        ("\u00a0", "\t", None),
    ],
)
def test_thousands_that_nothing_else_can_be_are_read(tmp_path, mark, delimiter, x):
    found = read_file(write(tmp_path / "a.txt", counts(mark, delimiter, x)))
    for k, trace in enumerate(found.traces, start=1):
        np.testing.assert_array_equal(trace.values, np.round(800 + 40 * k + 500 * spectrum(k)))
    assert any("between thousands" in note for note in found.notes)


@pytest.mark.parametrize("delimiter", ["\t", ";", " ", '","'])
@pytest.mark.parametrize("low", [1000, 123_000])
def test_counts_that_are_all_above_a_thousand_are_refused_and_read_with_the_mark_said(tmp_path, delimiter, low):
    """Nothing but the whole numbers of the axis stands beside them."""
    values = np.array([[low + 7 * i, 2 * low + 11 * i] for i in range(len(X))])
    quote = '"' if '"' in delimiter else ""
    rows = [delimiter.replace('"', "").join(["nm", "a", "b"])]
    rows += [
        quote + delimiter.join([f"{x:g}", *(f"{v:,}" for v in row)]) + quote for x, row in zip(X, values, strict=True)
    ]
    path = write(tmp_path / "a.txt", "\n".join(rows))
    with pytest.raises(ReaderError, match=rf"row 2, column 2 is '{low:,}', which is {low} or {low // 1000}: three"):
        read_file(path)
    for mark, factor in ((".", 1), (",", 1000)):
        found = read_file(path, ReadingOptions(decimal=mark))
        np.testing.assert_allclose([trace.values for trace in found.traces], values.T / factor)


@pytest.mark.parametrize("mark", [" ", "\u00a0", "\u202f"])
@pytest.mark.parametrize("low", [100_000, 1_000_000])
def test_blanks_between_thousands_part_no_cells_where_tabs_do(tmp_path, mark, low):
    rows = ["nm\ta\tb", *(f"{x:g}\t{low + 7 * i:,}\t{low + 11 * i:,}".replace(",", mark) for i, x in enumerate(X))]
    found = read_file(write(tmp_path / "a.txt", "\n".join(rows)))
    assert [trace.name for trace in found.traces] == ["a", "b"]
    np.testing.assert_array_equal(found.traces[1].values, low + 11 * np.arange(len(X)))


@pytest.mark.parametrize(
    "values",
    [["1.052", "0.950", "1.100"], ["1.052", "1.95", "2"], ["1.052", "1.950", "1.100"], ["1.052", "1.0E1", "2"]],
)
def test_decimals_that_look_like_thousands_are_decimals(tmp_path, values):
    cells = (values * 10)[:30]
    found = read_file(
        write(tmp_path / "a.txt", "nm\ta\n" + "\n".join(f"{a:g}\t{v}" for a, v in zip(X, cells, strict=True)))
    )
    np.testing.assert_array_equal(found.traces[0].values, [float(v) for v in cells])


@pytest.mark.parametrize(
    ("delimiter", "decimal", "headers"),
    [(",", ".", ["0", "500", "1.000"]), (";", ",", ["0", "500", "1.000"]), ("\t", ",", ["250", "1.000", "2.500"])],
)
@pytest.mark.parametrize("first", ["wavelength", "nm"])
def test_thousands_in_headers_are_refused_with_both_readings(tmp_path, delimiter, decimal, headers, first):
    body = table(headers, (0, 5, 10), delimiter, first).split("\n")
    content = "\n".join([body[0], *(line.replace(".", decimal) for line in body[1:])])
    with pytest.raises(ReaderError, match=r"is headed '1\.000', which is 1000 or 1; write the level without"):
        geonode.load_standards(write(tmp_path / "a.csv", content))


# --- axes misread -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "unit"),
    [
        ("cm^-1", "cm-1"), ("WAVENUMBERS", "cm-1"), ("1/CM", "cm-1"), ("Wavenumber (cm-1)", "cm-1"), ("CM**-1", "cm-1"),
        ("um", "µm"), ("MICRONS", "µm"), ("MICROMETERS", "µm"), ("NANOMETERS", "nm"), ("nm", "nm"),
        ("RAMAN SHIFT", "cm-1"), ("UM", "µm"), ("NM", "nm"), ("1/NM", "1/NM"), ("kcm-1", "kcm-1"),
        ("SECONDS", "seconds"), ("M/Z", "m/z"), ("ARBITRARY UNITS", "arbitrary units"), ("", ""),
    ],
)  # fmt: skip
def test_units_of_jcamp_as_the_file_says_them(tmp_path, said, unit):
    labels = ["##TITLE=a", "##JCAMP-DX=4.24", f"##XUNITS={said}", "##YUNITS=ABSORBANCE", "##FIRSTX=400", "##LASTX=404"]
    path = write(
        tmp_path / "a.jdx", "\n".join([*labels, "##NPOINTS=5", "##XYDATA=(X++(Y..Y))", "400 1 2 3 4 5", "##END="])
    )
    found = read_file(path)
    assert found.wavelength_unit == unit
    assert unit in ("nm", "µm", "cm-1", "1/NM", "kcm-1") or any("abscissa" in note for note in found.notes)


@pytest.mark.parametrize("first", ["Pixel", "#", "Index", "No.", "row", "", "Unnamed: 0"])
@pytest.mark.parametrize("numbers", [range(30), range(1, 31), range(1, 241, 8)])
def test_a_column_that_counts_is_not_the_axis(tmp_path, first, numbers):
    rows = [f"{k},{a + 0.5},{v}" for k, a, v in zip(numbers, X, spectrum(5), strict=True)]
    found = read_file(write(tmp_path / "a.csv", "\n".join([f"{first},Wavelength (nm),Absorbance", *rows])))
    (trace,) = found.traces
    np.testing.assert_array_equal(trace.wavelengths, X + 0.5)
    np.testing.assert_array_equal(trace.values, spectrum(5))
    assert any("left out: it counts" in note for note in found.notes)


@pytest.mark.parametrize("header", ["Abs,nm", "Absorbance,Wavelength", "A,wavelength (nm)"])
def test_the_axis_may_stand_behind_the_values(tmp_path, header):
    rows = [f"{v},{a:g}" for a, v in zip(X, spectrum(5), strict=True)]
    (trace,) = read_file(write(tmp_path / "a.csv", "\n".join([header, *rows]))).traces
    np.testing.assert_array_equal(trace.wavelengths, X)
    np.testing.assert_array_equal(trace.values, spectrum(5))


@pytest.mark.parametrize("first", ["Zeile", "Kanal", "Ligne", "N°", "Datenpunkt"])
@pytest.mark.parametrize("start", [0, 1, 1000])
def test_a_column_that_counts_in_another_language(tmp_path, first, start):
    rows = [
        f"{first}\tnm\tExt",
        *(f"{start + k}\t{a:g}\t{v}" for k, (a, v) in enumerate(zip(X, spectrum(5), strict=True))),
    ]
    found = read_file(write(tmp_path / "a.txt", "\n".join(rows)))
    (trace,) = found.traces
    np.testing.assert_allclose(trace.values, spectrum(5))
    assert f"column 1 '{first}' left out: it counts, and is no spectrum" in found.notes


@pytest.mark.parametrize("header", ["T° Abs", "Temperature(°C)", "Temp.", "Temperatur [°C]", "Température (°C)"])
def test_the_temperatures_of_a_plate_reader_are_no_spectrum(tmp_path, header):
    rows = [f"Wavelength\t{header}\tA1", *(f"{a:g}\t25.1\t{v}" for a, v in zip(X, spectrum(5), strict=True))]
    found = read_file(write(tmp_path / "a.txt", "\n".join(rows)))
    (trace,) = found.traces
    np.testing.assert_allclose(trace.values, spectrum(5))
    assert not found.mask_reasons and any("a temperature, and no spectrum" in note for note in found.notes)


@pytest.mark.parametrize("second", ["Dark", "Reference", "Raw"])
def test_raw_columns_named_above_a_row_of_units_are_no_spectra(tmp_path, second):
    rows = [f"Wave;Sample;{second};Absorbance", "[nm];[counts];[counts];[A.U.]"]
    rows += [f"{a:.2f};1000.1;500.2;{v}" for a, v in zip(X, spectrum(5), strict=True)]
    (trace,) = read_file(write(tmp_path / "a.txt", "\n".join(rows))).traces
    np.testing.assert_allclose(trace.values, spectrum(5))


@pytest.mark.parametrize("header", ["nm,A", "Wavelength,Abs", "nm,A1,A2"])
def test_commas_between_and_within_numbers_are_refused(tmp_path, header):
    count = header.count(",")
    rows = [header, *(f"{a:.1f}," + ",".join([f"{v:.4f}"] * count) for a, v in zip(X, spectrum(5), strict=True))]
    with pytest.raises(ReaderError, match="commas stand between the numbers and within them"):
        read_file(write(tmp_path / "a.csv", "\n".join(rows).replace(".", ",")))


@pytest.mark.parametrize("header", ['"nm","A"', '"Wavelength (nm)","blank","5 mM"', "nm,A"])
def test_quotes_tell_decimal_commas_from_commas(tmp_path, header):
    count = header.count(",")
    rows = [header, *(",".join([f'"{a:.1f}"', *[f'"{v:.4f}"'] * count]) for a, v in zip(X, spectrum(5), strict=True))]
    found = read_file(write(tmp_path / "a.csv", "\n".join([rows[0], *(row.replace(".", ",") for row in rows[1:])])))
    assert len(found.traces) == count
    np.testing.assert_allclose(found.traces[-1].wavelengths, X)
    np.testing.assert_allclose(found.traces[-1].values, spectrum(5))


@pytest.mark.parametrize("second", ["Wavenumber (cm-1)", "eV", "Raman shift"])
def test_a_second_axis_is_no_spectrum(tmp_path, second):
    rows = [f"{a:g},{1e7 / a:.3f},{v}" for a, v in zip(X, spectrum(5), strict=True)]
    found = read_file(write(tmp_path / "a.csv", "\n".join([f"Wavelength (nm),{second},A", *rows])))
    assert len(found.traces) == 1 and any("a second axis, and no spectrum" in note for note in found.notes)


@pytest.mark.parametrize(("header", "numbers"), [("index,signal", 0), ("pixel,counts", 1), ("#,A", 1), ("n,signal", 0)])
def test_a_column_that_counts_alone_is_refused_for_what_it_is(tmp_path, header, numbers):
    rows = [f"{k + numbers},{v}" for k, v in enumerate(spectrum(5))]
    with pytest.raises(ReaderError, match=r"only counts|counts \(\d, \d, \d, and so on\)"):
        read_file(write(tmp_path / "a.csv", "\n".join([header, *rows])))


@pytest.mark.parametrize(("rows", "columns"), [(8, 12), (16, 24), (4, 6)])
@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
def test_a_plate_of_readings_is_no_set_of_spectra(tmp_path, rows, columns, delimiter):
    lines = [delimiter.join(["", *(str(k + 1) for k in range(columns))])]
    lines += [
        delimiter.join([chr(65 + r), *(f"{0.1 * r + 0.01 * k:.3f}" for k in range(columns))]) for r in range(rows)
    ]
    with pytest.raises(ReaderError, match=rf"a plate of {rows} × {columns} wells with one reading each"):
        read_file(write(tmp_path / "a.csv", "\n".join(lines)))


@pytest.mark.parametrize(
    ("header", "axis", "unit"),
    [
        ("Energy (eV)", np.linspace(1.6, 3.2, 30), "nm"),
        ("eV", np.linspace(3.2, 1.6, 30), "nm"),
        ("Photon energy (meV)", np.linspace(1600, 3200, 30), "nm"),
        ("Wavelength (µm)", np.linspace(0.9, 2.5, 30), "µm"),
        ("Wavenumber / cm-1", np.linspace(4000, 400, 30), "cm-1"),
        ("Time (s)", np.linspace(0.5, 300, 30), "s"),
        ("Frequency (PHz)", np.linspace(400, 700, 30), "PHz"),
        ("f / Hz", np.linspace(400, 700, 30), "Hz"),
        ("Energy (keV)", np.linspace(400, 700, 30), "keV"),
        ("Wavenumber (1/m)", np.linspace(400, 700, 30), "1/m"),
        ("Wellenzahl [m-1]", np.linspace(400, 700, 30), "m-1"),
        ("Wavelength (pm)", np.linspace(400, 700, 30), "pm"),
        ("Wavelength / m", np.linspace(4e-7, 7e-7, 30), "m"),
        ("wavelength", np.linspace(4000, 8000, 30), ""),
        ("", np.linspace(4000, 400, 30), ""),
        ("1/nm", np.linspace(0.001, 0.003, 30), "1/nm"),
        ("µm-1", np.linspace(1.2, 2.5, 30), "µm-1"),
        ("mm^-1", np.linspace(400, 700, 30), "mm^-1"),
        ("Wavenumber (kcm-1)", np.linspace(12, 25, 30), "kcm-1"),
        ("wavenumber / 10^3 cm^-1", np.linspace(12, 25, 30), "10^3 cm^-1"),
        ("Field (mT)", np.linspace(400, 700, 30), "mT"),
        ("Binding Energy (eV)", np.linspace(400, 700, 30), ""),
        ("Kinetic energy / eV", np.linspace(400, 700, 30), ""),
        ("BE / eV", np.linspace(400, 700, 30), ""),
        ("Distance (µm)", np.linspace(400, 700, 30), ""),
        ("x [arb]", np.linspace(400, 700, 30), ""),
    ],
)
def test_an_axis_is_never_nanometres_by_default(tmp_path, header, axis, unit):
    rows = [f"{a:.6g},{v}" for a, v in zip(axis, spectrum(5), strict=True)]
    found = read_file(write(tmp_path / "a.csv", "\n".join([f"{header},A", *rows])))
    assert found.wavelength_unit == unit
    written = np.array([float(f"{a:.6g}") for a in axis])
    factor = {"Energy (eV)": 1, "eV": 1, "Photon energy (meV)": 1000}.get(header)
    np.testing.assert_allclose(
        found.traces[0].wavelengths, written if factor is None else 1239.841984 * factor / written
    )
    if unit == "" or factor or units.is_other_axis(header):
        assert any(word in note for note in found.notes for word in ("converted", "does not say", "no wavelength"))


@pytest.mark.parametrize(
    ("mode", "unit"),
    [("Wavelengths", "nm"), ("Raman Shifts", "cm-1"), ("Wavenumbers", "cm-1"), ("Pixels", ""), ("Energy (THz)", "THz")],
)
def test_the_axis_that_oceanview_was_set_to(tmp_path, mode, unit):
    rows = [f"{a:.3f}\t{v}" for a, v in zip(X, spectrum(5), strict=True)]
    head = ["Data from a Node", "", f"XAxis mode: {mode}", "Number of Pixels in Spectrum: 30", ">>>>>Begin Data<<<<<"]
    found = read_file(write(tmp_path / "a.txt", "\n".join([*head, *rows])))
    assert found.wavelength_unit == unit
    assert bool(unit) != any("no wavelength" in note for note in found.notes)


@pytest.mark.parametrize(("said", "unit"), [("NM", "nm"), ("UM", "µm"), ("CM-1", "cm-1"), ("SEC", ""), ("PIXEL", "")])
def test_the_axis_of_peds_as_the_file_says_it(tmp_path, said, unit):
    content = samples.peds().decode().replace("\nNM\n", f"\n{said}\n")
    found = read_file(write(tmp_path / "a.sp", content))
    assert found.wavelength_unit == unit
    assert bool(unit) != any("no wavelength" in note for note in found.notes)


@pytest.mark.parametrize(
    ("kind", "unit", "said"),
    [(3, "nm", ""), (2, "µm", ""), (0, "nm", "does not say"), (16, "", "no wavelength"), (255, "", "no wavelength")],
)
def test_the_axis_of_spc_as_the_file_says_it(tmp_path, kind, unit, said):
    data = bytearray(samples.spc())
    data[28] = kind
    (tmp_path / "a.spc").write_bytes(bytes(data))
    found = read_file(tmp_path / "a.spc")
    assert found.wavelength_unit == unit and any(said in note for note in found.notes)
