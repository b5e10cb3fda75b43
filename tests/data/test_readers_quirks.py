"""Quirks of instruments' exports, each in a small file of our own; what is repaired is noted, the rest is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import geonode
from geonode.data.readers import dialect, read_file, table
from geonode.data.readers.clean import MOST_DUPLICATES
from geonode.errors import ReaderError

WAVELENGTHS = np.arange(400.0, 430.0)


def spectrum(c: float) -> np.ndarray:
    """Different at every wavelength and concentration, with three decimals."""
    return np.round(0.1 + 0.01 * c + 0.002 * np.arange(len(WAVELENGTHS)) * (1 + 0.3 * c), 3)


def write(path, content: str | bytes, encoding="utf-8"):
    path.write_bytes(content.encode(encoding) if isinstance(content, str) else content)
    return path


def rows(levels=(0.0, 5.0, 10.0), delimiter=";", decimal=",", wavelengths=WAVELENGTHS, fmt="{:.3f}") -> list[str]:
    def cell(value):
        return fmt.format(value).replace(".", decimal)

    spectra = [spectrum(c) for c in levels]
    return [
        delimiter.join([f"{x:.1f}".replace(".", decimal), *(cell(y[i]) for y in spectra)])
        for i, x in enumerate(wavelengths)
    ]


def assert_three_levels(data):
    assert data.levels.tolist() == [0, 5, 10]
    np.testing.assert_allclose(data.wavelengths, WAVELENGTHS)
    np.testing.assert_allclose(data.spectra, [spectrum(c) for c in data.levels], atol=1e-12)


def test_bom_semicolons_and_decimal_comma(tmp_path):
    path = write(tmp_path / "a.csv", "\r\n".join(["nm;A", *rows([5.0])]), "utf-8-sig")
    found = read_file(path)
    assert found.signal == "absorbance" and found.wavelength_unit == "nm"
    assert "read as separated by semicolons, decimal comma" in found.notes
    np.testing.assert_allclose(found.traces[0].values, spectrum(5.0))


@pytest.mark.parametrize(
    ("delimiter", "decimal"), [("\t", "."), ("\t", ","), (";", "."), (";", ","), (",", "."), (" ", ".")]
)
@pytest.mark.parametrize(
    "header", ["nm{0}0{0}5{0}10", "Wavelength (nm){0}0 ppb{0}5 ppb{0}10 ppb", "nm{0}a_0ppb{0}a_5ppb{0}a_10ppb"]
)
def test_locales_and_headers(tmp_path, delimiter, decimal, header):
    if delimiter == " ":
        header = header.replace(" ppb", "ppb").replace("Wavelength (nm)", "Wavelength(nm)")
    path = write(tmp_path / "a.txt", "\n".join([header.format(delimiter), *rows(delimiter=delimiter, decimal=decimal)]))
    data = geonode.load_standards(path)
    assert_three_levels(data)
    assert "ppb" not in header or data.concentration_unit == "ppb"


@given(
    delimiter=st.sampled_from("\t;"),
    decimal=st.sampled_from(".,"),
    values=st.lists(st.integers(-9999, 9999), min_size=10, max_size=30, unique=True),
)
def test_every_locale_gives_the_same_numbers(tmp_path, delimiter, decimal, values):
    y = np.array(values) / 1000
    lines = [f"{400 + i}{delimiter}{v:.3f}".replace(".", decimal) for i, v in enumerate(y)]
    found = read_file(write(tmp_path / "a.txt", "\n".join(lines)))
    np.testing.assert_allclose(found.traces[0].values, y)


@pytest.mark.parametrize("order", ["descending", "unsorted"])
def test_order_of_wavelengths(tmp_path, order):
    body = rows(delimiter="\t", decimal=".")
    body = body[::-1] if order == "descending" else [*body[15:], *body[:15]]
    path = write(tmp_path / "a.txt", "\n".join(["nm\t0\t5\t10", *body]))
    if order == "descending":
        data = geonode.load_standards(path)
        assert_three_levels(data)
        assert any("wavelengths were descending" in note for note in data.notes)
    else:
        with pytest.raises(ReaderError, match="no axis of wavelengths: the first column of row"):
            geonode.load_standards(path)


def test_duplicate_wavelengths_are_averaged_and_noted_or_refused(tmp_path):
    body = rows(delimiter="\t", decimal=".")
    seam = body[10].replace(f"{spectrum(0.0)[10]:.3f}", f"{spectrum(0.0)[10] + 0.01:.3f}", 1)
    path = write(tmp_path / "a.txt", "\n".join(["nm\t0\t5\t10", *body[:11], seam, *body[11:]]))
    data = geonode.load_standards(path)
    assert "wavelength 410 recorded more than once and averaged, in 3 spectra" in data.notes
    assert data.spectra[0, 10] == pytest.approx(spectrum(0.0)[10] + 0.005)
    np.testing.assert_allclose(data.spectra[1:], [spectrum(5.0), spectrum(10.0)])
    assert len(body) * MOST_DUPLICATES < 2
    twice = [line for line in body for _ in range(2)]
    path = write(tmp_path / "b.txt", "\n".join(["nm\t0\t5\t10", *twice]))
    with pytest.raises(ReaderError, match=r"repeats 30 wavelengths, the first 400, so it seems to hold several scans"):
        geonode.load_standards(path)


def test_x_y_pairs(tmp_path):
    def pairs(lengths):
        lines = ["s_0mM\t\ts_5mM\t\ts_10mM\t", "nm\tA\tnm\tA\tnm\tA"]
        for i in range(max(lengths)):
            cells = []
            for c, n in zip((0.0, 5.0, 10.0), lengths, strict=True):
                cells += [f"{WAVELENGTHS[i]:g}", f"{spectrum(c)[i]:.3f}"] if i < n else ["", ""]
            lines.append("\t".join(cells))
        return "\n".join(lines)

    data = geonode.load_standards(write(tmp_path / "a.txt", pairs((30, 30, 30))))
    assert_three_levels(data)
    assert data.concentration_unit == "mM" and any("every two columns" in note for note in data.notes)
    with pytest.raises(ReaderError, match=r"different wavelengths \(the first has 30 of them and the second 25\)"):
        geonode.load_standards(write(tmp_path / "b.txt", pairs((30, 25, 30))))


def test_nul_padding_and_mixed_line_ends(tmp_path):
    head = b"nm\t0\t5\t10" + b"\0" * 20
    ends = [b"\r\n", b"\n", b"\r"]
    body = b"".join(line.encode() + ends[i % 3] for i, line in enumerate(rows(delimiter="\t", decimal=".")))
    assert_three_levels(geonode.load_standards(write(tmp_path / "a.txt", head + b"\r\n" + body)))


def test_dead_pixels_are_masked_with_a_count(tmp_path):
    body = rows(delimiter="\t", decimal=".")
    body[4] = "404.0\t-0\t0.5\t0.6"
    body[9] = "409.0\t0.4\t0.5\tOVRFLW"
    data = geonode.load_standards(write(tmp_path / "a.txt", "\n".join(["nm\t0\t5\t10", *body])))
    assert "1 value masked: written as -0, as of a dead pixel" in data.notes
    assert "1 value masked: written as out of range" in data.notes
    assert "2 of 30 wavelengths dropped, where a value is masked: between 404 and 409 nm" in data.notes
    assert data.shape == (3, 28) and not {404.0, 409.0} & set(data.wavelengths)


@pytest.mark.parametrize("digits", [2, 3])
@pytest.mark.parametrize("cut", [None, 2.3], ids=["a broad top", "cut off"])
def test_a_broad_top_in_few_digits_is_no_saturated_detector(tmp_path, digits, cut):
    """In few digits the top of a broad band repeats as a cap does, but falls off as a parabola beside it."""
    x = np.arange(400.0, 700.0)
    rows = np.outer([0.2, 0.5, 1.0], 2.5 * np.exp(-0.5 * ((x - 550.0) / 60.0) ** 2))
    rows = np.minimum(rows, cut or np.inf).T
    lines = [f"{w:g}," + ",".join(f"{v:.{digits}f}" for v in row) for w, row in zip(x, rows, strict=True)]
    path = tmp_path / "top.csv"
    path.write_text("wavelength / nm,1 mM,2 mM,5 mM\n" + "\n".join(lines) + "\n", encoding="utf-8")
    data = geonode.load_standards(path)
    assert (len(data.wavelengths) == 300) == (cut is None)
    assert any("the cap of the detector" in note for note in data.notes) == (cut is not None)


@pytest.mark.parametrize("cap", ["3.450", "5.287", "9.980"])
def test_saturated_values_are_masked_with_a_count(tmp_path, cap):
    body = rows(delimiter="\t", decimal=".")
    for i in range(6, 11):
        body[i] = "\t".join([*body[i].split("\t")[:3], cap])
    text = "\n".join(["nm\t0\tAbs 5\t10", *body])
    header = "nm\tAbs_0mM\tAbs_5mM\tAbs_10mM"
    data = geonode.load_standards(write(tmp_path / "a.txt", text.replace("nm\t0\tAbs 5\t10", header)))
    assert f"5 values masked: at {float(cap):g}, the cap of the detector" in data.notes
    assert data.shape == (3, 25)


def test_a_flat_top_of_small_absorbance_is_chemistry(tmp_path):
    body = rows(delimiter="\t", decimal=".")
    for i in range(6, 11):
        body[i] = "\t".join([*body[i].split("\t")[:3], "1.950"])
    data = geonode.load_standards(write(tmp_path / "a.txt", "\n".join(["nm\tA 0mM\tA 5mM\tA 10mM", *body])))
    assert data.shape == (3, 30)


def test_exponents_of_three_digits(tmp_path):
    body = rows(delimiter="\t", decimal=".", fmt="{:.3E}")
    body = [line.replace("E-01", "E-001").replace("E+00", "E+000") for line in body]
    body[0] = body[0].split("\t")[0] + "\t-4.75E-005\t1.000E-001\t2.000E-001"
    data = geonode.load_standards(write(tmp_path / "a.txt", "\n".join(["nm\t0\t5\t10", *body])))
    assert data.spectra[0, 0] == pytest.approx(-4.75e-5)


def test_preambles_and_footers_are_skipped_and_noted(tmp_path):
    preamble = ['"Operator";"A; B"', '"Scan speed";"fast"', "Date;2024-01-02", ""]
    content = "\n".join([*preamble, "nm;0;5;10", *rows(), "", "Instrument;X", "end"])
    data = geonode.load_standards(write(tmp_path / "a.csv", content))
    assert_three_levels(data)
    assert "3 lines above the table not read" in data.notes
    assert any(note.startswith("2 lines below the table not read, from line") for note in data.notes)


@pytest.mark.parametrize("label", ["Concentration (ppb)", "conc", "ppb level", ""])
def test_samples_in_rows(tmp_path, label):
    header = ",".join([label, *(f"{x:g}" for x in WAVELENGTHS)])
    body = [",".join([f"{c:g}", *(f"{v:.3f}" for v in spectrum(c))]) for c in (10.0, 0.0, 5.0)]
    data = geonode.load_standards(write(tmp_path / "a.csv", "\n".join([header, *body])))
    assert_three_levels(data)
    assert any("samples in rows" in note for note in data.notes)
    assert any("taken as the concentration" in note for note in data.notes)
    assert (data.concentration_unit == "ppb") == label.startswith("Concentration")


def test_samples_in_rows_with_names(tmp_path):
    header = ";".join(["Sample", "Date", *(f"{x:g}" for x in WAVELENGTHS)])
    body = [
        ";".join([f"x {c:g} ppb", "2024-01-02", *(f"{v:.3f}".replace(".", ",") for v in spectrum(c))])
        for c in (0.0, 5.0, 10.0)
    ]
    data = geonode.load_standards(write(tmp_path / "a.csv", "\n".join([header, *body])))
    assert_three_levels(data)
    assert data.concentration_unit == "ppb"


def test_a_copy_posing_as_a_replicate(tmp_path):
    content = "\n".join(["nm\tA", *rows([5.0], "\t", ".")])
    paths = [write(tmp_path / f"{name}.txt", content) for name in ("a", "b")]
    paths.append(write(tmp_path / "c.txt", "\n".join(["nm\tA", *rows([7.0], "\t", ".")])))
    with pytest.raises(ReaderError, match=r"'b\.txt: b' is identical to 'a\.txt: a' at every wavelength"):
        geonode.load_standards(paths, concentrations={"a": 5.0, "b": 5.0, "c": 7.0})


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (
            lambda body: [*body[:5], "405,0;0,1;abc;0,2", *body[6:]],
            r"row 7, column 3 \('5'\) is 'abc', which is no number",
        ),
        (
            lambda body: [*body[:5], "405,0;0,1;nan;0,2", *body[6:]],
            r"row 7, column 3 \('5'\) is 'nan', which is no number",
        ),
        (lambda body: [*body[:5], "405,0;0,1;;0,2", *body[6:]], r"row 7, column 3 \('5'\) is empty"),
        (lambda body: [*body[:5], "405,0;0,1", *body[6:]], r"row 7, column 3 \('5'\) is empty"),
        (lambda body: [*body[:5], "405,0;0,1;0,2;0,3;0,4", *body[6:]], "row 7 has 5 cells and the header 4"),
        (lambda body: [*body[:5], "-405,0;0,1;0,2;0,3", *body[6:]], "no axis of wavelengths"),
        (lambda body: body[:1], "no table of at least two rows|not recognised"),
    ],
)
def test_damaged_tables_end_in_one_sentence(tmp_path, spoil, sentence):
    path = write(tmp_path / "a.csv", "\n".join(["nm;0;5;10", *spoil(rows())]))
    with pytest.raises(ReaderError, match=sentence) as caught:
        geonode.load_standards(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_decimal_comma_among_commas_is_refused(tmp_path):
    path = write(tmp_path / "a.csv", "\n".join(["nm,A", *(f"{x:g},0,{i + 100}" for i, x in enumerate(WAVELENGTHS))]))
    with pytest.raises(ReaderError, match=r"row 2 has 3 cells and the header 2: .* columns 2 and 3 \('0,100'\)"):
        read_file(path)


@pytest.mark.parametrize(
    ("line", "delimiter", "decimal"),
    [
        ("300,00\t0,322", "\t", ","),
        ("300.00\t0.322", "\t", "."),
        ("300;0,5;0,7", ";", ","),
        ("300;0.5;0.7", ";", "."),
        ("300,0.5,0.7", ",", "."),
        ("300, 0.5, 0.7", ",", "."),
        ("300.0   0.5", " ", "."),
        ("300,0   0,5", " ", ","),
        ("A01\tx\t0,5\t0,7", "\t", ","),
    ],
)
def test_dialects(line, delimiter, decimal):
    found = dialect.detect_dialect([line] * 5)
    assert found is not None and (found.delimiter, found.decimal) == (delimiter, decimal)


def test_words_are_no_dialect():
    assert dialect.detect_dialect(["Dear diary,", "nothing was measured today."]) is None


def test_a_table_beyond_reason_is_refused_before_it_fills_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "MAX_CELLS", 10)
    path = write(tmp_path / "a.csv", "\n".join(["nm;0;5;10", *rows()]))
    with pytest.raises(ReaderError, match=r"cells, which no set of standards has; split the file"):
        read_file(path)
