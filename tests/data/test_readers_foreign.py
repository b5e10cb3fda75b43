"""Formats read through other people's packages: named without them, bounded with them."""

from __future__ import annotations

import numpy as np
import pytest

from geonode.data.readers import foreign, read_file
from geonode.errors import ReaderError
from tests.data import samples


def write(tmp_path, content: bytes):
    path = tmp_path / "a.dat"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(("maker", "package"), [(samples.opus, "brukeropus"), (samples.wdf, "renishaw-wdf")])
def test_named_where_the_package_is_absent(tmp_path, monkeypatch, maker, package):
    monkeypatch.setattr(foreign.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ReaderError, match=rf"read through the package {package}; install it with pip install"):
        read_file(write(tmp_path, maker()))


def test_opus(tmp_path):
    pytest.importorskip("brukeropus")
    found = read_file(write(tmp_path, samples.opus()))
    (trace,) = found.traces
    assert found.format == "Bruker OPUS" and found.signal == "absorbance" and found.wavelength_unit == "cm-1"
    assert trace.name == "A 5 mM" and trace.concentration == (5.0,)
    np.testing.assert_allclose(trace.values, samples.spectrum(5.0), rtol=1e-6)
    assert trace.wavelengths[0] == 4000


def test_wdf(tmp_path):
    pytest.importorskip("wdf")
    found = read_file(write(tmp_path, samples.wdf()))
    assert found.format == "Renishaw WDF" and found.wavelength_unit == "nm" and found.signal_unit == "counts"
    assert [trace.name for trace in found.traces] == [f"A series {k}" for k in (1, 2, 3, 4)]
    for trace, c in zip(found.traces, samples.LEVELS, strict=True):
        np.testing.assert_allclose(trace.values, samples.spectrum(c), rtol=1e-6)
        np.testing.assert_allclose(trace.wavelengths, samples.WAVELENGTHS)


def test_a_parser_that_never_returns_is_stopped(tmp_path, monkeypatch):
    pytest.importorskip("wdf")
    monkeypatch.setattr(foreign, "SECONDS", 1)
    endless = bytearray(samples.wdf())
    endless[512 + 8 : 512 + 16] = bytes(8)  # a section of no length
    endless[512:516] = b"NONE"
    with pytest.raises(ReaderError, match="renishaw-wdf did not finish with it in 1 s; the file is damaged"):
        read_file(write(tmp_path, bytes(endless)))


@pytest.mark.parametrize(("maker", "package"), [(samples.opus, "brukeropus"), (samples.wdf, "wdf")])
def test_damaged_files(tmp_path, monkeypatch, maker, package):
    pytest.importorskip(package)
    monkeypatch.setattr(foreign, "SECONDS", 5)
    whole = maker()
    for size in (10, len(whole) // 2, len(whole) - 30):
        with pytest.raises(ReaderError, match=r"a\.dat: ") as caught:
            read_file(write(tmp_path, whole[:size]))
        assert "\n" not in str(caught.value)
