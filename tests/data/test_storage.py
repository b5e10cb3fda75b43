"""NetCDF: what is written is read back equal, and nothing is ever half-written."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import geonode
from geonode.data import SpectralDataset
from geonode.data.bundled import dataset_arrays, dataset_from, dataset_metadata
from geonode.errors import InputError, OutputError, ReaderError


def make(n=4, w=12, dim=1, seed=0, **kwargs) -> SpectralDataset:
    rng = np.random.default_rng(seed)
    concentrations = np.arange(n * dim, dtype=float).reshape(n, dim) if dim > 1 else np.arange(n, dtype=float)
    return SpectralDataset(rng.normal(size=(n, w)), concentrations, np.arange(300.0, 300.0 + w), **kwargs)


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)


@pytest.mark.smoke
@settings(max_examples=8)
@given(
    n=st.integers(3, 6),
    dim=st.integers(1, 3),
    unit=TEXT,
    notes=st.lists(TEXT, max_size=3),
    labels=st.booleans(),
    masked=st.integers(0, 3),
    seed=st.integers(0, 1000),
)
def test_round_trip(tmp_path, n, dim, unit, notes, labels, masked, seed):
    mask = np.zeros((n, 12), dtype=bool)
    mask[0, :masked] = True
    groups = [f"tag µ{i // 2}" for i in range(n)] if labels else None
    data = make(n, dim=dim, seed=seed, concentration_unit=unit, notes=notes, groups=groups, mask=mask, source="x y")
    data.save(tmp_path / "d.nc")
    from geonode.data.storage import load

    again = load(tmp_path / "d.nc")
    assert again == data
    assert again.notes == data.notes and again.source == data.source


COMMAS = ("run, 5 mM.csv", "run, 10 mM.csv", "c.csv")


def test_names_of_files_with_commas_stay_whole(tmp_path):
    data = make(source=COMMAS)
    data.save(tmp_path / "d.nc")
    assert geonode.load_standards(tmp_path / "d.nc").files == COMMAS
    bundled = dataset_arrays(data), dataset_metadata(data)
    assert dataset_from(*bundled, data.files).files == COMMAS
    assert make(source="a, b.csv").files == ("a, b.csv",) and make().files == ()


def test_what_was_written_before_the_names_stood_apart_is_parted_at_commas(tmp_path):
    from geonode.data.storage import from_xarray

    data = make(source=("a.csv", "b.csv"))
    stored = data.xarray
    del stored.attrs["files"]
    assert from_xarray(stored).files == data.files
    assert dataset_from(dataset_arrays(data), dataset_metadata(data)).files == data.files


def test_load_standards_recognises_it_by_content(tmp_path):
    data = make(concentration_unit="ppb")
    data.save(tmp_path / "misleading.csv")
    assert geonode.load_standards(tmp_path / "misleading.csv") == data
    with pytest.raises(InputError, match="concentrations are in ppb, not in mM"):
        geonode.load_standards(tmp_path / "misleading.csv", concentration_unit="mM")


def test_written_whole_or_not_at_all(tmp_path, monkeypatch):
    target = tmp_path / "d.nc"
    make().save(target)
    before = target.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OutputError, match=r"d\.nc could not be written \(No space left on device\)"):
        make(seed=1).save(target)
    assert target.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["d.nc"]


def test_missing_folder(tmp_path):
    with pytest.raises(InputError, match="does not exist; create it first"):
        make().save(tmp_path / "absent" / "d.nc")


def test_damaged_and_foreign_files(tmp_path):
    target = tmp_path / "d.nc"
    make(w=200).save(target)
    whole = target.read_bytes()
    for size in (20, len(whole) // 4, len(whole) // 2, len(whole) - 100):
        target.write_bytes(whole[:size])
        with pytest.raises(ReaderError, match=r"d\.nc: HDF5, but not a complete geonode data set"):
            geonode.load_standards(target)
    import h5py

    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        file["x"] = np.arange(3)
    with pytest.raises(ReaderError, match=r"foreign\.h5: HDF5, but not a complete geonode"):
        geonode.load_standards(tmp_path / "foreign.h5")
    (tmp_path / "old.nc").write_bytes(b"CDF\x01" + bytes(100))
    with pytest.raises(ReaderError, match=r"old\.nc: NetCDF-3"):
        geonode.load_standards(tmp_path / "old.nc")


def test_a_number_altered_on_the_way_is_refused(tmp_path):
    data = make(w=200)
    data.save(tmp_path / "d.nc")
    whole = (tmp_path / "d.nc").read_bytes()
    for number in (data.spectra[2, 100], data.concentrations[3], data.wavelengths[7]):
        place = whole.index(np.float64(number).tobytes())
        altered = bytearray(whole)
        altered[place + 6] ^= 1
        (tmp_path / "d.nc").write_bytes(altered)
        with pytest.raises(ReaderError, match=r"d\.nc: HDF5, but not a complete geonode data set"):
            geonode.load_standards(tmp_path / "d.nc")


def test_newer_format_is_refused_by_name(tmp_path):
    stored = make().xarray.assign_attrs(format_version=99)
    stored.to_netcdf(tmp_path / "d.nc", engine="h5netcdf")
    with pytest.raises(ReaderError, match="it is of format version 99, and this release reads version 1"):
        geonode.load_standards(tmp_path / "d.nc")
