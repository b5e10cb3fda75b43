"""JCAMP-DX and SPC: every packing and layout, the checks of the formats, and other parsers on the real files."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geonode.data.readers import READERS, packed, read_file
from geonode.data.readers.recording import Recording
from geonode.errors import ReaderError
from tests.data import samples

FORMS = ("AFFN", "PAC", "SQZ", "DIF", "DIFDUP")


@given(
    y=st.lists(st.integers(-99_999, 99_999), min_size=1, max_size=60),
    per_line=st.integers(2, 12),
    flat=st.integers(1, 20),
)
@pytest.mark.parametrize("form", FORMS)
def test_every_packing_gives_back_what_was_packed(tmp_path, form, y, per_line, flat):
    y = y + [y[-1]] * flat  # runs, for DUP
    lines = samples.pack(list(range(len(y))), y, form, per_line)
    starts, values = packed.decode(list(enumerate(lines, start=1)), Recording(tmp_path / "a.jdx", "", []))
    assert values == y
    assert all(start == index for _, start, index in starts), "abscissae that begin the lines stand at their points"


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("1A2B3", [12, 23]),
        ("1A2J3", [12, 25]),
        ("1A2J3T", [12, 25, 38]),
        ("1A2S3", [12] * 13),
        ("1+12-13", [12, -13]),
        ("1 12 -13", [12, -13]),
        ("1@%", [0, 0]),
        ("1a2j3", [-12, -25]),
        ("1?A2", [np.nan, 12]),
        ("1.5A2", [12]),
        ("1 1.5E-3 2", [0.0015, 2]),
    ],
)
def test_packed_lines(tmp_path, line, values):
    _, found = packed.decode([(1, line)], Recording(tmp_path / "a", "", []))
    np.testing.assert_array_equal(found, values)


def damaged(form="DIFDUP", change=lambda lines: lines):
    return "\n".join(change(samples.jcamp_block("A_5mM", form))).encode()


def replace(old, new):
    return lambda lines: [line.replace(old, new) for line in lines]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (damaged(change=replace("##NPOINTS=24", "##NPOINTS=25")), "24 points but NPOINTS says 25"),
        (damaged("SQZ", lambda x: [*x[:15], *x[16:]]), "16 points but NPOINTS says 24"),
        (
            damaged("SQZ", lambda x: [y for y in x if "NPOINTS" not in y and not y.startswith("408")]),
            "points are missing",
        ),
        (
            damaged("DIF", lambda x: [*x[:15], x[15][:3] + "I9" + x[15][3:], *x[16:]]),
            "repeats the ordinate before it as",
        ),
        (damaged(change=replace("400", "400!")), "no packed number|begins with no abscissa|NPOINTS"),
        (damaged(change=replace("##XYDATA=(X++(Y..Y))", "##XYDATA=(R++(A..A))")), r"data of the form \(R\+\+"),
        (damaged(change=lambda x: [y for y in x if "LASTX" not in y]), "neither LASTX nor DELTAX"),
        (damaged(change=lambda x: x[:14]), "a label of data and no data"),
        (damaged(change=lambda x: x[:5]), "no block with a spectrum"),
        (b"##TITLE=a\n##JCAMP-DX=4.24\n##XYPOINTS=(XY..XY)\n1,2 3\n##END=\n", "odd number of values"),
        (b"##TITLE=a\n##JCAMP-DX=4.24\n##XYPOINTS=(XY..XY)\n1,x\n##END=\n", "line 4 has 'x', which is no number"),
    ],
)
def test_checks_of_jcamp(tmp_path, content, sentence):
    path = tmp_path / "a.jdx"
    path.write_bytes(content)
    with pytest.raises(ReaderError, match=sentence) as caught:
        read_file(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("form", FORMS)
def test_a_block_of_each_form(tmp_path, form):
    path = tmp_path / "a.dat"
    path.write_bytes(damaged(form))
    (trace,) = read_file(path).traces
    np.testing.assert_allclose(trace.values, samples.spectrum(5.0), atol=1e-12)
    np.testing.assert_allclose(trace.wavelengths, samples.WAVELENGTHS)
    assert trace.concentration == (5.0,)


def test_pairs_links_and_blocks_without_a_spectrum(tmp_path):
    path = tmp_path / "a.jdx"
    pairs = "##TITLE=p\n##JCAMP-DX=5\n##XUNITS=1/CM\n##YUNITS=ABSORBANCE\n##NPOINTS=3\n##XYPOINTS=(XY..XY)\n"
    path.write_text(pairs + "4000, 0.1; 3000 0.2\n2000 0.3\n##END=\n")
    found = read_file(path)
    assert found.wavelength_unit == "cm-1" and found.traces[0].values.tolist() == [0.1, 0.2, 0.3]
    structure = "##TITLE=s\n##JCAMP-CS=3.7\n##DATA TYPE=STRUCTURE\n##$MOLFILE=x\n##END=\n"
    link = "##TITLE=all\n##JCAMP-DX=5\n##DATA TYPE=LINK\n##BLOCKS=2\n"
    path.write_text(link + structure + pairs + "4000 0.1\n3000 0.2\n2000 0.3\n##END=\n##END=\n")
    found = read_file(path)
    assert len(found.traces) == 1 and any("'s' (structure) has no spectrum" in note for note in found.notes)


@pytest.mark.parametrize("name", ["compound.jdx", "pacdec1.jdx"])
def test_jcamp_agrees_with_the_package(shared_data, name):
    jcamp = pytest.importorskip("jcamp")
    path = shared_data / "raw" / "fmt_jcamp" / name
    blocks = jcamp.readfile(str(path))
    blocks = blocks.get("children", [blocks])
    traces = read_file(path).traces
    assert len(traces) == len(blocks)
    for trace, block in zip(traces, blocks, strict=True):
        np.testing.assert_allclose(trace.wavelengths, block["x"])
        np.testing.assert_allclose(trace.values, block["y"], rtol=1e-12, atol=1e-12)


def test_sqzdupd1_keeps_what_its_header_says(shared_data):
    """The package fails on it (an IndexError), but its header states the largest and the smallest ordinate."""
    (trace,) = read_file(shared_data / "raw" / "fmt_jcamp" / "sqzdupd1.jdx").traces
    assert trace.values.max() == pytest.approx(1.50501, rel=1e-5)
    assert trace.values.min() == pytest.approx(1e-5, abs=5e-5)


# --- SPC --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("own_x", [False, True])
@pytest.mark.parametrize("integers", [False, True])
def test_layouts_of_spc(tmp_path, order, own_x, integers):
    path = tmp_path / "a.csv"  # by content, whatever it is called
    path.write_bytes(samples.spc(order, own_x, integers))
    found = read_file(path)
    assert found.format == "Thermo/Galactic SPC" and found.signal == "absorbance" and found.wavelength_unit == "nm"
    for trace, c in zip(found.traces, samples.LEVELS, strict=True):
        np.testing.assert_allclose(trace.values, samples.spectrum(c), atol=1e-6)
        np.testing.assert_allclose(trace.wavelengths, samples.WAVELENGTHS)


def with_bytes(at: int, kind: str, value) -> bytes:
    data = bytearray(samples.spc())
    struct.pack_into("<" + kind, data, at, value)
    return bytes(data)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (samples.spc()[:300], "300 bytes, fewer than the header has"),
        (samples.spc()[:600], "the file is truncated"),
        (samples.spc()[:-3], "the file is truncated"),
        (with_bytes(4, "i", 2**30), "points announced"),
        (with_bytes(4, "i", -1), "points announced"),
        (with_bytes(24, "i", 2**30), "traces, for which the file is too short"),
        (with_bytes(8, "d", float("nan")), "no number"),
        (struct.pack("<BBhfffBB", 0, 0x4D, 0, 24.0, 400.0, 423.0, 3, 2) + bytes(300), "version before 1996"),
    ],
)
def test_checks_of_spc(tmp_path, content, sentence):
    path = tmp_path / "a.spc"
    path.write_bytes(content)
    with pytest.raises(ReaderError, match=sentence) as caught:
        read_file(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def zipped(flags: int = 0, name: bytes = b"[Content_Types].xml") -> bytes:
    """The beginning of an archive, as writers of workbooks, of .docx, .npz and of instruments' folders begin it."""
    head = struct.pack("<4s5H3I2H", b"PK\3\4", 20, flags, 8, 0, 33, 0x1234, 77, 99, len(name), 0)
    return head + name + bytes(range(77)) * 4


BINARIES = {
    "workbook": zipped(),
    "workbook of Excel": zipped(6),
    "archive of arrays": zipped(8, b"arr_0.npy"),
    "empty archive": b"PK\5\6" + bytes(18),
    "TIFF, big end first": b"MM\0*\0\0\0\x08" + bytes(80),
    "bitmap": b"BM" + struct.pack("<IHHI", 900, 0, 0, 54) + struct.pack("<IiiHH", 40, 16, 16, 1, 24) + bytes(80),
    "class": b"\xca\xfe\xba\xbe" + bytes(80),
    "letters": b"OK\0\0" + bytes(range(1, 120)),
    "letters L": b"SL\0\0" + b"\xff" * 120,
}


@pytest.mark.parametrize("name", BINARIES)
def test_other_binary_files_are_no_spc(tmp_path, name):
    (tmp_path / "a.spc").write_bytes(BINARIES[name])
    assert not READERS["spc"]().sniff(BINARIES[name])
    with pytest.raises(ReaderError) as caught:
        read_file(tmp_path / "a.spc")
    assert "SPC" not in str(caught.value).split("known formats")[0]


@pytest.mark.parametrize("in_main_header", [True, False])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("integers", [True, False])
def test_one_trace_with_its_own_abscissae(tmp_path, order, in_main_header, integers):
    n, x = len(samples.WAVELENGTHS), samples.WAVELENGTHS
    head, sub = bytearray(512), bytearray(32)
    version, exponent = (0x4B if order == "<" else 0x4C), (1 if integers else -128)
    struct.pack_into(order + "BBBbi", head, 0, 0xC0, version, 0, exponent, n if in_main_header else 0)
    struct.pack_into(order + "ddi", head, 8, x[0], x[-1], 1)
    head[28], head[29] = 3, 2
    struct.pack_into(order + "i", sub, 16, 0 if in_main_header else n)
    y = samples.spectrum(5.0)
    values = np.round(y * 2**31).astype(order + "i4") if integers else y.astype(order + "f4")
    (tmp_path / "a.spc").write_bytes(bytes(head + sub) + x.astype(order + "f4").tobytes() + values.tobytes())
    (trace,) = read_file(tmp_path / "a.spc").traces
    np.testing.assert_allclose(trace.wavelengths, x)
    np.testing.assert_allclose(trace.values, y, atol=1e-6)


@pytest.mark.parametrize(("x", "said"), [(float("nan"), "nan"), (1e-234, "1e-234"), (1e200, "1e\\+200")])
def test_abscissae_that_no_spectrum_has(tmp_path, x, said):
    (tmp_path / "a.spc").write_bytes(with_bytes(8, "d", x))
    with pytest.raises(
        ReaderError, match=f"an abscissa of {said} .*the file is damaged|no number; the file is damaged"
    ):
        read_file(tmp_path / "a.spc")


@pytest.mark.parametrize("name", ["s_evenx.spc", "s_xy.spc", "nir.spc", "m_xyxy.spc"])
def test_spc_agrees_with_the_package(shared_data, name):
    spc_io = pytest.importorskip("spc_io")
    path = shared_data / "raw" / "fmt_spc" / name
    with path.open("rb") as file:
        other = spc_io.SPC.from_bytes_io(file)
    traces = read_file(path).traces
    assert len(traces) == len(other)

    for trace, sub in zip(traces, other, strict=True):
        np.testing.assert_allclose(trace.wavelengths, sub.xarray, rtol=1e-6)
        np.testing.assert_allclose(trace.values, sub.yarray, rtol=1e-6)
