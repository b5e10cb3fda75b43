"""Every reader against `geonode.testing.ReaderContract`, with files of its format that are written here."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from geonode.data import SpectralDataset
from geonode.data.readers import READERS
from geonode.testing import ReaderContract
from tests.data import samples


def _write(folder: Path, content: str | bytes) -> Path:
    path = folder / "file.dat"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def _columns(wavelengths, values, delimiter: str, decimal: str = ".") -> list[str]:
    rows = (
        delimiter.join([f"{x:g}", *(f"{v:.4f}" for v in row)]) for x, row in zip(wavelengths, values.T, strict=True)
    )
    return [row.replace(".", decimal) for row in rows]


class TestTidy(ReaderContract):
    reader = READERS["tidy"]
    spectra = 3

    def write(self, folder, wavelengths, values):
        return _write(folder, "\n".join(["wavelength,0.0,5.0,5.0.1", *_columns(wavelengths, values, ",")]))


class TestDelimited(ReaderContract):
    reader = READERS["delimited"]
    spectra = 3

    def write(self, folder, wavelengths, values):
        return _write(folder, "\n".join(["nm;a;b;c", *_columns(wavelengths, values, ";", ",")]))


class TestCary(ReaderContract):
    reader = READERS["cary"]
    spectra = 2

    def write(self, folder, wavelengths, values):
        lines = ["a,,b,,", "Wavelength (nm),Abs,Wavelength (nm),Abs,"]
        pairs = list(zip(wavelengths, *values, strict=True))[::-1]
        lines += [f"{x:g},{a:.4f},{x:g},{b:.4f}," for x, a, b in pairs]
        return _write(folder, "\r\n".join([*lines, "", "a,", "a", "", "b,", "b", ""]))


class TestShimadzu(ReaderContract):
    reader = READERS["shimadzu"]

    def write(self, folder, wavelengths, values):
        return _write(
            folder, "\r\n".join(['"a"', '"Wavelength nm."\t"Abs."', *_columns(wavelengths, values, "\t", ",")])
        )


class TestPeds(ReaderContract):
    reader = READERS["peds"]

    def write(self, folder, wavelengths, values):
        head = [
            "PE UV  SPECTRUM  ASCII  PEDS  1.60",
            "-1",
            "name",
            "#HDR",
            "-1",
            "#GR",
            "NM",
            "A",
            "1",
            "0",
            "400",
            "1",
        ]
        return _write(folder, "\n".join([*head, f"{len(wavelengths)}", "#DATA", *_columns(wavelengths, values, "\t")]))


class TestEnspire(ReaderContract):
    reader = READERS["enspire"]
    spectra = 2

    def write(self, folder, wavelengths, values):
        lines = ["Plate information\t", "", "Well\tSample\tMeasA:WavelengthEms\tMeasA:Result\t"]
        for well, spectrum in zip(("A01", "A02"), values, strict=True):
            lines += [f"{well}\tx\t{x:g}\t{v:.4f}\t" for x, v in zip(wavelengths, spectrum, strict=True)]
        return _write(folder, "\r\n".join([*lines, "", "Instrument:\t"]))


class TestClariostar(ReaderContract):
    reader = READERS["clariostar"]
    spectra = 2

    def write(self, folder, wavelengths, values):
        lines = ["User: a", "Path: b", "Absorbance spectrum", "Well,Sample," + ",".join(f"{x:g}" for x in wavelengths)]
        lines += [f"A{k},S{k}," + ",".join(f"{v:.4f}" for v in row) for k, row in enumerate(values)]
        return _write(folder, "\n".join(lines))


class TestNanoDrop(ReaderContract):
    reader = READERS["nanodrop"]
    spectra = 2

    def write(self, folder, wavelengths, values):
        return _write(folder, "\n".join([",0,1", *_columns(wavelengths, values, ",")]))


class TestOcean(ReaderContract):
    reader = READERS["ocean"]

    def write(self, folder, wavelengths, values):
        head = [
            "Data from a Node",
            f"Number of Pixels in Spectrum: {len(wavelengths)}",
            ">>>>>Begin Spectral Data<<<<<",
        ]
        return _write(folder, "\r\n".join([*head, *_columns(wavelengths, values, "\t")]))


class TestJcamp(ReaderContract):
    reader = READERS["jcamp"]

    def write(self, folder, wavelengths, values):
        labels = {"TITLE": "a", "JCAMP-DX": "4.24", "DATA TYPE": "UV/VIS SPECTRUM", "XUNITS": "NANOMETERS"}
        labels |= {"YUNITS": "ABSORBANCE", "XFACTOR": "1", "YFACTOR": "0.0001", "FIRSTX": f"{wavelengths[0]:g}"}
        labels |= {"LASTX": f"{wavelengths[-1]:g}", "NPOINTS": f"{len(wavelengths)}", "XYDATA": "(X++(Y..Y))"}
        y = np.round(values[0] * 1e4).astype(int)
        body = [f"{wavelengths[k]:g} " + " ".join(map(str, y[k : k + 8])) for k in range(0, len(y), 8)]
        return _write(folder, "\n".join([*(f"##{k}={v}" for k, v in labels.items()), *body, "##END="]))


class TestSpc(ReaderContract):
    reader = READERS["spc"]

    def write(self, folder, wavelengths, values):
        head = bytearray(512)
        struct.pack_into("<BBBbiddi", head, 0, 0, 0x4B, 0, -128, len(wavelengths), wavelengths[0], wavelengths[-1], 1)
        head[28], head[29] = 3, 2
        return _write(folder, bytes(head) + bytes(32) + values[0].astype("<f4").tobytes())


class TestNetCDF(ReaderContract):
    reader = READERS["netcdf"]
    spectra = 3
    damages = 10  # HDF5 takes its time

    def write(self, folder, wavelengths, values):
        path = folder / "a.nc"
        SpectralDataset(values, [0.0, 1.0, 2.0], wavelengths).save(path)
        return path


class TestManifest(ReaderContract):
    reader = READERS["manifest"]
    spectra = 2

    def write(self, folder, wavelengths, values):
        for k, spectrum in enumerate(values):
            (folder / f"s{k}.csv").write_text("\n".join(["nm,A", *_columns(wavelengths, spectrum[None], ",")]))
        return _write(folder, "file,concentration\ns0.csv,0\ns1.csv,5\n")


class TestWorkbook(ReaderContract):
    reader = READERS["workbook"]
    spectra = 3
    damages = 6  # a process each
    archives = True

    @pytest.fixture(autouse=True)
    def _needs_the_package(self):
        pytest.importorskip("python_calamine")

    def write(self, folder, wavelengths, values):
        rows = [["wavelength (nm)", "a", "b", "c"], *np.column_stack([wavelengths, values.T]).tolist()]
        return _write(folder, samples.xlsx({"data": rows}))


def test_every_reader_of_spectra_is_under_the_contract():
    tested = {case.reader for case in ReaderContract.__subclasses__() if case.__module__ == __name__}
    # What other people's parsers read is written by other people's programs: test_readers_foreign has their files.
    foreign = {READERS["opus"], READERS["wdf"]}
    assert tested | foreign == {kind for kind in READERS.values() if not kind.refuses}


def test_a_reader_of_ones_own_is_one_file(tmp_path):
    from geonode.data.readers import Particularity, Reader, read_file

    @READERS.register("mylab")
    class MyLabReader(Reader):
        format = "My laboratory's export"
        summary = "text of my laboratory (a line MYLAB, then pairs)"
        particularity = Particularity.MARK

        def sniff(self, head):
            return head.startswith(b"MYLAB\n")

        def read(self, path):
            recording = self.recording(path, signal="absorbance")
            from geonode.data.readers import Trace

            x, y = np.loadtxt(path, skiprows=1, unpack=True)
            recording.traces.append(Trace(path.stem, x, y, "row 2 on"))
            return recording

    try:
        found = read_file(_write(tmp_path, "MYLAB\n400 0.1\n401 0.2\n402 0.3\n"))
        assert found.format == "My laboratory's export" and found.traces[0].values.tolist() == [0.1, 0.2, 0.3]
    finally:
        READERS._items.pop("mylab")


@pytest.mark.parametrize("name", ["a reader", "", "Tidy"])
def test_unknown_readers_are_refused_with_the_names_there_are(name):
    with pytest.raises(ValueError, match=r"reader=.* is not known; choose one of .*tidy"):
        READERS[name]
