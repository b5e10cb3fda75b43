"""NetCDF-4 (HDF5) as geonode itself writes it; anything else in that container is refused."""

from __future__ import annotations

from pathlib import Path

from geonode.data import storage
from geonode.data.readers.base import READERS, Particularity, Reader
from geonode.data.readers.recording import Recording, Trace
from geonode.errors import ReaderError

_HDF5, _NETCDF3 = b"\x89HDF\r\n\x1a\n", b"CDF"


@READERS.register("netcdf")
class NetCDFReader(Reader):
    """Data sets that geonode itself saved."""

    format = "geonode NetCDF"
    summary = "NetCDF-4 written by geonode"
    particularity = Particularity.SIGNATURE

    def sniff(self, head: bytes) -> bool:
        """The signature of HDF5, or of NetCDF-3, which is then refused by name."""
        return head.startswith((_HDF5, _NETCDF3))

    def read(self, path: Path) -> Recording:
        """Read a data set that `SpectralDataset.save` wrote.

        Raises:
            ReaderError: truncated, foreign, or of a version this release cannot read.
        """
        with path.open("rb") as file:
            if file.read(3) == _NETCDF3:
                raise ReaderError(f"{path}: NetCDF-3, which geonode never writes; export the spectra as CSV.")
        data = storage.load(path)
        points = data.concentrations.reshape(len(data), -1)
        traces = [
            Trace(
                name,
                data.wavelengths,
                data.spectra[i],
                f"sample {i + 1}",
                tuple(float(value) for value in points[i]),
                masked=data.mask[i],
            )
            for i, name in enumerate(data.names)
        ]
        return Recording(
            path,
            self.format,
            traces,
            concentrations_from="the coordinate 'concentration'",
            concentration_unit=data.concentration_unit,
            analytes=data.analytes,
            wavelength_unit=data.wavelength_unit,
            signal=data.signal,
            signal_unit=data.signal_unit,
            notes=list(data.notes),
            repairs=False,
            dataset=data,
        )
