"""The tidy CSV, the Cary export and the selection of a series; bad files end in one sentence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import geonode
from geonode.data.readers import recognise
from geonode.data.readers.formats import tidy
from geonode.errors import InputError, ReaderError


def series_values(path) -> tuple[np.ndarray, list[str]]:
    """The numbers of a tidy file as they stand, and its headers: read here without geonode."""
    lines = path.read_text().splitlines()
    return np.array([[float(x) for x in line.split(",")] for line in lines[1:]]), lines[0].split(",")[1:]


@pytest.mark.parametrize(
    ("header", "meaning"),
    [
        ("0.0.1", (0.0, 1)),
        ("84.7.1", (84.7, 1)),
        ("83.4", (83.4, 0)),
        ("5.0", (5.0, 0)),
        ("5", (5.0, 0)),
        ("1e-3", (0.001, 0)),
        ("0.0.12", (0.0, 12)),
        ("-1.5", (-1.5, 0)),
    ],
)
def test_replicate_suffixes(header, meaning):
    parsed = tidy.parse_header(header)
    assert parsed is not None and (parsed[0], parsed[2]) == meaning


@pytest.mark.parametrize("header", ["blank", "1.2.3.4", "nan", "inf", "", "1_0", "5.0.", "5.0.x", "5..1"])
def test_headers_that_are_no_concentration(header):
    assert tidy.parse_header(header) is None


@given(
    levels=st.lists(st.integers(0, 10**6), min_size=3, max_size=6, unique=True),
    replicates=st.integers(1, 4),
    w=st.integers(8, 30),
    seed=st.integers(0, 1000),
)
def test_round_trip_of_tidy_csv(tmp_path, levels, replicates, w, seed):
    rng = np.random.default_rng(seed)
    levels = [level / 16 for level in levels]
    headers = [f"{c}" if r == 0 else f"{c}.{r}" for c in levels for r in range(replicates)]
    wavelengths = np.arange(300.0, 300.0 + w)
    spectra = rng.normal(size=(len(headers), w))
    body = [",".join(map(repr, [float(x), *map(float, spectra[:, i])])) for i, x in enumerate(wavelengths)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join([",".join(["wavelength", *headers]), *body]))
    data = geonode.load_standards(path)
    concentrations = np.repeat(levels, replicates)
    order = np.argsort(concentrations, kind="stable")
    np.testing.assert_array_equal(data.spectra, spectra[order])
    np.testing.assert_array_equal(data.concentrations, concentrations[order])
    data.save(tmp_path / "t.nc")
    assert geonode.load_standards(tmp_path / "t.nc") == data


SERIES = {
    "aunp_dmsa_nacl": (6, 601, 6),
    "flu_quinine": (6, 181, 6),
    "h148g_cl_ph74": (11, 229, 11),
    "nttA04_cl_em": (27, 251, 9),
    "clariostar_dye": (27, 221, 9),
    "nanodrop_anisaldehyde": (6, 381, 6),
    "rhodamine6g_meoh": (12, 551, 4),
    "nir_gasoline": (60, 401, 42),
}


@pytest.mark.parametrize("name", SERIES)
def test_real_series(shared_data, name):
    path = shared_data / "series" / f"{name}.csv"
    data = geonode.load_standards(path, concentration_unit="mM")
    spectra, wavelengths, levels = SERIES[name]
    assert data.shape == (spectra, wavelengths) and len(data.levels) == levels
    assert data.concentration_unit == "mM"
    values, _ = series_values(path)
    assert data.spectra.sum() == pytest.approx(values[:, 1:].sum(), rel=1e-12)


def test_cary_gives_the_dmsa_series(shared_data):
    path = shared_data / "raw" / "aunp_cary60" / "example.csv"
    data = geonode.load_standards(path, select="DMSA")
    assert data.shape == (6, 601) and data.levels.tolist() == [0, 20, 50, 250, 350, 450]
    assert data.concentration_unit == "mM" and data.signal == "absorbance"
    assert any("Baseline 100%T" in note and "dropped" in note for note in data.notes)
    values, _ = series_values(shared_data / "series" / "aunp_dmsa_nacl.csv")
    # The series was written with eight decimals: the raw file must agree to every digit that it holds.
    assert np.abs(data.spectra.T - values[:, 1:]).max() <= 0.5e-8 + 1e-12
    assert np.abs(np.round(data.wavelengths, 4) - np.round(values[:, 0], 4)).max() <= 1e-9
    assert len(geonode.load_standards(path, select="MUA").levels) >= 3
    with pytest.raises(ReaderError, match=r"example\.csv: 3 series \('FZ002_AuNP_Citrate', .*select='DMSA'"):
        geonode.load_standards(path)
    with pytest.raises(ReaderError, match="no spectrum is named like 'nonsense'; there are 'FZ002"):
        geonode.load_standards(path, select="nonsense")


def cary(names, titles=None, rows=12, baseline=True, tail=True, x="Wavelength (nm)") -> str:
    titles = titles or names
    if baseline:
        titles, names = ["Baseline 100%T", *titles], ["Baseline 100%T", *names]
    lines = ["".join(f"{t},," for t in titles), ",".join(f"{x},Abs" for _ in titles) + ","]
    for i in range(rows):
        lines.append("".join(f"{800 - i}.00{k},{0.1 * k + 0.01 * i}," for k in range(len(titles))))
    lines.append("")
    for name in names if tail else []:
        lines += [f"{name},", name, "Collection Time: 1/1/2020", "Scan Software Version: 5", ""]
    return "\r\n".join(lines)


def test_cary_of_our_own(tmp_path):
    path = tmp_path / "c.csv"
    names = ["A_0uM_x", "A_5uM_x", "A_1.5uM_x"]
    path.write_text(
        cary(names, ["E1", "E2", "E3"]).replace(".001,", ".000,").replace(".002,", ".000,").replace(".003,", ".000,"),
        newline="",
    )
    data = geonode.load_standards(path)
    assert data.levels.tolist() == [0, 1.5, 5] and data.concentration_unit == "µM"
    path.write_text(cary(names), newline="")
    with pytest.raises(ReaderError, match="have different wavelengths"):
        geonode.load_standards(path)
    path.write_text(
        cary(["A", "B", "C"]).replace(".00", ".").replace(".1,", ".,").replace(".2,", ".,").replace(".3,", ".,"),
        newline="",
    )
    with pytest.raises(ReaderError, match="no concentration is known for 'A', 'B', 'C'"):
        geonode.load_standards(path)


@pytest.mark.parametrize(("of_baseline", "of_samples"), [("%T", "Abs"), ("%R", "Abs"), ("Abs", "%T")])
def test_the_signal_is_that_of_the_samples_and_not_of_a_baseline(tmp_path, of_baseline, of_samples):
    path, names = tmp_path / "c.csv", ["0 uM a", "5 uM a", "10 uM a"]
    content = cary(names)
    for k in range(4):
        content = content.replace(f".00{k},", ".000,")
    heads = [of_baseline, of_samples, of_samples, of_samples]
    first, second, rest = content.split("\r\n", 2)
    second = ",".join(f"Wavelength (nm),{head}" for head in heads) + ","
    path.write_text("\r\n".join([first, second, rest]), newline="")
    data = geonode.load_standards(path)
    assert data.signal == ("absorbance" if of_samples == "Abs" else "transmittance")
    second = second.replace(of_samples, "mAU", 2).replace("mAU", of_samples, 1)
    path.write_text("\r\n".join([first, second, rest]), newline="")
    with pytest.raises(ReaderError, match="samples are in different units"):
        geonode.load_standards(path)


HEAD = "wavelength,0.0,5.0,10.0\n"
ROWS = "".join(f"{400 + i},{0.1 + i},{0.2 + i},{0.4 + i}\n" for i in range(10))
SHIFTED_ROWS = "".join(f"{400 + i},{0.6 + i},{0.7 + i},{0.9 + i}\n" for i in range(10))

BAD_FILES = {
    "empty": (b"", "the file is empty"),
    "spaces": (b" \n\n ", "the file is empty"),
    "prose": (b"Dear diary,\ntoday we measured nothing.\n" * 5, "not recognised as spectra"),
    "binary": (bytes(range(256)) * 20, "not recognised|binary"),
    "header only": (HEAD.encode(), "a header but no row of values"),
    "two levels": (
        b"wavelength,0.0,5.0\n" + b"".join(b"%d,%d,%d\n" % (400 + i, i, i + 1) for i in range(9)),
        r"2 concentration levels \(0, 5\), but at least 3",
    ),
    "one level twice": (
        (HEAD.replace("10.0", "5.00") + ROWS).encode(),
        r"column 4 is headed '5\.00', which is the level '5\.0' written in another way",
    ),
    "same header twice": ((HEAD.replace("10.0", "5.0") + ROWS).encode(), "columns 3 and 4 are both headed '5.0'"),
    "word as header": ((HEAD.replace("10.0", "blank") + ROWS).encode(), "column 4 is headed 'blank'"),
    "nan": ((HEAD + ROWS.replace("403,3.1", "403,nan")).encode(), r"row 5, column 2 \('0\.0'\) is 'nan'"),
    "inf": ((HEAD + ROWS.replace("403,3.1", "403,inf")).encode(), r"row 5, column 2 \('0\.0'\) is 'inf'"),
    "empty cell": ((HEAD + ROWS.replace("403,3.1", "403,")).encode(), r"row 5, column 2 \('0\.0'\) is empty"),
    "short row": ((HEAD + ROWS.replace("403,3.1,", "403,")).encode(), "row 5 has 3 cells and the header 4"),
    "negative wavelength": (
        (HEAD + ROWS.replace("403,", "-403,")).encode(),
        "wavelength number 4 is -403, beside 402 and 404",
    ),
    "duplicate wavelength": ((HEAD + ROWS.replace("403,", "402,")).encode(), "wavelength 402 occurs twice"),
    "copy as replicate": (
        (
            HEAD.replace("10.0", "10.0,10.0.1") + "".join(f"{400 + i},{i},{i + 1},{i + 3},{i + 3}\n" for i in range(9))
        ).encode(),
        r"'10\.0\.1' is identical to '10\.0' at every wavelength",
    ),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files_end_in_one_sentence(tmp_path, case):
    content, sentence = BAD_FILES[case]
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    with pytest.raises(ReaderError, match=sentence) as caught:
        geonode.load_standards(path)
    text = str(caught.value)
    assert str(path) in text and text.endswith(".") and "\n" not in text


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(ReaderError, match="there is no such file"):
        geonode.load_standards(tmp_path / "absent.csv")
    with pytest.raises(ReaderError, match="no file in this folder"):
        geonode.load_standards(tmp_path)
    with pytest.raises(InputError, match="the list of files is empty"):
        geonode.load_standards([])


def test_unsorted_wavelengths_are_put_in_order_and_noted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(HEAD + "".join(reversed(ROWS.splitlines(keepends=True))))
    data = geonode.load_standards(path)
    assert (np.diff(data.wavelengths) > 0).all() and any("descending" in note for note in data.notes)
    path.write_text(HEAD + ROWS)
    assert geonode.load_standards(path) == data


def test_several_files(tmp_path):
    first, second, third = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "c.csv"
    first.write_text(HEAD + ROWS)
    second.write_text(HEAD.replace("10.0", "20.0").replace("0.0,5.0", "0.5,5.5") + SHIFTED_ROWS)
    third.write_text(HEAD + ROWS.replace("405,", "405.5,"))
    data = geonode.load_standards([first, second])
    assert len(data) == 6 and data.names[0] == "a.csv: 0.0"
    with pytest.raises(ReaderError, match=r"different wavelengths \(number 6 is 405 in the first and 405.5"):
        geonode.load_standards([first, third])
    with pytest.raises(ReaderError, match="identical to"):
        geonode.load_standards([first, first])


@pytest.mark.parametrize("encode", ["utf-8-sig", "utf-16", "latin-1"])
def test_encodings_line_ends_and_padding(tmp_path, encode):
    path = tmp_path / "t.csv"
    path.write_bytes((HEAD + ROWS).replace("\n", "\r\n", 3).encode(encode))
    assert recognise(path).name == "tidy"
    assert geonode.load_standards(path).shape == (3, 10)
