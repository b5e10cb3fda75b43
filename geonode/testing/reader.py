"""`ReaderContract`: what every reader of a file format must do, whatever the format."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import ClassVar

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geonode.data.readers import READERS, Particularity, Reader, Recording, all_readers, read_file, recognise
from geonode.data.readers.base import HEAD
from geonode.errors import ReaderError


class ReaderContract:
    """Tests of one reader; inherit it, and give the reader and a way to write a file of its format.

        class TestMyLab(ReaderContract):
            reader = MyLabReader

            def write(self, folder, wavelengths, values):
                path = folder / "a.txt"
                path.write_text("MYLAB\\n" + "\\n".join(f"{x} {y}" for x, y in zip(wavelengths, values[0])))
                return path

    Attributes:
        reader: the class under test.
        spectra: how many spectra a file of this format may hold; 1 for one spectrum a file.
        decimals: how many decimals of a value `write` keeps.
        wavelength_unit: what the reader must call the unit of the files that `write` makes.
        damages: how many damaged copies of a file are tried.
        archives: the format is a ZIP archive.
    """

    reader: ClassVar[type[Reader]]
    spectra: ClassVar[int] = 1
    decimals: ClassVar[int] = 4
    wavelength_unit: ClassVar[str] = "nm"
    damages: ClassVar[int] = 60
    archives: ClassVar[bool] = False

    def write(self, folder: Path, wavelengths: np.ndarray, values: np.ndarray) -> Path:
        """A file of the format.

        Args:
            folder: where to write it.
            wavelengths: ``[W]``, whole numbers, ascending.
            values: ``[spectra, W]``, with `decimals` decimals.

        Returns:
            The path of the file.
        """
        raise NotImplementedError

    # --- what the tests share -----------------------------------------------------------------------------------

    def _example(self, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        wavelengths = np.arange(400.0, 430.0)
        return wavelengths, np.round(rng.uniform(0.1, 0.9, (self.spectra, 30)), self.decimals)

    def _file(self, folder: Path, seed: int = 0) -> Path:
        return self.write(folder, *self._example(seed))

    def _read_or_refuse(self, path: Path) -> Recording | None:
        """What the reader makes of a file; None where it refuses it, in one sentence that names the file."""
        try:
            return self.reader().read(path)
        except ReaderError as error:
            sentence = str(error)
            assert str(path) in sentence, f"the error does not name the file: {sentence!r}"
            assert "\n" not in sentence and sentence.endswith("."), f"not one sentence: {sentence!r}"
            return None

    # --- the tests ----------------------------------------------------------------------------------------------

    def test_it_is_registered_under_one_name(self):
        name = READERS.name_of(self.reader)
        assert READERS[name] is self.reader and self.reader().name == name

    def test_it_says_what_it_reads(self):
        assert self.reader.format.strip() and self.reader.summary.strip()
        assert isinstance(self.reader.particularity, Particularity)
        assert sum(reader.format == self.reader.format for reader in all_readers()) == 1, "two readers of one format"

    def test_it_recognises_its_own_files(self, tmp_path):
        path = self._file(tmp_path)
        assert self.reader().sniff(path.read_bytes()[:HEAD]) is True
        found = recognise(path)
        assert type(found) is self.reader, f"{found.format} is surer of it; raise the particularity or narrow sniff"

    def test_its_name_does_not_matter(self, tmp_path):
        path = self._file(tmp_path)
        other = path.rename(path.with_name("renamed.bin"))
        assert type(recognise(other)) is self.reader

    @settings(max_examples=60, suppress_health_check=[HealthCheck.differing_executors])
    @given(data=st.binary(max_size=1500))
    def test_recognition_never_fails(self, data):
        assert self.reader().sniff(data) in (True, False)

    def test_it_leaves_other_files_alone(self):
        prose, archive = b"Dear diary,\ntoday we measured nothing.\n", b"PK\x03\x04\x14\0\0\0\x08\0" + b"\0a" * 40
        others = (b"", b"\0", prose, bytes(range(256)) * 8, *(() if self.archives else (archive,)))
        for other in others:
            assert not self.reader().sniff(other), f"takes {other[:12]!r} for its own"

    def test_the_values_are_those_written(self, tmp_path):
        wavelengths, values = self._example(1)
        recording = read_file(self.write(tmp_path, wavelengths, values))
        assert len(recording.traces) == self.spectra
        for trace, expected in zip(recording.traces, values, strict=True):
            order = np.argsort(trace.wavelengths)
            np.testing.assert_allclose(trace.wavelengths[order], wavelengths, rtol=1e-6)
            np.testing.assert_allclose(trace.values[order], expected, atol=0.51 * 10.0**-self.decimals)

    def test_wavelengths_run_one_way_and_are_distinct(self, tmp_path):
        for trace in read_file(self._file(tmp_path)).traces:
            steps = np.diff(trace.wavelengths)
            assert (steps > 0).all() or (steps < 0).all()

    def test_units_are_said(self, tmp_path):
        recording = read_file(self._file(tmp_path))
        assert recording.wavelength_unit == self.wavelength_unit
        assert recording.signal and self.reader.format in recording.format

    def test_spectra_have_names_and_places(self, tmp_path):
        recording = read_file(self._file(tmp_path))
        assert all(trace.name.strip() and trace.place.strip() for trace in recording.traces)
        assert len({trace.place for trace in recording.traces}) == len(recording.traces)

    def test_notes_are_words(self, tmp_path):
        for note in read_file(self._file(tmp_path)).notes:
            assert note == note.strip() and note and "\n" not in note and len(note) < 500

    def test_reading_twice_gives_the_same(self, tmp_path):
        path = self._file(tmp_path)
        first, second = read_file(path), read_file(path)
        assert first.notes == second.notes
        for a, b in zip(first.traces, second.traces, strict=True):
            np.testing.assert_array_equal(a.values, b.values)

    def test_reading_changes_nothing_on_disk(self, tmp_path):
        path = self._file(tmp_path)
        before = copy.copy(path.read_bytes()), sorted(p.name for p in tmp_path.iterdir())
        read_file(path)
        assert (path.read_bytes(), sorted(p.name for p in tmp_path.iterdir())) == before

    def test_a_file_cut_off_anywhere_is_read_or_refused_in_a_sentence(self, tmp_path):
        path = self._file(tmp_path)
        data, whole = path.read_bytes(), read_file(path)
        for size in range(0, len(data), max(1, len(data) // self.damages)):
            if not self.reader().sniff(data[:size]):
                continue
            path.write_bytes(data[:size])
            found = self._read_or_refuse(path)
            if found is not None:
                self._assert_part(found, whole)

    def test_a_garbled_file_is_read_or_refused_in_a_sentence(self, tmp_path):
        path = self._file(tmp_path)
        data, rng = path.read_bytes(), np.random.default_rng(2)
        for _ in range(self.damages):
            changed = bytearray(data)
            for at in rng.integers(0, len(data), rng.choice([1, 3, 20])):
                changed[at] = rng.integers(0, 256)
            if self.reader().sniff(bytes(changed[:HEAD])):
                path.write_bytes(changed)
                self._read_or_refuse(path)

    def _assert_part(self, found: Recording, whole: Recording) -> None:
        """A file cut off may give fewer points, but none that the whole file does not have, up to its last number."""
        known = {x for trace in whole.traces for x in np.round(trace.wavelengths, 6)}
        for trace in found.traces:
            new = [x for x in np.round(trace.wavelengths[:-1], 6) if x not in known]
            assert not new, f"a file cut off gives wavelengths that are not in it: {new[:3]}"
