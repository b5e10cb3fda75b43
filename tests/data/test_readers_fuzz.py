"""A share of the fuzzing on every run; the whole of it is ``python -m tests.data.fuzz_readers``."""

from __future__ import annotations

import signal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import geonode
from geonode.data import inspect_file
from geonode.data.readers import all_readers
from geonode.errors import ReaderError
from tests.data import fuzz_readers, samples


@pytest.fixture
def alarm():
    signals = (signal.SIGALRM, signal.SIGPROF)
    before = [signal.signal(one, fuzz_readers.too_slow) for one in signals]
    yield
    fuzz_readers.watch(0)
    for one, handler in zip(signals, before, strict=True):
        signal.signal(one, handler)


def test_mutated_files(alarm):
    outcomes = fuzz_readers.run(cases=200, seed=20)
    assert sum(outcomes[kind] for kind in ("data set", "refused")) == 200
    assert outcomes["data set"] > 5, "mutations that change little must leave a data set"


@pytest.mark.parametrize("maker", samples.MAKERS, ids=lambda maker: maker.__name__)
def test_truncation_at_every_length(tmp_path, maker):
    data = maker()
    path, spectra = tmp_path / "case.dat", fuzz_readers.prepare(tmp_path)
    times = 5 if maker in (samples.opus, samples.wdf, samples.xlsx, samples.ods) else 25  # those take a process each
    for size in range(0, len(data), max(1, len(data) // times)):
        fuzz_readers.check(data[:size], path, spectra)


# Beginnings by which a reader takes a file for its own, so that chance bytes reach the reader and not only its sniff.
_BEGINNINGS = {
    b"": "anything",
    b"wavelength,0.0,5.0\n": "tidy",
    b"##TITLE=x\n##JCAMP-DX=4.24\n##XYDATA=(X++(Y..Y))\n": "jcamp",
    b"PE FL SPECTRUM ASCII PEDS 1.6\n#DATA\n": "peds",
    b"Plate information\t\nWell\tSample\tMeasA:Result\tMeasA:WavelengthExc\t\n": "enspire",
    b"User: x\nPath: y\nWell,Sample,Dilution,400,401,402\n": "clariostar",
    b">>>>>Begin<<<<<\n": "ocean",
    b'"t"\n"Wavelength nm."\t"Abs."\n': "shimadzu",
    b"a,,b,\nWavelength (nm),Abs,Wavelength (nm),Abs\n": "cary",
    b",0,1,2\n400,1,2,3\n": "nanodrop",
    b"file,conc\n": "manifest",
    b"\x00K\x00\x00": "spc",
    b"\x89HDF\r\n\x1a\n": "netcdf",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "ole2",
    b"%PDF-1.4\n": "foreign",
}
_LINE = st.lists(
    st.one_of(
        st.floats(allow_nan=True).map(repr),
        st.integers(-1000, 100_000).map(str),
        st.sampled_from(["", "-0", "OVRFLW", ">3", "?", "1,5", "A1", "##END=", "@A1J2S", '"']),
        st.text(max_size=4),
    ),
    max_size=8,
)


@settings(max_examples=150)
@given(
    beginning=st.sampled_from(list(_BEGINNINGS)),
    lines=st.lists(_LINE, max_size=12),
    delimiter=st.sampled_from([",", ";", "\t", " ", ""]),
    tail=st.binary(max_size=40),
)
def test_invented_files(tmp_path, beginning, lines, delimiter, tail):
    content = beginning + "\n".join(delimiter.join(line) for line in lines).encode("utf-8", "surrogatepass") + tail
    spectra = tmp_path / "spectra.csv"
    spectra.write_bytes(samples.nanodrop())
    fuzz_readers.check(content, tmp_path / "case.dat", spectra)


@given(data=st.binary(max_size=2000))
def test_sniffing_never_fails(data):
    for reader in all_readers():
        assert reader.sniff(data) in (True, False)


@pytest.mark.parametrize("maker", samples.MAKERS, ids=lambda maker: maker.__name__)
def test_the_seeds_themselves_are_read(tmp_path, maker):
    fuzz_readers.prepare(tmp_path)
    path = tmp_path / "case.dat"
    path.write_bytes(maker())
    if maker is samples.note:
        with pytest.raises(ReaderError):
            inspect_file(path)
        spectra = tmp_path / "spectra.csv"
        assert len(geonode.load_standards(spectra, concentrations=path).levels) == 3
    else:
        packages = {"opus": "brukeropus", "wdf": "wdf", "xlsx": "python_calamine", "ods": "python_calamine"}
        if maker.__name__ in packages:
            pytest.importorskip(packages[maker.__name__])
        assert inspect_file(path).spectra >= 1


def test_sizes_beyond_reason_are_refused(tmp_path):
    path = tmp_path / "case.dat"
    with path.open("wb") as file:
        file.write(samples.tidy())
        file.truncate(40 * 2**20)
    with pytest.raises(ReaderError, match="40 MB of text is more than spectra take"):
        inspect_file(path)
    path.write_bytes(b"##TITLE=x\n##JCAMP-DX=4.24\n##XYDATA=(X++(Y..Y))\n400A1Z99999999\n##END=\n")
    with pytest.raises(ReaderError, match="the data are damaged"):
        inspect_file(path)
