"""Files as they lie in public folders: every family of instruments × locale × encoding × unit of the axis × labels.

    python -m tests.data.public_files --cases 2000

Each is made here, so what it says is known: it must be read to the values written, or be refused in one sentence where
it can be read in two ways.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from geonode.data.readers import read_file
from geonode.errors import ReaderError
from tests.data.public_families import Case, make


def check(case: Case, path: Path) -> str:
    """Read one file; "read" or "refused".

    Raises:
        AssertionError: anything else than what was written, or a refusal of a file that can be read in one way alone.
    """
    path.write_bytes(case.data)
    try:
        found = read_file(path)
    except ReaderError as error:
        sentence = str(error)
        assert str(path) in sentence and "\n" not in sentence and sentence.endswith("."), sentence
        assert not case.readable, sentence
        return "refused"
    assert len(found.traces) == len(case.values), f"{len(found.traces)} spectra for {len(case.values)}"
    if case.unit != "?":
        assert found.wavelength_unit in (case.unit, ""), f"unit {found.wavelength_unit!r} for {case.unit!r}"
        assert found.wavelength_unit or found.notes, "a unit that is not known and no note of it"
    for k, (trace, expected) in enumerate(zip(found.traces, case.values, strict=True)):
        np.testing.assert_allclose(trace.wavelengths, case.axis, rtol=1e-6)
        np.testing.assert_allclose(trace.values, expected, rtol=1e-9, atol=case.tolerance)
        level = None if case.levels is None else case.levels[k]
        if trace.concentration is not None and case.levels is not None:
            assert level is not None, f"'{trace.name}' taken as {trace.concentration}"
            assert abs(trace.concentration[0] - level) <= 1e-9 * abs(level), f"'{trace.name}': {trace.concentration}"
        elif level is not None:
            raise AssertionError(f"no concentration taken from '{trace.name}', which says {level}")
    return "read"


def run(cases: int, seed: int, folder: Path, stop: bool = True) -> Counter[str]:
    """So many files; the outcomes by family, and the failures."""
    rng, outcomes = random.Random(seed), Counter()
    for number in range(cases):
        case = make(rng)
        try:
            outcomes[f"{check(case, folder / f'case{number % 7}.dat')} {case.what.split()[0]}"] += 1
        except Exception as error:
            if stop:
                raise AssertionError(f"case {number}: {case.what}: {error}") from error
            outcomes["FAILED"] += 1
            print(f"case {number}: {case.what}: {str(error)[:300]!r}", flush=True)
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        outcomes = run(options.cases, options.seed, Path(folder), stop=False)
    refused = sum(n for what, n in outcomes.items() if what.startswith("refused"))
    print(f"{options.cases} files in {time.monotonic() - started:.0f} s, {refused} refused: {dict(outcomes)}")
    return 1 if outcomes["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
