"""Large sets of simulated scans: in parallel, chunked, resumable, the same bits whatever the number of workers.

Scans come in blocks, each drawn from a generator keyed by (seed, number of the block), so a block is what it is whoever
computes it and when. Each finished block is a file of its own in a folder beside the output (written whole, then
renamed); what a killed run left there is used by the next one. The blocks are then put together in order into one
chunked HDF5 file, which appears under its name when it is complete.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from geonode.data.methane.lines import LineList, strong_lines
from geonode.data.methane.spectrometer import Conditions, Gas, Spectrometer, draw_conditions, record
from geonode.data.pairs import keyed_generator
from geonode.errors import InputError, ReaderError
from geonode.threads import cores
from geonode_runtime.wording import argument

FORMAT, VERSION = "geonode methane scans", 1
BLOCK = 500

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class ScanSet:
    """A file of scans, opened by `load_scans`.

    Attributes:
        voltages: ``[N, S]`` float32, V. fraction, temperature, pressure: ``[N]``, mole fraction, K, atm.
        wavenumbers: ``[S]``, cm⁻¹. settings: gas, instrument, seed and lines that it was made with.
    """

    voltages: np.ndarray
    fraction: np.ndarray
    temperature: np.ndarray
    pressure: np.ndarray
    wavenumbers: np.ndarray
    settings: dict[str, Any]

    def __len__(self) -> int:
        return len(self.voltages)


@dataclass(frozen=True)
class _Job:
    """What a worker needs to compute any block."""

    n: int
    seed: int
    gas: Gas
    instrument: Spectrometer
    lines: LineList
    folder: Path
    device: str

    @property
    def blocks(self) -> int:
        return -(-self.n // BLOCK)

    def path(self, block: int) -> Path:
        return self.folder / f"block-{block:08d}.npz"


def simulate_scans(
    n: int,
    out: str | os.PathLike[str],
    *,
    seed: int = 0,
    workers: int | None = None,
    gas: Gas | None = None,
    instrument: Spectrometer | None = None,
    lines: LineList | None = None,
    device: str = "cpu",
    progress: Progress | None = None,
) -> Path:
    """Simulate ``n`` scans into an HDF5 file.

    Args:
        n: number of scans. out: the file; an existing one is replaced when the new one is complete.
        seed: the same seed gives the same file, byte for byte on one device and release, whatever ``workers`` is.
        workers: processes; by default one for each core. On a GPU, one.
        gas, instrument, lines: what is simulated; by default the strong lines near 1653.7 nm over 1 m.
        device: ``cpu`` or a GPU. progress: called with (what, done, total).

    Returns:
        The path of the file.

    Raises:
        InputError: no scans, a folder that does not exist, or the blocks of other settings lie beside the file.
    """
    target = Path(out)
    gas, instrument, lines = gas or Gas(), instrument or Spectrometer(), lines or strong_lines()
    gas.check()
    instrument.check()
    if n < 1:
        raise InputError(f"methane: {n} scans; give at least one.")
    if workers is not None and workers < 1:
        raise InputError(f"{argument('workers', workers)} must be at least 1; without it there is one for each core.")
    if target.is_dir() or not target.absolute().parent.is_dir():
        raise InputError(f"{target}: a folder, or in a folder that does not exist; give a file in one that does.")
    job = _Job(n, seed, gas, instrument, lines, target.with_name(f"{target.name}.blocks"), device)
    _prepare_folder(job)
    missing = [block for block in range(job.blocks) if not _is_complete(job, block)]
    done = job.blocks - len(missing)
    for _ in _run(job, missing, 1 if device != "cpu" else workers or cores()):
        done += 1
        if progress is not None:
            progress("scans", min(done * BLOCK, n), n)
    _assemble(job, target, progress)
    shutil.rmtree(job.folder)
    return target


def settings_of(job: _Job) -> dict[str, Any]:
    """Everything that the scans depend on."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "scans": job.n,
        "seed": job.seed,
        "block": BLOCK,
        "gas": asdict(job.gas),
        "instrument": asdict(job.instrument),
        "lines": job.lines.source,
        "lines_digest": job.lines.fingerprint(),
    }


def _prepare_folder(job: _Job) -> None:
    """Make the folder of blocks, or make sure that what lies there was made with the same settings."""
    description = json.dumps(settings_of(job), sort_keys=True)
    note = job.folder / "settings.json"
    job.folder.mkdir(exist_ok=True)
    if note.exists():
        if note.read_text(encoding="utf-8") != description:
            raise InputError(
                f"{job.folder}: holds blocks of an interrupted run with other settings; delete the folder, or give the "
                "settings of that run."
            )
        return
    if any(job.folder.glob("block-*")):
        raise InputError(f"{job.folder}: holds blocks of an unknown run; delete the folder.")
    temporary = note.with_suffix(".part")
    temporary.write_text(description, encoding="utf-8")
    temporary.replace(note)


def _is_complete(job: _Job, block: int) -> bool:
    """Blocks are renamed when whole; one that cannot be read all the same (a full disk) is made anew."""
    path = job.path(block)
    if not path.exists():
        return False
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return arrays["codes"].shape == (_size(job, block), job.instrument.samples)
    except (OSError, ValueError, KeyError):
        return False


def _size(job: _Job, block: int) -> int:
    return min(BLOCK, job.n - block * BLOCK)


def _run(job: _Job, missing: list[int], workers: int) -> Iterator[int]:
    if workers <= 1 or len(missing) <= 1:
        for block in missing:
            yield _compute(job, block)
        return
    context = multiprocessing.get_context("spawn")  # fork and torch's threads do not go together
    with context.Pool(min(workers, len(missing)), initializer=_start_worker, initargs=(job,)) as pool:
        yield from pool.imap_unordered(_compute_in_worker, missing)


_worker_job: _Job | None = None


def _start_worker(job: _Job) -> None:
    global _worker_job
    torch.set_num_threads(1)
    _worker_job = job


def _compute_in_worker(block: int) -> int:
    assert _worker_job is not None  # set by _start_worker
    return _compute(_worker_job, block)


def _compute(job: _Job, block: int) -> int:
    """Compute one block and write it, whole or not at all."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # sums in one order, whatever the machine
    try:
        generator = keyed_generator(job.seed, block, device=job.device)
        conditions = draw_conditions(_size(job, block), job.gas, job.instrument, generator)
        codes = record(conditions, job.instrument, job.lines, generator)
    finally:
        torch.set_num_threads(threads)
    path = job.path(block)
    temporary = path.with_suffix(f".{os.getpid()}.part")
    drawn = {name: getattr(conditions, name).cpu().numpy() for name in Conditions.NAMES}
    with temporary.open("wb") as file:
        np.savez(file, codes=codes.cpu().numpy().astype(np.uint16), **drawn)
    temporary.replace(path)
    return block


def _assemble(job: _Job, target: Path, progress: Progress | None) -> None:
    """All blocks in order into one HDF5 file, under its name when complete."""
    import h5py

    temporary = target.with_name(f".{target.name}.part")
    samples = job.instrument.samples
    try:
        with h5py.File(temporary, "w", libver="latest") as file:
            file.attrs["settings"] = json.dumps(settings_of(job), sort_keys=True)
            file.create_dataset("wavenumbers", data=job.instrument.wavenumbers().numpy()).attrs["units"] = "cm-1"
            chunks = (min(BLOCK, job.n), samples)
            codes = file.create_dataset("codes", (job.n, samples), "u2", chunks=chunks, fletcher32=True)
            codes.attrs["volts_per_code"] = job.instrument.step
            drawn = {name: file.create_dataset(name, (job.n,), "f8", fletcher32=True) for name in Conditions.NAMES}
            for block in range(job.blocks):
                start = block * BLOCK
                with np.load(job.path(block), allow_pickle=False) as arrays:
                    codes[start : start + _size(job, block)] = arrays["codes"]
                    for name, dataset in drawn.items():
                        dataset[start : start + _size(job, block)] = arrays[name]
                if progress is not None:
                    progress("writing", block + 1, job.blocks)
        os.replace(temporary, target)
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror or error}).") from None
    finally:
        temporary.unlink(missing_ok=True)


class ScanFile:
    """A file that `simulate_scans` wrote, open to be read in parts: its length costs no memory.

        with ScanFile("scans.h5") as scans:
            for start in range(0, len(scans), scans.block):
                part = scans.read(start, start + scans.block)

    Attributes:
        path: the file.
        settings: gas, instrument, seed and lines that it was made with.
        block: so many scans lie together in the file; parts that begin and end with a block are read fastest.

    Args:
        path: the file.

    Raises:
        ReaderError: missing, truncated or foreign.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        import h5py

        self.path = Path(path)
        if not self.path.is_file():
            raise ReaderError(
                f"{self.path}: there is no such file of scans; simulate it with geonode simulate methane."
            )
        with self._readable():
            self._file = h5py.File(self.path, "r")
            self.settings: dict[str, Any] = json.loads(str(self._file.attrs["settings"]))
            if self.settings.get("format") != FORMAT or self.settings.get("version") != VERSION:
                raise ValueError("of another format or version")
            self._codes: Any = self._file["codes"]
            self._step = np.float32(self._codes.attrs["volts_per_code"])
            self.block = int(self._codes.chunks[0])

    def __len__(self) -> int:
        return int(self.settings["scans"])

    def __enter__(self) -> ScanFile:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def read(self, start: int = 0, stop: int | None = None) -> ScanSet:
        """Scans ``start`` to ``stop`` (to the last without one); only those are read.

        Raises:
            ReaderError: a damaged part. InputError: an empty range, or one beyond the last scan.
        """
        end = len(self) if stop is None else stop
        if not 0 <= start < end <= len(self):
            raise InputError(f"{self.path}: scans {start} to {stop}, but there are {len(self)}.")
        with self._readable():
            arrays: dict[str, Any] = {name: self._file[name] for name in ("fraction", "temperature", "pressure")}
            grid: Any = self._file["wavenumbers"]
            return ScanSet(
                np.asarray(self._codes[start:end], dtype=np.float32) * self._step,
                **{name: np.asarray(dataset[start:end]) for name, dataset in arrays.items()},
                wavenumbers=np.asarray(grid[:]),
                settings=self.settings,
            )

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """The HDF5 stack raises anything at all on damaged files."""
        try:
            yield
        except Exception as error:
            reason = " ".join(str(error).split())[:120]
            raise ReaderError(
                f"{self.path}: no complete file of methane scans ({reason}); simulate it again."
            ) from None


def load_scans(path: str | os.PathLike[str], start: int = 0, stop: int | None = None) -> ScanSet:
    """Scans ``start`` to ``stop`` of a file that `simulate_scans` wrote; only those are read.

    Raises:
        ReaderError: missing, truncated or foreign. InputError: an empty range.
    """
    with ScanFile(path) as file:
        return file.read(start, stop)
