"""Mutated files for every reader: a data set or a `ReaderError`, no other exception, no hang, bounded memory.

    python -m tests.data.fuzz_readers --cases 10000

Seeds are the small files of `samples` and, where they are, the raw files of real instruments. A failing case is
written to ``fuzz-failures/`` with its traceback.
"""

from __future__ import annotations

import argparse
import faulthandler
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import geonode
from geonode.data import SpectralDataset, inspect_file
from geonode.data.readers import foreign
from geonode.errors import ReaderError
from tests.conftest import shared_data_path
from tests.data import samples

SECONDS = 20
"""Of processor time, so that a busy machine makes no finding; ten times as much by the clock, for what waits."""
MEMORY = 2 * 2**30  # beyond what the process has when it starts

_ODD = [
    *(b"", b"nan", b"inf", b"-inf", b"1e999", b"-0", b"1,5", b"1.5.5", b"99999999999999999999", b"0x10", b"#", b"\xff"),
    *(b"OVRFLW", b">3.5", b"??", b"Z99999999", b"-1", b"0", "µ".encode(), "１".encode()),
]


def _span(rng: random.Random, size: int, most: int) -> tuple[int, int]:
    start = rng.randrange(max(size, 1))
    return start, min(size, start + 1 + rng.randrange(most))


def truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def behead(data: bytes, rng: random.Random) -> bytes:
    return data[rng.randrange(len(data) + 1) :]


def flip_bytes(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 2, 8, 64])):
        if changed:
            # Headers are where lengths stand: half of the changes fall there.
            where = rng.randrange(min(len(changed), 600)) if rng.random() < 0.5 else rng.randrange(len(changed))
            changed[where] = rng.randrange(256)
    return bytes(changed)


def extreme_integers(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    value = rng.choice([0, 1, 2**31 - 1, 2**32 - 1, 2**24, 2**16, 0x80000000])
    at = rng.randrange(max(1, min(len(changed), 600) - 3))
    changed[at : at + 4] = value.to_bytes(4, rng.choice(["little", "big"]))
    return bytes(changed)


def swap_separators(data: bytes, rng: random.Random) -> bytes:
    old, new = rng.sample([b",", b";", b"\t", b".", b" ", b"\n", b"\r\n", b'"', b"=", b":"], 2)
    return data.replace(old, new, rng.choice([1, 5, -1]))


def insert_nuls(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + b"\0" * rng.choice([1, 3, 100]) + data[at:]


def reencode(data: bytes, rng: random.Random) -> bytes:
    text = data.decode("latin-1")
    return text.encode(rng.choice(["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "utf-8", "utf-32", "cp037"]))


def shuffle_lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    start, end = _span(rng, len(lines), 20)
    part = lines[start:end]
    kind = rng.randrange(4)
    if kind == 0:
        rng.shuffle(part)
    elif kind == 1:
        part = []
    elif kind == 2:
        part = part * rng.choice([2, 50])
    else:
        part = part[::-1]
    return b"\n".join([*lines[:start], *part, *lines[end:]])


def odd_token(data: bytes, rng: random.Random) -> bytes:
    tokens = list(re.finditer(rb"[^\s,;]+", data[:20000] if rng.random() < 0.5 else data))
    if not tokens:
        return data
    chosen = rng.choice(tokens)
    return data[: chosen.start()] + rng.choice(_ODD) + data[chosen.end() :]


def repeat_block(data: bytes, rng: random.Random) -> bytes:
    start, end = _span(rng, len(data), 200)
    return data[:end] + data[start:end] * rng.choice([1, 10, 200]) + data[end:]


def drop_column(data: bytes, rng: random.Random) -> bytes:
    mark = rng.choice([b",", b"\t", b";"])
    k = rng.randrange(4)
    lines = [line.split(mark) for line in data.split(b"\n")]
    return b"\n".join(mark.join(cells[:k] + cells[k + 1 :]) for cells in lines)


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    truncate, behead, flip_bytes, extreme_integers, swap_separators, insert_nuls, reencode, shuffle_lines, odd_token,
    repeat_block, drop_column,
)  # fmt: skip


def mutate(seeds: dict[str, bytes], rng: random.Random) -> tuple[str, bytes]:
    """(what was done, the file): one to three mutations of a seed, now and then spliced with another."""
    # Formats that take a process each are drawn less often.
    name = rng.choices(list(seeds), weights=[0.2 if name in ("opus", "wdf", "xlsx", "ods") else 1.0 for name in seeds])[
        0
    ]
    data, done = seeds[name], [name]
    if rng.random() < 0.1:
        other = rng.choice(list(seeds))
        data = data[: rng.randrange(len(data) + 1)] + seeds[other][rng.randrange(len(seeds[other]) + 1) :]
        done.append(f"spliced with {other}")
    for _ in range(rng.choice([1, 1, 2, 3])):
        change = rng.choice(MUTATIONS)
        data = change(data, rng)[: 2**22]
        done.append(change.__name__)
    return " ".join(done), data


def load_seeds(real: bool = True) -> dict[str, bytes]:
    """Small files of every format and, where they are, the raw files; long ones cut to what tells as much."""
    seeds = {maker.__name__: maker() for maker in samples.MAKERS}
    root = shared_data_path() if real else None
    for path in sorted((root / "raw").glob("*/*")) if root else []:
        if not path.name.startswith(("SOURCE", "LICENSE")) and (path.name[-6] == "A" or "Rhodamine" not in path.name):
            seeds[f"{path.parent.name}/{path.name}"] = path.read_bytes()[:60_000]
    return seeds


def prepare(folder: Path) -> Path:
    """Files that lists and tables of the cases refer to; the path of the spectra to which tables are applied."""
    (folder / "shimadzu.bin").write_bytes(samples.shimadzu())
    (folder / "shimadzu_2.bin").write_bytes(samples.shimadzu())
    (folder / "ocean.bin").write_bytes(samples.ocean())
    spectra = folder / "spectra.csv"
    spectra.write_bytes(samples.nanodrop())
    return spectra


def check(data: bytes, path: Path, spectra: Path) -> str:
    """Read one case in every way; what came of it. Any exception but a `ReaderError` is a finding.

    Raises:
        AssertionError: a result that is no data set, or an error that is no one sentence naming the file.
    """
    path.write_bytes(data)
    outcome = "data set"
    try:
        inspect_file(path)
    except ReaderError as error:
        assert_sentence(error, path)
    try:
        found = geonode.load_standards(path)
        assert isinstance(found, SpectralDataset) and len(found.levels) >= 3
    except ReaderError as error:
        assert_sentence(error, path)
        outcome = "refused"
    try:
        geonode.load_standards(spectra, concentrations=path)
    except ReaderError as error:
        assert "\n" not in str(error)
    return outcome


def assert_sentence(error: ReaderError, path: Path) -> None:
    text = str(error)
    assert str(path) in text and "\n" not in text and text.endswith(".") and len(text) < 2500, repr(text)


def run(cases: int, seed: int, failures: Path | None = None, report: bool = False) -> Counter[str]:
    """So many cases; the outcomes by kind. A finding is written to ``failures`` and counted, or raised if None."""
    rng = random.Random(seed)
    seeds = load_seeds()
    foreign.SECONDS = min(foreign.SECONDS, 3)  # a damaged file may keep such a parser for ever
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spectra = prepare(folder)
        for case in range(cases):
            done, data = mutate(seeds, rng)
            started = time.process_time()
            watch(SECONDS)
            try:
                outcomes[check(data, folder / "case.dat", spectra)] += 1
            except Exception:
                if failures is None:
                    raise
                outcomes["FAILED"] += 1
                failures.mkdir(exist_ok=True)
                (failures / f"{case}.dat").write_bytes(data)
                (failures / f"{case}.txt").write_text(f"{done}\n\n{traceback.format_exc()}")
            finally:
                watch(0)
            seconds = time.process_time() - started
            if seconds > 2:
                outcomes["slower than 2 s"] += 1
                if report:
                    print(f"case {case}: {seconds:.1f} s, {done}", flush=True)
            if report and (case + 1) % 500 == 0:
                print(f"{case + 1} cases: {dict(outcomes)}", flush=True)
    return outcomes


def watch(seconds: int) -> None:
    """Raise in a case that takes longer; 0 stops watching."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(10 * seconds)


def too_slow(*_: object) -> None:
    raise TimeoutError(f"a case took longer than {SECONDS} s")


def limit_time_and_memory() -> None:
    """An alarm for hangs and a bound on memory: a MemoryError is a finding like any other."""
    faulthandler.enable()
    signal.signal(signal.SIGALRM, too_slow)
    signal.signal(signal.SIGPROF, too_slow)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, resource.RLIM_INFINITY))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--failures", type=Path, default=Path("fuzz-failures"))
    options = parser.parse_args()
    inspect_file  # noqa: B018 - imported before memory is bounded
    load_seeds()
    limit_time_and_memory()
    started = time.monotonic()
    outcomes = run(options.cases, options.seed, options.failures, report=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{options.cases} cases in {time.monotonic() - started:.0f} s, peak {peak:.0f} MiB: {dict(outcomes)}")
    return 1 if outcomes["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
